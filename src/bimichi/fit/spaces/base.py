"""`Space`: what is searched when a measure is learned, and what learning asks of it; see docs/design.md.

The order among some elements of a lattice is found only where it matters. A program begins with pairs that are
neighbours in the lattice; a sweep over its solution finds, for each element, the one below it that has the largest
value: if that is more than its own, the two are a pair that was missing.
"""

import logging
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import clarabel
import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from bimichi._jit import jit
from bimichi._types import Codes, Floats, Ints
from bimichi.measures.files import COMPLETIONS
from bimichi.measures.lattice import Lattice
from bimichi.scenes.bags import Bags


class Completion(NamedTuple):
    """Valid values, and for each code the known codes whose values bound its own."""

    values: Floats
    lower: Codes  # in every valid measure, the value here is no more than that of the code itself
    upper: Codes  # and here no less


class QuadraticRows(NamedTuple):
    """The rows of a program: linear functions ``weights @ v[codes] + constant`` of the values v."""

    codes: Codes
    weights: Floats
    constant: Floats
    alone: Ints  # rows that cost their square
    share: Floats  # how much each of them counts
    tied: Ints  # rows that bound a slack from below
    slack: Ints  # which
    slack_weight: Floats  # how much the square of each slack counts


class Minimum(NamedTuple):
    """The minimum of a program."""

    values: Floats  # NaN for those that no row uses
    costs: Floats  # the value of each row there
    slacks: Floats
    bound: float  # no valid values have a smaller sum of squares


class Usage(Protocol):
    """Counts of how often instances use each code, with sources as they are or with any of them inverted."""

    def __add__(self, other: Any) -> Self:
        """Return the usage by the instances of both."""

    def counts(self, weighted: bool, signs: Any = None) -> Ints:
        """Return how many instances touch each code, or give it weight, sources multiplied by these signs."""


class Order(Protocol):
    """As much of the order of the values as programs were found to need; never changed, so threads may share it."""

    def with_violated(self, values: Floats, tolerance: float) -> tuple[Any, bool]:
        """Return the order with what these values (NaN where unknown) violate, and whether any of it is new."""

    def joined(self, other: Any) -> Any:
        """Return the order that has all of both."""


class Instances(Protocol):
    """The instances of bags, ready to be fused; each space asks its own for further sums in `least_squares`."""

    def fuse(self, values: Floats) -> Floats:
        """Return the integral of every instance."""

    def rows(self, which: Ints) -> tuple[Codes, Floats]:
        """Return codes and weights of some instances, each of shape (len(which), row_length)."""

    def gram(self, targets: Any) -> Any:
        """Return the mean over each bag of squared distances to these targets, as a form that can be added up."""

    def with_signs(self, signs: Floats, bags: Bags) -> Self:
        """Return the instances with sources multiplied by these signs, as those of `bags` already are."""


class Sums(Protocol):
    """Labelled bags that can be asked for sums over all instances."""

    labels: NDArray[Any]
    weights: Floats

    def total(self, question: str, **arguments: Any) -> Any:
        """Add up what all instances, wherever they are, answer to a question: a method of the space's instances."""


class Space(Protocol):
    """The values that make up a measure."""

    offers: ClassVar[frozenset[str]]  # what a solver may count on; see `bimichi.fit.problem`
    lattice: Lattice | None  # the elements and their order; None for terms
    n_sources: int
    size: int  # how many values there are
    row_length: int  # how many of them an instance uses at most
    zero_bound: bool  # whether g(empty, empty) = 0 is part of the order
    polishes: bool  # whether a program of the highest precision is quick enough to end a search with

    def instances(self, bags: Bags, n_jobs: int | None = None) -> Instances:
        """Prepare the instances of bags."""

    def count_usage(self, X: NDArray[Any], n_jobs: int | None = None) -> Usage:
        """Count how often instances use each code."""

    def middle(self) -> Floats:
        """Return the values in the middle of all valid ones."""

    def sample(self, rng: Generator) -> Floats:
        """Draw valid values at random."""

    def known_at(self, values: Floats, codes: Codes) -> Floats:
        """Return the values from which the others can be completed if these codes alone matter; NaN elsewhere."""

    def complete(self, partial: Floats, completion: str) -> Completion:
        """Return valid values from those that a program found: NaN is filled by a rule, rounding undone."""

    def snapped(self, values: Floats, near: float) -> Floats:
        """Return valid values in which what lies within `near` of a bound, or of each other, is equal."""

    def order(self) -> Order:
        """Return the order that programs start with."""

    def minimise(self, rows: QuadraticRows, order: Any, precision: float, near: Floats) -> Minimum | None:
        """Minimise a sum of squares of rows and slacks over values in an `Order`; None if that fails.

        `near` are values that the minimum may be near to.
        """

    def least_squares(
        self, data: Sums, targets: tuple[float, float], completion: str, precisions: Sequence[float]
    ) -> tuple[Floats, float] | None:
        """Minimise the mean over each bag of squared distances to the targets of negative and positive bags.

        Values without weight follow by the rule `completion`. Returns the values and a lower bound of the minimum, with
        the first of `precisions` that succeeds; None if none does.
        """

    def lines(self, use: Floats) -> Any:
        """Return the programs over slope * C + offset of this space, a `LineProgram`; `use` is the weight of codes."""

    def measure(self, values: Floats, names: Sequence[str] | None = None) -> Any:
        """Return the `Measure` that these values make up."""


