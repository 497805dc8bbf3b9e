import copy
import pickle

import naive
import numpy as np
import paper_tables
import pytest
from refusals import refused

from bimichi import BiCapacity, Capacity, InvalidInputError

NAMES = ["thermal", "rgb", "lidar"]


def with_element(g, pair, value):
    values = g.values.copy()
    values[g.code(pair)] = value
    return values


@pytest.mark.parametrize(
    ("table", "zero_bound"),
    [
        (paper_tables.UM_1, False),
        (paper_tables.UM_2, True),
        (paper_tables.PEDESTRIAN_1, False),
        (paper_tables.PEDESTRIAN_2, True),
    ],
)
def test_the_papers_tables_are_bicapacities_and_round_trip(table, zero_bound):
    rows = paper_tables.matrix(table)
    g = BiCapacity.from_matrix(rows, zero_bound=zero_bound)
    np.testing.assert_array_equal(g.to_matrix(), np.array(rows, dtype=float))
    assert g.is_monotone()
    assert g[{0, 1}, {2}] == rows[3][4]
    assert g[["2", "3"], "1"] == rows[6][1]


def test_pedestrian_1_needs_the_zero_bound_off():
    with refused("values-monotone"):
        BiCapacity.from_matrix(paper_tables.matrix(paper_tables.PEDESTRIAN_1), zero_bound=True)


def test_error_names_the_pair_in_the_papers_notation():
    g = BiCapacity.from_matrix(paper_tables.matrix(paper_tables.UM_2))
    values = with_element(g, ({0, 1}, {2}), 0.20)
    values[g.code(({1}, {2}))] = 0.35
    with refused("values-monotone", "12,3", "0.20", "0.35"):
        BiCapacity(values)


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "values-nan"), (1.5, "values-range"), (-np.inf, "values-range")],
)
def test_bad_values_are_named(value, message):
    g = BiCapacity.additive([0.5, 0.3, 0.2])
    with refused(message):
        BiCapacity(with_element(g, ({0}, {1}), value))


@pytest.mark.parametrize("pair", [({0, 1, 2}, ()), ((), {0, 1, 2}), ((), ())])
def test_boundary_must_hold(pair):
    g = BiCapacity.additive([0.5, 0.3, 0.2])
    with refused("values-boundary"):
        BiCapacity(with_element(g, pair, 0.5))


@pytest.mark.parametrize(
    "values", [[[0], [1, 2]], np.zeros(8), np.zeros((3, 9)), np.zeros(0), ["a", "b", "c"], np.zeros(9, complex), 5.0]
)
def test_bad_arrays(values):
    with pytest.raises(InvalidInputError) as raised:
        BiCapacity(values)
    assert raised.value.code in ("real-numbers", "values-length")


def test_rounding_below_the_tolerance_passes_and_is_listed():
    g = BiCapacity.from_elements({((0,), (1,)): 0.3, ((0,), ()): 0.3}, 2)
    values = with_element(g, ({0}, {1}), 0.3 + 5e-10)
    tilted = BiCapacity(values)
    assert not tilted.is_monotone()
    assert tilted.is_monotone(1e-9)
    assert [str(v) for v in tilted.violations()] == ["g_{1,∅} = 0.3000000000 < g_{1,2} = 0.3000000005"]
    assert g.violations() == []


def test_values_within_tolerance_of_the_boundary_are_set_to_it():
    g = BiCapacity.additive([0.5, 0.5])
    values = g.values.copy()
    values[g.lattice.top] = 1 + 5e-10
    assert BiCapacity(values)[{0, 1}, ()] == 1.0


