"""Large rasters in tiles and windows, at a moderate size: limits are lowered instead."""

import io
import json
import shlex
import struct
from types import SimpleNamespace

import numpy as np
import program
import pytest
import rasters as written
from PIL import Image
from rasterio.enums import Resampling
from refusals import refused
from studio_server import served, tab_of

from bimichi import AdditiveBiCapacity, FusionRule
from bimichi.io.dataset import open_scenes
from bimichi.io.raster import open_dataset
from bimichi.studio import rasters, suggestions, windows
from bimichi.studio.exports import Exporter
from bimichi.studio.labels import parse_shapes
from bimichi.studio.learning import Learner
from bimichi.studio.open import Options, open_workspace
from bimichi.studio.rasters import ByteCache, TiledScene, grey_png
from bimichi.studio.suggestions import Suggester
from bimichi.studio.windows import WindowLearner, learner_of, pieces_of
from bimichi.studio.workspace import Settings

HEIGHT, WIDTH = 600, 840
TARGETS = [(100, 120), (500, 300), (700, 40), (330, 480)]  # of 24 x 24 pixels


@pytest.fixture(scope="module")
def image():
    rng = np.random.default_rng(0)
    planes = rng.normal(9000, 900, (2, HEIGHT, WIDTH))
    for x, y in TARGETS:
        planes[:, y : y + 24, x : x + 24] += 30_000
    planes = np.clip(planes, 1, 65_535).astype(np.uint16)
    planes[0, :70, :90] = 0  # no data
    return planes


@pytest.fixture(scope="module")
def path(image, tmp_path_factory):
    where = tmp_path_factory.mktemp("raster") / "city.tif"
    return written.write(where, image, ("red", "nir"), nodata=0, tiled=True, blockxsize=256, blockysize=256)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(rasters, "LARGE", 100_000)
    monkeypatch.setattr(rasters, "OVERVIEW", 240)
    monkeypatch.setattr(windows, "SIDE", 128)
    monkeypatch.setattr(windows, "REST", 4)


def opened(path):
    collection = open_scenes([str(path)])
    return collection.open(collection.names[0])


def decoded(tile):
    return np.asarray(Image.open(io.BytesIO(tile)))


def expected_source(image, k):
    plane = image[k].astype(np.float32) / 65_535 * 2 - 1
    return np.where(image[k] == 0, np.nan, plane)


def test_a_tile_shows_its_window(path, image, small):
    scene = TiledScene(opened(path), ["to_bipolar"] * 2)
    assert scene.levels == 2
    tile = decoded(scene.source_tile(0, 0, 1, 0))
    plane = expected_source(image, 0)[:256, 256:512]
    assert tile.shape == (256, 256, 2)
    np.testing.assert_allclose(tile[..., 0], (plane + 1) * 127.5, atol=0.51)
    corner = decoded(scene.source_tile(0, 0, 0, 0))
    assert (corner[:70, :90, 1] == 0).all()
    assert (corner[80:, 100:, 1] == 255).all()
    edge = decoded(scene.source_tile(1, 0, 3, 2))  # cut off by the border of the scene
    assert (edge[: HEIGHT - 512, : WIDTH - 768, 1] == 255).all()
    assert (edge[HEIGHT - 512 :, :, 1] == 0).all()
    half = decoded(scene.source_tile(1, 1, 0, 0))
    assert half[61:71, 51:61, 0].min() > half[80:230, 0:240, 0].max()  # the first target, at half its size


def test_coarse_tiles_are_cut_from_one_overview(path, image, small, monkeypatch):
    scene = TiledScene(opened(path), ["to_bipolar"] * 2)
    overview = scene.overview()
    assert overview.sources.shape == (150, 210, 2)
    own = [float(v) for v in expected_source(image, 1)[120:144, 100:124].mean(keepdims=True).ravel()]
    np.testing.assert_allclose(overview.sources[31:35, 26:30, 1], own[0], atol=0.1)
    monkeypatch.setattr(TiledScene, "read", None)  # from here on, nothing is read
    tile = decoded(scene.source_tile(1, 2, 0, 0))
    assert (tile[:150, :210, 1] == np.where(np.isnan(overview.sources[..., 1]), 0, 255)).all()
    smaller = decoded(scene.source_tile(1, 3, 0, 0))
    assert np.array_equal(smaller[:75, :105], tile[:150:2, :210:2])


