"""The measure: its order, its bounds, its integral, its files."""

import pickle
from itertools import combinations, product

import naive
import numpy as np
import pytest
import xarray as xr
from refusals import refused

from bimichi import AdditiveBiCapacity, BiCapacity, ModelFileError, choquet
from bimichi.integral.terms import term_features
from bimichi.measures.additive import Terms
from bimichi.measures.lattice import pair_lattice


def named_terms(space, values):
    """Terms by their sides, found by loops: (k, +1) is source k up, (k, -1) is source k down."""
    m = space.n_sources
    sides = [(k, 1) for k in range(m)] + [(k, -1) for k in range(m)]
    pairs = [frozenset(pair) for pair in combinations(sides, 2) if pair[0][0] != pair[1][0]]
    return dict(zip([frozenset([side]) for side in sides] + pairs, values, strict=True))


def value_at(named, up, down):
    inside = {(k, 1) for k in up} | {(k, -1) for k in down}
    return sum(value for sides, value in named.items() if sides <= inside)


def elements(m):
    for digits in product((0, 1, 2), repeat=m):
        yield tuple(tuple(k for k in range(m) if digits[k] == side) for side in (1, 2))


def brute_values(space, values):
    named = named_terms(space, values)
    lattice = pair_lattice(space.n_sources)
    table = np.empty(lattice.size)
    for up, down in elements(space.n_sources):
        table[lattice.code(up, down)] = value_at(named, up, down)
    return table


@pytest.mark.parametrize("m", range(1, 6))
def test_every_element_is_the_sum_of_the_terms_inside(m, rng):
    g = AdditiveBiCapacity.random(m, rng)
    full = g.to_bicapacity()
    np.testing.assert_allclose(full.values, brute_values(g.space, g.terms), atol=1e-14)
    assert full.is_monotone(1e-12)
    for up, down in elements(m):
        assert g[up, down] == pytest.approx(full[up, down], abs=1e-14)


@pytest.mark.parametrize("m", range(1, 6))
def test_the_condition_is_exact_both_ways(m, rng):
    """Any terms: monotone by O(m^2) conditions if and only if no neighbours of all 3^m elements break the order."""
    space, lattice, found = Terms(m), pair_lattice(m), []
    for _ in range(300 if m < 5 else 60):
        values = rng.normal(0, 1, space.size)
        values[: 2 * m] = space.sign * rng.uniform(-0.2, 3 * m, 2 * m)
        if rng.random() < 0.3:  # some exactly at the limit, made of halves so that sums are exact
            values = np.round(2 * values) / 2
        monotone = lattice.violations(brute_values(space, values), 1e-12)[0].size == 0
        assert monotone == bool(space.slack(values).min() >= -1e-12)
        found.append(monotone)
    assert 5 < sum(found) < len(found) - 5


@pytest.mark.parametrize("m", range(1, 7))
def test_the_integral_is_that_of_all_elements(m, rng):
    g = AdditiveBiCapacity.random(m, rng)
    full = g.to_bicapacity()
    X = np.concatenate(
        [
            rng.uniform(-1, 1, (400, m)),
            rng.choice([-1.0, -0.5, -0.0, 0.0, 0.5, 1.0], (400, m)),
            np.zeros((1, m)),
            np.ones((1, m)),
            -np.ones((1, m)),
        ]
    )
    fused = choquet(X, g)
    np.testing.assert_allclose(fused, choquet(X, full), atol=1e-14)
    assert fused[-3:] == pytest.approx([0, 1, -1], abs=1e-15)
    table = {pair: full[pair] for pair in naive.pairs(m)}
    for row in range(0, 800, 160):
        assert fused[row] == pytest.approx(naive.choquet(X[row].tolist(), table), abs=1e-14)


def test_more_instances_than_a_block_and_a_chunk(rng):
    g = AdditiveBiCapacity.random(5, rng)
    X = rng.uniform(-1, 1, (200_003, 5))
    expected = choquet(X, g.to_bicapacity())
    one, many = choquet(X, g, n_jobs=1), choquet(X, g, n_jobs=4)
    np.testing.assert_allclose(one, expected, atol=1e-14)
    np.testing.assert_array_equal(one, many)
    narrow = choquet(X.astype(np.float32), g)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, expected, atol=2e-6)


