"""What the studio gives away, and that all of it leads back to the same model."""

import json
import shlex
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from studio_server import SIZE, opened, served, shapes, tab_of
from typer.testing import CliRunner

from bimichi.cli.app import app
from bimichi.io import read_annotations, read_image, write_image
from bimichi.studio.exports import Exporter
from bimichi.studio.learning import Learner
from bimichi.studio.open import Options, add_annotations, open_workspace

STROKE = {"id": "s", "kind": "stroke", "label": "not", "points": [[5, 30], [20.1, 35]], "width": 4}
LASSO = {"id": "p", "kind": "polygon", "label": "target", "points": [[40, 30], [52, 29.5], [50, 38], [41, 37]]}
RING = LASSO | {"id": "r", "label": "ignore", "points": [[20, 25], [30, 25], [30, 38], [20, 38]]}
HOLED = RING | {"holes": [[[23, 28], [27, 28], [27, 34], [23, 34]]]}


def learned(work):
    return Learner(work.store, 1).fit(work.task())


def bytes_of(rule, path):
    rule.save(path)
    return path.read_bytes()


@pytest.fixture
def work(tmp_path):
    made = opened(tmp_path / "work", names=["heat", "light"])
    made.draw(0, 1, shapes())
    return made


def again(work, name, tmp_path):
    """The model of the same images, with labels from an export alone."""
    other = open_workspace(work.arguments, Options(names=["heat", "light"]))
    add_annotations(other, name)
    other.settings = work.settings
    return bytes_of(learned(other).rule, tmp_path / "again.json")


@pytest.mark.parametrize("kind", ["coco", "geojson", "csv"])
def test_labels_that_are_exported_and_imported_give_the_same_model(work, tmp_path, kind):
    if kind != "csv":
        work.draw(0, 2, [*shapes(), STROKE, LASSO, HOLED])
        work.draw(1, 1, [*shapes("two"), STROKE])
    model = bytes_of(learned(work).rule, tmp_path / "model.json")
    (path,) = Exporter(work, None).write(kind).files
    assert path.parent == tmp_path / "work" / "bimichi-export"
    assert again(work, path, tmp_path) == model


def test_csv_says_that_it_holds_boxes_alone(work):
    work.draw(0, 2, [*shapes(), STROKE])
    with refused("annotations-boxes-only"):
        Exporter(work, None).write("csv")


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"rest": "unknown", "core": (0.7, 1.0), "seed": 3},
        {"objective": "mean", "additivity": 2, "polarity": "learn"},
        {"objective": "bipolar", "additivity": None},
        {"sources": "rarity", "inverted": (1,)},
    ],
)
def test_the_command_line_and_python_learn_the_same_model(work, tmp_path, change):
    work.settings = replace(work.settings, **change)
    work.draw(0, 2, [*shapes(), STROKE, LASSO, HOLED])
    trained = learned(work)
    exporter = Exporter(work, trained)
    (path,) = exporter.write("model").files
    model = path.read_bytes()
    path.unlink()
    text = exporter.write("command").text
    folder, command = text.splitlines()
    assert folder == f"cd {shlex.quote(str(tmp_path / 'work'))}"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path / "work")
        result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
    assert path.read_bytes() == model
    path.unlink()
    exec(compile(exporter.write("python").text, "exported", "exec"), {})
    assert path.read_bytes() == model


@pytest.mark.parametrize("rest", ["negative", "unknown"])
def test_masks_of_strokes_and_polygons_give_the_same_model(work, tmp_path, rest):
    work.settings = replace(work.settings, rest=rest)
    brushed = {**STROKE, "id": "t", "label": "target", "points": [[10, 10], [18, 14]], "width": 6}
    work.draw(0, 2, [brushed, LASSO, STROKE, HOLED])  # and nothing on the other scene
    trained = learned(work)
    exporter = Exporter(work, trained)
    masks = exporter.write("masks").files[0].parent
    words = ["train", "warm", "grey", "--names", "heat,light", "--labels", masks, "--ignore", masks.parent / "ignore"]
    words += ["--bags", "boxes", "--labelled-only", "--objective", "logistic", "--additivity", 1]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path / "work")
        result = CliRunner().invoke(app, [*map(str, words), "-o", str(exporter.folder / "model.json")])
    assert result.exit_code == 0, result.output
    assert (exporter.folder / "model.json").read_bytes() == bytes_of(trained.rule, tmp_path / "model.json")
    work.draw(0, 3, [brushed, LASSO])
    work.settings = replace(work.settings, rest="negative")
    model = bytes_of(learned(work).rule, tmp_path / "model.json")
    assert again(work, Exporter(work, None).write("masks").files[0].parent, tmp_path) == model


