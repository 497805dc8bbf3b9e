"""Drawn floods and brains show what they say they show, with exact truth, and are written as files."""

import numpy as np
import pytest
import rasterio
from PIL import Image
from refusals import refused

from bimichi.datasets import draw_flood, draw_lesions, flood, lesions
from bimichi.datasets.brains import draw_anatomy
from bimichi.datasets.floods import OPTICAL_BANDS, SOIL, WATER, draw_terrain, outlines
from bimichi.io import write_geotiff
from bimichi.metrics import auc
from bimichi.scenes import boxes_of
from bimichi.scenes.scene import Scene


@pytest.fixture(scope="module")
def water():
    return draw_flood(160, 192, random_state=3)


@pytest.fixture(scope="module")
def brain():
    return draw_lesions(random_state=1)


def median(image, where):
    return float(np.median(image[where]))


# --- Floods


def test_flood_is_dark_for_radar_and_permanent_water_is_no_flood(water):
    seen = water.valid & ~water.shadow
    dry = seen & ~water.flooded & ~water.permanent & ~water.cloud
    for k in range(2):
        band = water.radar[..., k]
        assert median(band, water.flooded & seen) < median(band, dry) - 5
        assert abs(median(band, water.flooded & seen) - median(band, water.permanent & seen)) < 4
    assert not (water.flooded & water.permanent).any()
    assert median(water.occurrence, water.permanent) > 85
    assert np.percentile(water.occurrence[~water.permanent], 95) < 5
    assert 0.05 < water.flooded.mean() < 0.6


def test_clouds_hide_the_ground_and_shadows_look_like_water(water):
    near, green, short = 7, 2, 11
    clear = water.valid & ~water.cloud & ~water.shadow
    assert water.cloud.mean() == pytest.approx(0.25, abs=0.05)
    assert median(water.optical[..., green], water.cloud & water.valid) > 2 * median(water.optical[..., green], clear)
    dark = water.shadow & ~water.cloud & water.valid & ~water.flooded & ~water.permanent
    land = clear & ~water.flooded & ~water.permanent
    assert median(water.optical[..., near], dark) < 0.75 * median(water.optical[..., near], land)
    wet, index = clear & water.flooded, water.optical.astype(float)
    index = (index[..., green] - index[..., short]) / np.maximum(index[..., green] + index[..., short], 1)
    assert median(index, wet) > 0.2 > median(index, land)


def test_hills_cast_shadows_that_no_radar_sees():
    images = draw_flood(160, 160, random_state=1, cloud_cover=0)
    hidden = np.isfinite(images.radar[..., 0]) & (images.radar[..., 0] < -24) & ~images.flooded & ~images.permanent
    assert hidden.sum() > 20
    assert not images.cloud.any()


def test_speckle_is_multiplicative():
    """Of a gamma distribution of some looks: the deviation in decibels does not depend on how bright the ground is."""
    images = draw_flood(200, 200, random_state=0, level=0.6)
    wide = [images.permanent & images.valid, images.valid & ~images.permanent & ~images.flooded & ~images.shadow]
    for where in wide:
        steps = np.diff(images.radar[..., 1], axis=1)[where[:, 1:] & where[:, :-1]]
        assert 0.8 < float(np.median(np.abs(steps))) < 4


def test_rims_have_no_data(water):
    radar, optical = np.isnan(water.radar).any(axis=2), (water.optical == 0).all(axis=2)
    assert radar[:, 0].all()
    assert optical[:, -1].all()
    assert not radar[:, -1].any()
    assert not optical[:, 0].any()
    scene = water.scene(80)
    np.testing.assert_array_equal(scene.ignore, radar | optical)
    np.testing.assert_array_equal(np.isnan(scene.sources).any(axis=2), scene.ignore)
    assert (scene.segments[scene.ignore] == -1).all()


def test_flood_scene_is_seeded_georeferenced_and_labelled(water, tmp_path):
    scene = flood(160, 192, random_state=3, n_segments=80)
    np.testing.assert_array_equal(scene.sources, water.scene(80).sources)
    assert np.nanmax(np.abs(scene.sources)) <= 1
    for segment, positive in scene.labels.items():
        assert positive == (water.outlines & water.valid)[scene.segments == segment].any()
    assert auc(scene.truth, scene.sources[..., 2], scene.ignore) > 0.75
    assert (scene.crs, scene.transform) == (water.crs, water.transform)
    scene.save(tmp_path / "scene.npz")
    read = Scene.load(tmp_path / "scene.npz")
    assert (read.crs, read.transform) == (scene.crs, scene.transform)
    assert not np.array_equal(flood(160, 192, random_state=4, n_segments=80).truth, scene.truth)


def test_outlines_are_too_large_and_leave_out_small_parts():
    flooded = np.zeros((60, 60), dtype=bool)
    flooded[10:30, 10:40] = True
    flooded[18:20, 20:23] = False
    flooded[50, 50] = True
    drawn = outlines(flooded)
    assert drawn[10:30, 10:40].all()
    assert drawn[7, 25]
    assert not drawn[5, 25]
    assert not drawn[45:, 45:].any()


