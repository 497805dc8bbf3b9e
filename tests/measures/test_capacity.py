import naive
import numpy as np
import pytest
from refusals import refused

from bimichi import Capacity
from bimichi.measures.capacity import binary_values

NAMES = ["thermal", "rgb", "lidar"]


def test_bitmask_order_and_listing():
    g = Capacity([0, 0.1, 0.2, 0.5, 0.3, 0.6, 0.7, 1], NAMES)
    assert g[{0, 1}] == 0.5
    assert g[["thermal", "lidar"]] == 0.6
    assert g["rgb"] == 0.2
    assert [s for s, _ in g.listing()] == [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    assert [v for _, v in g.listing()] == [0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 1.0]
    assert "| thermal+rgb | **0.50** |" in g.to_markdown(bold=[{0, 1}])


def test_errors_name_the_element():
    with refused("values-monotone", "12", "0.20", "0.50"):
        Capacity([0, 0.5, 0.1, 0.2, 0, 1, 1, 1])
    with refused("values-range", "0.1", "[0, 1]"):
        Capacity([0, -0.1, 0, 1])
    with refused("values-boundary", "0.1"):
        Capacity([0.1, 0.5, 0.5, 1])
    with refused("values-length"):
        Capacity([0, 0.5, 1])
    with refused("values-length"):
        Capacity([[0, 1]])


def test_from_elements():
    g = Capacity.from_elements({(0,): 0.4, ("1", "2"): 0.5}, 3)
    assert g[{0}] == 0.4
    assert g[{0, 1}] == 0.5
    assert g[{1}] == 0.25
    assert g.is_monotone()
    with refused("elements-monotone", "12", "0.30", "0.40"):
        Capacity.from_elements({(0,): 0.4, (0, 1): 0.3}, 3)


def test_random_is_symmetric():
    rng = np.random.default_rng(3)
    draws = np.stack([Capacity.random(3, rng).values for _ in range(4000)])
    error = draws.std(axis=0).max() / np.sqrt(4000)
    assert np.ptp(draws[:, [1, 2, 4]].mean(axis=0)) < 5 * error
    assert np.ptp(draws[:, [3, 5, 6]].mean(axis=0)) < 5 * error
    assert abs(draws[:, 1].mean() + draws[:, 6].mean() - 1) < 6 * error


def test_binary():
    g = Capacity.binary([{0, 1}, {2}], 3)
    assert g.is_binary
    assert [v for _, v in g.listing()] == [0, 0, 1, 1, 1, 1, 1]
    assert not Capacity.additive([0.5, 0.5]).is_binary


@pytest.mark.parametrize(("m", "count"), [(1, 1), (2, 4), (3, 18), (4, 166), (5, 7579)])
def test_all_binary_are_counted(m, count):
    values = binary_values(m)
    assert len(values) == len(np.unique(values, axis=0)) == count
    if m < 5:
        assert count == naive.binary_measures(m)
        assert all(g.is_binary for g in Capacity.all_binary(m))


def test_six_sources_have_too_many_binary_measures():
    with refused("sources-many", "7,828,352"):
        next(Capacity.all_binary(6))
