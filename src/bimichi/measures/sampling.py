"""Random monotone values on a lattice."""

import numpy as np
from numpy.typing import NDArray

from bimichi._checks import check_choice
from bimichi.errors import InvalidInputError
from bimichi.measures.lattice import Lattice

__all__ = ["SAMPLERS", "random_generator", "sample"]


def sample(lattice: Lattice, rng: np.random.Generator, method: str = "ranks") -> NDArray[np.float64]:
    """Draw a measure: each element uniformly between the bounds that those already drawn leave it.

    Parameters
    ----------
    lattice : Lattice
        The elements and their order.
    rng : numpy.random.Generator
        The source of randomness.
    method : {"ranks", "breadth-first"}
        The order of drawing. "breadth-first" is the paper's: outward from (empty, empty), neighbours in random
        order; O(9^m). "ranks" draws all elements of one height at once, heights outward from the middle;
        O(m^2 3^m). Neither favours a source by its number.
    """
    return SAMPLERS[check_choice(method, "method", SAMPLERS)](lattice, rng)


def _by_ranks(lattice: Lattice, rng: np.random.Generator) -> NDArray[np.float64]:
    values = lattice.with_boundary(np.full(lattice.size, np.nan))
    heights = lattice.heights()
    for radius in np.unique(np.abs(heights)):
        for height in rng.permutation(np.unique([radius, -radius])):
            drawn = np.flatnonzero((heights == height) & np.isnan(values))
            lower, upper = lattice.bounds(values)
            values[drawn] = rng.uniform(lower[drawn], upper[drawn])
    return values


def _breadth_first(lattice: Lattice, rng: np.random.Generator) -> NDArray[np.float64]:
    values = lattice.with_boundary(np.full(lattice.size, np.nan))
    neighbours: list[list[int]] = [[] for _ in range(lattice.size)]
    # The walk starts at code 0 whether or not that element is part of the order.
    for a, b in zip(*Lattice(lattice.n_sources, lattice.chain).covers(), strict=True):
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


def random_generator(random_state: int | np.random.Generator | np.random.RandomState | None) -> np.random.Generator:
    """Return a generator from a seed, a generator (also of the legacy kind), or None (fresh entropy)."""
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"random_state must be None, a non-negative whole number or a numpy Generator, got {random_state!r}."
        ) from error
