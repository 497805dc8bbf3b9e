import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
import skops.io
import um
from refusals import refused, warned
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import check_estimator

from bimichi import (
    Bags,
    BiMIChI,
    Capacity,
    ConvexSolver,
    EvolutionarySolver,
    ModelFileError,
    choquet,
)
from bimichi.fit.objectives import OBJECTIVES

TOO_MANY_SOURCES = {
    "check_sample_weight_equivalence_on_dense_data": "uses 30 sources, and a bi-capacity of 30 has 3^30 elements; "
    "test_weights_are_repetitions asks the same of 10"
}


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["bipolar", "logistic"])  # without and with probabilities
def test_scikit_learns_own_checks(objective):
    results = check_estimator(
        BiMIChI(objective=objective, scale="minmax"), expected_failed_checks=TOO_MANY_SOURCES, on_skip=None
    )
    status = {result["check_name"]: result["status"] for result in results}
    assert len(status) > 50
    assert {name for name, s in status.items() if s == "xfail"} == set(TOO_MANY_SOURCES)
    assert {name for name, s in status.items() if s == "skipped"} <= {"check_array_api_input"}


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_weights_are_repetitions(objective, rng):
    X, y, weight = rng.uniform(-1, 1, (15, 10)), np.arange(15) % 2, rng.integers(0, 5, 15)
    order = rng.permutation(15)
    weighted = BiMIChI(objective, random_state=0).fit(X[order], y[order], sample_weight=weight[order])
    repeated = BiMIChI(objective, random_state=0).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-9)


@pytest.fixture(scope="module")
def data():
    """Bags of 12: positive ones hold a few instances that are high in source 0 and low in source 1."""
    rng = np.random.default_rng(7)
    X, y, bags = [], [], []
    positive = rng.permutation(np.arange(40) % 2)
    for b in range(40):
        part = np.clip(rng.normal([-0.5, 0.4, 0.0], 0.2, (12, 3)), -1, 1)
        if positive[b]:
            part[:4] = np.clip(rng.normal([0.8, -0.7, 0.0], 0.1, (4, 3)), -1, 1)
        X.append(part)
        y += [positive[b]] * 12
        bags += [b] * 12
    return np.concatenate(X), np.array(y), np.array(bags)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_learns_bags(objective, data):
    X, y, bags = data
    model = BiMIChI(objective, polarity="learn", random_state=0).fit(X, y, bags)
    labels = y[np.unique(bags, return_index=True)[1]]
    assert roc_auc_score(labels, model.bag_scores(X, bags)) > 0.98
    if objective not in ("mean", "logistic"):  # which rank well, but need not put 0 between bags
        assert (model.predict_bags(X, bags) == labels).mean() > 0.95
    targets = (X[:, 0] > 0.4) & (X[:, 1] < -0.3)
    scores = model.decision_function(X)
    assert roc_auc_score(targets, scores) > 0.95
    assert model.n_iter_ == len(model.history_)
    assert model.objective_value_ == model.solution_.objective_value
    assert model.usage_["touched"].sum() == X.size
    assert (model.usage_["weighted"] <= model.usage_["touched"]).all()


def test_polarity_is_learned_applied_and_shown(data):
    X, y, bags = data
    given = BiMIChI("bipolar", random_state=0, source_names=["ir", "rgb", "z"]).fit(X, y, bags)
    learned = BiMIChI("bipolar", polarity="learn", random_state=0, source_names=["ir", "rgb", "z"]).fit(X, y, bags)
    assert given.polarity_.tolist() == [1, 1, 1]
    assert learned.polarity_[0] == 1
    assert learned.polarity_[1] == -1
    assert learned.objective_value_ < given.objective_value_
    np.testing.assert_allclose(learned.integral(X), choquet(X * learned.polarity_, learned.bicapacity_), atol=1e-14)
    assert "Inverted before the integral: rgb" in learned.to_markdown()
    assert "No source is inverted." in given.to_markdown()
    assert "**" in given.to_markdown()


def test_polarity_of_turned_sources_is_turned(data):
    X, y, bags = data
    one = BiMIChI("bipolar", polarity="learn", random_state=0).fit(X, y, bags)
    two = BiMIChI("bipolar", polarity="learn", random_state=0).fit(X * [1, -1, 1], y, bags)
    assert (two.polarity_[:2] == one.polarity_[:2] * [1, -1]).all()
    assert two.objective_value_ == pytest.approx(one.objective_value_, abs=1e-6)


