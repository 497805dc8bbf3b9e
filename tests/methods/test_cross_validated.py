import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused, warned
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from bimichi import Bags, BiMIChI, BiMIChICV, FusionRule, Scene
from bimichi.explain import bootstrap, summary
from bimichi.fit.choose import selection_of
from bimichi.scenes.dataset import Dataset

QUICK = [{"objective": "mean", "additivity": 1}, {"objective": "logistic", "additivity": 1, "labels": "cores"}]


def scene(seed, name=None, target=(0.5, -0.4, 0.0), boxes=2, shape=(40, 60)):
    """Targets are high in the first source, low in the second; the third is noise."""
    rng = np.random.default_rng(seed)
    sources = rng.normal(-0.2, 0.25, (*shape, len(target)))
    found = []
    for _ in range(boxes):
        x, y = rng.integers(2, shape[1] - 14), rng.integers(2, shape[0] - 14)
        sources[y + 1 : y + 11, x + 2 : x + 8] += target
        found.append((x, y, 10, 12))
    segments = np.arange(shape[0])[:, None] // 5 * (shape[1] // 5) + np.arange(shape[1]) // 5
    inside = np.zeros(shape, bool)
    for x, y, w, h in found:
        inside[y : y + h, x : x + w] = True
    labels = {int(s): bool(inside[segments == s].any()) for s in np.unique(segments)}
    made = np.clip(sources, -1, 1).astype(np.float32)
    boxes = np.array(found, float).reshape(-1, 4)
    return Scene(made, name or f"scene {seed}", segments=segments, labels=labels, boxes=boxes)


@pytest.fixture(scope="module")
def scenes():
    return [scene(k) for k in range(5)]


@pytest.fixture(scope="module")
def fitted(scenes):
    return BiMIChICV(random_state=0).fit(scenes)


def test_the_table_has_every_candidate_and_every_source(fitted):
    names = fitted.cv_results_["candidate"].tolist()
    assert {"mean, 1-additive", "logistic, 2-additive, rarity, cores", "bipolar", "magnitude"} <= set(names)
    assert names[-3:] == ["source 1", "source 2, inverted", "source 3"]
    assert fitted.polarity_.tolist() == [1, -1, 1] or fitted.rule_.recipes[1] == "as_is|inverted|rarity"
    best = fitted.cv_results_["mean_test_ap"].max()
    assert fitted.best_score_ >= best - fitted.cv_results_["error_test_ap"][fitted.best_index_]
    splits = [fitted.cv_results_[f"split{k}_test_ap"][0] for k in range(5)]
    assert np.mean(splits) == pytest.approx(fitted.cv_results_["mean_test_ap"][0])
    assert sorted(fitted.cv_results_["rank_test_ap"]) == list(range(1, len(names) + 1))


def test_the_choice_is_better_than_a_source_and_gives_probabilities(fitted):
    new = scene(99)
    fused = fitted.fuse(new.sources)
    assert fused.shape == (40, 60)
    assert fitted.output_range == (0.0, 1.0)
    assert 0 <= fused.min() <= fused.max() <= 1
    inside = np.zeros(fused.shape, bool)
    for x, y, w, h in new.boxes.astype(int):
        inside[y + 1 : y + h - 1, x + 2 : x + w - 2] = True
    assert fused[inside].mean() > 5 * fused[~inside].mean()
    assert abs(fused.mean() - inside.mean()) < 0.05
    chosen = fitted.selection_
    assert chosen.lead.clear
    assert chosen.warning() == ""
    assert chosen.winner.name in chosen.sentence()
    rows = new.sources.reshape(-1, 3)
    np.testing.assert_allclose(fitted.predict_proba(rows)[:, 1], fused.ravel(), rtol=1e-5)
    np.testing.assert_allclose(fitted.predict_proba(rows).sum(axis=1), 1)


def test_the_result_does_not_depend_on_threads_or_on_how_scenes_come(scenes, fitted):
    lazy = Dataset([one.name for one in scenes], {one.name: one for one in scenes}.__getitem__)
    other = BiMIChICV(random_state=0, n_jobs=1).fit(lazy)
    assert other.selection_ == fitted.selection_
    np.testing.assert_array_equal(other.rule_.measure.values, fitted.rule_.measure.values)
    assert other.rule_.link == fitted.rule_.link


