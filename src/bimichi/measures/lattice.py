"""Pairs of disjoint subsets, and subsets, as codes; their order, and bounds by sweeps.

Both are products of m equal chains: a pair (A, B) gives each source one of three digits, 0 (in neither), 1 (in A) and
2 (in B), ordered 2 < 0 < 1; a subset gives it a bit. The code of an element is ``sum(digit[k] * base**k)``, so an array
of one value per code is a table of m axes, and what holds "for all elements below" is m sweeps along them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._checks import check_choice, check_integer
from bimichi._types import Codes, Flags, Floats, Ints
from bimichi.errors import InvalidInputError

MAX_ELEMENTS = 3**14


@dataclass(frozen=True)
class Lattice:
    """The ordered elements on which a measure lives; made by `pair_lattice` or `subset_lattice`.

    Attributes
    ----------
    n_sources : int
        The number of chains, m.
    chain : tuple of int
        The digits of one source from lowest to highest: (2, 0, 1) for pairs, (0, 1) for subsets.
    zero_bound : bool
        Without it, code 0 (the pair of empty sets) is not part of the order, but what held through it still holds:
        (empty, {j}) stays below ({k}, empty) for all j and k.
    """

    n_sources: int
    chain: tuple[int, ...]
    zero_bound: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_sources", check_integer(self.n_sources, "n_sources"))
        if self.n_sources > 64:
            raise InvalidInputError(
                f"{self.n_sources} sources are far too many: at most {MAX_ELEMENTS:,} elements are supported, which "
                f"{self.base}^{self.n_sources} exceeds. Are the axes swapped? Sources go along the last one.",
                code="sources-many",
            )
        if self.size > MAX_ELEMENTS:
            covers = (self.base - 1) * self.n_sources * self.size // self.base
            fewer = f", or a 2-additive bi-capacity, of {2 * self.n_sources**2:,} terms: BiMIChI(..., additivity=2)"
            raise InvalidInputError(
                f"{self.n_sources} sources have {self.base}^{self.n_sources} = {self.size:,} elements: "
                f"{self.size * 8 / 2**30:,.1f} GiB for the values, {covers * 8 / 2**30:,.1f} GiB for the cover "
                f"relation. At most {MAX_ELEMENTS:,} elements are supported; use fewer sources"
                f"{fewer if self.base == 3 else ''}.",
                code="sources-many",
            )

    @property
    def base(self) -> int:
        """The number of digits of one source, 3 or 2."""
        return len(self.chain)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(self.base**self.n_sources)

    @property
    def top(self) -> int:
        """The code above all others: (C, empty), or C."""
        return (self.size - 1) // (self.base - 1)

    @property
    def bottom(self) -> int:
        """The code below all others: (empty, C), or the empty set."""
        return self.size - 1 if self.base == 3 else 0

    @property
    def fixed(self) -> dict[int, float]:
        """The boundary: codes whose values are given. Without the zero bound, code 0 is stored as 0."""
        return {0: 0.0, self.top: 1.0} | ({self.bottom: -1.0} if self.base == 3 else {})

    @property
    def low(self) -> float:
        """The least value that a measure may have here: that of the bottom, -1 or 0; the greatest is 1."""
        return self.fixed[self.bottom]

    def masks(self, codes: ArrayLike) -> tuple[Codes, Codes]:
        """Bitmasks of the sources with digit 1 and with digit 2, for every code."""
        rest = np.asarray(codes, dtype=np.int32).copy()
        up, down = np.zeros_like(rest), np.zeros_like(rest)
        for k in range(self.n_sources):
            rest, digit = np.divmod(rest, self.base)
            up |= (digit == 1).astype(np.int32) << k
            down |= (digit == 2).astype(np.int32) << k
        return up, down

    def from_masks(self, up: ArrayLike, down: ArrayLike = 0) -> Codes:
        """Return codes of the elements with these bitmasks; the inverse of `masks`."""
        up, down = np.broadcast_arrays(np.asarray(up, dtype=np.int32), np.asarray(down, dtype=np.int32))
        limit = 1 << self.n_sources
        if np.any((up < 0) | (up >= limit) | (down < 0) | (down >= limit)):
            raise InvalidInputError(
                f"Bitmasks of {self.n_sources} sources must lie in 0..{limit - 1}.", code="masks-range"
            )
        if np.any(up & down) or (self.base == 2 and np.any(down)):
            raise InvalidInputError(
                "The two sets of an element must be disjoint (and the second empty in a Capacity).",
                code="element-disjoint",
            )
        codes = np.zeros(up.shape, dtype=np.int32)
        for k in range(self.n_sources):
            codes += np.int32(self.base**k) * ((up >> k & 1) + 2 * (down >> k & 1))
        return codes

    def code(self, up: Sequence[int], down: Sequence[int] = ()) -> int:
        """Code of the element with source indices `up` at digit 1 and `down` at digit 2."""
        members = [*up, *down]
        if len(set(members)) < len(members) or (self.base == 2 and down):
            raise InvalidInputError(
                f"The sets of an element must be disjoint, got {list(up)} and {list(down)}.", code="element-disjoint"
            )
        if any(not 0 <= k < self.n_sources for k in members):
            raise InvalidInputError(
                f"Source indices must lie in 0..{self.n_sources - 1}, got {members}.",
                code="source-index",
                value=members,
            )
        return int(sum(self.base**k for k in up) + 2 * sum(self.base**k for k in down))

    def sets(self, code: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Source indices at digit 1 and at digit 2; the inverse of `code`."""
        self._check_code(code)
        up, down = (int(mask) for mask in self.masks(code))
        sources = range(self.n_sources)
        return tuple(k for k in sources if up >> k & 1), tuple(k for k in sources if down >> k & 1)

    def subsets(self) -> list[tuple[int, ...]]:
        """Source indices of all subsets, in bitmask order: that of rows and columns of the paper's table."""
        return [tuple(k for k in range(self.n_sources) if mask >> k & 1) for mask in range(1 << self.n_sources)]

    def _check_code(self, code: int) -> None:
        if not 0 <= code < self.size:
            raise InvalidInputError(
                f"A code of {self.n_sources} sources must lie in 0..{self.size - 1}, got {code}.",
                code="code-range",
                value=code,
            )

    def label(self, code: int, names: Sequence[str]) -> str:
        """Name an element as the paper does, e.g. ``g_{12,3}``; longer names are joined by ``+``."""
        shown = [set_label(part, names) for part in self.sets(code)]
        return f"g_{{{','.join(shown[: self.base - 1])}}}"

    def with_signs(self, signs: ArrayLike) -> Codes:
        """Return, for every code, that of the element whose sources of sign -1 are inverted: from A to B or back."""
        flips = np.asarray(signs) < 0
        codes = np.zeros(1, dtype=np.int32)
        for k, flip in enumerate(flips):
            digits = (0, 2, 1) if flip else (0, 1, 2)
            codes = np.concatenate([codes + np.int32(digit * 3**k) for digit in digits])
        return codes

    def ranks(self) -> NDArray[np.int8]:
        """Height of every element: the number of digits 1 minus that of digits 2."""
        ranks = np.zeros(1, dtype=np.int8)
        for _ in range(self.n_sources):
            ranks = np.concatenate([ranks, ranks + np.int8(1), ranks - np.int8(1)][: self.base])
        return ranks

    def heights(self) -> Ints:
        """Ranks from the middle of the lattice: as many elements at each height as at its negative."""
        ranks = self.ranks().astype(np.int64)
        return ranks if self.base == 3 else 2 * ranks - self.n_sources

    def less_equal(self, lower: ArrayLike, upper: ArrayLike) -> Flags:
        """Return whether each element of `lower` is below or equal to the matching one of `upper` (broadcast)."""
        lower, upper = np.asarray(lower), np.asarray(upper)
        (up_l, down_l), (up_u, down_u) = self.masks(lower), self.masks(upper)
        below = (up_l & ~up_u == 0) & (down_u & ~down_l == 0)
        if not self.zero_bound:
            below &= ((lower != 0) & (upper != 0)) | (lower == upper)
        return np.asarray(below)

    def below(self, code: int) -> Codes:
        """All elements strictly below `code`, sorted; cost is the length of the answer."""
        return self._cone(code, self.chain)

    def above(self, code: int) -> Codes:
        """All elements strictly above `code`, sorted; cost is the length of the answer."""
        return self._cone(code, self.chain[::-1])

    def _cone(self, code: int, chain: tuple[int, ...]) -> Codes:
        self._check_code(code)
        if not self.zero_bound and code == 0:
            return np.empty(0, dtype=np.int32)
        codes = np.zeros(1, dtype=np.int32)
        for k in range(self.n_sources):
            digit = code // self.base**k % self.base
            reachable = np.array(chain[: chain.index(digit) + 1], dtype=np.int32) * np.int32(self.base**k)
            codes = (reachable[:, None] + codes).ravel()
        codes = codes[codes != code]
        return np.sort(codes if self.zero_bound else codes[codes != 0])

    def covers(self) -> tuple[Codes, Codes]:
        """Return neighbours (lower, upper) in the order: one source moves one step up its chain.

        There are 2 m 3^(m-1) for pairs, m 2^(m-1) for subsets. Without the zero bound, (empty, {k}) below ({k}, empty)
        replaces the neighbours of code 0; the rest of what held through it follows.
        """
        lowers, uppers = [], []
        for table in self._axes(np.arange(self.size, dtype=np.int32)):
            for a, b in pairwise(self.chain):
                lowers.append(table[:, a].ravel())
                uppers.append(table[:, b].ravel())
        lower, upper = np.concatenate(lowers), np.concatenate(uppers)
        if not self.zero_bound:
            keep = (lower != 0) & (upper != 0)
            through = self._through_zero()
            lower = np.concatenate([lower[keep], through[0]])
            upper = np.concatenate([upper[keep], through[1]])
        return lower, upper

    def _through_zero(self) -> tuple[Codes, Codes]:
        steps = (3 ** np.arange(self.n_sources)).astype(np.int32)
        return 2 * steps, steps

    def _axes(self, values: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Yield views of `values` whose middle axis is the digit of source 0, 1, ..."""
        for k in range(self.n_sources):
            yield values.reshape(-1, self.base, self.base**k)

    def bounds(self, values: ArrayLike) -> tuple[Floats, Floats]:
        """Return the largest known value at or below, and the smallest at or above each element; O(m base^m).

        `values` are NaN where unknown; the boundary counts as known. ``lower > upper`` somewhere means that the known
        values contradict each other. Each bound, and anything monotone between them (their mean, the value nearest
        zero), completes `values`. The order is a product, so the maximum over everything below is m one-dimensional
        running maxima. Without the zero bound, code 0 is passed through but adds no value.
        """
        bounded = self.with_boundary(values)
        if not self.zero_bound:
            bounded[0] = np.nan
        lower = np.where(np.isnan(bounded), -np.inf, bounded)
        upper = np.where(np.isnan(bounded), np.inf, bounded)
        for low, up in zip(self._axes(lower), self._axes(upper), strict=True):
            for a, b in pairwise(self.chain):
                np.maximum(low[:, b], low[:, a], out=low[:, b])
            for b, a in pairwise(self.chain[::-1]):
                np.minimum(up[:, a], up[:, b], out=up[:, a])
        if not self.zero_bound:
            lower[0] = upper[0] = 0.0
        return lower, upper

    def beside(self, values: ArrayLike) -> tuple[Floats, Floats]:
        """Return the largest value just below and the smallest just above each element, infinite without any.

        O(m base^m). Without the zero bound, what is beside code 0 is beside each other.
        """
        values = self._one_each(values)
        below, above = np.full(self.size, -np.inf), np.full(self.size, np.inf)
        low, high = self._through_zero() if not self.zero_bound else (0, 0)
        for source, extremes, bound in (
            (values if self.zero_bound else _with_zero(values, values[low].max()), below, np.maximum),
            (values if self.zero_bound else _with_zero(values, values[high].min()), above, np.minimum),
        ):
            chain = self.chain if bound is np.maximum else self.chain[::-1]
            for table, result in zip(self._axes(source), self._axes(extremes), strict=True):
                for a, b in pairwise(chain):
                    bound(result[:, b], table[:, a], out=result[:, b])
        return below, above

    def with_boundary(self, values: ArrayLike) -> Floats:
        """Return a copy of `values` with the boundary elements set."""
        filled = self._one_each(values).copy()
        for code, value in self.fixed.items():
            filled[code] = value
        return filled

    def _one_each(self, values: ArrayLike) -> Floats:
        array = np.asarray(values, dtype=np.float64)
        if array.shape != (self.size,):
            raise InvalidInputError(
                f"values must have one entry per element, ({self.size},), got shape {array.shape}.",
                code="values-shape",
                argument="values",
            )
        return array

    def violations(self, values: ArrayLike, tolerance: float = 0.0) -> tuple[Codes, Codes]:
        """Neighbours (lower, upper) whose values fall by more than `tolerance`; empty when monotone."""
        values = self._one_each(values)
        lowers, uppers = [], []
        for k, table in enumerate(self._axes(values)):
            for a, b in pairwise(self.chain):
                outer, inner = np.nonzero(table[:, a] - table[:, b] > tolerance)
                start = outer * self.base ** (k + 1) + inner
                lowers.append(start + a * self.base**k)
                uppers.append(start + b * self.base**k)
        lower, upper = np.concatenate(lowers), np.concatenate(uppers)
        if not self.zero_bound:
            keep = (lower != 0) & (upper != 0)
            low, up = self._through_zero()
            bad = values[low] - values[up] > tolerance
            lower, upper = np.concatenate([lower[keep], low[bad]]), np.concatenate([upper[keep], up[bad]])
        return lower.astype(np.int32), upper.astype(np.int32)


def _with_zero(values: Floats, passed: float) -> Floats:
    """Return a copy with this value at code 0."""
    return np.concatenate([[passed], values[1:]])


def set_label(indices: Sequence[int], names: Sequence[str]) -> str:
    """Join the names of a subset: ``12``, or ``thermal+rgb`` when names are longer; ``∅`` when empty."""
    separator = "" if all(len(name) == 1 for name in names) else "+"
    return separator.join(names[k] for k in indices) or "∅"


def short_names(names: Sequence[str], limit: int) -> tuple[list[str], bool]:
    """Return names whose sets can be labels: numbers, if all together are longer than `limit`; and whether they are."""
    if len(set_label(range(len(names)), names)) <= limit:
        return list(names), False
    return [str(k + 1) for k in range(len(names))], True


def pair_lattice(n_sources: int, zero_bound: bool = True) -> Lattice:
    """Return the lattice of pairs (A, B) of disjoint subsets, 3^m elements: the home of a bi-capacity."""
    return Lattice(n_sources, (2, 0, 1), bool(zero_bound))


def subset_lattice(n_sources: int) -> Lattice:
    """Return the lattice of subsets, 2^m elements: the home of a capacity."""
    return Lattice(n_sources, (0, 1))


Seed = int | np.random.Generator | None


def sample(lattice: Lattice, rng: np.random.Generator, method: str = "ranks") -> Floats:
    """Draw a measure: each element uniformly between the bounds that those already drawn leave it.

    "ranks" draws all elements of one height at once, heights outward from the middle; O(m^2 3^m). "breadth-first" is
    the paper's order: outward from (empty, empty), neighbours in random order; O(9^m). Neither favours a source by its
    position.
    """
    return SAMPLERS[check_choice(method, "method", SAMPLERS)](lattice, rng)


def codes_by_height(lattice: Lattice) -> dict[int, Ints]:
    """Return the codes at each height, heights outward from the middle: 0, 1, -1, 2, ...; some are empty."""
    heights = lattice.heights()
    outward = sorted(range(-lattice.n_sources, lattice.n_sources + 1), key=lambda height: (abs(height), height < 0))
    return {height: np.flatnonzero(heights == height) for height in outward}


def _by_ranks(lattice: Lattice, rng: np.random.Generator) -> Floats:
    values = lattice.with_boundary(np.full(lattice.size, np.nan))
    codes = codes_by_height(lattice)
    for radius in (height for height in codes if height >= 0 and len(codes[height])):
        for height in rng.permutation(np.unique([radius, -radius])).tolist():
            drawn = codes[height][np.isnan(values[codes[height]])]
            lower, upper = lattice.bounds(values)
            values[drawn] = rng.uniform(lower[drawn], upper[drawn])
    return values


def _breadth_first(lattice: Lattice, rng: np.random.Generator) -> Floats:
    values = lattice.with_boundary(np.full(lattice.size, np.nan))
    neighbours: list[list[int]] = [[] for _ in range(lattice.size)]
    for a, b in zip(*replace(lattice, zero_bound=True).covers(), strict=True):  # the walk goes through code 0
        neighbours[a].append(int(b))
        neighbours[b].append(int(a))
    up, down = lattice.masks(np.arange(lattice.size))
    part_of_order = np.ones(lattice.size, dtype=bool)
    part_of_order[0] = lattice.zero_bound
    queue, seen = [0], {0}
    for code in queue:
        fresh = [other for other in neighbours[code] if other not in seen]
        rng.shuffle(fresh)
        queue.extend(fresh)
        seen.update(fresh)
        if np.isnan(values[code]):
            ordered = part_of_order & ~np.isnan(values)
            below = ordered & (up & ~up[code] == 0) & (down[code] & ~down == 0)
            above = ordered & (up[code] & ~up == 0) & (down & ~down[code] == 0)
            values[code] = rng.uniform(values[below].max(), values[above].min())
    return values


SAMPLERS = {"ranks": _by_ranks, "breadth-first": _breadth_first}


def random_generator(random_state: Seed | np.random.RandomState) -> np.random.Generator:
    """Return a generator from a seed, a generator (also of the legacy kind), or None (fresh entropy)."""
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"random_state must be None, a non-negative whole number or a numpy Generator, got {random_state!r}.",
            code="random-state",
            argument="random_state",
            value=random_state,
        ) from error
