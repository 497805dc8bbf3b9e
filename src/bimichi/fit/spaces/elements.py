"""The space of all monotone values on a lattice: bi-capacities, with or without the zero bound, and capacities."""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from numpy.typing import NDArray

from bimichi._jit import jit
from bimichi._types import Codes, Floats, Ints
from bimichi.fit.spaces.base import (
    Completion,
    Instances,
    Minimum,
    OrderedPairs,
    Program,
    QuadraticRows,
    Space,
    Sums,
    completion_of,
)
from bimichi.fit.spaces.lines import ElementLines
from bimichi.fit.spaces.sums import Gram, LossInstances, RowsOfSquares, check_used, gram
from bimichi.integral.linear import ElementUsage, count_usage, linear_form
from bimichi.integral.planes import SMALL_CHUNK, check_n_jobs, run_chunks
from bimichi.measures.base import TOLERANCE
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.capacity import Capacity
from bimichi.measures.lattice import Lattice, pair_lattice, sample, subset_lattice
from bimichi.scenes.bags import Bags


class Rows(NamedTuple):
    """The linear form of all instances, bag by bag, as kernels take it."""

    codes: Codes
    weights: Floats
    counts: Floats
    offsets: Ints
    labels: Floats  # above 0 for positive bags, or real
    bag_weights: Floats


class ElementInstances(LossInstances, Instances):
    """Instances as arrays of codes and weights; O(n m) memory."""

    def __init__(self, space: "ElementSpace", bags: Bags, n_jobs: int | None = None) -> None:
        codes, weights = linear_form(bags.X, space.kind, n_jobs=n_jobs)
        weights, labels = weights.astype(np.float64, copy=False), bags.labels.astype(np.float64)
        self._space, self._bags, self._n_jobs = space, bags, check_n_jobs(n_jobs)
        self._grams: dict[tuple[float, float], Gram] = {}
        self.table = Rows(codes, weights, bags.counts, bags.offsets, labels, bags.weights)

    def fuse(self, values: Floats) -> Floats:
        n = len(self.table.codes)
        chunks = [slice(start, start + SMALL_CHUNK) for start in range(0, n, SMALL_CHUNK)]
        return np.concatenate(run_chunks(self._fuser(values), chunks, self._n_jobs))

    def rows(self, which: Ints) -> tuple[Codes, Floats]:
        return self.table.codes[which], self.table.weights[which]

    def with_signs(self, signs: Floats, bags: Bags) -> "ElementInstances":
        other = copy(self)  # signs change the codes of rows, and those of quadratic forms, but nothing else
        other._bags = bags
        other._grams = {targets: form.with_signs(signs) for targets, form in self._grams.items()}
        other.table = self.table._replace(codes=self._space.lattice.with_signs(signs)[self.table.codes])
        return other

    def gram(self, targets: tuple[float, float]) -> Gram:
        """Return the mean over each bag of squared distances to these targets as a quadratic form; O(n m^2)."""
        if targets not in self._grams:
            target = np.repeat(np.where(self._bags.labels, targets[1], targets[0]), np.diff(self.table.offsets))
            self._grams[targets] = self._squares(self._bags.shares(), target)
        return self._grams[targets]

    def _fuser(self, values: Floats) -> Callable[[slice | Ints], Floats]:
        def fuse(part: slice | Ints) -> Floats:
            codes = self.table.codes[part]
            fused = np.empty(len(codes))
            _fuse(codes, self.table.weights[part], values, fused)
            return fused

        return fuse

    def _add_part(self, factor: Floats, part: slice) -> Floats:
        total = np.zeros(self._space.size)
        _add_rows(self.table.codes[part], self.table.weights[part], factor, total)
        return total

    def _squares_of(self, share: Floats, part: slice) -> Gram:
        return self._squares(share, np.ones(len(share)), part)

    def _squares(self, share: Floats, target: Floats, part: slice = slice(None)) -> Gram:
        codes, weights = self.table.codes[part], self.table.weights[part]

        def rows(chunk: slice) -> RowsOfSquares:
            return RowsOfSquares(codes[chunk], weights[chunk], share[chunk], target[chunk])

        return gram(self._space.lattice, len(share), rows, self._n_jobs)