def test_a_model_file_keeps_the_choice(fitted, tmp_path):
    fitted.save(tmp_path / "m.json")
    rule = FusionRule.load(tmp_path / "m.json")
    assert selection_of(rule.training) == fitted.selection_
    assert rule.recipes == fitted.rule_.recipes
    loaded = BiMIChICV.load(tmp_path / "m.json")
    new = scene(7).sources
    np.testing.assert_array_equal(loaded.fuse(new), fitted.fuse(new))
    assert loaded.best_score_ == fitted.best_score_
    document = json.loads((tmp_path / "m.json").read_text())
    document["training"]["selection"]["chosen"] = 99
    (tmp_path / "m.json").write_text(json.dumps(document))
    with refused("model-selection", "99"):
        selection_of(FusionRule.load(tmp_path / "m.json").training)


def test_rarity_ranks_the_sources_of_each_scene(scenes):
    rare = {"objective": "logistic", "additivity": 1, "sources": "rarity", "labels": "cores"}
    model = BiMIChICV([rare], random_state=0).fit(scenes)
    assert "source" not in model.best_params_
    assert model.rule_.recipes == ("as_is|rarity", "as_is|inverted|rarity", "as_is|rarity")
    new = scene(50).sources
    np.testing.assert_allclose(model.fuse(new), model.fuse(0.5 * new + 0.1), atol=1e-6)
    assert isinstance(model.best_estimator_, BiMIChI)


def test_one_scene_is_divided_and_a_single_target_too():
    model = BiMIChICV(QUICK, random_state=0).fit(scene(0, boxes=6, shape=(60, 120)))
    assert len(model.selection_.scenes) >= 3
    assert model.selection_.scenes[0] == "scene 0, part 1"
    alone = BiMIChICV(QUICK, random_state=0).fit([scene(1, boxes=1)])
    assert len(alone.selection_.scenes) == 2


def test_scenes_without_targets_are_learned_from(scenes):
    empty = scene(20, boxes=0)
    model = BiMIChICV(QUICK, random_state=0).fit([*scenes[:3], empty])
    assert model.selection_.scenes == tuple(one.name for one in scenes[:3])
    divided = BiMIChICV(QUICK, random_state=0).fit([scenes[0], empty])  # one scene with targets: it is divided
    assert len(divided.selection_.scenes) == 2
    with refused("one-class"):
        BiMIChICV(QUICK).fit([empty, scene(21, boxes=0)])


def test_what_cannot_be_learned_from_is_explained(scenes):
    constant = [replace(one, sources=np.zeros_like(one.sources)) for one in scenes]
    with refused("sources-constant"):
        BiMIChICV(QUICK).fit(constant)
    with refused("whole-number:n_folds"):
        BiMIChICV(QUICK, n_folds=1).fit(scenes)
    with refused("candidates-kind:candidates"):
        BiMIChICV("mean").fit(scenes)
    with refused("candidate-keys"):
        BiMIChICV([{"aim": "mean"}]).fit(scenes)
    with refused("candidate-cores"):
        BiMIChICV(QUICK).fit(np.eye(4), [0, 1, 0, 1])
    with refused("scenes-with-groups"):
        BiMIChICV(QUICK).fit(scenes, groups=[1] * 5)


def test_a_constant_source_and_equal_sources_do_no_harm(scenes):
    def changed(one, k, value):
        sources = one.sources.copy()
        sources[..., k] = value if np.isscalar(value) else sources[..., value[0]]
        return replace(one, sources=sources)

    for value in (0.3, (0,)):
        model = BiMIChICV(QUICK, random_state=0).fit([changed(one, 2, value) for one in scenes])
        assert model.best_score_ > 0.5
    equal = [replace(one, sources=np.repeat(one.sources[..., :1], 3, axis=-1)) for one in scenes]
    assert BiMIChICV(QUICK, random_state=0).fit(equal).best_score_ > 0.3


