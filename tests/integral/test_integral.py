import itertools
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import naive
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from refusals import refused

from bimichi import BiCapacity, Capacity, choquet, linear_form, usage_counts
from bimichi.integral import integrals as integral, planes
from bimichi.integral.linear import count_usage

SIZES = [1, 2, 3, 4, 5, 6]


def instances(rng, m, n=120):
    """Random, tied, zero and +-1 inputs."""
    tied = rng.choice([-0.5, 0.5, 0.25, -0.25, 0.0], (n, m))
    poles = rng.choice([-1.0, 0.0, -0.0, 1.0], (n, m))
    return np.concatenate(
        [rng.uniform(-1, 1, (n, m)), tied, poles, np.zeros((1, m)), -np.ones((1, m)), np.ones((1, m))]
    )


def as_dict(g):
    return {pair: g[pair] for pair in naive.pairs(g.n_sources)}


def as_dict_capacity(g):
    return {subset: g[subset] for subset in naive.subsets(g.n_sources)}


@pytest.mark.parametrize("zero_bound", [True, False])
@pytest.mark.parametrize("m", SIZES)
def test_bicapacity_integral_is_the_oracles(m, zero_bound, rng):
    g = BiCapacity.random(m, zero_bound, rng)
    X, values = instances(rng, m), as_dict(g)
    expected = [naive.choquet(x, values) for x in X.tolist()]
    np.testing.assert_allclose(choquet(X, g), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(choquet(list(X.T), g), expected, rtol=0, atol=1e-12)
    codes, weights = linear_form(X)
    np.testing.assert_allclose((weights * g.values[codes]).sum(axis=1), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("m", SIZES)
def test_capacity_integral_is_the_oracles(m, rng):
    g = Capacity.random(m, rng)
    X, values = np.abs(instances(rng, m)), as_dict_capacity(g)
    expected = [naive.capacity_choquet(x, values) for x in X.tolist()]
    np.testing.assert_allclose(choquet(X, g), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(choquet(tuple(X.T), g), expected, rtol=0, atol=1e-12)
    codes, weights = linear_form(X, "capacity")
    np.testing.assert_allclose((weights * g.values[codes]).sum(axis=1), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("m", SIZES)
def test_chain_and_usage_are_the_oracles(m, rng):
    X = instances(rng, m, 40)
    codes, weights = linear_form(X)
    assert codes.dtype == np.int32
    assert (weights >= 0).all()
    touched, weighted = np.zeros(3**m, int), np.zeros(3**m, int)
    for row, x in enumerate(X.tolist()):
        steps = naive.chain(x)
        assert codes[row].tolist() == [naive.code(element) for element, _ in steps]
        np.testing.assert_allclose(weights[row], [weight for _, weight in steps], rtol=0, atol=1e-15)
        for element, weight in steps:
            touched[naive.code(element)] += 1
            weighted[naive.code(element)] += weight > 0
    assert np.array_equal(usage_counts(X), touched)
    assert np.array_equal(usage_counts(X, weighted=True), weighted)
    assert np.array_equal(usage_counts(X.T.copy().T), touched)


def test_many_instances_in_many_chunks(rng, monkeypatch):
    """Chunks, lanes and blocks end where they will; every instance must come out the same."""
    monkeypatch.setattr(planes, "CHUNK", 3001)
    monkeypatch.setattr(planes, "SMALL_CHUNK", 1003)
    for m in (2, 3, 4, 6):
        g = BiCapacity.random(m, random_state=m)
        X = rng.uniform(-1, 1, (10_007, m))
        codes, weights = linear_form(X, n_jobs=2)
        expected = (weights * g.values[codes]).sum(axis=1)
        for layout in (X, list(X.T), np.ascontiguousarray(X.T).T):
            for n_jobs in (1, 2):
                np.testing.assert_allclose(choquet(layout, g, n_jobs=n_jobs), expected, rtol=0, atol=1e-12)
        assert usage_counts(X, n_jobs=2).sum() == X.size


@pytest.mark.parametrize("m", [3, 6])
def test_same_bits_whatever_the_number_of_jobs(m, rng):
    g = BiCapacity.random(m, random_state=0)
    X = rng.uniform(-1, 1, (300_000, m)).astype(np.float32)
    assert np.array_equal(choquet(X, g, n_jobs=1), choquet(X, g, n_jobs=2))
    assert np.array_equal(choquet(X, g, n_jobs=1), choquet(X, g))


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_float32_stays_float32_and_is_close(m, rng):
    g = BiCapacity.random(m, random_state=m)
    X = rng.uniform(-1, 1, (500, m)).astype(np.float32)
    fused = choquet(X, g)
    assert fused.dtype == np.float32
    np.testing.assert_allclose(fused, choquet(X.astype(float), g), rtol=0, atol=2e-6)
    assert linear_form(X)[1].dtype == np.float32


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, bool])
def test_integers_are_converted(dtype):
    g = BiCapacity.random(3, random_state=0)
    X = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1]]).astype(dtype)
    fused = choquet(X, g)
    assert fused.dtype == np.float64
    np.testing.assert_allclose(fused, [g[{0, 2}, ()], 0, 1], atol=1e-15)


