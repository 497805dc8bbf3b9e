"""Random monotone values on a lattice."""

from dataclasses import replace

import numpy as np

from bimichi._checks import check_choice
from bimichi._types import Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.measures.lattice import Lattice

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
            known = part_of_order & ~np.isnan(values)
            below = known & (up & ~up[code] == 0) & (down[code] & ~down == 0)
            above = known & (up[code] & ~up == 0) & (down & ~down[code] == 0)
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
            f"random_state must be None, a non-negative whole number or a numpy Generator, got {random_state!r}."
        ) from error