def test_fuse_takes_rows_images_and_planes():
    bags, image, truth = um.um()
    y = np.repeat(bags.labels, np.diff(bags.offsets)).astype(int)
    ids = np.repeat(np.arange(len(bags)), np.diff(bags.offsets))
    for objective in OBJECTIVES:
        model = BiMIChI(objective, random_state=0).fit(bags.X, y, ids)
        fused = model.fuse(image)
        assert fused.shape == truth.shape
        np.testing.assert_array_equal(model.fuse([image[..., k] for k in range(3)]), fused)
        np.testing.assert_array_equal(model.fuse(image.reshape(-1, 3)).reshape(truth.shape), fused)
    perfect = BiMIChI("magnitude", random_state=0).fit(bags.X, y, ids).fuse(image)
    np.testing.assert_allclose(perfect, truth.astype(float), atol=1e-3)
    assert model.fuse(image.astype(np.float32)).dtype == np.float32


def test_nan_in_an_image_gives_nan_there(data):
    X, y, bags = data
    for options in ({}, {"scale": "minmax"}, {"polarity": "learn"}):
        model = BiMIChI(random_state=0, **options).fit(X, y, bags)
        holed = X.reshape(24, 20, 3).copy()
        holed[3, 4, 1] = np.nan
        assert np.argwhere(np.isnan(model.fuse(holed))).tolist() == [[3, 4]]


def test_scales(data):
    X, y, bags = data
    wide = X * [100, 3, 1] + [50, 0, 0]
    with refused("source-range", "'b'", "scale='minmax'"):
        BiMIChI(source_names=["a", "b", "c"]).fit(X * [1, 3, 1], y, bags)
    model = BiMIChI(scale="minmax", random_state=0).fit(wide, y, bags)
    low, high = wide.min(axis=0), wide.max(axis=0)
    scaled = 2 * (wide - low) / (high - low) - 1
    np.testing.assert_allclose(model.integral(wide), choquet(np.clip(scaled, -1, 1), model.bicapacity_), atol=1e-12)
    assert np.abs(model.integral(wide * 10)).max() <= 1  # beyond what was seen, clipped
    zero = BiMIChI(scale="maxabs", random_state=0).fit(X * [5, 1, 1], y, bags)
    assert zero.integral(np.zeros((1, 3)))[0] == 0
    constant = BiMIChI(scale="minmax", random_state=0).fit(np.column_stack([X, np.full(len(X), 3.0)]), y, bags)
    assert np.isfinite(constant.integral(np.column_stack([X, np.full(len(X), 3.0)]))).all()


@pytest.mark.parametrize("solver", [ConvexSolver(n_starts=3), EvolutionarySolver(max_iter=150, population_size=4)])
def test_same_seed_same_model_whatever_the_number_of_jobs(solver, data):
    X, y, bags = data
    one = BiMIChI(solver=solver, random_state=3, n_jobs=1).fit(X, y, bags)
    two = BiMIChI(solver=solver, random_state=3, n_jobs=2).fit(X, y, bags)
    assert one.bicapacity_ == two.bicapacity_
    legacy = BiMIChI(solver=solver, random_state=np.random.RandomState(3)).fit(X, y, bags)
    assert legacy.bicapacity_.is_monotone(1e-9)