def test_flood_covers_low_ground_that_the_river_reaches():
    terrain = draw_terrain(np.random.default_rng(0), (120, 120), 0.8)
    dry = draw_terrain(np.random.default_rng(0), (120, 120), 0.0)
    assert terrain.flooded.sum() > 4 * dry.flooded.sum()
    assert (terrain.kind[terrain.permanent] == WATER).all()
    assert (terrain.kind == SOIL).any()
    assert terrain.height[terrain.flooded].max() < 0.8 + 1e-9


def test_flood_writes_geotiffs_that_are_placed_named_and_have_nodata(water, tmp_path):
    written = water.write(tmp_path)
    assert sorted(path.parent.name for path in written) == ["occurrence", "outlines", "s1", "s2", "truth"]
    for path in written:
        with rasterio.open(path) as file:
            assert str(file.crs) == water.crs
            assert tuple(file.transform)[:6] == water.transform
    with rasterio.open(tmp_path / "s2" / "flood-3.tif") as file:
        assert file.descriptions == OPTICAL_BANDS
        assert file.nodata == 0
        np.testing.assert_array_equal(np.moveaxis(file.read(), 0, -1), water.optical)
    with rasterio.open(tmp_path / "s1" / "flood-3.tif") as file:
        assert np.isnan(file.nodata)
    with rasterio.open(tmp_path / "truth" / "flood-3.tif") as file:
        assert set(np.unique(file.read())) == {-1, 0, 1, 2}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"crs": None}, "georeference-incomplete"),
        ({"transform": (1.0, 2.0)}, "georeference-incomplete"),
        ({"names": ["a", "b"]}, "names-number:names"),
        ({"path": "fused.png"}, "output-suffix:path"),
        ({"image": np.zeros((2, 2, 2, 2))}, "image-shape"),
    ],
)
def test_write_geotiff_refuses(given, message, tmp_path):
    common = {"image": np.zeros((4, 5)), "crs": "EPSG:32630", "transform": (10.0, 0.0, 0.0, 0.0, -10.0, 0.0)}
    call = common | {"path": "fused.tif"} | given
    with refused(message):
        write_geotiff(tmp_path / call.pop("path"), **call)


def test_a_scene_refuses_a_transform_that_is_none():
    with refused("transform:transform", "'a'"):
        Scene(np.zeros((2, 2, 1)), "a", transform=(1.0, 2.0))


# --- Lesions


def test_contrasts_are_those_of_magnetic_resonance(brain):
    rng = np.random.default_rng(1)
    anatomy = draw_anatomy(rng, 218, 182, 14)
    np.testing.assert_array_equal(anatomy.lesions, brain.lesions)
    white, grey, fluid, lesion = anatomy.shares > 0.9
    by = {
        name: [median(image, where) for where in (white, grey, fluid, lesion)]
        for name, image in brain.contrasts.items()
    }
    assert by["FLAIR"][3] > by["FLAIR"][1] > by["FLAIR"][0] > by["FLAIR"][2]  # lesions brightest, fluid dark
    assert by["T2"][2] > by["T2"][3] > by["T2"][1] > by["T2"][0]  # ventricles brightest
    for name in ("T1", "T1 post"):
        assert by[name][0] > by[name][1] > by[name][2]
        assert by[name][0] > by[name][3]


def test_bias_fields_differ_between_contrasts():
    plain, biased = (draw_lesions(120, 100, n_lesions=0, bias=bias, random_state=0) for bias in (0.0, 0.4))
    inside = plain.brain
    fields = [biased.contrasts[name][inside] / plain.contrasts[name][inside] for name in ("FLAIR", "T1")]
    assert all(field.std() > 0.1 for field in fields)
    assert abs(np.corrcoef(*fields)[0, 1]) < 0.9
    assert not plain.lesions.any()


def test_lesion_scene_is_seeded_and_labelled_by_boxes(brain):
    scene = lesions(random_state=1)
    np.testing.assert_array_equal(scene.sources, brain.scene().sources)
    np.testing.assert_array_equal(scene.ignore, ~brain.brain)
    np.testing.assert_array_equal(np.isnan(scene.sources[..., 0]), scene.ignore)
    assert (scene.truth & scene.ignore).sum() == 0
    np.testing.assert_array_equal(scene.boxes, boxes_of(scene.truth))
    assert 5 < len(scene.boxes) <= 14
    assert sum(scene.labels.values()) < len(scene.labels) / 2
    assert auc(scene.truth, scene.sources[..., 0], scene.ignore) > 0.9


def test_lesions_write_png_files(brain, tmp_path):
    written = brain.write(tmp_path)
    assert sorted(path.parent.name for path in written) == ["flair", "t1", "t1post", "t2", "truth"]
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "t2" / "lesions-1.png")), brain.contrasts["T2"])
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "truth" / "lesions-1.png")) > 0, brain.lesions)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: flood(32), "whole-number:height"),
        (lambda: flood(cloud_cover=1.5), "number-range:cloud_cover"),
        (lambda: flood(level=-1), "number-range:level"),
        (lambda: lesions(width=10), "whole-number:width"),
        (lambda: lesions(n_lesions=-1), "whole-number:n_lesions"),
        (lambda: lesions(bias=2), "number-range:bias"),
    ],
)
def test_bad_arguments(call, message):
    with refused(message):
        call()
