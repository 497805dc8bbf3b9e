"""The contract of all methods, and what is particular to those without a measure."""

import pickle

import numpy as np
import pytest
from methods import METHODS, fitted
from refusals import refused
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator

from bimichi import (
    MICI,
    ConstantFusion,
    DetectorMask,
    KNNFusion,
    MinFusion,
    SingleSource,
    SVMFusion,
    WeightedMeanFusion,
    methods as estimators,
    paper_methods,
)
from bimichi.evaluate import registered_methods
from bimichi.methods import SceneKFold, SignedSource


def test_every_method_is_under_contract():
    exported = {kind for kind in map(vars(estimators).get, estimators.__all__) if isinstance(kind, type)} - {SceneKFold}
    registered = {entry.estimator for entry in registered_methods()}
    assert exported == registered
    assert {type(method) for method in METHODS.values()} == registered - {DetectorMask}  # which has tests of its own


@pytest.mark.parametrize("name", METHODS)
class TestContract:
    def test_fuses_within_its_range_in_every_layout(self, name, model_of, data):
        X, model = data[0], model_of(name)
        fused = model.fuse(X)
        assert model.needs in ("bags", "instances", "image", None)
        assert model.output_range in ((-1.0, 1.0), (0.0, 1.0))
        assert fused.shape == (360,)
        assert fused.min() >= model.output_range[0] - 1e-9
        assert fused.max() <= model.output_range[1] + 1e-9
        image = model.fuse(X.reshape(18, 20, 3))
        np.testing.assert_array_equal(image.ravel(), fused)
        np.testing.assert_array_equal(model.fuse([X[:, k].reshape(18, 20) for k in range(3)]), image)
        assert model.fuse(X.astype(np.float32)).dtype == np.float32
        assert (model.fuse(X) == fused).all()

    def test_nan_gives_nan(self, name, model_of, data):
        holed = data[0].copy()
        holed[[3, 7], [0, 2]] = np.nan
        assert np.flatnonzero(np.isnan(model_of(name).fuse(holed))).tolist() == [3, 7]

    def test_same_again_and_pickled(self, name, model_of, data):
        X, model, method = data[0], model_of(name), METHODS[name]
        np.testing.assert_array_equal(fitted(method, data).fuse(X), model.fuse(X))
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).fuse(X), model.fuse(X))
        assert clone(model).get_params().keys() == method.get_params().keys()

    def test_classifies(self, name, model_of, data):
        X, _, bags, _ = data
        model = model_of(name)
        if not is_classifier(model):
            np.testing.assert_array_equal(model.predict(X), model.fuse(X))
            return
        scores = model.decision_function(X)
        assert np.abs(scores).max() <= 1 + 1e-9 or model.rule_.link is not None  # log-odds
        assert (np.diff(scores[np.argsort(model.fuse(X))]) >= -1e-12).all()
        np.testing.assert_array_equal(model.predict(X), (scores > 0).astype(int))
        assert model.bag_scores(X, bags).shape == (30,)

    def test_refuses_nonsense(self, name, model_of, data):
        X, y, bags, _ = data
        method = METHODS[name]
        with pytest.raises(NotFittedError):
            clone(method).fuse(X)
        with refused("sources-number"):
            model_of(name).fuse(X[:, :2])
        if method.needs is not None:
            with pytest.raises(ValueError, match=r"y|label"):
                clone(method).fit(X)
            with pytest.raises(ValueError, match=str(len(y) - 1)):
                clone(method).fit(X, y[:-1], bags=bags)
        if "source_names" in method.get_params():
            with refused("names-number"):
                fitted(clone(method).set_params(source_names=["a"]), data).fuse(X)


