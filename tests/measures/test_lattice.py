import naive
import numpy as np
import pytest
from refusals import refused

from bimichi.measures.lattice import MAX_ELEMENTS, Lattice, pair_lattice, sample, subset_lattice

SIZES = [1, 2, 3, 4]


@pytest.mark.parametrize("m", SIZES)
def test_codes_agree_with_the_oracle_and_come_back(m):
    lattice = pair_lattice(m)
    codes = sorted(naive.code(pair) for pair in naive.pairs(m))
    assert codes == list(range(lattice.size))
    for pair in naive.pairs(m):
        code = lattice.code(pair[0], pair[1])
        assert code == naive.code(pair)
        assert tuple(map(frozenset, lattice.sets(code))) == pair
    up, down = lattice.masks(np.arange(lattice.size))
    assert np.array_equal(lattice.from_masks(up, down), np.arange(lattice.size))


@pytest.mark.parametrize("m", SIZES)
def test_top_bottom_and_zero(m):
    lattice = pair_lattice(m)
    assert lattice.sets(0) == ((), ())
    assert lattice.sets(lattice.top) == (tuple(range(m)), ())
    assert lattice.sets(lattice.bottom) == ((), tuple(range(m)))
    assert lattice.fixed == {0: 0.0, lattice.top: 1.0, lattice.bottom: -1.0}
    assert subset_lattice(m).fixed == {0: 0.0, 2**m - 1: 1.0}


@pytest.mark.parametrize("zero_bound", [True, False])
@pytest.mark.parametrize("m", SIZES)
def test_order_is_that_of_the_oracle(m, zero_bound):
    lattice = pair_lattice(m, zero_bound)
    elements = {naive.code(p): p for p in naive.pairs(m)}
    part = [c for c in elements if zero_bound or c != 0]
    codes = np.arange(lattice.size)
    table = lattice.less_equal(codes[:, None], codes)
    for a in part:
        for b in part:
            assert table[a, b] == naive.less_equal(elements[a], elements[b])
        assert lattice.below(a).tolist() == sorted(
            b for b in part if b != a and naive.less_equal(elements[b], elements[a])
        )
        assert lattice.above(a).tolist() == sorted(
            b for b in part if b != a and naive.less_equal(elements[a], elements[b])
        )
    if not zero_bound:
        assert lattice.below(0).size == lattice.above(0).size == 0
        assert table[0].sum() == table[:, 0].sum() == 1


@pytest.mark.parametrize("make", [pair_lattice, subset_lattice, lambda m: pair_lattice(m, False)])
@pytest.mark.parametrize("m", SIZES)
def test_covers_generate_the_order(m, make):
    lattice = make(m)
    lower, upper = lattice.covers()
    closure = np.eye(lattice.size, dtype=bool)
    closure[lower, upper] = True
    for _ in range(2 * m):
        closure |= (closure.astype(int) @ closure.astype(int)) > 0
    codes = np.arange(lattice.size)
    assert np.array_equal(closure, lattice.less_equal(codes[:, None], codes))


def test_cover_counts():
    for m in range(1, 7):
        assert pair_lattice(m).covers()[0].size == 2 * m * 3 ** (m - 1)
        assert subset_lattice(m).covers()[0].size == m * 2 ** (m - 1)
        assert pair_lattice(m, False).covers()[0].size == 2 * m * 3 ** (m - 1) - m


@pytest.mark.parametrize("make", [pair_lattice, subset_lattice, lambda m: pair_lattice(m, False)])
@pytest.mark.parametrize("m", SIZES)
def test_bounds_are_extremes_over_known_elements(m, make, rng):
    lattice = make(m)
    for _ in range(20):
        values = sample(lattice, rng)
        values[rng.random(lattice.size) < 0.6] = np.nan
        known = lattice.with_boundary(values)
        lower, upper = lattice.bounds(values)
        codes = np.flatnonzero(~np.isnan(known))
        for code in range(lattice.size):
            if code == 0 and not lattice.zero_bound:
                assert lower[0] == upper[0] == 0
                continue
            below = codes[lattice.less_equal(codes, code)]
            above = codes[lattice.less_equal(code, codes)]
            assert lower[code] == known[below].max()
            assert upper[code] == known[above].min()