Pairs = tuple[Ints, Ints]


def limits(lattice: Lattice, elements: Ints) -> tuple[Floats, Floats]:
    """Return the least and the greatest value that the boundary leaves each of `elements`; O(m len(elements))."""
    up, down = lattice.masks(elements)
    low = np.where((down == 0) & lattice.zero_bound, 0.0, lattice.low)
    return low, np.where((up == 0) & lattice.zero_bound, 0.0, 1.0)


def highest_below(lattice: Lattice, values: Floats) -> tuple[Floats, Codes]:
    """Return the largest known value at or below each element, and the code of the element that has it.

    NaN is unknown; nothing else is added, the boundary neither. Where nothing is known below, the value is -inf and the
    code that of the element itself; so it is where its own value is the largest. O(m base^m); without the zero bound,
    code 0 is passed through but has no value.
    """
    return _highest(lattice, values, lattice.chain)


def lowest_above(lattice: Lattice, values: Floats) -> tuple[Floats, Codes]:
    """Return the smallest known value at or above each element, and the code of its element; see `highest_below`."""
    value, source = _highest(lattice, -values, lattice.chain[::-1])
    return -value, source


def _highest(lattice: Lattice, values: Floats, chain: Sequence[int]) -> tuple[Floats, Codes]:
    """Return the largest known value at or below each element in the order of `chain`, and the code of its element."""
    value = np.where(np.isnan(values), -np.inf, values)
    if not lattice.zero_bound:
        value[0] = -np.inf
    source = np.arange(lattice.size, dtype=np.int32)
    _carry_up(value, source, np.array(chain), lattice.n_sources)
    return value, source


def completion_of(lattice: Lattice, partial: Floats, completion: str) -> Completion:
    """Fill NaN by the rule, and undo what rounding did to the order: the result is monotone and within bounds.

    O(m base^m). Unlike `bimichi.measures.files.filled`, known values may contradict each other a little, and what
    bounds each value is returned with it.
    """
    codes = np.flatnonzero(~np.isnan(partial))
    known = np.full(lattice.size, np.nan)
    known[codes] = np.clip(partial[codes], *limits(lattice, codes))
    low, lower = highest_below(lattice, lattice.with_boundary(known))
    if completion == "lowest":
        return Completion(lattice.with_boundary(low), lower, lower)
    known[codes] = low[codes]
    known = lattice.with_boundary(known)
    low, lower = highest_below(lattice, known)
    high, upper = lowest_above(lattice, known)
    values = lattice.with_boundary(COMPLETIONS[completion](low, np.maximum(low, high)))
    return Completion(values, lower, upper)


class OrderedPairs(Order):
    """Ordered pairs of elements that were found to matter."""

    def __init__(self, lattice: Lattice, keys: Ints | None = None) -> None:
        self.lattice = lattice
        self._keys = np.empty(0, np.int64) if keys is None else keys  # lower * size + upper

    def among(self, elements: Ints) -> Pairs:
        """Pairs (lower, upper) of the known order, and neighbours in the lattice, as positions in `elements`."""
        position = np.full(self.lattice.size, -1)
        position[elements] = np.arange(len(elements))
        near = _neighbours(self.lattice, elements, position)
        lower, upper = (position[codes] for codes in np.divmod(self._keys, self.lattice.size))
        both = (lower >= 0) & (upper >= 0)
        return np.concatenate([near[0], lower[both]]), np.concatenate([near[1], upper[both]])

    def with_violated(self, values: Floats, tolerance: float) -> tuple["OrderedPairs", bool]:
        """Add the pairs whose values are out of order by more than `tolerance`: of each element the worst two."""
        below, lower = highest_below(self.lattice, values)
        above, upper = lowest_above(self.lattice, values)
        high, low = np.flatnonzero(below > values + tolerance), np.flatnonzero(above < values - tolerance)
        size = self.lattice.size
        keys = np.concatenate([lower[high].astype(np.int64) * size + high, low * size + upper[low]])
        order = OrderedPairs(self.lattice, np.union1d(self._keys, keys))
        return order, len(order._keys) > len(self._keys)

    def joined(self, other: "OrderedPairs") -> "OrderedPairs":
        return OrderedPairs(self.lattice, np.union1d(self._keys, other._keys))