def test_overviews_of_the_file_are_used(path, image, small, tmp_path):
    copy = tmp_path / "with.tif"
    written.write(copy, image, ("red", "nir"), nodata=0, tiled=True, blockxsize=256, blockysize=256)
    with open_dataset(copy, "r+") as dataset:
        dataset.build_overviews([2, 4], Resampling.average)
    plain, averaged = (TiledScene(opened(one), ["to_bipolar"] * 2).overview().sources for one in (path, copy))
    assert np.nanstd(averaged[40:60, 60:100, 0]) < 0.6 * np.nanstd(plain[40:60, 60:100, 0])


def test_fused_tiles_and_values_are_those_of_the_rule(path, image, small):
    scene = TiledScene(opened(path), ["to_bipolar"] * 2)
    rule = FusionRule(AdditiveBiCapacity.additive([0.25, 0.75], ["red", "nir"]))
    tile = decoded(scene.fused_tile(rule, 1, 0, 1, 1))
    planes = [expected_source(image, k)[256:512, 256:512] for k in range(2)]
    np.testing.assert_allclose(tile[..., 0], (rule.fuse(planes) + 1) * 127.5, atol=0.51)
    found = scene.values(300.5, 200.5)
    np.testing.assert_allclose(found, [expected_source(image, k)[200, 300] for k in range(2)], atol=1e-6)
    assert scene.values(5, 5)[0] is None
    with refused("point-outside"):
        scene.values(WIDTH, 0)
    with refused("tile-unknown"):
        scene.source_tile(0, 0, 9, 0)
    with refused("source-unknown"):
        scene.source_tile(2, 0, 0, 0)
    scene.close()


def test_recipes_of_whole_images_are_refused(path):
    with refused("recipe-windows"):
        TiledScene(opened(path), ["to_bipolar", "rarity"])


def test_colours_are_stretched_alike(tmp_path, small):
    rng = np.random.default_rng(1)
    image = rng.integers(0, 4000, (3, 400, 500)).astype(np.uint16)
    where = written.write(tmp_path / "rgb.tif", image, photometric="RGB")
    scene = TiledScene(opened(where), ["to_bipolar"] * 3)
    assert scene.coloured
    low, high = np.percentile(image[:, ::2, ::2], [1, 99], axis=(1, 2))
    tile = decoded(scene.rgb_tile(0, 0, 0))
    expected = np.clip((image[:, :256, :256] - low[:, None, None]) / (high - low)[:, None, None] * 255, 0, 255)
    np.testing.assert_allclose(tile, np.moveaxis(expected, 0, -1), atol=3)
    assert decoded(scene.rgb_tile(2, 0, 0)).shape == (256, 256, 3)


def test_the_cache_keeps_what_was_used_last():
    cache, made = ByteCache(10), []

    def make(text):
        return lambda: made.append(text) or text

    for text in (b"aaaa", b"bbbb", b"aaaa", b"cccc", b"aaaa", b"bbbb"):
        assert cache.get(text, make(text)) == text
    assert made == [b"aaaa", b"bbbb", b"cccc", b"bbbb"]
    assert cache.size <= 10
    assert cache.get("x", make(b"far too long")) == b"far too long"
    assert cache.size <= 10
    assert grey_png(np.array([[np.nan]]), (0, 1))