def test_the_command_of_a_chosen_model_chooses_again(work, tmp_path):
    work.draw(1, 1, shapes("two"))
    work.settings = replace(work.settings, objective="mean", additivity=2)  # which does not matter
    trained = Learner(work.store, 1).auto(work.task())
    work.auto = True
    exporter = Exporter(work, trained)
    (path,) = exporter.write("model").files
    model = path.read_bytes()
    command = exporter.write("command").text.splitlines()[1]
    assert command == "bimichi train --project . -o bimichi-export/model.json"
    path.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path / "work")
        assert CliRunner().invoke(app, shlex.split(command)[1:]).exit_code == 0
    assert path.read_bytes() == model
    work.draw(1, 2, [])
    with refused("model-older"):
        exporter.write("model")


def test_only_labelled_scenes_are_learned_from(work):
    trained = learned(work)
    assert trained.task.revisions == {"0": 1}
    image = read_image(work.store.scenes[0].files.files[0])
    assert (trained.rule.inputs[0].low, trained.rule.inputs[0].high) == (image.min(), image.max())


def test_masks_hold_the_pixels_that_were_drawn(work):
    work.draw(0, 2, [*shapes(n=1), {**STROKE, "label": "ignore"}])
    files = {path.parent.name: read_image(path) for path in Exporter(work, None).write("masks").files}
    x, y, w, h = 8, 6, 12, 16
    expected = np.zeros(SIZE, bool)
    expected[y : y + h, x : x + w] = True
    assert np.array_equal(files["masks"] > 0, expected)
    assert files["ignore"][30, 5] == 255


def test_maps_and_reports_of_all_scenes(work):
    trained = learned(work)
    exporter = Exporter(work, trained)
    maps = exporter.write("fused").files
    assert [path.name for path in maps] == ["one.tif", "two.tif"]
    sources = work.store.load(1).sources
    assert np.allclose(read_image(maps[1]), trained.rule.fuse(sources), atol=1e-6)
    pages = exporter.write("report").files
    assert [path.name for path in pages] == ["index.html", "scene-one.html", "scene-two.html"]


def test_an_old_model_is_not_exported_as_that_of_new_labels(work):
    trained = learned(work)
    work.draw(0, 2, shapes(n=1))
    with refused("model-older"):
        Exporter(work, trained).write("model")
    with refused("model-missing"):
        Exporter(work, None).write("model")
    with refused("export-unknown"):
        Exporter(work, None).write("song")
    work.draw(0, 3, [])
    with refused("nothing-drawn"):
        Exporter(work, None).write("coco")


