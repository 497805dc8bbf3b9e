"""The terms of a 2-additive bi-capacity: single sources and pairs of sources, each on its side.

A source that is up (in A) or down (in B) is a *side*: side k is source k up, side m + k is source k down. A 2-additive
bi-capacity is a sum of one number per side and one per pair of sides of different sources:

    g(A, B) = sum of b over the sides, and the pairs of sides, that are inside (A, B).

These 2 m^2 numbers are its terms. The integral is linear in them: with y = (x+, x-), one entry per side, the features
of an instance are y itself and, for each pair of sides, the smaller of the two entries. No sort is needed.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from bimichi._checks import check_integer
from bimichi._types import Codes, Floats, Ints
from bimichi.errors import InvalidInputError

MAX_SOURCES = 64
"""More would make the quadratic forms of learning larger than half a gigabyte."""

MARGIN = 1e-14
"""The rounding error of a sum of terms."""


@dataclass(frozen=True)
class Terms:
    """The order of the terms in an array, and what makes them monotone.

    The 2 m sides come first, then the pairs (s, t), s < t, in lexicographic order.

    Attributes
    ----------
    n_sources : int
        Number of sources, m.
    pairs : bool
        Whether terms of pairs may differ from zero when they are drawn or learned.
    """

    n_sources: int
    pairs: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_sources", check_integer(self.n_sources, "n_sources"))
        if self.n_sources > MAX_SOURCES:
            raise InvalidInputError(
                f"{self.n_sources} sources have {2 * self.n_sources**2:,} terms, whose quadratic form takes "
                f"{32 * self.n_sources**4 / 2**30:,.1f} GiB; at most {MAX_SOURCES} sources are supported. Use fewer."
            )

    @property
    def size(self) -> int:
        """The number of terms, 2 m^2."""
        return 2 * self.n_sources**2

    @property
    def row_length(self) -> int:
        """How many terms an instance uses at most: one per source and one per pair of sources."""
        return self.n_sources * (self.n_sources + 1) // 2

    @cached_property
    def sides(self) -> tuple[Ints, Ints]:
        """The two sides of each pair term."""
        first, second = np.triu_indices(2 * self.n_sources, 1)
        other = second - first != self.n_sources  # a source is not both up and down
        return first[other], second[other]

    @cached_property
    def both_sides(self) -> tuple[Ints, Ints]:
        """The two sides of each term; a term of one side has it twice."""
        own = np.arange(2 * self.n_sources)
        first, second = self.sides
        return np.concatenate([own, first]), np.concatenate([own, second])

    @cached_property
    def index(self) -> Codes:
        """The number of the term of two sides; of one side on the diagonal; -1 where there is none."""
        first, second = self.sides
        table = np.full((2 * self.n_sources, 2 * self.n_sources), -1, np.int32)
        np.fill_diagonal(table, np.arange(2 * self.n_sources))
        table[first, second] = table[second, first] = 2 * self.n_sources + np.arange(len(first))
        return table

    @cached_property
    def sign(self) -> Floats:
        """+1 for sides that are up, -1 for those that are down: where the measure goes when such a source joins."""
        return np.repeat([1.0, -1.0], self.n_sources)

    def matrix(self, values: Floats) -> Floats:
        """Terms as a symmetric table of sides, 0 where there is none."""
        return np.where(self.index >= 0, values[self.index], 0.0)

    def totals(self, values: Floats) -> Floats:
        """The values at (C, empty) and at (empty, C)."""
        m, table = self.n_sources, self.matrix(values)
        return np.array([np.triu(part).sum() for part in (table[:m, :m], table[m:, m:])])

    def slack(self, values: Floats) -> Floats:
        """For each side, the least that its source moves the measure its own way when it joins; O(m^2).

        Of every other source, the worst (A, B) picks what is least: absent, up or down. So the terms are monotone if
        and only if no slack is below zero.
        """
        m = self.n_sources
        table = self.sign[:, None] * self.matrix(values)
        worst = np.minimum(0.0, np.minimum(table[:, :m], table[:, m:]))
        worst[np.arange(2 * m), np.arange(2 * m) % m] = 0.0
        return np.asarray(np.diagonal(table) + worst.sum(axis=1))

    def repaired(self, values: ArrayLike) -> Floats:
        """Return terms that are monotone and within bounds, near to given ones that nearly are.

        What a side lacks is added to its own term; then the smaller of the two totals is raised to the other, and all
        is divided by it. Neither step makes a slack smaller than zero.
        """
        m = self.n_sources
        made = np.array(values, dtype=np.float64)
        made[: 2 * m] += self.sign * np.maximum(0.0, MARGIN - self.slack(made))
        up, down = self.totals(made) * [1, -1]
        made[:m] += max(0.0, down - up) / m
        made[m : 2 * m] -= max(0.0, up - down) / m
        return np.asarray(made / max(up, down))

    def neutral(self) -> Floats:
        """All sources alike, no pair: the mean of the sources."""
        return np.concatenate([self.sign / self.n_sources, np.zeros(self.size - 2 * self.n_sources)])

    def sample(self, rng: np.random.Generator) -> Floats:
        """Draw terms at random: those of pairs around zero, those of sides no less than these ask for."""
        m = self.n_sources
        drawn = np.zeros(self.size)
        if self.pairs:
            drawn[2 * m :] = rng.normal(0, m**-1.5, self.size - 2 * m)
        drawn[: 2 * m] = self.sign * (rng.exponential(1 / m, 2 * m) - self.slack(drawn))
        return self.repaired(drawn)