@pytest.mark.parametrize("zero_bound", [True, False])
def test_violations_match_the_oracle(zero_bound, rng):
    lattice = pair_lattice(3, zero_bound)
    seen = set()
    for trial in range(60):
        values = sample(lattice, rng)
        if trial % 2:
            values[rng.integers(27)] += rng.normal()
        g = {pair: values[naive.code(pair)] for pair in naive.pairs(3)}
        monotone = lattice.violations(values)[0].size == 0
        assert monotone == naive.is_monotone(g, zero_bound)
        seen.add(monotone)
    assert seen == {True, False}


def test_without_zero_bound_the_order_through_it_still_holds():
    lattice = pair_lattice(2, False)
    values = lattice.bounds(np.full(9, np.nan))[0]
    values[lattice.code([], [0])] = 0.5
    values[lattice.code([1], [])] = 0.4
    broken = list(zip(*lattice.violations(values), strict=True))
    middle = lattice.code([1], [0])
    assert {(lattice.code([], [0]), middle), (middle, lattice.code([1], []))} & set(broken)


def test_fourteen_sources_work_and_fifteen_say_what_they_would_take():
    lattice = pair_lattice(14)
    assert lattice.size == MAX_ELEMENTS
    lower, upper = lattice.bounds(np.full(lattice.size, np.nan))
    assert lower[lattice.code([3], [])] == 0
    assert upper[lattice.code([3], [])] == 1
    assert lattice.violations(lower)[0].size == 0
    with refused("sources-many", "14,348,907", "0.1", "1.1"):
        pair_lattice(15)


@pytest.mark.parametrize("m", [0, -1, 2.0, "3", True, None])
def test_bad_number_of_sources(m):
    with refused("whole-number:n_sources"):
        pair_lattice(m)


def test_bad_codes_and_sets():
    lattice = pair_lattice(3)
    for up, down in (([0], [0]), ([0, 0], [])):
        with refused("element-disjoint"):
            lattice.code(up, down)
    with refused("element-disjoint"):
        subset_lattice(3).code([0], [1])
    with refused("source-index", "0..2"):
        lattice.code([7])
    for ask in (lattice.sets, lattice.below, lattice.above):
        with refused("code-range", "0..26", "27"):
            ask(27)
    for ask in (lattice.bounds, lattice.violations):
        with refused("values-shape"):
            ask(np.zeros(5))
    with refused("sources-many"):
        pair_lattice(10_000)


def test_bad_masks():
    lattice = pair_lattice(3)
    with refused("element-disjoint"):
        lattice.from_masks(3, 1)
    with refused("masks-range", "0..7"):
        lattice.from_masks(8)
    with refused("element-disjoint"):
        subset_lattice(3).from_masks(1, 2)


def test_labels_are_the_papers():
    lattice = pair_lattice(3)
    assert lattice.label(lattice.code([0, 1], [2]), "123") == "g_{12,3}"
    assert lattice.label(0, "123") == "g_{∅,∅}"
    assert lattice.label(lattice.code([0, 1], [2]), ["ir", "rgb", "z"]) == "g_{ir+rgb,z}"
    assert subset_lattice(3).label(3, "123") == "g_{12}"


def test_ranks_are_sizes_of_first_minus_second_set():
    lattice = Lattice(3, (2, 0, 1))
    for pair in naive.pairs(3):
        assert lattice.ranks()[naive.code(pair)] == len(pair[0]) - len(pair[1])


@pytest.mark.parametrize("m", SIZES)
def test_turning_sources_swaps_their_sides(m):
    lattice = pair_lattice(m)
    signs = [-1 if k % 2 else 1 for k in range(m)]
    turned = lattice.with_signs(signs)
    assert (turned[turned] == np.arange(lattice.size)).all()
    for code in range(lattice.size):
        up, down = lattice.sets(code)
        sides = [{k for k in up if signs[k] > 0} | {k for k in down if signs[k] < 0}]
        sides.append({k for k in up if signs[k] < 0} | {k for k in down if signs[k] > 0})
        assert [set(part) for part in lattice.sets(int(turned[code]))] == sides
