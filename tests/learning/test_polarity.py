import numpy as np
import pytest

from bimichi import Bags, BiMIChI, ConvexSolver
from bimichi.learning.objectives import OBJECTIVES
from bimichi.learning.polarity import guess_polarity, learn_polarity
from bimichi.learning.problem import InMemory
from bimichi.learning.training import BagRanges, bag_ranges


@pytest.fixture
def bags(rng):
    """Positive bags have an instance that is high in the first source, low in the second, and odd in the third."""
    ids = np.repeat(np.arange(40), 8)
    X = np.clip(rng.normal([-0.3, 0.3, 0.0], 0.2, (len(ids), 3)), -1, 1)
    hits = (ids % 4 == 0) & (np.arange(len(ids)) % 8 == 3)
    X[hits] = np.clip(rng.normal([0.7, -0.6, -0.5], 0.2, (int(hits.sum()), 3)), -1, 1)
    return Bags.from_instances(X, ids % 4 == 0, ids)


def search(bags, name, n_starts, calls):
    def solve(signs):
        calls.append(tuple(signs))
        return ConvexSolver(n_starts=n_starts).solve(
            InMemory(bags.with_signs(signs), OBJECTIVES[name]), np.random.default_rng(0)
        )

    return solve


@pytest.mark.parametrize("name", OBJECTIVES)
def test_no_single_flip_of_a_doubtful_source_is_better(bags, name):
    calls = []
    solve = search(bags, name, 4, calls)
    guess = guess_polarity(bag_ranges(bags))
    assert guess.tolist() == [1, -1, -1]
    signs, solution = learn_polarity(guess, solve)
    assert len(set(calls)) == len(calls)
    assert signs[0] == 1
    for k in (1, 2):
        other = np.where(np.arange(3) == k, -signs, signs)
        assert solution.objective_value <= solve(other).objective_value * (1 + 1e-9)
    if name != "magnitude":
        assert signs[1] == -1


def test_the_guess_compares_rankings_of_bags(rng):
    """Against the chances counted over all pairs of bags, with ties and weights, and DeLong's standard error."""
    low, high = np.sort(rng.integers(-3, 4, (2, 40, 12)) / 3, axis=0)
    labels, weights = rng.random(40) < 0.4, rng.integers(1, 4, 40).astype(float)
    low[labels, 6:] -= np.arange(6) / 3
    P, N = weights[labels] / weights[labels].sum(), weights[~labels] / weights[~labels].sum()

    def wins(values):
        difference = values[labels][:, None] - values[~labels]
        return (difference > 0) + 0.5 * (difference == 0)

    expected = []
    for k in range(12):
        gain = wins(-low[:, k]) - wins(high[:, k])
        by_positive, by_negative, mean = gain @ N, P @ gain, P @ gain @ N
        error = np.sqrt(P**2 @ (by_positive - mean) ** 2 + N**2 @ (by_negative - mean) ** 2)
        expected.append(-1 if mean > 2 * error else 1)
    assert guess_polarity(BagRanges(low, high, labels, weights)).tolist() == expected
    assert expected[:6] == [1] * 6
    assert set(expected[6:]) == {1, -1}


def test_a_source_is_not_turned_to_what_surrounds_targets(rng):
    """Targets are high; all else in their bags is a little low, so that J of the mean falls if the source is turned."""
    ids = np.repeat(np.arange(40), 20)
    positive = ids % 4 == 0
    X = np.clip(rng.normal(0.1, 0.1, (len(ids), 2)), -1, 1)
    X[positive] -= 0.4
    X[positive & (np.arange(len(ids)) % 20 == 3)] = 0.9
    bags = Bags.from_instances(X, positive, ids)
    solve = search(bags, "mean", 1, [])
    assert solve(np.array([-1.0, -1.0])).objective_value < solve(np.ones(2)).objective_value
    assert BiMIChI("mean", polarity="learn").fit(bags).polarity_.tolist() == [1, 1]


@pytest.mark.parametrize("name", ["bipolar", "magnitude"])
def test_a_quick_search_decides_and_a_full_one_ends(bags, name):
    quick, full = [], []
    signs, solution = learn_polarity(
        guess_polarity(bag_ranges(bags)), search(bags, name, 8, full), search(bags, name, 2, quick)
    )
    assert full == [(1, 1, 1), tuple(signs)]
    assert len(set(quick)) == len(quick) >= 3
    assert solution.objective_value <= search(bags, name, 2, [])(signs).objective_value
    model = BiMIChI(name, ConvexSolver(n_starts=8), polarity="learn", random_state=0).fit(bags)
    assert model.polarity_.tolist() == signs.tolist()


def test_quick_keeps_the_other_options():
    assert ConvexSolver(8, 50, 1e-6).quick() == ConvexSolver(2, 50, 1e-6)
    assert ConvexSolver(1).quick() == ConvexSolver(1)


def test_turned_sources_never_end_higher_than_given_ones():
    """Two starts favour other signs here than all of them do."""
    rng = np.random.default_rng(4)
    ids = np.repeat(np.arange(24), 8)
    y = (ids % 3 == 0).astype(int)
    X = np.clip(rng.normal(0, 0.5, (192, 3)), -1, 1)
    hits = (y == 1) & (rng.random(192) < 0.3)
    X[hits] = np.clip(X[hits] + rng.choice([-0.6, 0.6], 3), -1, 1)
    given, learned = (BiMIChI(polarity=kind, random_state=0).fit(X, y, bags=ids) for kind in ("given", "learn"))
    assert (guess_polarity(bag_ranges(Bags.from_instances(X, y, ids))) < 0).any()
    assert learned.objective_value_ <= given.objective_value_ * (1 + 1e-12)