def _neighbours(lattice: Lattice, elements: Ints, position: Ints) -> Pairs:
    """Pairs of `elements` that the lattice has as covers, given the position of every code, -1 for none."""
    lowers, uppers = [], []
    for k in range(lattice.n_sources):
        step = lattice.base**k
        digit = elements // step % lattice.base
        for a, b in pairwise(lattice.chain):
            at = np.flatnonzero(digit == a)
            to = position[elements[at] + (b - a) * step]
            lowers.append(at[to >= 0])
            uppers.append(to[to >= 0])
    if not lattice.zero_bound:  # what held through code 0, which is no variable
        steps = lattice.base ** np.arange(lattice.n_sources)
        down, up = position[2 * steps], position[steps]
        lowers.append(down[(down >= 0) & (up >= 0)])
        uppers.append(up[(down >= 0) & (up >= 0)])
    return np.concatenate(lowers), np.concatenate(uppers)


@jit
def _carry_up(value: Any, source: Any, chain: Any, n_sources: int) -> None:
    """Running maxima along each axis, in place, with the codes that they come from."""
    base, stride = chain.size, 1
    for _ in range(n_sources):
        for c in range(1, base):
            below, here = chain[c - 1] * stride, chain[c] * stride
            for outer in range(0, value.size, base * stride):
                for i in range(outer, outer + stride):
                    if value[i + below] > value[i + here]:
                        value[i + here] = value[i + below]
                        source[i + here] = source[i + below]
        stride *= base


log = logging.getLogger(__name__)

PRECISION = 1e-8

POLISH = 1e-13  # J is flat at its minimum: J to 1e-13 is an element to 1e-6. Not every QP can be solved so far