def test_mixed_planes_are_float64(rng):
    g = BiCapacity.random(2, random_state=0)
    a, b = rng.uniform(-1, 1, (2, 50))
    assert choquet([a.astype(np.float32), b], g).dtype == np.float64


@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_layouts_give_the_same(m, rng):
    g = BiCapacity.random(m, random_state=m)
    image = rng.uniform(-1, 1, (31, 17, m))
    expected = choquet(image.reshape(-1, m), g).reshape(31, 17)
    read_only = image.copy()
    read_only.flags.writeable = False
    big = np.zeros((62, 40, m))
    big[::2, 5:22] = image
    cropped = big[::2, 5:22]
    views = {
        "image": image,
        "fortran": np.asfortranarray(image),
        "read-only": read_only,
        "cropped": cropped,
        "planes": [image[..., k] for k in range(m)],
        "cropped planes": [cropped[..., k] for k in range(m)],
        "contiguous planes": [image[..., k].copy() for k in range(m)],
        "turned": image[::-1, ::-1][::-1, ::-1],
        "lists": image.tolist(),
    }
    for name, view in views.items():
        fused = choquet(view, g)
        assert fused.shape == (31, 17), name
        np.testing.assert_allclose(fused, expected, rtol=0, atol=1e-14, err_msg=name)
    codes, weights = linear_form(cropped)
    np.testing.assert_allclose((weights * g.values[codes]).sum(axis=1), expected.ravel(), atol=1e-12)


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_usage_is_counted_once_for_all_signs(m):
    X = np.random.default_rng(m).choice([-1.0, -0.5, -0.0, 0.0, 0.25, 0.5], (300, m))
    usage = count_usage(X[:100]) + count_usage(X[100:], n_jobs=2)
    for signs in itertools.product([1.0, -1.0], repeat=m):
        for weighted in (False, True):
            assert np.array_equal(usage.counts(weighted, signs), usage_counts(X * np.array(signs), weighted))


def test_one_instance_and_no_instance():
    g = BiCapacity.additive([0.5, 0.3, 0.2])
    fused = choquet([0.2, -0.4, 0.5], g)
    assert np.ndim(fused) == 0
    assert fused == pytest.approx(0.08)
    assert choquet(np.empty((0, 3)), g).shape == (0,)
    assert choquet(np.empty((4, 0, 3)), g).shape == (4, 0)
    assert linear_form(np.empty((0, 3)))[0].shape == (0, 3)
    assert usage_counts(np.empty((0, 3))).sum() == 0


def test_additive_is_the_weighted_mean(rng):
    for m in SIZES:
        weights = rng.dirichlet(np.ones(m))
        X = rng.uniform(-1, 1, (50, m))
        np.testing.assert_allclose(choquet(X, BiCapacity.additive(weights)), X @ weights, atol=1e-14)