def test_layouts_nan_and_range(rng):
    g = AdditiveBiCapacity.random(3, rng, source_names=["ir", "rgb", "radar"])
    image = rng.uniform(-1, 1, (20, 30, 3))
    fused = choquet(image, g)
    np.testing.assert_array_equal(choquet([image[..., k] for k in range(3)], g), fused)
    np.testing.assert_array_equal(choquet(image[::2, ::-1], g), fused[::2, ::-1])
    labelled = xr.DataArray(image, dims=("y", "x", "source"), coords={"source": ["ir", "rgb", "radar"]})
    turned = choquet(labelled.isel(source=[2, 0, 1]), g)
    np.testing.assert_array_equal(turned.values, fused)
    for k in range(3):
        holed = image.copy()
        holed[3, 4, k] = np.nan
        found = choquet(holed, g)
        assert np.isnan(found[3, 4])
        assert np.isnan(found).sum() == 1
        with refused("nan"):
            choquet(holed, g, nan="raise")
    image[0, 0, 1] = -1.5
    with refused("source-range", "'rgb'", "1.5"):
        choquet(image, g)


@pytest.mark.parametrize("m", [1, 2, 4])
def test_features_are_what_the_terms_multiply(m, rng):
    space, g = Terms(m), AdditiveBiCapacity.random(m, rng)
    X = rng.choice([-1.0, -0.3, 0.0, 0.3, 0.8], (50, m))
    features = np.empty((50, space.size))
    term_features(X, *space.both_sides, features)
    np.testing.assert_allclose(features @ g.terms, choquet(X, g), atol=1e-14)
    sides = np.concatenate([np.maximum(X, 0), np.maximum(-X, 0)], axis=1)
    for row, y in zip(features, sides, strict=True):
        by_sides = named_terms(space, row)
        for pair, value in by_sides.items():
            assert value == min(y[k if side > 0 else k + m] for k, side in pair)


def test_repair_changes_little_and_makes_it_exact(rng):
    for m in (1, 3, 8, 30):
        space = Terms(m)
        good = space.sample(rng)
        noisy = good + rng.normal(0, 1e-9, space.size)
        made = space.repaired(noisy)
        assert space.slack(made).min() >= 0
        np.testing.assert_allclose(space.totals(made), [1, -1], atol=1e-14)
        assert np.abs(made - good).max() < 1e-6
        AdditiveBiCapacity(made)