def test_windows_follow_from_labels_and_seed(small):
    work = Settings()
    drawn = parse_shapes([box("a", *TARGETS[0])], (HEIGHT, WIDTH))
    first = pieces_of(0, "city", (HEIGHT, WIDTH), drawn, work)
    touched = [piece for piece in first if piece.shapes]
    assert [(piece.window.row, piece.window.column) for piece in touched] == [(0, 0), (128, 0)]
    assert touched[1].shapes[0].points == ((98.0, -10.0), (126.0, 18.0))
    assert len(first) == len(touched) + 4
    more = parse_shapes([box("a", *TARGETS[0]), box("b", *TARGETS[3])], (HEIGHT, WIDTH))
    second = pieces_of(0, "city", (HEIGHT, WIDTH), more, work)
    assert {piece.name for piece in touched} < {piece.name for piece in second}
    assert len({piece.name for piece in first} & {piece.name for piece in second}) >= len(first) - 1
    unknown = pieces_of(0, "city", (HEIGHT, WIDTH), drawn, work.changed({"rest": "unknown"}))
    assert [piece.name for piece in unknown] == [piece.name for piece in touched]
    assert first != pieces_of(0, "city", (HEIGHT, WIDTH), drawn, work.changed({"seed": 1}))


def box(name, x, y, label="target"):
    return {"id": name, "kind": "box", "label": label, "points": [[x - 2, y - 2], [x + 26, y + 26]]}


@pytest.fixture
def work(path, small, tmp_path):
    found = open_workspace([str(path)], Options())
    found.project = tmp_path / "bimichi.toml"
    found.draw(0, 1, [box("a", *TARGETS[0]), box("b", *TARGETS[1])])
    return found


def test_a_large_scene_is_learned_from_its_windows(work, image):
    store = work.store
    learner = learner_of(store, 1)
    assert isinstance(learner, WindowLearner)
    assert work.state()["scenes"][0]["tiled"] is True
    assert (work.state()["scenes"][0]["height"], work.state()["scenes"][0]["width"]) == (HEIGHT, WIDTH)
    trained = learner.fit(work.task())
    assert trained.task == work.task()
    fused = trained.rule.fuse([expected_source(image, k) for k in range(2)])
    for x, y in TARGETS:
        assert fused[y : y + 24, x : x + 24].min() > 0.5
    assert np.nanmedian(fused) < 0.1
    assert learner.fused(trained, 0).shape == (150, 210)  # a preview
    again = learner.fit(work.task())
    assert again.number == trained.number + 1
    assert np.array_equal(again.rule.measure.values, trained.rule.measure.values)
    rings = store.superpixel(0, 505.5, 310.5)
    xs, ys = np.array(rings[0]).T
    assert xs.min() <= 505.5 <= xs.max()
    assert ys.min() <= 310.5 <= ys.max()


def test_windows_hold_what_the_file_holds(work, image):
    learner = learner_of(work.store, 1)
    inner, _, found = learner.within(learner.fit(work.task()))
    piece = found.pieces[0]
    with open_dataset(found.folders[0] / f"{piece.name}.tif") as dataset:
        assert np.array_equal(dataset.read(), image[(slice(None), *piece.window.slices)])
        assert dataset.nodata == 0
        assert dataset.descriptions == ("red", "nir")
        corner = 500_000 + 10 * piece.window.column, 5_000_000 - 10 * piece.window.row
        assert (dataset.transform.c, dataset.transform.f) == corner
    assert type(inner) is Learner
    assert found.place(0, [1, 2, 3, 4]) == (0, [piece.window.column + 1, piece.window.row + 2, 3, 4])