@pytest.mark.parametrize("make", [lambda: BiCapacity.random(3, random_state=1), lambda: Capacity.random(3, 1)])
def test_value_object(make):
    g, same = make(), make()
    assert g == same
    assert hash(g) == hash(same)
    assert g != "g"
    with pytest.raises(ValueError, match="read-only"):
        g.values[0] = 1
    with pytest.raises(AttributeError, match="cannot be changed"):
        g.values = None
    with pytest.raises(AttributeError, match="cannot be changed"):
        del g.values
    with pytest.raises(ValueError, match="WRITEABLE"):
        g.values.setflags(write=True)
    for twin in (pickle.loads(pickle.dumps(g)), copy.deepcopy(g)):
        assert twin == g
        assert not twin.values.flags.writeable
    assert type(g)(g.values, source_names=NAMES) != g


def test_zero_bound_is_part_of_equality():
    values = BiCapacity.additive([0.5, 0.5]).values
    assert BiCapacity(values) != BiCapacity(values, zero_bound=False)


def test_without_the_zero_bound_the_empty_pair_means_nothing():
    values = BiCapacity.additive([0.5, 0.5]).values.copy()
    values[0] = 0.9
    assert BiCapacity(values, zero_bound=False)[(), ()] == 0


def test_elements_by_index_name_and_single():
    g = BiCapacity.additive([0.5, 0.3, 0.2], NAMES)
    assert g[{0}, {1, 2}] == pytest.approx(0.0)
    assert g[["thermal"], []] == g["thermal", ()] == g[0, ()] == 0.5
    assert g[np.array([0, 2]), "rgb"] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (({0}, {0}), "element-disjoint"),
        ((["thermal"], ["sonar"]), "source-unknown"),
        (({3}, ()), "source-index"),
        (({-1}, ()), "source-index"),
        (({True}, ()), "source-key"),
        (({0.5}, ()), "source-key"),
        ((None, ()), "set-kind"),
        (0, "element-pair"),
        (((), (), ()), "element-pair"),
    ],
)
def test_bad_elements(pair, message):
    g = BiCapacity.additive([0.5, 0.3, 0.2], NAMES)
    with refused(message):
        g[pair]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b"], "names-number"),
        (["a", "a", "b"], "names-distinct"),
        ("abc", "names-list"),
        (["a", "", "b"], "names-text"),
        (["a", 1, "b"], "names-text"),
        (7, "names-list"),
        (["a", "\ud800", "b"], "names-text"),
    ],
)
def test_bad_names(names, message):
    with refused(message):
        BiCapacity.additive([0.5, 0.3, 0.2], names)


def test_matrix_with_a_number_where_the_sets_meet():
    rows = paper_tables.matrix(paper_tables.UM_2)
    rows[1][1] = 0.0
    with refused("matrix-overlap:matrix", "[1, 1]"):
        BiCapacity.from_matrix(rows)
    with refused("matrix-shape"):
        BiCapacity.from_matrix(np.zeros((2, 4)))


@pytest.mark.parametrize("completion", ["middle", "lowest", "highest", "nearest-zero"])
@pytest.mark.parametrize("zero_bound", [True, False])
def test_from_elements_keeps_what_is_given_and_completes_the_rest(completion, zero_bound, rng):
    for _ in range(20):
        full = BiCapacity.random(3, zero_bound, rng)
        chosen = rng.choice(np.arange(1, 27), 6, replace=False)
        elements = {full.lattice.sets(int(c)): full.values[c] for c in chosen}
        g = BiCapacity.from_elements(elements, 3, zero_bound, completion)
        assert g.is_monotone()
        for pair, value in elements.items():
            assert g[pair] == value


def test_completions_differ_as_named():
    made = {
        rule: BiCapacity.from_elements({((0,), (1,)): 0.4}, 2, completion=rule)
        for rule in ("middle", "lowest", "highest", "nearest-zero")
    }
    assert {rule: g[{0}, ()] for rule, g in made.items()} == {
        "middle": 0.7,
        "lowest": 0.4,
        "highest": 1.0,
        "nearest-zero": 0.4,
    }
    assert made["lowest"][{1}, {0}] == -1
    assert made["nearest-zero"][{1}, {0}] == 0


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ({((0,), (1,)): 0.5, ((0,), ()): 0.2}, "elements-monotone"),
        ({((0,), ()): -0.5}, "elements-monotone"),
        ({((0, 1), ()): 0.5}, "values-boundary"),
        ({((0,), ()): np.nan}, "number"),
        ({((0,), ()): "high"}, "number"),
        ({((0,), ()): 3.0}, "elements-monotone"),
    ],
)
def test_contradictory_elements(elements, message):
    with refused(message):
        BiCapacity.from_elements(elements, 2)