@settings(max_examples=150)
@given(st.integers(1, 6), st.booleans(), st.integers(0, 2**32 - 1))
def test_properties(m, zero_bound, seed):
    rng = np.random.default_rng(seed)
    g = BiCapacity.random(m, zero_bound, rng)
    X = rng.choice([rng.uniform(-1, 1, (20, m)), rng.choice([-1, -0.3, 0, 0.3, 1], (20, m))])
    fused = choquet(X, g)
    assert (np.abs(fused) <= np.abs(X).max(axis=1)).all()
    factor = rng.uniform(0, 1)
    np.testing.assert_allclose(choquet(factor * X, g), factor * fused, atol=1e-14)
    if zero_bound:
        higher = np.minimum(X + rng.uniform(0, 0.5, X.shape), 1)
        assert (choquet(higher, g) >= fused - 1e-14).all()
    for code in rng.integers(1, 3**m, 5):
        up, down = g.lattice.sets(int(code))
        corner = np.zeros(m)
        corner[list(up)], corner[list(down)] = 1, -1
        assert choquet(corner, g) == pytest.approx(g.values[code], abs=1e-14)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_gives_nan_there_and_nowhere_else(m, dtype, rng):
    g = BiCapacity.random(m, random_state=m)
    X = rng.uniform(-1, 1, (300, m)).astype(dtype)
    clean = choquet(X, g)
    holes = rng.choice(300, 30, replace=False)
    X[holes, rng.integers(0, m, 30)] = np.nan
    fused = choquet(X, g)
    assert np.array_equal(np.flatnonzero(np.isnan(fused)), np.sort(holes))
    keep = ~np.isnan(fused)
    assert np.array_equal(fused[keep], clean[keep])
    with refused("nan"):
        choquet(X, g, nan="raise")
    with refused("nan"):
        linear_form(X)
    assert usage_counts(X).sum() == (300 - 30) * m
    assert np.isnan(choquet(np.full((3, m), np.nan, dtype), g)).all()


@pytest.mark.parametrize("m", [2, 3, 4, 5])
@pytest.mark.parametrize("bad", [3.7, -1.0001, np.inf, -np.inf])
def test_out_of_range_names_source_and_value(m, bad, rng):
    g = BiCapacity.random(m, random_state=m, source_names=[f"s{k}" for k in range(m)])
    X = rng.uniform(-1, 1, (300, m))
    X[250, 1] = bad
    X[250, 0] = np.nan  # must not hide its neighbour
    with refused("source-range", "'s1'", repr(bad), "[-1, 1]"):
        choquet(X, g)
    with refused("source-range"):
        linear_form(X)
    with refused("source-range"):
        usage_counts(X)
    choquet(X, g, check_range=False)


def test_unchecked_values_are_integrated_by_the_same_formula(rng):
    for m in (3, 5):
        g = BiCapacity.random(m, random_state=0)
        X, values = rng.uniform(-4, 4, (50, m)), as_dict(g)
        expected = [naive.choquet(x, values) for x in X.tolist()]
        np.testing.assert_allclose(choquet(X, g, check_range=False), expected, atol=1e-12)


def test_capacity_range_is_zero_to_one():
    g = Capacity.additive([0.5, 0.5], ["a", "b"])
    with refused("source-range", "'b'", "0.2", "[0, 1]"):
        choquet(np.array([[0.1, -0.2]]), g)
    with refused("source-range", "[0, 1]"):
        linear_form([[0.1, -0.2]], "capacity")
    np.testing.assert_allclose(choquet(np.array([[0.2, -0.2]]), g, check_range=False), [0.0], atol=1e-15)


class TestOut:
    def test_is_filled_and_returned(self, rng):
        for m in (3, 5):
            g = BiCapacity.random(m, random_state=0)
            X = rng.uniform(-1, 1, (20, 30, m))
            out = np.empty((20, 30))
            assert choquet(X, g, out=out) is out
            assert np.array_equal(out, choquet(X, g))
            strided = np.zeros((20, 60))[:, ::2]
            assert np.array_equal(choquet(X, g, out=strided), out)

    @pytest.mark.parametrize(
        ("out", "message"),
        [
            (np.empty(5), "out-array"),
            (np.empty(4, np.float32), "out-array"),
            ([0.0] * 4, "out-array"),
            (np.broadcast_to(0.0, 4), "out-read-only"),
        ],
    )
    def test_is_checked(self, out, message):
        with refused(message):
            choquet(np.zeros((4, 3)), BiCapacity.random(3), out=out)

    def test_must_not_overlap(self):
        a, b = np.zeros(4), np.zeros(4)
        with refused("out-shared"):
            choquet([a, b], BiCapacity.random(2), out=a)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((4, 2)), "sources-number"),
        (np.zeros(4), "sources-number"),
        (0.5, "sources-axis"),
        ([], "sources-number"),
        (np.zeros((4, 3), complex), "real-numbers"),
        (np.zeros((4, 3), object), "real-numbers"),
        ([["a", "b", "c"]], "real-numbers"),
        ([[1, 2, 3], [1, 2]], "array-unreadable"),
        ([np.zeros(3), np.zeros(3)], "sources-number"),
        ([np.zeros(3), np.zeros(3), np.zeros(4)], "planes-shapes"),
        ([np.zeros(3), np.zeros(3), np.zeros(3, complex)], "real-numbers:Plane 2 of X"),
        (np.ma.masked_equal(np.zeros((4, 3)), 1), "masked-array"),
        (None, "real-numbers"),
    ],
)
def test_bad_input(X, message):
    with refused(message):
        choquet(X, BiCapacity.additive([0.5, 0.3, 0.2]))


