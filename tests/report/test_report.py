"""The report page without a browser: what is in the file, and what is refused."""

import base64
import hashlib
import re
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_hex
from pages import HOSTILE, data_of, data_text, fitted, image, indices_of, planes_of, text_of
from PIL import Image
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from bimichi import BiMIChI, Decision, InvalidInputError, Scene, compare
from bimichi.cli.app import app
from bimichi.errors import BimichiError
from bimichi.evaluation.metrics import auc, scores
from bimichi.explain import identifiability, summary
from bimichi.imaging import detect
from bimichi.report import thumbnail, write_report
from bimichi.report.accuracy import score_maps
from bimichi.report.colours import MISSING, colour_of, swatch
from bimichi.report.embedding import embed_plane
from bimichi.report.inputs import gather
from bimichi.report.markup import element
from bimichi.report.sampling import Sampling


@pytest.fixture
def written(tmp_path):
    """Write a report, and return the page."""

    def write(*given, **options):
        write_report(tmp_path / "report.html", *given, **options)
        return (tmp_path / "report.html").read_text(encoding="utf-8")

    return write


def test_needs_nothing_else(written):
    truth = image(3)[..., 0] > 0
    page = written(fitted(3), image(3), truth=truth, boxes=[[1, 2, 3, 4]], title="A scene")
    assert page.startswith("<!doctype html>")
    assert not re.search(r"https?://|\bsrc=|@import|url\(|<link|<iframe|eval\(|innerHTML|document\.write", page)
    assert set(re.findall(r'href="([^"]*)"', page)) == {"#maps"}
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
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


def test_markup_escapes_text_and_attributes():
    made = element("td", "<b>", element("i", "&"), title="\"<>&'", data_code=3, hidden=True, scope=None)
    assert made == ('<td title="&quot;&lt;&gt;&amp;&#x27;" data-code="3" hidden>&lt;b&gt;<i>&amp;</i></td>')


def test_says_what_was_fused_and_how(written):
    model, scene = fitted(3, names=("thermal", "rgb", "grey"), polarity="learn"), image(3)
    said = text_of(written(model, scene, title="Night"))
    for sentence in summary(model, scene).sentences:
        assert sentence in said
    assert "thermal, rgb and grey" in said
    assert f"convex, {model.solution_.status}" in said
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
    assert found[0][1].auc == pytest.approx(roc_auc_score(truth[kept], fused[kept]))


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


@pytest.mark.parametrize("kind", [np.uint8, np.float32, np.float64])
def test_few_levels_are_exact(kind):
    plane = np.random.default_rng(0).integers(0, 200, (9, 7)).astype(kind)
    part = embed_plane(plane)
    assert np.array_equal(planes_of({"height": 9, "width": 7, "sources": [part]})[..., 0], plane)


def test_many_levels_are_close_and_gaps_stay():
    plane = np.random.default_rng(0).normal(0, 5, (80, 70))
    plane[3, :5] = np.nan
    part = embed_plane(plane, limits=(-8.0, np.inf))
    found = planes_of({"height": 80, "width": 70, "sources": [part]})[..., 0]
    assert np.array_equal(np.isnan(found), np.isnan(plane))
    assert np.nanmax(np.abs(found - np.maximum(plane, -8))) <= part["step"] / 2 * 1.0001
    assert part["step"] < 30 / 65534
    beyond = planes_of({"height": 80, "width": 70, "sources": [embed_plane(plane + 100, limits=(-1.0, 1.0))]})
    assert set(beyond[~np.isnan(beyond)]) == {1.0}


@pytest.mark.parametrize(("shape", "limit"), [((10, 10), 100), ((101, 99), 1000), ((1, 5000), 70), ((3000, 2), 10)])
def test_sampling_takes_evenly_spaced_pixels(shape, limit):
    sampling = Sampling(shape, limit)
    height, width = sampling.shape
    assert sampling.shrunk == (shape[0] * shape[1] > limit)
    assert 0.5 * min(limit, shape[0] * shape[1]) <= height * width <= limit
    rows = sampling(np.broadcast_to(np.arange(shape[0])[:, None], shape))[:, 0]
    columns = sampling(np.broadcast_to(np.arange(shape[1]), shape))[0]
    for places, full in ((rows, shape[0]), (columns, shape[1])):
        assert places.tolist() == sorted(set(places.tolist()))
        steps = np.diff(places)
        assert steps.size == 0 or steps.max() - steps.min() <= 1
        assert places[0] + places[-1] in (full - 1, full, full - 2)


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