class ElementSpace(Space):
    """Monotone values on a lattice of pairs of disjoint sets of sources ("bicapacity"), or of sets ("capacity")."""

    offers = frozenset({"elements", "one pass"})
    polishes = True
    lattice: Lattice

    def __init__(
        self, n_sources: int, kind: Literal["bicapacity", "capacity"] = "bicapacity", zero_bound: bool = True
    ) -> None:
        self.kind, self.zero_bound = kind, zero_bound
        self.lattice = pair_lattice(n_sources, zero_bound) if kind == "bicapacity" else subset_lattice(n_sources)
        self.n_sources = self.row_length = n_sources
        self.size = self.lattice.size

    def instances(self, bags: Bags, n_jobs: int | None = None) -> ElementInstances:
        return ElementInstances(self, bags, n_jobs)

    def count_usage(self, X: NDArray[Any], n_jobs: int | None = None) -> ElementUsage:
        return count_usage(X, self.kind, check_range=False, n_jobs=n_jobs)

    def middle(self) -> Floats:
        lower, upper = self.lattice.bounds(np.full(self.size, np.nan))
        return (lower + upper) / 2

    def sample(self, rng: Generator) -> Floats:
        return sample(self.lattice, rng)

    def known_at(self, values: Floats, codes: Codes) -> Floats:
        partial = np.full_like(values, np.nan)
        partial[codes] = values[codes]
        return partial

    def complete(self, partial: Floats, completion: str) -> Completion:
        return completion_of(self.lattice, partial, completion)

    def snapped(self, values: Floats, near: float) -> Floats:
        """Make equal what lies within `near`, one value after the other; a bound among them is what they become.

        The map from old to new values never falls, and leaves -1, 0 and 1 where they are, so that all order is kept.
        """
        bounds = np.array([-1.0, 0.0, 1.0])
        levels = np.union1d(values, bounds)
        group = np.append(0, np.cumsum(np.diff(levels) > near))
        starts = np.flatnonzero(np.append(True, np.diff(group) > 0))
        level = levels[starts]
        level[group[np.searchsorted(levels, bounds)]] = bounds
        return np.asarray(level[group[np.searchsorted(levels, values)]])

    def order(self) -> OrderedPairs:
        return OrderedPairs(self.lattice)

    def minimise(self, rows: QuadraticRows, order: OrderedPairs, precision: float, near: Floats) -> Minimum | None:
        elements, lines, constant = _lines(self.lattice, rows)
        n_v = len(elements)
        program = Program(n_v + len(rows.slack_weight))
        tied, alone = lines[rows.tied].tocoo(), lines[rows.alone]
        slacks = (np.arange(len(rows.tied)), n_v + rows.slack, -1.0)
        program.below(-constant[rows.tied], (tied.row, tied.col, tied.data), slacks)
        program.below_in_order(self.lattice, elements, order.among(elements))
        weighted = sp.diags_array(2 * rows.share) @ alone
        P = sp.triu(alone.T @ weighted, format="csc")
        P = sp.block_diag([P, sp.diags_array(2 * rows.slack_weight)], format="csc")
        q = np.append(weighted.T @ constant[rows.alone], np.zeros(len(rows.slack_weight)))
        solved = program.solve(sp.csc_matrix(P), q, precision)
        if solved is None:
            return None
        x, bound = solved
        partial = np.full(self.size, np.nan)
        partial[elements] = x[:n_v]
        bound += float(rows.share @ constant[rows.alone] ** 2)
        return Minimum(partial, lines @ x[:n_v] + constant, x[n_v:], bound)

    def least_squares(
        self, data: Sums, targets: tuple[float, float], completion: str, precisions: Sequence[float]
    ) -> tuple[Floats, float] | None:
        lattice, form = self.lattice, data.total("gram", targets=targets)
        boundary = lattice.with_boundary(np.zeros(lattice.size))
        use = form.matrix.diagonal()
        check_used(lattice, use)
        elements = _variables(lattice, np.flatnonzero(use > 0))
        scale = float(use.max())
        pull = form.matrix @ boundary
        constant = form.constant + boundary @ pull - 2 * form.linear @ boundary
        partial = np.full(lattice.size, np.nan)
        if len(elements) == 0:
            return completion_of(lattice, partial, completion).values, constant
        P = sp.csc_matrix(sp.triu(2 / scale * form.matrix[elements][:, elements]))
        q = 2 / scale * (pull - form.linear)[elements]
        for precision in precisions:
            solved = minimise_in_order(lattice, elements, P, q, precision)
            if solved is not None:
                partial[elements] = solved[0]
                partial[use == 0] = np.nan  # some were variables only because that is simpler
                return completion_of(lattice, partial, completion).values, scale * solved[1] + constant
        return None

    def lines(self, use: Floats) -> ElementLines:
        check_used(self.lattice, use)
        return ElementLines(self.lattice, _variables(self.lattice, np.flatnonzero(use > 0)), use)

    def measure(self, values: Floats, names: Sequence[str] | None = None) -> BiCapacity | Capacity:
        return Capacity(values, names) if self.kind == "capacity" else BiCapacity(values, names, self.zero_bound)