def test_the_command_learns_the_same_model(work, tmp_path):
    trained = learner_of(work.store, 1).fit(work.task())
    done = Exporter(work, trained, 1).write("command")
    (_, folder), words = map(shlex.split, done.text.splitlines())
    assert words[:2] == ["bimichi", "train"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        program.run(*words[1:])
    again = FusionRule.load(tmp_path / "bimichi-export" / "model.json")
    assert again.training.objective_value == trained.rule.training.objective_value
    assert np.array_equal(again.measure.values, trained.rule.measure.values)
    assert again.link == trained.rule.link
    with refused("report-large"):
        Exporter(work, trained, 1).write("report")


def test_suggestions_lie_in_the_whole_scene(work, monkeypatch):
    monkeypatch.setattr(windows, "SIDE", 256)
    monkeypatch.setattr(windows, "REST", 40)  # all windows
    monkeypatch.setattr(suggestions, "RESAMPLES", 2)
    learner = learner_of(work.store, 1)
    session = SimpleNamespace(learner=learner, model=learner.fit(work.task()), workspace=work)
    found = Suggester(session).suggestions()
    centres = [(one["box"][0] + one["box"][2] / 2, one["box"][1] + one["box"][3] / 2) for one in found]
    missed = [any(abs(x + 12 - cx) < 40 and abs(y + 12 - cy) < 40 for cx, cy in centres[:8]) for x, y in TARGETS[2:]]
    assert missed == [True, True]
    assert {one["scene"] for one in found} == {0}


def test_the_server_draws_learns_and_shows_tiles(path, image, small, tmp_path):
    work = open_workspace([str(path)], Options())
    work.project = tmp_path / "bimichi.toml"
    with served(work) as client:
        state = client.get(client.base + "state").json()
        assert state["scenes"][0]["tiled"] is True
        scene = f"{client.base}scenes/0/"
        tile = client.get(scene + "tiles/1/0/1/0")
        assert tile.headers["content-type"] == "image/png"
        plane = expected_source(image, 1)[:256, 256:512]
        np.testing.assert_allclose(decoded(tile.content)[..., 0], (plane + 1) * 127.5, atol=0.51)
        assert client.get(scene + "tiles/fused/0/0/0").status_code == 404  # no model yet
        for wrong in ("tiles/rgb/0/0/0", "tiles/7/0/0/0", "tiles/x/0/0/0", "tiles/0/0/50/0"):
            assert client.get(scene + wrong).status_code == 404
        with tab_of(client) as tab:
            tab.draw(0, 1, [box("a", *TARGETS[0]), box("b", *TARGETS[1])])
            preview = tab.until("map")
            assert struct.unpack("<4I", preview[:16]) == (1, 210, 150, 0)
            tab.until("suggestions")
        fused = decoded(client.get(scene + "tiles/fused/0/1/1").content)  # with the second target at (244, 44)
        assert fused[50:60, 250:256, 0].min() > 128
        assert np.median(fused[..., 0]) < 30
        values = client.get(scene + "values?x=520&y=310").json()["values"]
        np.testing.assert_allclose(values, [expected_source(image, k)[310, 520] for k in range(2)], atol=1e-6)
        assert client.get(scene + "values?x=a").status_code == 400
        found = client.get(client.base + "suggestions").json()["items"]
        assert all(one["scene"] == 0 and len(one["box"]) == 4 for one in found)
        assert len(client.get(scene + "uncertainty").content) == 16 + 2 * 210 * 150


def test_labels_of_a_large_scene_are_saved_in_its_pixels(work):
    ring = {"id": "r", "kind": "polygon", "label": "not", "points": [[200, 200], [260.5, 201], [230, 290]]}
    hole = [[225, 215], [240, 215], [230, 240]]
    loop = [[400, 400], [440, 400], [440, 440], [400, 440], [400, 402]]
    stroke = {"id": "s", "kind": "stroke", "label": "not", "points": loop, "width": 6}
    work.draw(0, 2, [box("a", *TARGETS[0]), ring | {"holes": [hole]}, stroke])
    work.save()
    saved = json.loads((work.project.parent / "labels.json").read_text())
    assert (saved["images"][0]["width"], saved["images"][0]["height"]) == (WIDTH, HEIGHT)
    assert all(isinstance(one["segmentation"], list) for one in saved["annotations"])  # no masks of the whole scene
    again = open_workspace([str(work.project)], Options())
    assert again.labels[0].shapes == work.labels[0].shapes
