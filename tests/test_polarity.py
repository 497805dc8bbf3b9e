import numpy as np
import pytest

from bimichi import Bags, BiMIChI, ConvexSolver
from bimichi.objectives import OBJECTIVES
from bimichi.polarity import guess_polarity, learn_polarity
from bimichi.problem import InMemory
from bimichi.training import bag_means


@pytest.fixture
def bags(rng):
    """Positive bags have an instance that is high in the first source, low in the second, and odd in the third."""
    ids = np.repeat(np.arange(20), 8)
    X = np.clip(rng.normal([-0.3, 0.3, 0.0], 0.3, (len(ids), 3)), -1, 1)
    hits = (ids % 4 == 0) & (np.arange(len(ids)) % 8 == 3)
    X[hits] = np.clip(rng.normal([0.7, -0.6, -0.4], 0.2, (int(hits.sum()), 3)), -1, 1)
    return Bags.from_instances(X, ids % 4 == 0, ids)


def search(bags, name, n_starts, calls):
    def solve(signs):
        calls.append(tuple(signs))
        return ConvexSolver(n_starts=n_starts).solve(
            InMemory(bags.turned(signs), OBJECTIVES[name]), np.random.default_rng(0)
        )

    return solve


@pytest.mark.parametrize("name", OBJECTIVES)
def test_no_single_flip_is_better(bags, name):
    calls = []
    solve = search(bags, name, 4, calls)
    signs, solution = learn_polarity(guess_polarity(bag_means(bags)), solve)
    assert len(set(calls)) == len(calls)
    for k in range(3):
        other = np.where(np.arange(3) == k, -signs, signs)
        assert solution.objective_value <= solve(other).objective_value * (1 + 1e-9)
    if name != "magnitude":
        assert signs[1] == guess_polarity(bag_means(bags))[1] == -1


@pytest.mark.parametrize("name", ["bipolar", "magnitude"])
def test_a_quick_search_decides_and_a_full_one_ends(bags, name):
    quick, full = [], []
    signs, solution = learn_polarity(
        guess_polarity(bag_means(bags)), search(bags, name, 8, full), search(bags, name, 2, quick)
    )
    assert full == [tuple(signs)]
    assert len(set(quick)) == len(quick) >= 4
    assert solution.objective_value <= search(bags, name, 2, [])(signs).objective_value
    model = BiMIChI(name, ConvexSolver(n_starts=8), polarity="learn", random_state=0).fit(bags)
    assert model.polarity_.tolist() == signs.tolist()


def test_quick_keeps_the_other_options():
    assert ConvexSolver(8, 50, 1e-6).quick() == ConvexSolver(2, 50, 1e-6)
    assert ConvexSolver(1).quick() == ConvexSolver(1)