def _variables(lattice: Lattice, used: Ints) -> Ints:
    """Return the elements that are variables, none fixed: those in use, or all if they are most, for their order."""
    free = np.setdiff1d(used, list(lattice.fixed))
    return free if 2 * len(free) < lattice.size else np.setdiff1d(np.arange(lattice.size), list(lattice.fixed))


def minimise_in_order(
    lattice: Lattice, elements: Ints, P: sp.csc_matrix, q: Floats, precision: float
) -> tuple[Floats, float] | None:
    """Minimise x'Px/2 + q'x over the values of elements, add what is out of order, and again, until nothing is."""
    order, more = OrderedPairs(lattice), True
    while more:
        program = Program(len(elements))
        program.below_in_order(lattice, elements, order.among(elements))
        solved = program.solve(P, q, precision)
        if solved is None:
            return None
        partial = np.full(lattice.size, np.nan)
        partial[elements] = solved[0]
        order, more = order.with_violated(partial, max(TOLERANCE, 10 * precision))
    return solved


def _lines(lattice: Lattice, rows: QuadraticRows) -> tuple[Ints, sp.csr_array, Floats]:
    """Return the free elements that rows use, and the rows as a matrix over these and a constant of the fixed ones."""
    codes, weights = rows.codes, rows.weights
    elements = np.setdiff1d(codes[weights != 0], list(lattice.fixed)).astype(np.int64)
    position = np.full(lattice.size, -1)
    position[elements] = np.arange(len(elements))
    used = (weights != 0) & (position[codes] >= 0)
    boundary = lattice.with_boundary(np.zeros(lattice.size))
    pointers = np.append(0, np.cumsum(used.sum(axis=1)))
    matrix = sp.csr_array((weights[used], position[codes[used]], pointers), shape=(len(codes), len(elements)))
    return elements, matrix, rows.constant + (weights * boundary[codes]).sum(axis=1)


@jit
def _fuse(codes, weights, values, fused):
    for i in range(codes.shape[0]):
        total = 0.0
        for k in range(codes.shape[1]):
            total += weights[i, k] * values[np.uint32(codes[i, k])]
        fused[i] = total


@jit
def _add_rows(codes, weights, factor, total):
    for i in range(codes.shape[0]):
        for k in range(codes.shape[1]):
            total[np.uint32(codes[i, k])] += factor[i] * weights[i, k]
