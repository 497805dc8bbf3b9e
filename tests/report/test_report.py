"""The report page without a browser: what is in the file, and what is refused."""

import base64
import hashlib
import re
from dataclasses import replace

import numpy as np
import pytest
from pages import HOSTILE, data_of, data_text, fitted, image, indices_of, text_of
from refusals import refused
from sklearn.metrics import roc_auc_score

from bimichi import BiMIChI, Decision, Scene, compare
from bimichi.errors import BimichiError
from bimichi.evaluate.metrics import scores
from bimichi.explain import identifiability, summary
from bimichi.fuse import detect
from bimichi.report import write_report
from bimichi.report.inputs import gather
from bimichi.report.sections import score_maps


def test_needs_nothing_else(written):
    truth = image(3)[..., 0] > 0
    page = written(fitted(3), image(3), truth=truth, boxes=[[1, 2, 3, 4]], title="A scene")
    assert page.startswith("<!doctype html>")
    assert not re.search(r"https?://|\bsrc=|@import|url\(|<link|<iframe|eval\(|innerHTML|document\.write", page)
    assert set(re.findall(r'href="([^"]*)"', page)) == {"#maps"}
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    script = re.search(r'<script type="module">(.*?)</script>', page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}';" in policy


def test_hostile_text_is_escaped_everywhere(written):
    model = fitted(3, names=HOSTILE)
    methods = {HOSTILE[0]: BiMIChI()}
    scene = Scene(image(3), "x", HOSTILE, truth=image(3)[..., 0] > 0, citation=HOSTILE[1], licence=HOSTILE[2])
    segments = np.arange(12 * 16).reshape(12, 16) // 16
    comparison = compare(methods, scene.with_bags(segments, {0: True, 1: False}))
    page = written(model, scene, comparison=comparison, title=HOSTILE[2], notes={HOSTILE[0]: HOSTILE[1]})
    assert len(re.findall(r"<script|</script", page)) == 4  # the data and the script
    assert "<img" not in page
    assert not set("<>&") & set(data_text(page))
    assert data_of(page)["names"] == list(HOSTILE)
    for name in HOSTILE:
        assert name in text_of(page)


def test_says_what_was_fused_and_how(written):
    model, scene = fitted(3, names=("thermal", "rgb", "grey"), polarity="learn"), image(3)
    said = text_of(written(model, scene, title="Night"))
    for sentence in summary(model, scene).sentences:
        assert sentence in said
    assert "thermal, rgb and grey" in said
    assert f"convex, {model.rule_.training.ending}" in said
    assert f"{model.objective_value_:.6g}" in said
    assert "150 instances" in said
    assert "inverted: thermal" in said
    assert "polarity 'learn'" in said


def test_same_file_whatever_the_threads(written):
    model, scene = fitted(3), image(3)
    assert written(model, scene, n_jobs=1) == written(model, scene, n_jobs=2)


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_matrix_marks_what_is_used_and_open(written, m):
    model = fitted(m)
    page, known = written(model, image(m)), identifiability(model)
    cells = {}
    for attributes, content in re.findall(r"<td([^>]*data-code[^>]*)>(.*?)</td>", page):
        code = int(re.search(r'data-code="(\d+)"', attributes)[1])
        cells[code] = (re.search(r'class="([^"]*)"', attributes), content)
    assert set(cells) == set(range(1, 3**m))  # code 0 means nothing with this objective
    for code, (classes, content) in cells.items():
        found = set(classes[1].split()) if classes else set()
        assert ("used" in found) == (known.touched[code] > 0)
        assert ("open" in found) == bool(known.open[code])
        ends = (known.lower, known.upper) if known.open[code] else (model.bicapacity_.values,)
        numbers = [float(text.replace("−", "-")) for text in re.findall(r"−?\d\.\d\d", content)]
        assert np.allclose(numbers, [end[code] for end in ends], atol=0.005001)


def test_many_sources_list_the_most_used(written):
    model = fitted(5)
    page = written(model, image(5))
    codes = [int(code) for code in re.findall(r'<tr data-code="(\d+)"', page)]
    counts = model.usage_["weighted"]
    assert 0 < len(codes) <= 16
    assert counts[codes].tolist() == sorted(counts, reverse=True)[: len(codes)]
    assert 'class="matrix"' not in page


def test_scores_and_curves(written):
    model, scene = fitted(3), image(3, 40, 50)
    truth = model.fuse(scene) + np.random.default_rng(0).normal(0, 0.4, (40, 50)) > 0.3
    scene[3, 4, 1] = np.nan
    ignore = np.zeros((40, 50), dtype=bool)
    ignore[:5] = True
    fused = model.fuse(scene)
    expected = scores(truth, fused, ignore=ignore | np.isnan(fused))
    said = text_of(written(model, scene, truth=truth, ignore=ignore))
    assert f"fused {expected.auc:.3f} {expected.average_precision:.3f} {expected.best_f1:.3f}" in said
    assert f"{expected.n:,} pixels are scored" in said
    found = score_maps(gather(model, scene, truth=truth, ignore=ignore))
    assert [name for name, _, _ in found] == ["fused", "1", "2", "3"]
    for _, one, curve in found:
        x, y = np.array(curve).T
        assert curve[0] == (0, 0)
        assert curve[-1] == (1, 1)
        assert abs(np.trapezoid(y, x) - one.auc) < 0.01
    kept = ~(ignore | np.isnan(fused))
    assert found[0][1].auc == pytest.approx(roc_auc_score(truth[kept], np.round(fused[kept], 6)))  # ties are ties