def test_an_element_given_twice():
    assert BiCapacity.from_elements({((0,), ()): 0.2, (("1",), ()): 0.2}, 2)[0, ()] == 0.2
    with refused("element-twice", "0.2", "0.5"):
        BiCapacity.from_elements({((0,), ()): 0.2, (("1",), ()): 0.5}, 2)


def test_number_of_sources_from_the_largest_index():
    assert BiCapacity.from_elements({((0,), (2,)): 0.2}).n_sources == 3
    assert Capacity.from_elements({(1,): 0.2}).n_sources == 2
    for elements in ({}, {(("a",), ()): 0.1}):
        with refused("names-missing:source_names"):
            BiCapacity.from_elements(elements)
    for names in (2.0, True):
        with refused("names-list"):
            BiCapacity.from_elements({((0,), ()): 0.2}, names)
    with refused("elements-kind"):
        BiCapacity.from_elements([1, 2])


def test_boundary_elements_may_be_given_with_rounding():
    assert BiCapacity.from_elements({((0, 1, 2), ()): 0.7 + 0.2 + 0.1}, 3)[{0, 1, 2}, ()] == 1


def test_negative_zero_is_zero():
    values = BiCapacity.from_elements({((0,), (1,)): 0.0}, 2).values.copy()
    values[5] = -0.0
    assert hash(BiCapacity(values)) == hash(BiCapacity(values + 0.0))


def test_rejecting_many_violations_is_quick_and_counts_them(rng):
    values = rng.uniform(-1, 1, 3**11)
    lattice = BiCapacity.random(11, random_state=0).lattice
    with refused("values-monotone"):
        BiCapacity(lattice.with_boundary(values))


def test_unknown_completion():
    with refused("choice:completion"):
        BiCapacity.from_elements({}, 2, completion="best")


def test_cumulative_prospect_form(rng):
    up, down = Capacity.random(3, rng, NAMES), Capacity.random(3, rng, NAMES)
    g = BiCapacity.from_capacities(up, down)
    for a, b in naive.pairs(3):
        assert g[a, b] == pytest.approx(up[a] - down[b])
    with refused("capacities-sources"):
        BiCapacity.from_capacities(up, Capacity.random(2))
    with refused("capacities"):
        BiCapacity.from_capacities([0, 1], up)


@pytest.mark.parametrize("weights", [[0.5, 0.6], [1.5, -0.5], [], [np.nan, 1]])
def test_bad_weights(weights):
    with refused("weights-sum:weights" if len(weights) else "weights-shape:weights"):
        BiCapacity.additive(weights)


@pytest.mark.parametrize("method", ["ranks", "breadth-first"])
@pytest.mark.parametrize("zero_bound", [True, False])
@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_random_is_monotone_and_seeded(m, zero_bound, method):
    for seed in range(10):
        g = BiCapacity.random(m, zero_bound, seed, method)
        assert naive.is_monotone({p: g[p] for p in naive.pairs(m)}, zero_bound)
        assert g == BiCapacity.random(m, zero_bound, seed, method)
    if m > 1:
        assert g != BiCapacity.random(m, zero_bound, 10, method)


