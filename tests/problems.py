"""Bags of a few instances, whose best measure can be found by brute force, and what every solution keeps."""

import numpy as np
import pytest

from bimichi import Bags, BiCapacity


def tiny(seed, m, positive=2):
    rng = np.random.default_rng(seed)
    n_bags = int(rng.integers(positive + 1, 7))
    parts = [rng.uniform(-1, 1, (int(rng.integers(1, 5)), m)) for _ in range(n_bags)]
    return Bags.from_list(parts, np.arange(n_bags) < positive)


def check_solution(problem, solution):
    g = BiCapacity(solution.values, zero_bound=problem.objective.zero_bound)
    assert g.is_monotone(1e-9)
    assert np.abs(solution.values).max() <= 1
    link = [] if solution.link is None else [solution.link]
    assert problem.value(solution.values, *link) == pytest.approx(solution.objective_value, abs=1e-12)