class TestEcosystem:
    def test_pandas_names_the_sources(self, data):
        X, y, bags = data
        frame = pd.DataFrame(X, columns=["ir", "rgb", "z"])
        model = BiMIChI(random_state=0).fit(frame, y, bags)
        assert model.bicapacity_.source_names == ("ir", "rgb", "z")
        assert model.feature_names_in_.tolist() == ["ir", "rgb", "z"]
        named = BiMIChI(random_state=0, source_names=["a", "b", "c"]).fit(frame, y, bags)
        assert named.bicapacity_.source_names == ("a", "b", "c")
        assert (model.predict(frame) == named.predict(frame)).all()

    def test_pipeline_grid_search_and_cross_validation(self, data):
        X, y, bags = data
        pipeline = make_pipeline(MaxAbsScaler(), BiMIChI("mean", random_state=0, n_jobs=1))
        pipeline.fit(X, y, bimichi__bags=bags)
        assert pipeline.predict(X).shape == y.shape
        scores = cross_val_score(
            BiMIChI("mean", polarity="learn", random_state=0, n_jobs=1),
            X,
            y,
            groups=bags,
            cv=GroupKFold(4),
            params={"bags": bags},
            scoring="roc_auc",
        )
        assert scores.shape == (4,)
        assert scores.min() > 0.5
        search = GridSearchCV(
            BiMIChI(random_state=0, n_jobs=1), {"objective": list(OBJECTIVES), "polarity": ["given"]}, cv=GroupKFold(2)
        )
        search.fit(X, y, groups=bags, bags=bags)
        assert search.best_params_["objective"] in OBJECTIVES
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()

    def test_metadata_routing(self, data):
        X, y, bags = data
        seen = []

        class Spy(BiMIChI):
            def fit(self, X, y, bags=None, sample_weight=None):
                seen.append((len(X), None if bags is None else len(bags), sample_weight is not None))
                return super().fit(X, y, bags, sample_weight)

        with sklearn.config_context(enable_metadata_routing=True):
            model = Spy("mean", random_state=0, n_jobs=1)
            model.set_fit_request(bags=True, sample_weight=True).set_score_request(sample_weight=True)
            weight = np.where(bags < 20, 1.0, 2.0)
            scores = cross_val_score(
                model, X, y, cv=GroupKFold(2), params={"bags": bags, "sample_weight": weight, "groups": bags}
            )
        assert np.isfinite(scores).all()
        assert seen == [(240, 240, True), (240, 240, True)]

    def test_clone_and_set_params(self, data):
        model = BiMIChI(solver=ConvexSolver(n_starts=2), scale="maxabs", source_names=["a", "b", "c"])
        twin = clone(model)
        assert twin.solver == model.solver
        assert twin.get_params()["scale"] == "maxabs"
        assert twin.set_params(objective="mean").objective == "mean"

    def test_pickle_joblib_and_skops(self, data, tmp_path):
        X, y, bags = data
        model = BiMIChI(random_state=0).fit(X, y, bags)
        joblib.dump(model, tmp_path / "model.joblib")
        skops.io.dump(model, tmp_path / "model.skops")
        trusted = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
        for twin in (
            pickle.loads(pickle.dumps(model)),
            joblib.load(tmp_path / "model.joblib"),
            skops.io.load(tmp_path / "model.skops", trusted=trusted),
        ):
            assert twin.bicapacity_ == model.bicapacity_
            np.testing.assert_array_equal(twin.fuse(X), model.fuse(X))


class TestFiles:
    @pytest.mark.parametrize("classes", [[0, 1], ["no", "yes"], [False, True]])
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"objective": "magnitude", "scale": "minmax", "solver": ConvexSolver(n_starts=2)},
            {"objective": "mean", "polarity": "learn", "source_names": ["<b>", "ü", "c"]},
            {"solver": EvolutionarySolver(max_iter=50, population_size=3)},
        ],
    )
    def test_round_trip(self, options, classes, data, tmp_path):
        X, y, bags = data
        model = BiMIChI(random_state=0, **options).fit(X, np.array(classes)[y], bags)
        model.save(tmp_path / "model.json")
        twin = BiMIChI.load(tmp_path / "model.json")
        np.testing.assert_array_equal(twin.fuse(X), model.fuse(X))
        np.testing.assert_array_equal(twin.predict(X), model.predict(X))
        assert twin.bicapacity_ == model.bicapacity_
        assert twin.to_markdown() == model.to_markdown()
        assert twin.objective_value_ == model.objective_value_
        ignored = ("random_state",)
        assert {k: v for k, v in twin.get_params().items() if k not in ignored} == {
            k: v for k, v in model.get_params().items() if k not in ignored
        }

    def test_feature_names_survive(self, data, tmp_path):
        X, y, bags = data
        frame = pd.DataFrame(X, columns=["ir", "rgb", "z"])
        BiMIChI(random_state=0).fit(frame, y, bags).save(tmp_path / "model.json")
        twin = BiMIChI.load(tmp_path / "model.json")
        assert twin.feature_names_in_.tolist() == ["ir", "rgb", "z"]
        with pytest.raises(ValueError, match="feature names"):
            twin.predict(frame[["z", "ir", "rgb"]])

    def test_wrong_files(self, data, tmp_path):
        X, y, bags = data
        path = tmp_path / "model.json"
        BiMIChI(random_state=0).fit(X, y, bags).save(path)
        text = path.read_text()
        for old, new, code in [
            ('"classes"', '"klasses"', "model-incomplete"),
            ('"centre"', '"center"', "model-member"),
            ('"status"', '"state"', "model-incomplete"),
        ]:
            assert old in text
            path.write_text(text.replace(old, new))
            with refused(code, kind=ModelFileError):
                BiMIChI.load(path)
        Capacity.additive([0.5, 0.5]).save(path)
        with refused("model-of-another", "'capacity'", "'FusionRule'", kind=ModelFileError):
            BiMIChI.load(path)


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"objective": "best"}, [0, 1], "choice:objective"),
        ({"solver": "simplex"}, [0, 1], "solver-unknown:solver"),
        ({"polarity": "guess"}, [0, 1], "choice:polarity"),
        ({"scale": "zscore"}, [0, 1], "choice:scale"),
        ({"source_names": ["a"]}, [0, 1], "names-number"),
        ({"n_jobs": 0}, [0, 1], "n-jobs:n_jobs"),
        ({"random_state": "x"}, [0, 1], "random-state:random_state"),
        ({}, [1, 1], "one-class"),
        ({}, [0, 1, 2], "two-classes"),
    ],
)
def test_bad_parameters(options, y, message):
    X = np.linspace(-1, 1, 2 * len(y)).reshape(-1, 2)
    with refused(message):
        BiMIChI(**options).fit(X, y)