def test_planes_in_one_array_or_among_lists():
    g = BiCapacity.additive([0.5, 0.3, 0.2])
    with refused("sources-number:X", "list(X)"):
        choquet(np.zeros((3, 48, 64)), g)
    np.testing.assert_allclose(choquet([np.ones(3), [0.0, 0, 0], [-1.0, -1, -1]], g), [0.3] * 3)


def test_rounding_does_not_leave_the_range(rng):
    X = rng.uniform(0, 1, (200_000, 5)).astype(np.float32)
    X[:, 0] = 1
    for g in (BiCapacity.from_elements({}, 5, completion="highest"), Capacity.from_elements({}, 5, "highest")):
        assert choquet(X, g).max() <= 1


def test_memory_of_planes_that_have_to_be_copied(rng):
    """A batch of one, cropped: it is cut along the next axis, and copied piece by piece."""
    planes_given = [rng.uniform(-1, 1, (1, 1500, 1600))[:, :, :1500] for _ in range(6)]
    g, out = BiCapacity.random(6, random_state=0), np.empty((1, 1500, 1500))
    choquet([plane[:, :2] for plane in planes_given], g)
    tracemalloc.start()
    try:
        choquet(planes_given, g, out=out, n_jobs=2)
        assert tracemalloc.get_traced_memory()[1] < 0.3 * 6 * out.nbytes
    finally:
        tracemalloc.stop()


def test_one_source_explains_how_to_reshape():
    with refused("sources-number", "reshape(-1, 1)"):
        choquet(np.zeros(5), BiCapacity.random(1))


def test_bad_options():
    g = BiCapacity.random(2)
    with refused("choice:nan", "'skip'"):
        choquet(np.zeros((1, 2)), g, nan="skip")
    for n_jobs in (0, -2, 1.5, "2", True):
        with refused("n-jobs:n_jobs"):
            choquet(np.zeros((1, 2)), g, n_jobs=n_jobs)
    with refused("measure-kind:g"):
        choquet(np.zeros((1, 2)), [0, 1])
    with refused("choice:measure"):
        linear_form(np.zeros((1, 2)), "tricapacity")


@pytest.mark.parametrize("n", range(1, 15))
def test_sorting_network_sorts(n):
    """A network sorts everything if it sorts all zero-one inputs (Knuth)."""
    network = integral._sorting_network(n)
    rows = np.arange(2**n)[:, None] >> np.arange(n) & 1
    for i, j in network:
        rows[:, [i, j]] = np.sort(rows[:, [i, j]], axis=1)
    assert (np.diff(rows, axis=1) >= 0).all()


def test_kernels_agree_without_jit():
    """The same kernels as plain Python, in a process of their own."""
    script = """
import naive, numpy as np
from bimichi import BiCapacity, Capacity, choquet, linear_form, usage_counts
import test_integral as t
rng = np.random.default_rng(1)
for m in range(1, 7):
    g, c = BiCapacity.random(m, m % 2 == 0, rng), Capacity.random(m, rng)
    X, values = t.instances(rng, m, 15), t.as_dict(g)
    expected = [naive.choquet(x, values) for x in X.tolist()]
    np.testing.assert_allclose(choquet(X, g), expected, rtol=0, atol=1e-12)
    expected = [naive.capacity_choquet(x, t.as_dict_capacity(c)) for x in np.abs(X).tolist()]
    np.testing.assert_allclose(choquet(np.abs(X), c), expected, rtol=0, atol=1e-12)
    codes, _ = linear_form(X)
    assert np.array_equal(np.bincount(codes.ravel(), minlength=3**m), usage_counts(X))
import numba
assert numba.config.DISABLE_JIT
print("agreed")
"""
    folder = Path(__file__).parent
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, cwd=folder)
    assert done.stdout.strip() == "agreed", done.stderr