def test_exports_are_downloaded_and_imported_by_the_page(work, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with served(work) as client, tab_of(client) as tab:
        tab.until("model")
        tab.until("score")
        made = client.post(f"{client.base}export", {"kind": "coco"}).json()
        assert made["files"] == ["labels.json"]
        found = client.get(f"{client.base}exports/labels.json")
        assert "attachment" in found.headers["content-disposition"]
        assert len(json.loads(found.content)["annotations"]) == 2
        tab.draw(0, 2, [])
        tab.until("model")
        told = client.post(f"{client.base}import", {"path": "bimichi-export/labels.json"}).json()
        assert told["drawn"] == {"0": 2}
        assert len(tab.until("labels")["shapes"]) == 2
        assert tab.until("model")["revision"] == {"0": 3}
        everything = client.post(f"{client.base}export", {"kind": "all"}).json()["files"]
        assert {"labels.json", "masks/one.png", "model.json", "report/index.html", "fused/two.tif"} <= set(everything)


def test_labels_land_in_map_coordinates_and_come_back(tmp_path):
    import rasterio

    image = np.random.default_rng(0).integers(0, 255, (2, *SIZE)).astype(np.uint8)
    how = {"driver": "GTiff", "height": SIZE[0], "width": SIZE[1], "count": 2, "dtype": "uint8", "crs": "EPSG:32630"}
    with rasterio.open(tmp_path / "a.tif", "w", transform=rasterio.Affine(10, 0, 5e5, 0, -10, 4.6e6), **how) as file:
        file.write(image)
    work = open_workspace([str(tmp_path / "a.tif")], Options())
    work.project = tmp_path / "bimichi.toml"
    work.draw(0, 1, [*shapes(), STROKE, LASSO])
    trained = learned(work)
    model = bytes_of(trained.rule, tmp_path / "model.json")
    exporter = Exporter(work, trained)
    (path,) = exporter.write("geojson").files
    data = json.loads(path.read_text())
    assert data["features"][0]["geometry"]["coordinates"][0][0] == [5e5 + 80, 4.6e6 - 60]
    found = next(iter(read_annotations(path).values()))
    assert (found.units, found.crs) == ("map", "EPSG:32630")
    other = open_workspace([str(tmp_path / "a.tif")], Options())
    add_annotations(other, path)
    assert [one.kind for one in other.labels[0].shapes] == ["box", "box", "polygon", "polygon"]
    assert bytes_of(learned(other).rule, tmp_path / "again.json") == model
    (mask,) = exporter.write("masks").files
    with rasterio.open(mask) as file:
        assert (str(file.crs), file.transform.c) == ("EPSG:32630", 5e5)
    (fused,) = exporter.write("fused").files
    with rasterio.open(fused) as file:
        assert str(file.crs) == "EPSG:32630"
    command = exporter.write("command").text.splitlines()[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert CliRunner().invoke(app, shlex.split(command)[1:]).exit_code == 0
    assert (exporter.folder / "model.json").read_bytes() == model


PLACES = [(3, 3), (22, 4), (40, 3), (12, 22), (34, 21)]
SHAPES = {
    "box": lambda x, y: {"kind": "box", "points": [[x, y], [x + 9, y + 12.5]]},
    "polygon": lambda x, y: {
        "kind": "polygon",
        "points": [[x, y], [x + 9, y], [x + 9, y + 5], [x + 4, y + 12], [x, y + 12]],
    },
    "stroke": lambda x, y: {"kind": "stroke", "points": [[x + 3, y + 3], [x + 7, y + 10]], "width": 5},
}


def one_of(kind, x, y, work):
    """A shape at a place; the superpixel there is a polygon."""
    if kind != "superpixel":
        return SHAPES[kind](x, y)
    points, *holes = work.store.superpixel(0, x + 4, y + 5)
    return {"kind": "polygon", "points": [*map(list, points)], "holes": [[*map(list, ring)] for ring in holes]}


@pytest.mark.parametrize("rest", ["negative", "unknown"])
@pytest.mark.parametrize("polarity", ["given", "learn"])
@pytest.mark.parametrize("kind", ["box", "polygon", "stroke", "superpixel"])
def test_the_command_learns_the_same_model_from_every_kind_of_shape(tmp_path, kind, polarity, rest):
    """Of one scene, too, whose signs the command once learned from bags, and the studio from pixels."""
    warm, grey = np.random.default_rng(2).normal(120, 20, (2, *SIZE))
    for x, y in PLACES:
        warm[y + 2 : y + 10, x + 2 : x + 8] += 60
        grey[y + 2 : y + 10, x + 2 : x + 8] -= 60
    for name, image in (("warm", warm), ("grey", grey)):
        write_image(tmp_path / f"{name}.png", np.clip(image, 0, 255).astype(np.uint8))
    work = open_workspace([str(tmp_path / "warm.png"), str(tmp_path / "grey.png")], Options())
    work.project = tmp_path / "studio.json"
    work.settings = replace(work.settings, rest=rest, polarity=polarity)
    drawn = [one_of(kind, x, y, work) | {"id": f"{x}", "label": "target"} for x, y in PLACES]
    drawn += [one_of(kind, x, y, work) | {"id": f"not {x}", "label": "not"} for x, y in [(12, 3), (28, 30), (47, 22)]]
    work.draw(0, 1, drawn)
    trained = learned(work)
    if kind != "superpixel":  # which are too rough to tell
        assert trained.rule.polarity.tolist() == [1, -1 if polarity == "learn" else 1]
    exporter = Exporter(work, trained)
    (path,) = exporter.write("model").files
    model = path.read_bytes()
    path.unlink()
    command = exporter.write("command").text.splitlines()[1]
    exporter.write("coco")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
    assert path.read_bytes() == model