def test_colours_are_those_of_the_pictures():
    for value in np.linspace(-1, 1, 301):
        wanted = to_hex(colormaps["RdBu_r"]((value + 1) / 2))
        parts = [[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in (wanted, colour_of(value))]
        assert np.abs(np.subtract(*parts)).max() <= 1
    assert swatch(0.0).partition("--ink")[2] != swatch(1.0).partition("--ink")[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sources": image(2)}, r"3 sources \(thermal, rgb, grey\), but 2 sources are given"),
        ({"names": ["a", "b"]}, r"3 sources \(thermal, rgb, grey\), but 2 sources \(a, b\) are given"),
        ({"names": ["a", "b", "c"]}, "thermal, rgb, grey, but a, b, c are given"),
        ({"names": ["rgb", "thermal", "grey"]}, "in the model's order"),
        ({"sources": image(3)[0]}, r"must be an image, \(height, width, 3\)"),
        ({"sources": image(3) * 2}, "must lie in .-1, 1..*scale"),
        ({"sources": np.full((4, 5, 3), np.nan)}, "no pixel without NaN"),
        ({"sources": np.full((4, 5, 3), np.inf)}, "infinite"),
        ({"sources": [np.zeros((4, 5)), np.zeros((4, 5)), np.zeros((5, 4))]}, "one shape"),
        ({"truth": np.zeros((12, 16))}, "one class only: 0 of the 192 pixels"),
        ({"truth": np.eye(3)}, r"truth must be .* in the shape of a source, \(12, 16\), got float64 of shape \(3, 3\)"),
        ({"truth": np.full((12, 16), 7)}, "truth must be 0 and 1, -1 and .1, or bool; found 7"),
        ({"ignore": np.zeros((12, 16))}, "ignore must be a bool mask"),
        ({"boxes": [[1, 2, 3]]}, "boxes must have shape"),
        ({"boxes": [[1, 2, 0, 4]]}, "above 0"),
        ({"boxes": "here"}, "boxes must be numbers"),
        ({"segments": np.zeros((12, 16), int)}, "segments and labels go together"),
        ({"segments": np.zeros((2, 2), int), "labels": {0: True}}, "segments must be whole numbers in the shape"),
        ({"segments": np.zeros((12, 16), int), "labels": {3: True}}, "segment 3, which no pixel"),
        ({"comparison": "table"}, "comparison must be what compare"),
    ],
)
def test_bad_input(tmp_path, options, message):
    model = fitted(3, names=("thermal", "rgb", "grey"))
    with pytest.raises(InvalidInputError, match=message):
        write_report(tmp_path / "report.html", model, **({"sources": image(3)} | options))
    assert not list(tmp_path.iterdir())


def test_names_of_sources_without_a_name(written):
    page = written(fitted(2), list(np.moveaxis(image(2), -1, 0)), names=["ir", "vi"])
    assert data_of(page)["names"] == ["ir", "vi"]
    assert data_of(written(fitted(2, names=("ir", "vi")), Scene(image(2))))["names"] == ["ir", "vi"]


def test_only_models_that_can_be_explained(tmp_path, monkeypatch):
    with pytest.raises(InvalidInputError, match="is needed, got str"):
        write_report(tmp_path / "report.html", "model", image(2))
    with pytest.raises(BimichiError, match="Cannot write"):
        write_report(tmp_path / "missing" / "report.html", fitted(1), image(1))
    monkeypatch.setattr("bimichi.report.inputs.MAX_SOURCES", 2)
    with pytest.raises(
        InvalidInputError, match="3 sources, so 27 elements; reports are offered up to 2 sources, and beyond for"
    ):
        write_report(tmp_path / "report.html", fitted(3), image(3))


def test_names_of_files_may_be_no_valid_text(written):
    assert "caf?.png" in text_of(written(fitted(1), image(1), notes={"Image files": "caf\udce9.png"}))


def test_method_of_the_model(tmp_path):
    fitted(2).report(tmp_path / "report.html", image(2), title="By the model")
    assert "<h1>By the model</h1>" in (tmp_path / "report.html").read_text()


def test_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, plane in zip(("ir", "vi"), np.moveaxis(image(2), -1, 0), strict=True):
        np.save(f"{name}.npy", plane)
    np.save("mask.npy", image(2)[..., 0] > 0)
    (tmp_path / "boxes.csv").write_text("x,y,w,h\n1,2,3,4\n")
    for name, objective in (("a", "bipolar"), ("b", "mean")):
        fitted(2, objective, names=("ir", "vi")).save(f"{name}.json")
    call = "report a.json vi.npy ir.npy --truth mask.npy --boxes boxes.csv --compare b.json -o out/r.html"
    done = CliRunner().invoke(app, call.split())
    assert done.exit_code == 0, done.output
    page = (tmp_path / "out" / "r.html").read_text()
    assert (tmp_path / "out" / "r.html.run.json").exists()
    assert data_of(page)["boxes"] == [[1, 2, 3, 4]]
    assert np.allclose(planes_of(data_of(page)), image(2))
    assert "Compared with other methods" in page
    assert "<h1>Fusion report</h1>" in page
    for problem, said in (
        ("report a.json ir.npy -o r.html", "has 1 source (ir), but the model has 2 sources (ir, vi)."),
        ("report a.json ir.npy vi.npy --compare b.json -o r.html", "needs --truth"),
        ("report a.json ir.npy vi.npy -o r.png", "must end in .html"),
    ):
        done = CliRunner().invoke(app, problem.split())
        assert done.exit_code != 0
        assert said in done.output


