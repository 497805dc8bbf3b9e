"""Candidates: instances that, with some sign, may decide a positive bag, without those that no measure needs."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.optimize import linprog

from bimichi._types import Codes, Flags, Floats, Ints
from bimichi.fit.objectives import ConvexForm
from bimichi.fit.problem import InMemory
from bimichi.fit.spaces.base import Pairs, limits
from bimichi.integral.linear import linear_form
from bimichi.measures.lattice import Lattice


class Box(NamedTuple):
    """Least and greatest value of every free element; what the order implies has been drawn in."""

    low: Floats
    high: Floats


class Region:
    """The free elements of a lattice; memory and time of its tables are quadratic in their number."""

    def __init__(self, lattice: Lattice) -> None:
        self.lattice = lattice
        self.elements = np.setdiff1d(np.arange(lattice.size), list(lattice.fixed))
        up, down = lattice.masks(self.elements)
        self.below = ((up[:, None] & ~up) == 0) & ((down & ~down[:, None]) == 0)  # [i, j]: i is j, or below it
        self.box = Box(*limits(lattice, self.elements))
        self._position = np.full(lattice.size, -1)
        self._position[self.elements] = np.arange(len(self.elements))
        self._boundary = lattice.with_boundary(np.zeros(lattice.size))
        self._pairs: dict[bytes, Pairs] = {}

    def sample(self, rng: Generator, n: int) -> Floats:
        """Draw n monotone measures, quickly and with no care for their distribution: half of them high, half low."""
        lattice = self.lattice
        table = rng.uniform(lattice.low, 1.0, (n, *(lattice.base,) * lattice.n_sources))
        if not lattice.zero_bound:
            table.reshape(n, -1)[:, 0] = lattice.low
        high, low = table[: n // 2], table[n // 2 :]
        for axis in range(1, lattice.n_sources + 1):
            digits = [(slice(None),) * axis + (digit,) for digit in lattice.chain]
            for below, above in pairwise(digits):
                high[above] = np.maximum(high[above], high[below])
            for above, below in pairwise(digits[::-1]):
                low[below] = np.minimum(low[below], low[above])
        # Codes count their first digit fastest, tables their last axis.
        values = table.transpose(0, *range(lattice.n_sources, 0, -1)).reshape(n, -1)[:, self.elements]
        return np.clip(values, *self.box)

    def vectors(self, codes: Codes, weights: Floats) -> tuple[Floats, Floats]:
        """Return rows of codes and weights as vectors over the free elements, and constants from the fixed ones."""
        at = self._position[codes]
        free, row = (at >= 0) & (weights != 0), np.broadcast_to(np.arange(len(codes))[:, None], codes.shape)
        vectors = np.zeros((len(codes), len(self.elements)))
        np.add.at(vectors, (row[free], at[free]), weights[free])
        return vectors, (weights * self._boundary[codes]).sum(axis=1)

    def pairs(self, some: Ints) -> Pairs:
        """Return the order among some elements without what follows from the rest of it, as positions in `some`."""
        key = some.tobytes()
        if key not in self._pairs:
            strictly = self.below[np.ix_(some, some)].copy()
            np.fill_diagonal(strictly, False)
            as_float = strictly.astype(np.float32)
            lower, upper = np.nonzero(strictly & ~((as_float @ as_float) > 0))
            self._pairs[key] = (np.asarray(lower, np.int64), np.asarray(upper, np.int64))
        return self._pairs[key]

    def above(self, box: Box, element: int, value: float) -> Box:
        """Return the box with this element, and so all above it, at least at `value`."""
        return Box(np.where(self.below[element], np.maximum(box.low, value), box.low), box.high)

    def beneath(self, box: Box, element: int, value: float) -> Box:
        """Return the box with this element, and so all below it, at most at `value`."""
        return Box(box.low, np.where(self.below[:, element], np.minimum(box.high, value), box.high))


LEAD = 1e-9  # a candidate that can lead all others by no more is dropped; the bound is lowered by what that may cost
ROUNDING = 1e-12  # the same within a box, where nothing but rounding is in the way
SAMPLES = 128  # measures tried before programs are: who leads in one of them stays
PROGRAMS = 150  # more candidates of one bag than this are not tested one by one
PAIRWISE = 40  # candidates of one bag that are compared with each other within a box
JOINED = 12  # groups to which more candidates are joined


class Candidates:
    """Candidates of all positive bags, as vectors over free elements: sign * C = vectors @ values + constants.

    Bags with the same candidates are one, with the sum of their weights. `lost` is by how much the minimum of J may be
    higher without the candidates that were dropped than with them; it is tiny.
    """

    def __init__(self, problem: InMemory, form: ConvexForm, region: Region, rng: Generator) -> None:
        self.region, self._kind = region, region.lattice.base
        self._joined: dict[bytes, tuple[Floats, Floats]] = {}
        bags, signs = problem.bags, np.array(form.positive)
        merged: dict[bytes, int] = {}
        rows: list[Ints] = []
        self.weights = np.zeros(0)
        for bag in np.flatnonzero(problem.labels):
            of_bag = np.arange(bags.offsets[bag], bags.offsets[bag + 1])
            key = np.unique(bags.X[of_bag], axis=0).tobytes()
            if merged.setdefault(key, len(rows)) == len(rows):
                rows.append(of_bag)
                self.weights = np.append(self.weights, 0.0)
            self.weights[merged[key]] += problem.weights[bag]
        every = np.concatenate([np.tile(of_bag, len(signs)) for of_bag in rows])
        self.signs = np.concatenate([np.repeat(signs, len(of_bag)) for of_bag in rows])
        self.points = np.asarray(bags.X[every], dtype=np.float64)
        vectors, constants = region.vectors(*problem.rows(every))
        self.vectors, self.constants = vectors * self.signs[:, None], constants * self.signs
        ends = np.cumsum([len(signs) * len(of_bag) for of_bag in rows])
        of_bags = np.split(np.arange(len(every)), ends[:-1])
        samples = region.sample(rng, SAMPLES)
        self.of_bags = tuple(self._leading(ids, samples) for ids in of_bags)
        dropped = np.array([len(ids) - len(kept) for ids, kept in zip(of_bags, self.of_bags, strict=True)])
        self.lost = float(self.weights @ (4 * LEAD * dropped + 8 * ROUNDING * (dropped + [len(i) for i in of_bags])))

    def values(self, ids: Ints, values: Floats) -> Floats:
        """Return sign * C of some candidates at these values of free elements."""
        return np.asarray(self.vectors[ids] @ values + self.constants[ids])

    def within(self, box: Box, ids: Ints) -> Ints:
        """Return the candidates of a bag without those that another one exceeds everywhere in the box."""
        if len(ids) < 2:
            return ids
        vectors, constants = self.vectors[ids], self.constants[ids]
        most, least = _range(vectors, constants, box)
        ids = ids[most >= least.max() - ROUNDING]
        if not 1 < len(ids) <= PAIRWISE:
            return ids
        vectors, constants = self.vectors[ids], self.constants[ids]
        used = (vectors != 0).any(axis=0)
        vectors, box = vectors[:, used], Box(box.low[used], box.high[used])
        lead, _ = _range(vectors[None] - vectors[:, None], constants[None] - constants[:, None], box)
        kept = np.ones(len(ids), dtype=bool)
        for j in range(len(ids)):
            beaten = (lead[:, j] <= ROUNDING) & kept
            beaten[j] = False
            kept[j] = not beaten.any()
        return np.asarray(ids[kept])

    def grouped(self, ids: Ints) -> tuple[Floats, Floats]:
        """Return vectors and constants of at most about `JOINED` rows that exceed all these candidates together.

        The largest of each source exceeds its members under every monotone measure. Without the zero bound an
        instance of another peak ``max |x|`` may gain or lose as much as the peaks differ by, so that is added.
        """
        if len(ids) <= JOINED:
            return self.vectors[ids], self.constants[ids]
        key = ids.tobytes()
        if key not in self._joined:
            features = np.column_stack([self.points[ids], 10.0 * self.signs[ids]])
            labels = fcluster(linkage(features, "complete"), JOINED, "maxclust")
            groups = [ids[(labels == g) & (self.signs[ids] == s)] for g in np.unique(labels) for s in (1, -1)]
            joined = [self._join(group) for group in groups if len(group)]
            self._joined[key] = (np.array([v for v, _ in joined]), np.array([c for _, c in joined]))
        return self._joined[key]

    def _join(self, ids: Ints) -> tuple[Floats, float]:
        if len(ids) == 1:
            return self.vectors[ids[0]], float(self.constants[ids[0]])
        points, sign = self.points[ids], self.signs[ids[0]]
        join = points.max(axis=0) if sign > 0 else points.min(axis=0)
        kind = "bicapacity" if self._kind == 3 else "capacity"
        (vector,), (constant,) = self.region.vectors(*linear_form(join[None], kind, check_range=False, n_jobs=1))
        peaks = np.abs(points).max(axis=1)
        lift = 0.0 if self.region.lattice.zero_bound else float(np.abs(np.abs(join).max() - peaks).max())
        return sign * vector, sign * float(constant) + lift

    def _leading(self, ids: Ints, samples: Floats) -> Ints:
        """Return the candidates of a bag that can exceed all others under some monotone measure."""
        if len(ids) == 1:
            return ids
        at = samples @ self.vectors[ids].T + self.constants[ids]
        best = at.argmax(axis=1)
        second = np.partition(at, -2, axis=1)[:, -2]
        sure = np.unique(best[at.max(axis=1) > second + LEAD])
        kept = np.ones(len(ids), dtype=bool)
        open_ones = np.setdiff1d(np.arange(len(ids)), sure)
        if len(open_ones) <= PROGRAMS:
            race = _Race(self.region, self.vectors[ids], self.constants[ids])
            for j in open_ones:
                kept[j] = race.lead(j, kept) > LEAD
        return np.asarray(ids[kept])


class _Race:
    """Linear programs that find by how much one candidate of a bag can exceed the others."""

    def __init__(self, region: Region, vectors: Floats, constants: Floats) -> None:
        used = np.flatnonzero((vectors != 0).any(axis=0))
        self._vectors, self._constants = vectors[:, used], constants
        lower, upper = region.pairs(used)
        rows, ones = np.arange(len(lower)), np.ones(len(lower))
        self._order = sp.csr_array(
            (np.append(ones, -ones), (np.append(rows, rows), np.append(lower, upper))), shape=(len(lower), len(used))
        )
        self._low = np.append(region.box.low[used], -3.0)
        self._high = np.append(region.box.high[used], 3.0)

    def lead(self, j: int, kept: Flags) -> float:
        """Return an upper bound of the lead of candidate j over the others that are kept; infinity if none is found.

        The bound follows from the multipliers, so that it holds whatever the tolerance of the solver.
        """
        others = kept.copy()
        others[j] = False
        rows = sp.hstack([sp.csr_array(self._vectors[others]), -np.ones((others.sum(), 1))])
        A = sp.vstack([sp.hstack([self._order, sp.csr_array((self._order.shape[0], 1))]), rows], format="csr")
        b = np.append(np.zeros(self._order.shape[0]), -self._constants[others])
        cost = np.append(-self._vectors[j], 1.0)
        answer = linprog(cost, A_ub=A, b_ub=b, bounds=np.column_stack([self._low, self._high]), method="highs")
        if answer.status != 0:
            return np.inf
        multipliers = np.maximum(-answer.ineqlin.marginals, 0.0)
        rest = cost + A.T @ multipliers
        least = -float(b @ multipliers) + float(np.minimum(rest * self._low, rest * self._high).sum())
        return -least + float(self._constants[j])


def _range(vectors: Floats, constants: Floats, box: Box) -> tuple[Floats, Floats]:
    """Return the greatest and the least value of linear functions in a box."""
    up, down = np.maximum(vectors, 0.0), np.minimum(vectors, 0.0)
    return up @ box.high + down @ box.low + constants, up @ box.low + down @ box.high + constants