@pytest.mark.parametrize("method", ["ranks", "breadth-first"])
@pytest.mark.parametrize("zero_bound", [True, False])
def test_random_favours_no_source_and_no_side(zero_bound, method):
    """Elements that differ only in source numbers, or by turning all signs, have one distribution."""
    rng = np.random.default_rng(5)
    draws = np.stack([BiCapacity.random(3, zero_bound, rng, method).values for _ in range(1500)])
    code = BiCapacity.random(3).code
    groups = [
        [code(({k}, ())) for k in range(3)],
        [code(({k}, {j})) for k in range(3) for j in range(3) if j != k],
        [code(({i, j}, {k})) for i, j, k in [(0, 1, 2), (0, 2, 1), (1, 2, 0)]],
    ]
    for group in groups:
        samples = draws[:, group]
        for moment in (samples, samples**2):
            error = moment.std(axis=0).max() / np.sqrt(len(moment))
            assert np.ptp(moment.mean(axis=0)) < 5 * error
    flipped = -draws[:, [code((b, a)) for a, b in (BiCapacity.random(3).lattice.sets(c) for c in range(27))]]
    errors = np.maximum(draws.std(axis=0), 1e-12) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - flipped.mean(axis=0)) < 6 * errors + 1e-12).all()


def test_bad_sampling_arguments():
    with refused("choice:method"):
        BiCapacity.random(3, method="depth-first")
    with refused("random-state:random_state"):
        BiCapacity.random(3, random_state="seed")
    with refused("flag:zero_bound"):
        BiCapacity.random(3, zero_bound="no")


def test_large_random_is_monotone():
    assert BiCapacity.random(9, random_state=0).is_monotone()


def test_tables():
    g = BiCapacity.from_matrix(paper_tables.matrix(paper_tables.UM_1), zero_bound=False)
    table = g.to_markdown(bold=[({0, 1}, {2}), ({1, 2}, {0})]).split("\n")
    assert table[0] == "| A \\\\ B | ∅ | 1 | 2 | 12 | 3 | 13 | 23 | 123 |"
    assert table[5] == "| 12 | 1.00 |  |  |  | **0.97** |  |  |  |"
    assert table[2].startswith("| ∅ | – | -0.96 |")
    mask = np.zeros(27, dtype=bool)
    mask[[g.code(({0, 1}, {2})), g.code(({1, 2}, {0}))]] = True
    assert g.to_markdown(bold=mask).split("\n") == table
    assert "<td><b>0.97</b></td>" in g.to_html(bold=mask)
    assert "12" in repr(g)
    assert "0.97" in repr(g)
    assert "zero_bound=False" in repr(g)
    assert "<table>" in g._repr_html_()
    with refused("values-shape:bold"):
        g.to_markdown(bold=np.zeros(3))


def test_negative_zero_is_not_shown():
    g = BiCapacity.from_elements({((0,), (1,)): -0.001}, 2)
    assert "-0.00" not in g.to_markdown()


def test_names_cannot_escape_into_html_or_markdown():
    names = ["<script>alert(1)</script>", "a|b", "*c*"]
    g = BiCapacity.additive([0.5, 0.3, 0.2], names)
    for text in (g._repr_html_(), Capacity.additive([0.5, 0.3, 0.2], names)._repr_html_(), g.to_markdown()):
        assert "<script>" not in text
    columns = {line.replace("\\|", "").count("|") for line in g.to_markdown().split("\n")}
    assert columns == {10}
    assert "<script>" not in BiCapacity.random(6, random_state=0, source_names=[*names, "d", "e", "f"])._repr_html_()


def test_tables_of_many_sources_are_refused_but_repr_is_not():
    g = BiCapacity.random(6, random_state=0)
    with refused("sources-many"):
        g.to_markdown()
    assert "729 elements" in repr(g)
    assert "729 elements" in g._repr_html_()
    with refused("sources-many", "12"):
        BiCapacity.random(13, random_state=0).to_matrix()
    c = Capacity.random(8, 0)
    assert "256 elements" in repr(c)
    assert "256 elements" in c._repr_html_()
    with refused("sources-many"):
        c.to_markdown()