def test_command_for_many_scenes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for k, name in enumerate(("ir", "vi")):
        (tmp_path / name).mkdir()
        for seed, scene in enumerate(("one", "two")):
            np.save(f"{name}/{scene}.npy", image(2, seed=seed)[..., k])
    (tmp_path / "boxes.csv").write_text("image,x,y,w,h\ntwo,1,2,3,4\n")
    fitted(2, names=("ir", "vi")).save("model.json")
    done = CliRunner().invoke(app, ["report", "model.json", "ir", "vi", "--boxes", "boxes.csv", "-o", "pages"])
    assert done.exit_code == 0, done.output
    pages = [(tmp_path / "pages" / f"{scene}.html").read_text() for scene in ("one", "two")]
    assert [len(data_of(page)["boxes"]) for page in pages] == [0, 1]
    assert ["<h1>one</h1>" in page for page in pages] == [True, False]
    for seed, page in enumerate(pages):
        assert np.allclose(planes_of(data_of(page)), image(2, seed=seed))


def test_command_writes_an_index_of_many_scenes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hostile = "a&<b> 'q'"
    for k, name in enumerate(("ir", "vi")):
        (tmp_path / name).mkdir()
        for seed, scene in enumerate((hostile, "bare", "broken", "index", "unmasked")):
            np.save(f"{name}/{scene}.npy", image(2, seed=seed)[..., k])
    np.save("vi/broken.npy", np.full((3, 3), 0.5))
    (tmp_path / "masks").mkdir()
    for scene in (hostile, "broken", "index"):
        np.save(f"masks/{scene}.npy", image(2, seed=0)[..., 0] > 0)
    np.save("masks/bare.npy", np.zeros((12, 16), bool))
    fitted(2, names=("ir", "vi")).save("model.json")
    done = CliRunner().invoke(app, ["report", "model.json", "ir", "vi", "--truth", "masks", "-o", "pages"])
    assert done.exit_code == 1
    assert "4 reported, 1 failed" in done.output
    assert "broken:" in done.output
    written = {path.name for path in (tmp_path / "pages").glob("*.html")}
    assert written == {f"{hostile}.html", "bare.html", "index-1.html", "unmasked.html", "index.html"}
    page = (tmp_path / "pages" / "index.html").read_text()
    assert "Content-Security-Policy" in page
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert "<b> 'q'" not in page
    assert 'href="a%26%3Cb%3E%20%27q%27.html"' in page
    assert 'href="index-1.html"' in page
    assert page.count('src="data:image/png;base64,') == 4
    text = text_of(page)
    assert "5 scenes, of which 1 could not be reported." in text
    assert "the truth has no targets" in text
    assert "no file of truth" in text
    assert "On average over 2 with truth" in text
    assert "Not reported" in text
    assert "Compared with the truth" not in (tmp_path / "pages" / "bare.html").read_text()
    scored = (tmp_path / "pages" / f"{hostile}.html").read_text()
    assert "Compared with the truth" in scored
    expected = auc(image(2, seed=0)[..., 0] > 0, fitted(2, names=("ir", "vi")).fuse(image(2, seed=0)))
    assert f"AUC {expected:.3f}" in text


def test_command_reports_one_scene_without_targets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, plane in zip(("ir", "vi"), np.moveaxis(image(2), -1, 0), strict=True):
        np.save(f"{name}.npy", plane)
    np.save("mask.npy", np.zeros((12, 16), bool))
    fitted(2, names=("ir", "vi")).save("model.json")
    done = CliRunner().invoke(app, ["report", "model.json", "ir.npy", "vi.npy", "--truth", "mask.npy", "-o", "r.html"])
    assert done.exit_code == 0, done.output
    assert "Without scores: the truth has no targets." in done.output
    assert "Compared with the truth" not in (tmp_path / "r.html").read_text()


def test_thumbnails_are_pictures_of_the_map(rng):
    fused = rng.uniform(-1, 1, (7, 5))
    fused[2, 3] = np.nan
    found = np.asarray(Image.open(BytesIO(base64.b64decode(thumbnail(fused).partition(",")[2]))))
    assert found.shape == (7, 5, 3)
    colours = [[colour_of(v) if v == v else MISSING for v in row] for row in fused.tolist()]
    assert [[f"#{r:02x}{g:02x}{b:02x}" for r, g, b in row] for row in found.tolist()] == colours
    large = np.asarray(Image.open(BytesIO(base64.b64decode(thumbnail(np.ones((900, 1300))).partition(",")[2]))))
    assert max(large.shape) <= 320
    assert (large == large[0, 0]).all()