class Program:
    """Minimise x'Px/2 + q'x under linear constraints, which are added block by block as triplets.

    Building one sparse matrix from triplets is much quicker than stacking many, and these programs are small.
    """

    def __init__(self, n_variables: int) -> None:
        self.n_variables = n_variables
        self.n_rows = 0
        self.n_equal = 0
        self.n_cones = 0
        self._triplets: list[tuple[Ints, Ints, Floats]] = []
        self._limit: list[Floats] = []
        self.multipliers = np.empty(0)  # of the rows, once solved

    def equal(self, limit: Floats, *triplets: tuple[ArrayLike, ArrayLike, ArrayLike]) -> None:
        """Add rows A x = limit; before any `below`."""
        self.n_equal += len(limit)
        self.below(limit, *triplets)

    def below(self, limit: Floats, *triplets: tuple[ArrayLike, ArrayLike, ArrayLike]) -> None:
        """Add rows A x <= limit, A given by triplets (row within this block, column, value)."""
        for row, column, data in triplets:
            row, column, data = np.broadcast_arrays(row, column, np.asarray(data, dtype=np.float64))
            self._triplets.append((row.ravel() + self.n_rows, column.ravel(), data.ravel()))
        self._limit.append(limit)
        self.n_rows += len(limit)

    def in_cones(self, *triplets: tuple[ArrayLike, ArrayLike, ArrayLike]) -> None:
        """Add second-order cones, after all other rows: A x, three rows at a time, has ``first >= |second, third|``."""
        count = 1 + max(int(np.max(row)) for row, _, _ in triplets)
        self.below(
            np.zeros(count), *((row, column, -np.asarray(data, dtype=np.float64)) for row, column, data in triplets)
        )
        self.n_cones += count // 3

    def below_in_order(self, lattice: Lattice, elements: Ints, pairs: Pairs) -> None:
        """Let the first variables be the values of `elements`: `pairs` of them in order, and within their bounds."""
        lower, upper = pairs
        rows = np.arange(len(lower))
        self.below(np.zeros(len(lower)), (rows, lower, 1.0), (rows, upper, -1.0))
        low, high = limits(lattice, elements)
        # A bound that a neighbour has, too, follows from the order.
        floor, ceiling = np.ones(len(elements), dtype=bool), np.ones(len(elements), dtype=bool)
        floor[upper[low[lower] == low[upper]]] = False
        ceiling[lower[high[lower] == high[upper]]] = False
        for bound, side, needed in ((high, 1.0, ceiling), (low, -1.0, floor)):
            which = np.flatnonzero(needed)
            self.below(side * bound[which], (np.arange(len(which)), which, side))

    def matrix(self) -> tuple[sp.csc_matrix, Floats]:
        """Return the rows, first those that are equal, and their limits."""
        row, column, data = map(np.concatenate, zip(*self._triplets, strict=True))
        return sp.csc_matrix((data, (row, column)), shape=(self.n_rows, self.n_variables)), np.concatenate(self._limit)

    def solve(self, P: sp.csc_matrix, q: Floats, precision: float = PRECISION) -> tuple[Floats, float] | None:
        """Return the minimum and the dual value, a lower bound; None when Clarabel reports trouble.

        `P` is upper triangular.
        """
        answer = self._answer(P, q, *self.matrix(), precision)
        if answer.status not in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
            log.debug("Clarabel, asked for %g: %s", precision, answer.status)
            return None
        self.multipliers = np.array(answer.z)
        return np.array(answer.x), float(answer.obj_val_dual)

    def solve_within(
        self, P: sp.csc_matrix, q: Floats, low: Floats, high: Floats, precision: float
    ) -> tuple[Floats, float] | None:
        """Return a point near the minimum, and a lower bound that holds whatever Clarabel's tolerance.

        Variables must lie in [low, high] at some minimum. Multipliers z are projected into the dual cone; then no
        feasible x has less than ``-p'Pp/2 - b'z + (Pp + q + A'z)'x``, for whatever point p, and the last term is least
        at a corner of the box. What rounding may add is subtracted. None if the point is not finite.
        """
        A, b = self.matrix()
        answer = self._answer(P, q, A, b, precision)
        x, z = np.array(answer.x), np.array(answer.z)
        if not (np.isfinite(x).all() and np.isfinite(z).all()):
            return None
        linear = slice(self.n_equal, self.n_rows - 3 * self.n_cones)
        z[linear] = np.maximum(z[linear], 0.0)
        cones = z[linear.stop :].reshape(-1, 3)
        cones[:, 0] = np.maximum(cones[:, 0], np.hypot(cones[:, 1], cones[:, 2]) * (1 + 1e-15))
        return x, dual_bound(P, q, A, b, x, z, low, high)

    def _answer(self, P: sp.csc_matrix, q: Floats, A: sp.csc_matrix, limit: Floats, precision: float) -> Any:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = precision
        settings.iterative_refinement_enable = precision < PRECISION  # above, it is not needed, but slow
        n_linear = self.n_rows - self.n_equal - 3 * self.n_cones
        cones = [clarabel.ZeroConeT(self.n_equal), clarabel.NonnegativeConeT(n_linear)]
        cones += [clarabel.SecondOrderConeT(3)] * self.n_cones
        return clarabel.DefaultSolver(P, q, A, limit, cones, settings).solve()


def dual_bound(
    P: sp.csc_matrix, q: Floats, A: sp.csc_matrix, b: Floats, x: Floats, z: Floats, low: Floats, high: Floats
) -> float:
    """Return a lower bound of x'Px/2 + q'x where b - A x is in a cone and low <= x <= high, by z in its dual cone.

    `P` is upper triangular and positive semidefinite; x may be any point, best one near the minimum.
    """
    pull = P @ x + sp.triu(P, 1).T @ x
    rest = pull + q + A.T @ z
    terms = np.concatenate([-0.5 * x * pull, -b * z, np.minimum(rest * low, rest * high)])
    # Each entry of `pull` and `rest` is a sum of products, with an error relative to the sum of their magnitudes.
    reach = np.maximum(np.abs(low), np.abs(high))
    whole = abs(P) @ np.abs(x) + abs(sp.triu(P, 1)).T @ np.abs(x)
    size = np.abs(x) @ whole + np.abs(b) @ np.abs(z) + reach @ (whole + np.abs(q) + abs(A).T @ np.abs(z))
    longest = max(np.diff(A.indptr).max(initial=1), np.diff(P.indptr).max(initial=1), 1)
    return float(terms.sum()) - float(np.finfo(np.float64).eps * (longest + np.log2(2 + len(terms)) + 8) * size)