def test_detections_are_outlined_if_the_rule_decides(written):
    model, picture = fitted(3), image(3)
    assert "detections" not in data_of(written(model, picture))
    threshold = float(np.quantile(model.fuse(picture), 0.8))
    rule = replace(model.rule_, decision=Decision(threshold))
    page = written(rule, picture)
    found = detect(model.fuse(picture), rule)
    assert f"{len(found)} found" in text_of(page)
    rings = data_of(page)["detections"]
    assert len(rings) == sum(len(polygon) for target in found.polygons for polygon in target)
    assert rings[0] == found.polygons[0][0][0].tolist()
    smoothing_alone = replace(model.rule_, decision=Decision(smooth=(1, 1)))
    assert "detections" not in data_of(written(smoothing_alone, picture))


def test_comparison_is_shown(written):
    segments = np.arange(12 * 16).reshape(12, 16) // 16
    labels = {k: k % 2 == 0 for k in range(12)}
    scene = Scene(image(3), truth=image(3)[..., 0] > 0).with_bags(segments, labels)
    comparison = compare({"bipolar": BiMIChI(), "mean": BiMIChI("mean")}, scene)
    page = written(fitted(3), scene, comparison=comparison)
    assert comparison.table().to_html() in page
    document = data_of(page)
    assert document["labels"] == list(labels.values())
    assert indices_of(document["segments"], 12, 16) == segments.tolist()


def test_large_images_are_thinned_with_a_notice(written):
    row, column = np.mgrid[:1100, :1000]
    scene = np.stack([np.sign(np.sin(row / 90)), column / 999], axis=-1)
    page = written(fitted(2), scene, boxes=[[100, 220, 500, 110]])
    document = data_of(page)
    assert document["height"] * document["width"] <= 1_000_000
    assert (document["fullHeight"], document["fullWidth"]) == (1100, 1000)
    x, y, width, height = document["boxes"][0]
    assert np.allclose([x / document["width"], y / document["height"]], [0.1, 0.2])
    assert np.allclose([width / document["width"], height / document["height"]], [0.5, 0.1])
    assert "The maps are thinned" in text_of(page)
    assert "Averages over the 1,100,000 pixels" in text_of(page)
    assert "thinned" not in text_of(written(fitted(2), image(2)))


def test_a_noisy_scene_of_six_sources_stays_small(written):
    scene = np.random.default_rng(0).uniform(-1, 1, (480, 640, 6)).astype(np.float32)
    assert len(written(fitted(6), scene)) < 8e6


def test_values_beyond_training_are_reported(written):
    model = fitted(2, scale="minmax")
    scene = image(2, scaled=True)
    scene = np.clip(scene, 300, 700)
    assert "beyond" not in text_of(written(model, scene))
    scene[0, 0, 1] = 5000
    assert "Values of 2 reach beyond" in text_of(written(model, scene))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sources": image(2)}, "sources-number"),
        ({"names": ["a", "b"]}, "sources-number"),
        ({"names": ["a", "b", "c"]}, "sources-differ"),
        ({"names": ["rgb", "thermal", "grey"]}, "sources-differ"),
        ({"sources": image(3)[0]}, "sources-not-image"),
        ({"sources": image(3) * 2}, "source-range"),
        ({"sources": np.full((4, 5, 3), np.nan)}, "no-complete-instance"),
        ({"sources": np.full((4, 5, 3), np.inf)}, "infinite"),
        ({"sources": [np.zeros((4, 5)), np.zeros((4, 5)), np.zeros((5, 4))]}, "planes-shapes"),
        ({"truth": np.zeros((12, 16))}, "truth-one-class"),
        ({"truth": np.eye(3)}, "plane-shape:truth"),
        ({"truth": np.full((12, 16), 7)}, "labels-binary:truth"),
        ({"ignore": np.zeros((12, 16))}, "plane-shape:ignore"),
        ({"boxes": [[1, 2, 3]]}, "boxes-shape:boxes"),
        ({"boxes": [[1, 2, 0, 4]]}, "boxes-shape"),
        ({"boxes": "here"}, "boxes-numbers:boxes"),
        ({"segments": np.zeros((12, 16), int)}, "segments-with-labels"),
        ({"segments": np.zeros((2, 2), int), "labels": {0: True}}, "plane-shape:segments"),
        ({"segments": np.zeros((12, 16), int), "labels": {3: True}}, "labels-segments"),
        ({"comparison": "table"}, "comparison-kind:comparison"),
    ],
)
def test_bad_input(tmp_path, options, message):
    model = fitted(3, names=("thermal", "rgb", "grey"))
    with refused(message):
        write_report(tmp_path / "report.html", model, **({"sources": image(3)} | options))
    assert not list(tmp_path.iterdir())


def test_names_of_sources_without_a_name(written):
    page = written(fitted(2), list(np.moveaxis(image(2), -1, 0)), names=["ir", "vi"])
    assert data_of(page)["names"] == ["ir", "vi"]
    assert data_of(written(fitted(2, names=("ir", "vi")), Scene(image(2))))["names"] == ["ir", "vi"]


def test_only_models_that_can_be_explained(tmp_path, monkeypatch):
    with refused("rule-kind"):
        write_report(tmp_path / "report.html", "model", image(2))
    with refused("output-unwritable", kind=BimichiError):
        write_report(tmp_path / "missing" / "report.html", fitted(1), image(1))
    monkeypatch.setattr("bimichi.report.inputs.MAX_SOURCES", 2)
    with refused("sources-many", "27"):
        write_report(tmp_path / "report.html", fitted(3), image(3))


def test_names_of_files_may_be_no_valid_text(written):
    assert "caf?.png" in text_of(written(fitted(1), image(1), notes={"Image files": "caf\udce9.png"}))


def test_method_of_the_model(tmp_path):
    fitted(2).report(tmp_path / "report.html", image(2), title="By the model")
    assert "<h1>By the model</h1>" in (tmp_path / "report.html").read_text()