class TestAverages:
    def test_values(self, data, model_of):
        X = data[0]
        unit = (X + 1) / 2
        for name, expected in (
            ("min", unit.min(1)),
            ("max", unit.max(1)),
            ("mean", unit.mean(1)),
            ("source {source}", unit[:, 0]),
            ("empty map", np.zeros(len(X))),
        ):
            np.testing.assert_allclose(model_of(name).fuse(X), expected, atol=1e-15)
        assert (ConstantFusion(0.25, bipolar_input=True).fit(X).fuse(X) == 0.25).all()
        np.testing.assert_array_equal(model_of("source {source}, inverted").fuse(X), -X[:, 0])

    def test_weights_are_the_least_squares_of_the_simplex(self, data, model_of):
        X, _, _, target = data
        unit = (X + 1) / 2
        model = model_of("weighted mean")
        assert model.weights_.min() >= 0
        assert model.weights_.sum() == pytest.approx(1)
        np.testing.assert_allclose(model.fuse(X), unit @ model.weights_, atol=1e-14)
        least = ((model.fuse(X) - target) ** 2).sum()
        rng = np.random.default_rng(0)
        others = np.concatenate([rng.dirichlet(np.ones(3), 2000), np.eye(3)])
        assert least <= ((unit @ others.T - target[:, None]) ** 2).sum(axis=0).min() + 1e-9

    def test_weights_that_fit_exactly_are_found(self):
        rng = np.random.default_rng(0)
        X = rng.random((300, 3))
        X[:, 1] = X[:, 1] > 0.5
        np.testing.assert_allclose(WeightedMeanFusion().fit(X, X[:, 1].astype(int)).weights_, [0, 1, 0], atol=1e-6)

    def test_bad_parameters(self, data):
        X = data[0]
        with refused("source-index:source", "0..2"):
            SingleSource(3).fit(X)
        with refused("source-index:source", "0..2"):
            SignedSource(3).fit(X)
        with refused("sign:sign"):
            SignedSource(sign=2).fit(X)
        with refused("number-range:value", "[0, 1]"):
            ConstantFusion(2).fit(X)
        with refused("source-range", "bipolar_input=True"):
            MinFusion().fit(X).fuse(X)


class TestClassifiers:
    @pytest.mark.parametrize("method", [KNNFusion(n_neighbors=5), SVMFusion()], ids=["KNN", "SVM"])
    def test_scikit_learns_own_checks(self, method):
        results = check_estimator(method, on_skip=None)
        assert len(results) > 50

    def test_neighbours_are_those_of_scikit_learn(self, data, model_of):
        X, _, _, target = data
        expected = KNeighborsClassifier(100).fit(X, target).predict_proba(X)[:, 1]
        np.testing.assert_array_equal(model_of("KNN").fuse(X), expected)

    def test_subsampling(self):
        rng = np.random.default_rng(0)
        X, y = rng.random((30_000, 2)), (rng.random(30_000) < 0.02).astype(int)
        model = KNNFusion(max_samples=10_000).fit(X, y)
        assert model.n_samples_ == 10_000
        kept = model.classifier_._y
        assert kept.sum() == min(y.sum(), 1000)  # more than their share, since they are few
        common = KNNFusion(max_samples=10_000).fit(X, (X[:, 0] > 0.75).astype(int))
        assert common.classifier_._y.sum() == pytest.approx(10_000 * (X[:, 0] > 0.75).mean(), abs=1)
        assert (
            KNNFusion(max_samples=10_000, random_state=1).fit(X, y).fuse(X[:50]).tolist() != model.fuse(X[:50]).tolist()
        )

    def test_equal_instances_are_asked_for_once(self, data, monkeypatch):
        model = fitted(METHODS["KNN"], data)
        asked = []
        original = model.classifier_.predict_proba
        monkeypatch.setattr(model.classifier_, "predict_proba", lambda X: asked.append(len(X)) or original(X))
        model.fuse(np.repeat(data[0][:5], 100, axis=0))
        assert asked == [5]

    def test_bad_parameters(self, data):
        X, _, _, target = data
        with refused("whole-number:max_samples"):
            KNNFusion(max_samples=1).fit(X, target)
        with refused("instances-few"):
            SVMFusion().fit(X[:5], [0, 0, 0, 0, 1])


def test_scaled_by_a_pipeline(data):
    X, y, bags, _ = data
    scaled = MinMaxScaler(clip=True).fit_transform(X * 50)
    assert MICI("min-max").fit(scaled, y, bags).fuse(scaled).shape == (360,)


def test_methods_of_the_paper():
    methods = paper_methods(["a", "b"])
    assert {"source a", "source b", "min", "KNN", "SVM", "Mask R-CNN", "CI-QP", "MICI noisy-or", "MICI-BFM"} < set(
        methods
    )
    assert sum(method.fuzzy for method in methods.values()) == 11
