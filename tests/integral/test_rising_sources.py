"""What docs/concepts.md says about a source that rises: whether the fused value can fall depends on the zero bound."""

import numpy as np
import pytest

from bimichi import BiCapacity, choquet


def steps(rng, m, n=400):
    """Points, and the same with one source raised; and whether the largest magnitude stays the same."""
    low = rng.uniform(-1, 1, (n, m))
    high = low.copy()
    rows, columns = np.arange(n), rng.integers(0, m, n)
    high[rows, columns] = rng.uniform(low[rows, columns], 1)
    return low, high, np.abs(low).max(axis=1) == np.abs(high).max(axis=1)


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_the_fused_value_falls_only_without_the_zero_bound_and_where_the_largest_magnitude_changes(m, seed, rng):
    low, high, same = steps(rng, m)
    bounded = BiCapacity.random(m, random_state=seed, zero_bound=True)
    assert (choquet(high, bounded) >= choquet(low, bounded) - 1e-12).all()
    free = BiCapacity.random(m, random_state=seed, zero_bound=False)
    assert same.sum() > 50
    assert (choquet(high, free) >= choquet(low, free) - 1e-12)[same].all()


def test_a_strong_source_alone_may_count_against_its_own_sign():
    free = (BiCapacity.random(2, random_state=seed, zero_bound=False) for seed in range(50))
    x = np.array([[0.2, 0.0], [0.9, 0.0]])
    assert any(np.diff(choquet(x, g)) < 0 for g in free)
