import naive_explain
import numpy as np
import pytest
from refusals import refused

from bimichi import BiCapacity, BiMIChI, Capacity, choquet
from bimichi.explain import chain, contributions

MEASURES = {
    "zero bound": lambda m: BiCapacity.random(m, True, m),
    "no zero bound": lambda m: BiCapacity.random(m, False, m),
    "capacity": lambda m: Capacity.random(m, m),
}


def instances(kind, m, rng, n=40):
    X = rng.uniform(0 if kind == "capacity" else -1, 1, (n, m))
    X[0] = 0
    X[1] = 1
    X[2] = np.where((np.arange(m) % 2 == 1) | (kind == "capacity"), 0.5, -0.5)
    X[3] = np.round(X[3])
    return X


@pytest.mark.parametrize("kind", MEASURES)
@pytest.mark.parametrize("m", range(1, 7))
def test_both_attributions_add_up_to_the_integral(m, kind, rng):
    measure = MEASURES[kind](m)
    X = instances(kind, m, rng)
    fused = choquet(X, measure)
    np.testing.assert_allclose(contributions(measure, X).sum(axis=-1), fused, rtol=0, atol=1e-12)
    for x, total in zip(X, fused, strict=True):
        steps = chain(measure, x)
        assert len(steps.steps) <= m
        assert steps.total == pytest.approx(total, abs=1e-12)
        for step in steps.steps:
            assert step.weight > 0
            assert step.value == measure.values[step.code]
            assert step.product == step.weight * step.value
            assert step.element == measure.lattice.label(step.code, measure.source_names)


@pytest.mark.parametrize("kind", MEASURES)
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_contributions_agree_with_plain_loops(m, kind, rng):
    measure = MEASURES[kind](m)
    X = instances(kind, m, rng, 12)
    g = naive_explain.as_dict(measure.values.tolist(), measure.n_sources)
    expected = [naive_explain.contributions(x, g) for x in X.tolist()]
    np.testing.assert_allclose(contributions(measure, X), expected, rtol=0, atol=1e-12)


def test_a_source_that_changes_nothing_contributes_nothing(rng):
    measure = BiCapacity.additive([0.6, 0.4, 0.0])
    X = rng.uniform(-1, 1, (30, 3))
    np.testing.assert_allclose(contributions(measure, X), X * [0.6, 0.4, 0.0], atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layouts_types_threads_and_nan(dtype, rng):
    measure = BiCapacity.random(3, False, 1)
    image = rng.uniform(-1, 1, (300, 401, 3)).astype(dtype)
    image[5, 7, 1] = np.nan
    found = contributions(measure, image, n_jobs=1)
    assert found.shape == image.shape
    assert found.dtype == dtype
    assert np.isnan(found[5, 7]).all()
    assert np.isnan(found).sum() == 3
    planes = [image[..., k] for k in range(3)]
    for same in (
        contributions(measure, image, n_jobs=3),
        contributions(measure, planes),
        contributions(measure, image.reshape(-1, 3)).reshape(image.shape),
        contributions(measure, np.asfortranarray(image)),
        contributions(measure, image[::-1])[::-1],
    ):
        assert np.array_equal(found, same, equal_nan=True)
    np.testing.assert_allclose(found.sum(-1), choquet(image, measure), atol=1e-6)


def test_one_instance_none_and_whole_numbers():
    measure = BiCapacity.additive([0.75, 0.25])
    assert contributions(measure, [1, -1]).tolist() == [0.75, -0.25]
    assert contributions(measure, np.empty((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("m", [8, 10])
def test_many_sources(m, rng):
    measure = BiCapacity.random(m, False, 0)
    X = rng.uniform(-1, 1, (200, m))
    np.testing.assert_allclose(contributions(measure, X).sum(-1), choquet(X, measure), atol=1e-12)


@pytest.mark.parametrize("objective", ["bipolar", "magnitude"])
def test_models_are_explained_with_their_scale_and_polarity(objective, rng):
    X = rng.uniform(0, 50, (200, 3))
    bags = np.repeat(np.arange(40), 5)
    y = bags % 2
    X[y == 1, 1] -= 20
    model = BiMIChI(objective, polarity="learn", scale="minmax", random_state=0).fit(X, y, bags=bags)
    assert (model.polarity_ < 0).any()
    np.testing.assert_allclose(contributions(model, X).sum(-1), model.integral(X), atol=1e-12)
    entered = (X - model.rule_.centre) * model.rule_.factor * model.polarity_
    np.testing.assert_allclose(contributions(model, X), contributions(model.bicapacity_, entered), atol=1e-12)
    steps = chain(model, X[3])
    assert steps.total == pytest.approx(model.integral(X[3:4])[0], abs=1e-12)
    np.testing.assert_array_equal(contributions(model, X[3]), contributions(model, X)[3])
    inverted = tuple(str(k + 1) for k in np.flatnonzero(model.polarity_ < 0))
    assert steps.inverted == inverted
    assert f"Inverted before the integral: {', '.join(inverted)}." in repr(steps)


def test_a_chain_shows_as_a_table():
    steps = chain(Capacity.additive([0.75, 0.25], ["thermal", "rgb"]), [0.5, 1.0])
    assert "g_{thermal+rgb}" in repr(steps)
    assert "<b>0.62</b>" in steps._repr_html_()
    assert chain(BiCapacity.additive([0.5, 0.5]), [0, 0]).steps == ()


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([[0.1, 0.2]], "instance-shape"),
        (0.5, "instance-shape"),
        ([0.1, 0.2, 0.3], "sources-number"),
        ([0.1, np.nan], "nan"),
        ([0.1, 1.5], "source-range"),
    ],
)
def test_chain_refuses_what_is_no_instance(x, message):
    with refused(message):
        chain(BiCapacity.additive([0.5, 0.5], ["thermal", "rgb"]), x)


def test_contributions_refuse_what_is_out_of_range():
    names = ["thermal", "rgb"]
    with refused("source-range", "'rgb'", "[-1, 1]", "1.25"):
        contributions(BiCapacity.additive([0.5, 0.5], names), [[0.1, -1.25], [np.nan, 0]])
    with refused("source-range", "'thermal'", "[0, 1]", "0.1"):
        contributions(Capacity.additive([0.5, 0.5], names), [[-0.1, 0.25]])
    with refused("sources-number"):
        contributions(BiCapacity.additive([0.5, 0.5], names), [[0.1, 0.2, 0.3]])
    with refused("n-jobs:n_jobs"):
        contributions(BiCapacity.additive([0.5, 0.5], names), [[0.1, 0.2]], n_jobs=0)


def test_data_frames_are_matched_by_their_columns(rng):
    import pandas

    frame = pandas.DataFrame(rng.uniform(-1, 1, (20, 2)), columns=["thermal", "rgb"])
    model = BiMIChI(random_state=0).fit(frame, np.arange(20) % 2)
    np.testing.assert_array_equal(contributions(model, frame), contributions(model, frame.to_numpy()))
    with refused("sources-differ"):
        contributions(model, frame[["rgb", "thermal"]])