def test_too_few_targets_are_learned_from_unchecked():
    X, y, bags = np.array([[0.9], [0.1], [-0.5], [-0.2]]), [1, 1, 0, 0], ["a", "a", "b", "b"]
    with warned("targets-few"):
        model = BiMIChICV(random_state=0).fit(X, y, bags=bags)
    assert "unchecked" in model.selection_.sentence()
    assert model.predict_bags(X, bags).tolist() == [1, 0]


def test_groups_are_left_out_together(data):
    X, y, bags, _ = data
    model = BiMIChICV([{"objective": "mean", "additivity": 1}], n_folds=3, random_state=0)
    model.fit(X, y, bags=bags, groups=bags // 10)
    assert len(model.selection_.scenes) == 3
    grouped = Bags.from_instances(X, y, bags)
    again = clone(model).fit(grouped, groups=np.arange(30) // 10)
    assert again.selection_ == model.selection_
    with refused("bag-constant:groups"):
        clone(model).fit(X, y, bags=bags, groups=np.arange(len(X)))


def test_an_average_is_described_and_refitted_as_one(rng):
    X = rng.uniform(-1, 1, (600, 3))
    y = (rng.random(600) < 1 / (1 + np.exp(-(4 * X[:, 0] + X[:, 1] - 1)))).astype(int)
    candidate = {"objective": "logistic", "additivity": 1, "averaged": True}
    model = BiMIChICV([candidate], n_folds=3, random_state=0).fit(X, y, bags=np.arange(600))
    assert model.rule_.training.averaged == (0,)
    assert "The search converged, and the result was averaged with sources 1: the logistic" in str(summary(model, X))
    plain = BiMIChI("logistic", additivity=1).fit(X, y, bags=np.arange(600))
    assert model.objective_value_ > plain.objective_value_  # of the average, which is not the best fit
    refitted = bootstrap(model, X, y, np.arange(600), n_resamples=2, n_jobs=1)
    assert abs(refitted.values - model.measure_.terms).max() < abs(refitted.values - plain.measure_.terms).max()


def test_the_source_alone_is_chosen_if_it_is_best(rng):
    """The second source misleads where it matters, so that every fusion is worse than the first one alone."""
    scenes = [scene(k, target=(1.2, 0.0), boxes=3) for k in range(4)]
    model = BiMIChICV([{"objective": "magnitude"}], random_state=0, polarity="given").fit(scenes)
    assert model.best_params_ == {"source": 0, "sign": 1}
    assert "the model is that source" in model.selection_.warning()
    ranks = [np.argsort(x.ravel(), kind="stable") for x in (model.fuse(scenes[0].sources), scenes[0].sources[..., 0])]
    np.testing.assert_array_equal(*ranks)


OTHER_FOLDS = {
    "check_sample_weight_equivalence_on_dense_data": "repeated rows fall into other folds than one row of weight 2",
}


@pytest.mark.slow
def test_scikit_learns_own_checks():
    candidates = [{"objective": "mean", "additivity": 1}, {"objective": "logistic", "additivity": 1}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BiMIChICV(candidates, scale="minmax", random_state=0)
        results = check_estimator(model, expected_failed_checks=OTHER_FOLDS, on_skip=None)
    status = {result["check_name"]: result["status"] for result in results}
    assert {name for name, found in status.items() if found == "xfail"} <= set(OTHER_FOLDS)
    assert {name for name, found in status.items() if found == "skipped"} <= {"check_array_api_input"}


def test_any_objective_can_be_calibrated(scenes):
    for objective, additivity in (("mean", 1), ("mean", None)):
        model = BiMIChI(objective, polarity="learn", additivity=additivity, calibrate=True, random_state=0).fit(scenes)
        plain = clone(model).set_params(calibrate=False).fit(scenes)
        new = scene(60).sources
        fused = model.fuse(new)
        assert model.output_range == (0.0, 1.0)
        assert 0.01 < fused.mean() < 0.15
        order = np.argsort(plain.fuse(new).ravel(), kind="stable")
        assert (np.diff(fused.ravel()[order]) >= 0).all()
    bags = scenes[0].bags()
    assert BiMIChI("mean", calibrate=True, random_state=0).fit(bags).rule_.link is not None