def test_bags_objects_can_be_fitted(data):
    X, y, bags = data
    one = BiMIChI("mean", random_state=0).fit(Bags.from_instances(X, y, bags))
    two = BiMIChI("mean", random_state=0).fit(X, y, bags)
    assert one.bicapacity_ == two.bicapacity_
    assert one.predict(X).tolist() == two.predict(X).tolist()
    given = Bags.from_instances(100 * X, y, bags)
    BiMIChI("mean", scale="minmax", random_state=0).fit(given)
    assert np.abs(given.X).max() > 50  # what the user holds is not changed
    with refused("bags-with-labels"):
        BiMIChI().fit(Bags.from_instances(X, y, bags), y)


def test_usage_counts_all_instances_also_when_each_is_its_own_bag():
    X = np.repeat([[0.9, 0.2], [-0.5, -0.4]], 10, axis=0)
    model = BiMIChI(random_state=0).fit(X, np.repeat([1, 0], 10))
    assert model.usage_["touched"].sum() == 40


def test_outputs_belong_to_the_fitted_objective(data, tmp_path):
    X, y, bags = data
    model = BiMIChI(random_state=0).fit(X, y, bags)
    before = model.fuse(X)
    model.set_params(objective="magnitude")
    np.testing.assert_array_equal(model.fuse(X), before)
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(BiMIChI.load(tmp_path / "model.json").fuse(X), before)


def test_a_perfect_start_is_saved(tmp_path):
    model = BiMIChI("magnitude", random_state=0).fit([[1, 1.0], [0.3, -0.3]], [1, 0], [0, 1])
    model.save(tmp_path / "model.json")
    assert BiMIChI.load(tmp_path / "model.json").objective_value_ == model.objective_value_


def test_numpy_integers_as_options(data, tmp_path):
    X, y, bags = data
    for solver in (ConvexSolver(n_starts=np.int64(2)), EvolutionarySolver(max_iter=np.int64(20))):
        BiMIChI(solver=solver, random_state=0).fit(X, y, bags).save(tmp_path / "model.json")


def test_a_checkpoint_goes_with_learned_polarity(data, tmp_path):
    X, y, bags = data
    solver = EvolutionarySolver(max_iter=20, population_size=4, checkpoint=tmp_path / "c.npz")
    model = BiMIChI(solver=solver, polarity="learn", random_state=0).fit(X, y, bags)
    assert model.polarity_[1] == -1


def test_columns_in_another_order_are_refused(data):
    X, y, bags = data
    frame = pd.DataFrame(X, columns=["ir", "rgb", "z"])
    model = BiMIChI(random_state=0).fit(frame, y, bags)
    np.testing.assert_array_equal(model.fuse(frame), model.fuse(X))
    with pytest.raises(ValueError, match="feature names"):
        model.fuse(frame[["z", "ir", "rgb"]])


def test_nan_by_option(data):
    X, y, bags = data
    holed = X.copy()
    holed[5, 1] = np.nan
    with refused("nan"):
        BiMIChI().fit(holed, y, bags)
    with warned("instances-left-out", "480"):
        model = BiMIChI(nan="drop", random_state=0).fit(holed, y, bags)
    assert np.flatnonzero(np.isnan(model.decision_function(holed))).tolist() == [5]
    assert model.predict(holed)[5] == 0


def test_unfitted():
    for call in ("predict", "fuse", "decision_function", "integral"):
        with pytest.raises(NotFittedError):
            getattr(BiMIChI(), call)([[0.1, 0.2]])
    with pytest.raises(NotFittedError):
        BiMIChI().save("nowhere")
