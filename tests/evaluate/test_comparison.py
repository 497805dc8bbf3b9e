"""The comparison of methods: all rows on a synthetic scene, marks, failures, tables."""

from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from sklearn.metrics import roc_auc_score

from bimichi import (
    BiMIChI,
    ChoquetQP,
    Comparison,
    MaxFusion,
    MeanFusion,
    Scene,
    compare,
    paper_methods,
)
from bimichi.evaluate.comparison import Result
from bimichi.evaluate.engine import TrainingData
from bimichi.evaluate.metrics import Scores
from bimichi.methods.base import Fusion
from bimichi.methods.registry import Candidate
from bimichi.scenes.dataset import Dataset


def scene(seed, name="scene", **known):
    """A 40 x 60 image of two sources with three targets, and blocks as bags."""
    rng = np.random.default_rng(seed)
    truth = np.zeros((40, 60), dtype=bool)
    for x, y in zip(rng.integers(0, 52, 3), rng.integers(0, 30, 3), strict=True):
        truth[y : y + 10, x : x + 6] = True
    thermal = rng.normal(-0.4, 0.25, truth.shape) + 1.0 * truth
    visible = rng.normal(0.2, 0.3, truth.shape) - 0.5 * truth
    row, column = np.mgrid[:40, :60]
    segments = row // 8 * 8 + column // 8
    labels = {int(s): bool(truth[segments == s].any()) for s in np.unique(segments)}
    sources = np.clip(np.stack([thermal, visible], axis=-1), -1, 1)
    return replace(
        Scene(sources, name, ("thermal", "visible"), segments, labels, truth, rgb=np.zeros((40, 60, 3), np.uint8)),
        **known,
    )


@pytest.fixture(scope="module")
def comparison():
    return compare(paper_methods(["thermal", "visible"]), scene(0, "a"), scene(1, "b"), keep_maps=True)


class Broken(Fusion):
    def fit(self, X, y=None, bags=None):
        raise RuntimeError("out of order")

    def fuse(self, X):
        return X[..., 0]


def test_all_rows_run(comparison):
    assert [result.name for result in comparison.results] == list(paper_methods(["thermal", "visible"]))
    for result in comparison.results:
        if result.name == "Mask R-CNN":
            assert result.problem == "not run: no detector weights given"
            assert result.scores == []
        else:
            assert result.problem == ""
            assert result.mean("auc") == pytest.approx(
                roc_auc_score(scene(1).truth.ravel(), result.maps[0].ravel().round(6)),
                abs=1e-5,  # values within rounding of each other are ties
            )
            assert result.fit_seconds >= 0
    assert comparison["empty map"].mean("auc") == 0.5
    assert comparison["source thermal"].mean("auc") > 0.95
    assert comparison["bi-capacity QP"].mean("auc") > comparison["source visible"].mean("auc")


def test_each_learns_from_its_own_kind_of_label():
    swapped = scene(2)
    swapped = replace(swapped, truth=np.roll(swapped.truth, 20, axis=1))  # truth that says something else than the bags
    one, two = (
        compare({"bags": BiMIChI(random_state=0), "pixels": ChoquetQP(bipolar_input=True)}, s)
        for s in (scene(2), swapped)
    )
    assert one["bags"].measure == two["bags"].measure
    assert one["pixels"].measure != two["pixels"].measure


def test_tables(comparison):
    markdown, latex = comparison.to_markdown(), comparison.to_latex()
    assert "not run: no detector weights given" in markdown
    assert latex.count(r"\\") == len(comparison.results) + 1
    assert r"\textbf{" in latex
    assert "| CI-QP | " in markdown.split("\n\n")[1]  # its measure
    frame = comparison.to_frame()
    assert frame.index.tolist() == [result.name for result in comparison.results]
    assert frame.loc["KNN", "AUC"] == comparison["KNN"].mean("auc")
    assert frame.loc["KNN", "ECE"] == comparison["KNN"].mean("calibration_error")
    assert "| ECE |" in markdown
    assert frame.loc["CI-QP", "learned"].count(" ") == 2
    assert frame.loc["weighted mean", "learned"].count(" ") == 1
    assert "Bi-MIChI (mean):" in markdown
    assert frame.loc["Mask R-CNN", "problem"].startswith("not run")
    assert "MICI-BFM" in repr(comparison)
    assert set(comparison.measures()) >= {"CI-QP", "MICI noisy-or", "Bi-MIChI (mean)"}
    with pytest.raises(KeyError, match="no method 'CIQP'"):
        comparison["CIQP"]