def test_tables_and_the_additive_one():
    g = AdditiveBiCapacity.from_tables(
        up=[[0.6, 0.2], [0.2, 0.2]], down=[[-0.5, 0], [0, -0.5]], cross=[[0, -0.1], [0, 0]], source_names=["ir", "rgb"]
    )
    assert g[["ir"], ["rgb"]] == pytest.approx(0.0)
    assert g[(0, 1), ()] == pytest.approx(1.0)
    assert g.up.tolist() == [[0.6, 0.2], [0.2, 0.2]]
    assert g.down.tolist() == [[-0.5, 0], [0, -0.5]]
    assert g.cross.tolist() == [[0, -0.1], [0, 0]]
    weights = [0.5, 0.3, 0.2]
    np.testing.assert_allclose(
        AdditiveBiCapacity.additive(weights).to_bicapacity().values, BiCapacity.additive(weights).values, atol=1e-15
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AdditiveBiCapacity(np.zeros(7)), "terms-shape:terms"),
        (lambda: AdditiveBiCapacity(np.zeros(8)), "terms-boundary"),
        (lambda: AdditiveBiCapacity(np.full(8, np.nan)), "terms-finite"),
        (lambda: AdditiveBiCapacity("x"), "real-numbers"),
        (
            lambda: AdditiveBiCapacity.from_tables([[0.9, 0.4], [0.4, -0.3]], np.diag([-0.5, -0.5])),
            "terms-monotone",
        ),
        (
            lambda: AdditiveBiCapacity.from_tables(np.diag([0.5, 0.5]), [[-1.2, 0], [0, 0.2]]),
            "terms-monotone",
        ),
        (
            lambda: AdditiveBiCapacity.from_tables(np.diag([0.5, 0.5]), np.diag([-0.5, -0.5]), [[0, -0.6], [0, 0]]),
            "terms-monotone",
        ),
        (lambda: AdditiveBiCapacity.from_tables([[0.5, 0.1], [0, 0.4]], np.diag([-0.5, -0.5])), "pairs-symmetric:up"),
        (lambda: AdditiveBiCapacity.from_tables([[1.0]], [[-1.0]], [[0.5]]), "cross-diagonal"),
        (lambda: AdditiveBiCapacity.from_tables([[1.0]], [-1.0]), "pairs-shape:down"),
        (lambda: AdditiveBiCapacity.additive([0.5, 0.6]), "terms-boundary"),
        (lambda: AdditiveBiCapacity.additive([1.5, -0.5]), "terms-monotone"),
        (lambda: AdditiveBiCapacity.random(65), "sources-many"),
        (lambda: AdditiveBiCapacity.random(0), "whole-number"),
        (lambda: AdditiveBiCapacity.random(3)[(0,), (0,)], "element-disjoint"),
        (lambda: AdditiveBiCapacity.random(3)["ir", ()], "source-unknown"),
        (lambda: AdditiveBiCapacity.random(15).to_bicapacity(), "sources-many"),
        (lambda: AdditiveBiCapacity.random(2, source_names=["a"]), "names-number"),
    ],
)
def test_wrong_ones_are_refused(make, message):
    with refused(message):
        make()


def test_it_cannot_change_and_is_shown(tmp_path):
    g = AdditiveBiCapacity.random(4, 0, source_names=["ir", "rgb", "<b>", "z"])
    with pytest.raises(AttributeError, match="cannot be changed"):
        g.x = 1
    with pytest.raises(ValueError, match="read-only"):
        g.terms[0] = 1
    assert pickle.loads(pickle.dumps(g)) == g
    assert hash(pickle.loads(pickle.dumps(g))) == hash(g)
    assert g != AdditiveBiCapacity.random(4, 1)
    assert "AdditiveBiCapacity of order 2, 4 sources (ir, rgb, <b>, z), 32 terms" in repr(g)
    assert "more that are not 0.00" in repr(g)
    assert "&lt;b&gt;" in g._repr_html_()
    shown = g.to_markdown().splitlines()
    assert shown[0] == "| A | B | b(A, B) |"
    assert len(shown) == 2 + (np.abs(g.terms) >= 0.005).sum()
    sizes = [abs(float(line.split("|")[3])) for line in shown[2:]]
    assert sizes == sorted(sizes, reverse=True)
    assert len(g.to_markdown(limit=3).splitlines()) == 5


def test_files(tmp_path):
    for m in (1, 5, 30, 40):
        g = AdditiveBiCapacity.random(m, m, source_names=[f"söurce {k}" for k in range(m)])
        g.save(tmp_path / "g")
        assert AdditiveBiCapacity.load(tmp_path / "g") == g
    with refused("model-of-another", "'2-additive'", kind=ModelFileError):
        BiCapacity.load(tmp_path / "g")
    BiCapacity.random(2, random_state=0).save(tmp_path / "g")
    with refused("model-of-another", "'2-additive'", kind=ModelFileError):
        AdditiveBiCapacity.load(tmp_path / "g")
    AdditiveBiCapacity.random(2, 0).save(tmp_path / "g")
    text = (tmp_path / "g").read_text()
    for old, new, message in (
        ('"terms"', '"values"', "model-incomplete"),
        ('"source_names"', '"names"', "model-incomplete"),
        ('"terms": [\n   ', '"terms": [\n   9', "terms-boundary"),
    ):
        assert old in text
        (tmp_path / "bad").write_text(text.replace(old, new))
        with refused(message, kind=ModelFileError):
            AdditiveBiCapacity.load(tmp_path / "bad")