def test_best_and_second_best_are_marked_among_measures_only():
    def result(name, auc, model):
        return Result(name, model, [Scores(auc, 0.5, 0.5, 0.0, 1 - auc, 10, 0.1)], 1.0, 1.0)

    qp = ChoquetQP()
    table = Comparison(
        [result("x & y", 0.99, MeanFusion()), result("a_1", 0.7, qp), result("b", 0.9, qp), result("c", 0.8, qp)]
    )
    lines = table.to_markdown().splitlines()
    assert lines[2].startswith("| x &amp; y | 0.990 |")
    assert lines[3].startswith(r"| a\_1 | 0.700 |")
    assert lines[4].startswith("| b | **0.900** |")
    assert "**0.100**" in lines[4]  # of the RMSE, the least is best
    assert lines[5].startswith("| c | *0.800* |")
    assert r"c & \underline{0.800}" in table.to_latex()
    assert r"x \& y & 0.990" in table.to_latex()
    assert "<u>0.800</u>" in table._repr_html_()


def test_one_failure_does_not_stop_the_rest(caplog):
    table = compare(
        {"broken": Broken(), "range": MaxFusion(), "mean": MeanFusion(bipolar_input=True)}, scene(0), n_jobs=1
    )
    assert table["broken"].problem == "failed: RuntimeError: out of order"
    assert "broken failed" in caplog.text
    assert "pass bipolar_input=True" in table["range"].problem
    assert table["mean"].problem == ""
    assert np.isnan(table["broken"].mean("auc"))


def test_missing_labels_are_reported():
    table = compare(
        {"bags": BiMIChI(), "pixels": ChoquetQP(bipolar_input=True)},
        scene(0, segments=None, labels=None, truth=None),
        scene(1),
    )
    assert table["bags"].problem == "not run: no labelled bags given"
    assert table["pixels"].problem == "not run: no instance labels given"


def test_several_scenes_and_ignored_pixels():
    ignore = np.zeros((40, 60), dtype=bool)
    ignore[:, :30] = True
    methods = {"mean": MeanFusion(bipolar_input=True), "QP": ChoquetQP(bipolar_input=True)}
    both = compare(
        methods, [scene(0, "a"), scene(1, "b", ignore=ignore)], [scene(2, "c", ignore=ignore), scene(3, "d")]
    )
    assert [s.n for s in both["mean"].scores] == [1200, 2400]
    assert both["mean"].mean("auc") == pytest.approx(np.mean([s.auc for s in both["mean"].scores]))
    assert both.to_frame().loc["mean", "worst AUC"] == min(s.auc for s in both["mean"].scores)


def test_jobs_change_nothing():
    methods = {"objective 1": BiMIChI(random_state=0), "QP": ChoquetQP(bipolar_input=True)}
    one, two = (compare(methods, scene(0), n_jobs=jobs) for jobs in (1, 2))
    assert [r.scores for r in one.results] == [r.scores for r in two.results]


def test_scenes_are_read_when_needed():
    held = {name: scene(seed, name) for seed, name in enumerate("abcd")}
    read = []
    lazy = Dataset(list(held), lambda name: read.append(name) or held[name])
    methods = {
        "bags": BiMIChI("mean", random_state=0),
        "pixels": ChoquetQP(bipolar_input=True),
        "none": MeanFusion(bipolar_input=True),
    }
    found = compare(methods, lazy[:2], lazy[2:], n_jobs=1)
    expected = compare(methods, [held["a"], held["b"]], [held["c"], held["d"]], n_jobs=1)
    assert read[:2] == ["c", "d"]  # whether all have a truth
    assert read.count("c") == 1 + len(methods)
    for name in methods:
        np.testing.assert_allclose(found[name].scores, expected[name].scores, rtol=1e-9)


def test_training_data_are_gathered_once_and_discarded():
    rows = [
        Candidate("one", "", "bags", BiMIChI()),
        Candidate("two", "", "pixels", ChoquetQP()),
        Candidate("three", "", "bags", ChoquetQP()),
    ]
    read = []
    scenes = Dataset("ab", lambda name: read.append(name) or scene(ord(name), name))
    data = TrainingData(scenes, rows, pixels="bags", in_parts=False)
    for row, n in zip(rows, (3, 2, 2), strict=True):
        assert len(data._gathered) == (row.name != "one")
        with data.arguments(row) as arguments:
            assert len(arguments) == n
    assert data._gathered == {}
    assert read == ["a", "b"]
    with data.arguments(rows[0]) as (X, y, bags), data.arguments(rows[1]) as (same, truth):
        assert same is X
        assert (np.unique(bags[y == 0], return_counts=True)[1] <= 64).all()
        assert not (truth & (y == 0)).any()  # what is a target lies in positive bags


def test_bad_input():
    method = MeanFusion(bipolar_input=True)
    for scenes in ([], "x", [1]):
        with refused("scenes-kind:train"):
            compare([method], scenes)
    with refused("truth-missing", "'s'"):
        compare([method], scene(0), scene(1, "s", truth=None))
    with refused("methods-distinct:methods"):
        compare([method, method], scene(0))
    with refused("methods-distinct:methods"):
        compare([], scene(0))
