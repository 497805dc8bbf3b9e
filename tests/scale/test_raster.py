"""Rasters in windows and frames in bulk: the same numbers as in memory, where they belong, and whole files only."""

import errno
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rasterio
from affine import Affine
from methods import METHODS, fitted
from rasterio.control import GroundControlPoint
from rasterio.enums import ColorInterp
from rasters import GRID, write

from bimichi import BiCapacity, BiMIChI, BimichiError, FusionRule, InvalidInputError, MeanFusion, choquet
from bimichi.imaging import SOURCE_RECIPES, raster_layers
from bimichi.scale import FrameResults, fuse_frames, fuse_raster, geotiffs, rasters

NAMES = ["thermal", "red", "edges"]
MEASURE = BiCapacity.random(3, random_state=1)
NAMED = BiCapacity(MEASURE.values, NAMES)


def at(west, north, width, height):
    """The transform of a grid with this corner and pixels of this size."""
    return Affine(width, 0.0, west, 0.0, -height, north)


def read(path):
    with raster_layers.open_dataset(path) as dataset:
        return dataset.read(1)


@pytest.fixture
def planes(rng):
    return rng.uniform(-1, 1, (3, 300, 420)).astype(np.float32)


@pytest.fixture
def scene(planes, tmp_path):
    return write(tmp_path / "scene.tif", planes)


@pytest.fixture
def small_windows(monkeypatch):
    """So that a small raster has many windows, cut in columns, too, and many slices."""
    monkeypatch.setattr(rasters, "MEMORY", 3 * 2 * 64**2 * 16)
    monkeypatch.setattr(rasters, "WINDOW", 1)
    monkeypatch.setattr(rasters, "SLICE", 1000)


class TestWindows:
    @pytest.mark.parametrize("compress", ["deflate", "lzw", "zstd", None])
    def test_bytes_do_not_depend_on_threads_and_values_not_on_windows(
        self, planes, scene, tmp_path, small_windows, compress
    ):
        contents = set()
        for jobs in (1, 2, 5):
            out = fuse_raster(MEASURE, scene, tmp_path / f"{jobs}.tif", block=64, n_jobs=jobs, compress=compress)
            contents.add(out.read_bytes())
        assert len(contents) == 1
        np.testing.assert_array_equal(read(out), choquet(list(planes), MEASURE))

    def test_windows_cover_the_grid_once_between_tiles(self, scene, tmp_path, small_windows):
        stack = rasters.open_stack(scene)
        target = geotiffs.GeoTiff(tmp_path / "out.tif", stack, (-1, 1), 64, None, False, 1)
        windows, under_way = rasters._windows(stack, target, 8)
        covered = np.zeros((300, 420), int)
        for window in windows:
            covered[window.slices] += 1
            assert window.column % 64 == window.row % 64 == 0
            assert window.width * window.height * 16 <= rasters.MEMORY // 3
        assert (covered == 1).all()
        assert len(windows) == 5 * 4
        assert under_way == 3

    @pytest.mark.parametrize("name", ["Bi-MIChI (objective 1)", "MICI min-max", "CI-QP", "mean", "KNN"])
    def test_models(self, planes, scene, tmp_path, data, name):
        model = fitted(METHODS[name], data)
        few = write(tmp_path / "few.tif", planes[:, :40, :30])
        np.testing.assert_array_equal(
            read(fuse_raster(model, few, tmp_path / "out.tif")), model.fuse(list(planes[:, :40, :30]))
        )

    def test_anything_that_fuses_and_is_fitted(self, planes, scene, tmp_path):
        class Largest:
            n_features_in_ = 3

            def fuse(self, X):
                return np.max(X, axis=0)

        np.testing.assert_array_equal(read(fuse_raster(Largest(), scene, tmp_path / "out.tif")), planes.max(axis=0))

    def test_recipes_of_the_rule_are_applied_to_bands(self, planes, tmp_path):
        kinds = [np.uint8, np.uint16, np.float32]
        images = [
            (plane * 127 + 128).astype(kind) if kind != np.float32 else (plane + 1) / 2
            for plane, kind in zip(planes, kinds, strict=True)
        ]
        files = [write(tmp_path / f"{name}.tif", [image]) for name, image in zip(NAMES, images, strict=True)]
        recipes = ("gamma_correction", "to_bipolar", "to_bipolar")
        rule = FusionRule(NAMED, recipes=recipes)
        sources = [SOURCE_RECIPES[recipe](image) for recipe, image in zip(recipes, images, strict=True)]
        found = read(fuse_raster(rule, files[::-1], tmp_path / "out.tif"))
        np.testing.assert_array_equal(found, rule.fuse(sources))
        with pytest.raises(InvalidInputError, match="no recipe 'soup'"):
            fuse_raster(replace(rule, recipes=("soup",) * 3), files, tmp_path / "out.tif")

    def test_recipes_that_need_the_whole_image_see_it(self, planes, tmp_path, small_windows):
        images = (planes * 100 + 120).astype(np.uint8)
        images[0, 5, 6] = 0
        files = [write(tmp_path / f"{name}.tif", [image], nodata=0) for name, image in zip(NAMES, images, strict=True)]
        recipes = ("edge_strength", "to_bipolar", "equalize")
        rule = FusionRule(NAMED, recipes=recipes)
        floats = np.where(images == 0, np.nan, images / np.float32(255))
        sources = [SOURCE_RECIPES[recipe](image) for recipe, image in zip(recipes, floats, strict=True)]
        found = read(fuse_raster(rule, files, tmp_path / "out.tif", block=64))
        assert np.argwhere(np.isnan(found)).tolist() == [[5, 6]]
        np.testing.assert_allclose(found, rule.fuse(sources), atol=1e-6)

    @pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.int32, np.float64])
    def test_values_are_as_in_the_file_and_the_model_scales_them(self, planes, tmp_path, data, dtype):
        stored = (planes * 100 + 120).astype(dtype)
        model = BiMIChI(scale="minmax", random_state=0).fit(data[0] * 100 + 120, data[1], bags=data[2])
        out = read(fuse_raster(model, write(tmp_path / "in.tif", stored), tmp_path / "out.tif"))
        kind = np.float32 if np.dtype(dtype).itemsize <= 2 else np.float64
        assert out.dtype == kind
        np.testing.assert_array_equal(out, model.fuse(list(stored.astype(kind))))

    def test_layout_of_the_file(self, scene, tmp_path):
        with rasterio.open(fuse_raster(MEASURE, scene, tmp_path / "out.tif", overviews=True)) as out:
            assert out.profile["tiled"]
            assert (out.profile["blockxsize"], out.compression.name) == (256, "deflate")
            assert out.tags(ns="IMAGE_STRUCTURE")["PREDICTOR"] == "3"
            assert out.overviews(1) == [2]
            assert out.descriptions == ("fused",)
            whole = out.read(1).astype(float)
            small = out.read(1, out_shape=(150, 210))
        np.testing.assert_allclose(small, whole.reshape(150, 2, 210, 2).mean(axis=(1, 3)), atol=1e-6)

    def test_links_under_names_that_can_be_guessed_are_not_followed(self, scene, tmp_path):
        (tmp_path / "mine").write_bytes(b"kept")
        for name in (".out.tif.part", ".out.part", "out.tif.part", ".out.tif.tmp"):
            (tmp_path / name).symlink_to("mine")
        fuse_raster(MEASURE, scene, tmp_path / "out.tif")
        assert (tmp_path / "mine").read_bytes() == b"kept"
        assert (tmp_path / ".out.tif.part").is_symlink()

    def test_a_bar_is_drawn_on_a_terminal(self, scene, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        fuse_raster(MEASURE, scene, tmp_path / "out.tif", block=64, verbose=1)
        drawn = capsys.readouterr().err
        assert "fusing" in drawn
        assert "2/2" in drawn or "1/1" in drawn


class TestWhatIsKept:
    @pytest.mark.parametrize("nodata", [-9999.0, None, float("nan")])
    def test_crs_transform_and_nodata(self, planes, tmp_path, nodata):
        missing = float("nan") if nodata is None else nodata
        planes[0, 3, 4] = planes[2, 280, 400] = missing
        scene = write(tmp_path / "in.tif", planes, nodata=nodata)
        with rasterio.open(fuse_raster(MEASURE, scene, tmp_path / "out.tif")) as out:
            assert out.crs == GRID["crs"]
            assert out.transform == GRID["transform"]
            assert np.array_equal(out.nodata, missing, equal_nan=True)
            fused = out.read(1, masked=True)
        assert np.argwhere(fused.mask).tolist() == [[3, 4], [280, 400]]
        np.testing.assert_array_equal(
            fused.compressed(), choquet(list(planes), MEASURE, check_range=False)[~fused.mask]
        )

    def test_a_nodata_value_that_could_be_a_result_becomes_nan(self, planes, tmp_path):
        planes[1, 5, 6] = 0.0
        with rasterio.open(
            fuse_raster(MEASURE, write(tmp_path / "in.tif", planes, nodata=0.0), tmp_path / "out.tif")
        ) as out:
            assert np.isnan(out.nodata)
            assert np.argwhere(np.isnan(out.read(1))).tolist() == [[5, 6]]

    @pytest.mark.parametrize("align", [False, True])
    def test_transparency_means_no_data(self, tmp_path, align):
        planes = np.ones((4, 30, 40), np.uint8)
        planes[3] = 255
        planes[3, 7, 8] = 0
        scene = write(tmp_path / "in.tif", planes)
        with rasterio.open(scene, "r+") as dataset:
            dataset.colorinterp = [ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.alpha]
        masked = write(tmp_path / "masked.tif", planes[:1] * np.float32(0.5))
        with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(masked, "r+") as dataset:
            dataset.write_mask(np.indices((30, 40)).sum(axis=0) != 0)
        sources = [masked, scene]
        if align:  # nothing but zeros, without coverage of the last column of the others
            sources.insert(0, write(tmp_path / "first.tif", np.zeros((1, 30, 41), np.float32)))
        model = MeanFusion().fit(np.zeros((1, len(sources) + 2)))
        out = read(fuse_raster(model, sources, tmp_path / "out.tif", align=align))
        missing = np.isnan(out)
        assert missing[[0, 7], [0, 8]].all()
        assert missing.sum() == (2 + 30 if align else 2)
        assert set(out[~missing].tolist()) == {np.float32(3.5 / (5 if align else 4)).item()}

    def test_pixels_that_are_points_and_control_points(self, planes, tmp_path):
        scene = write(tmp_path / "in.tif", planes)
        with rasterio.open(scene, "r+") as dataset:
            dataset.update_tags(AREA_OR_POINT="Point")
        with rasterio.open(fuse_raster(MEASURE, scene, tmp_path / "out.tif")) as out:
            assert out.tags()["AREA_OR_POINT"] == "Point"
            assert out.transform == GRID["transform"]
        points = [GroundControlPoint(r, c, 9 + c / 1e3, 50 - r / 1e3, 0.0) for r in (0, 299) for c in (0, 419)]
        scene = write(tmp_path / "bent.tif", planes, transform=None, crs=None)
        with raster_layers.open_dataset(scene, "r+") as dataset:
            dataset.gcps = (points, rasterio.crs.CRS.from_epsg(4326))
        with raster_layers.open_dataset(fuse_raster(MEASURE, scene, tmp_path / "out.tif")) as out:
            assert [(p.row, p.col, p.x, p.y) for p in out.gcps[0]] == [(p.row, p.col, p.x, p.y) for p in points]
            assert out.gcps[1] == "EPSG:4326"

    def test_images_without_coordinates(self, planes, tmp_path):
        image = ((planes[:, :32, :40] + 1) * 127).astype(np.uint8)
        scene = write(tmp_path / "in.png", image, driver="PNG", crs=None, transform=None)
        model = MeanFusion().fit(np.zeros((2, 3)))
        with pytest.raises(InvalidInputError, match=r"Source index 0 reaches 25\d.*index 0 is band 1 of .*in\.png"):
            fuse_raster(model, scene, tmp_path / "out.tif")
        half = write(tmp_path / "half.png", image // 255, driver="PNG", crs=None, transform=None)
        with raster_layers.open_dataset(fuse_raster(model, half, tmp_path / "out.tif")) as out:
            assert out.crs is None
            assert out.transform.is_identity

    def test_the_cache_of_gdal_is_as_before(self, scene, tmp_path):
        before = rasterio._env.get_gdal_config("GDAL_CACHEMAX")
        fuse_raster(MEASURE, scene, tmp_path / "out.tif")
        with raster_layers.gdal_settings():
            assert rasterio._env.get_gdal_config("GDAL_CACHEMAX") == raster_layers.CACHE
            with raster_layers.gdal_settings():
                pass
            assert rasterio._env.get_gdal_config("GDAL_CACHEMAX") == raster_layers.CACHE
        assert rasterio._env.get_gdal_config("GDAL_CACHEMAX") == before


class TestSources:
    def test_several_files(self, planes, tmp_path):
        files = [write(tmp_path / f"{k}.tif", planes[k : k + 1]) for k in range(3)]
        expected = choquet(list(planes), MEASURE)
        np.testing.assert_array_equal(read(fuse_raster(MEASURE, files, tmp_path / "out.tif")), expected)
        two = [write(tmp_path / "pair.tif", planes[:2]), str(files[2])]
        np.testing.assert_array_equal(read(fuse_raster(MEASURE, two, tmp_path / "out.tif")), expected)

    def test_bands_are_matched_by_description_names_or_file(self, planes, tmp_path):
        expected = choquet(list(planes), NAMED)
        order = [2, 0, 1]
        texts = [NAMES[k] for k in order]
        out = tmp_path / "out.tif"
        described = write(tmp_path / "described.tif", planes[order], texts)
        np.testing.assert_array_equal(read(fuse_raster(NAMED, described, out)), expected)
        plain = write(tmp_path / "plain.tif", planes[order])
        np.testing.assert_array_equal(read(fuse_raster(NAMED, plain, out, names=texts)), expected)
        files = [write(tmp_path / f"{name}.tif", planes[k : k + 1]) for k, name in enumerate(NAMES)]
        np.testing.assert_array_equal(read(fuse_raster(NAMED, files[::-1], out)), expected)

    def test_other_names_and_counts_are_refused(self, planes, scene, tmp_path):
        described = write(tmp_path / "described.tif", planes, ["red", "green", "blue"])
        message = (
            r"described.tif has 3 sources \(red, green, blue\), but the model has 3 sources \(thermal, red, edges\)"
        )
        with pytest.raises(InvalidInputError, match=message):
            fuse_raster(NAMED, described, tmp_path / "out.tif")
        fuse_raster(NAMED, described, tmp_path / "out.tif", names=NAMES)
        with pytest.raises(
            InvalidInputError, match=r"The 2 files together has 6 sources .*, but the model has 3 sources"
        ):
            fuse_raster(MEASURE, [scene, scene], tmp_path / "out.tif")
        with pytest.raises(InvalidInputError, match="source_names has 2 names for 3 sources"):
            fuse_raster(NAMED, scene, tmp_path / "out.tif", names=["a", "b"])

    @pytest.mark.parametrize("change", ["transform", "crs", "size"])
    def test_other_grids_are_refused_with_both_shown(self, planes, scene, tmp_path, change):
        g = BiCapacity.random(6, random_state=0)
        options = {
            "transform": {"transform": at(500_000, 5_000_000, 10, 9)},
            "crs": {"crs": "EPSG:32633"},
            "size": {},
        }[change]
        other = write(tmp_path / "other.tif", planes[:, :-1] if change == "size" else planes, **options)
        with pytest.raises(InvalidInputError) as refused:
            fuse_raster(g, [scene, other], tmp_path / "out.tif")
        text = str(refused.value)
        assert "420 x 300 pixels, CRS EPSG:32632, transform (10, 0, 500000, 0, -10, 5000000)" in text
        shown = {"transform": "0, -9, 5000000)", "crs": "EPSG:32633", "size": "420 x 299 pixels"}[change]
        assert shown in text
        assert "align=True" in text

    def test_rounded_transforms_are_the_same_grid(self, planes, tmp_path):
        one = write(tmp_path / "one.tif", planes[:2])
        near = write(tmp_path / "near.tif", planes[2:], transform=at(500_000.0001, 5_000_000, 10, 10))
        expected = choquet(list(planes), MEASURE)
        np.testing.assert_array_equal(read(fuse_raster(MEASURE, [one, near], tmp_path / "out.tif")), expected)

    @pytest.mark.parametrize("kind", ["nodata", "none", "integers"])
    def test_align_warps_to_the_first(self, tmp_path, kind):
        column, row = np.meshgrid(np.arange(40.0), np.arange(30.0))
        plane = ((column + row) / 80).astype(np.float32)
        first = write(tmp_path / "first.tif", [plane, plane])
        # Half the resolution, beginning two pixels further right: linear values are kept by bilinear warping.
        coarse = ((column[:15, :19] * 2 + 2.5 + row[:15, :19] * 2 + 0.5) / 80).astype(np.float32)
        options = {"transform": at(500_020, 5_000_000, 20, 20)}
        if kind == "nodata":
            options["nodata"] = -1.0
        if kind == "integers":
            coarse = np.zeros((15, 19), np.int16)
            plane = plane * 0 + 0
        second = write(tmp_path / "second.tif", [coarse], **options)
        out = read(fuse_raster(MeanFusion().fit(np.zeros((1, 3))), [first, second], tmp_path / "out.tif", align=True))
        outside = np.isnan(out) if kind != "nodata" else out == -1.0
        assert outside[:, :2].all()
        assert not outside[:, 3:].any()
        if kind != "integers":
            np.testing.assert_allclose(out[2:-2, 4:-3], plane[2:-2, 4:-3], atol=1e-5)

    def test_align_needs_a_crs(self, planes, scene, tmp_path):
        other = write(tmp_path / "other.tif", planes[:, :-1], crs=None)
        with pytest.raises(InvalidInputError, match=r"other.tif has no CRS"):
            fuse_raster(BiCapacity.random(6, random_state=0), [scene, other], tmp_path / "out.tif", align=True)


class TestRefused:
    def test_arguments(self, scene, tmp_path):
        out = tmp_path / "out.tif"
        for options, message in (
            ({"block": 100}, "block must be a positive multiple of 16, got 100"),
            ({"compress": "jpeg"}, "compress must be one of deflate, lzw, zstd, None, got 'jpeg'"),
            ({"n_jobs": 0}, "n_jobs must be"),
        ):
            with pytest.raises(InvalidInputError, match=message):
                fuse_raster(MEASURE, scene, out, **options)
        with pytest.raises(InvalidInputError, match=r"must end in \.tif or \.tiff"):
            fuse_raster(MEASURE, scene, tmp_path / "out.png")
        with pytest.raises(InvalidInputError, match=r"There is no folder .*nowhere"):
            fuse_raster(MEASURE, scene, tmp_path / "nowhere" / "out.tif")
        with pytest.raises(InvalidInputError, match="output is one of the sources"):
            fuse_raster(MEASURE, scene, scene)
        with pytest.raises(InvalidInputError, match="sources is empty"):
            fuse_raster(MEASURE, [], out)
        with pytest.raises(InvalidInputError, match="model must be a fitted method"):
            fuse_raster("model", scene, out)
        assert not out.exists()

    def test_files(self, planes, scene, tmp_path):
        with pytest.raises(InvalidInputError, match=r"Cannot read .*missing\.tif: .*No such file"):
            fuse_raster(MEASURE, tmp_path / "missing.tif", tmp_path / "out.tif")
        odd = write(tmp_path / "odd.tif", planes.astype(np.complex64))
        with pytest.raises(InvalidInputError, match="bands of type complex64"):
            fuse_raster(MEASURE, odd, tmp_path / "out.tif")
        cut = tmp_path / "cut.tif"
        cut.write_bytes(scene.read_bytes()[: scene.stat().st_size // 2])
        with pytest.raises(InvalidInputError, match=r"Cannot read .*cut\.tif: it is damaged"):
            fuse_raster(MEASURE, cut, tmp_path / "out.tif")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.tif", "odd.tif", "scene.tif"]

    def test_a_band_out_of_range_is_named(self, planes, tmp_path, small_windows):
        planes[1, 299, 419] = 1.5
        scene = write(tmp_path / "scene.tif", planes, NAMES)
        message = r"Source 'red' \(index 1\) reaches 1\.5; .* index 1 is band 2 of .*scene\.tif"
        with pytest.raises(InvalidInputError, match=message):
            fuse_raster(NAMED, scene, tmp_path / "out.tif", block=64, n_jobs=2)
        assert [path.name for path in tmp_path.iterdir()] == ["scene.tif"]


KILLED = """
import sys, threading
import numpy as np
from bimichi import MeanFusion
from bimichi.scale import fuse_raster, rasters

class Stuck(MeanFusion):
    windows = 0
    def fuse(self, X):
        type(self).windows += 1
        if self.windows > 3:
            print("halfway", flush=True)
            threading.Event().wait()
        return super().fuse(X)

rasters.WINDOW = 1
fuse_raster(Stuck(bipolar_input=True).fit(np.zeros((1, 3))), *sys.argv[1:], block=64, n_jobs=1)
"""


class TestFaults:
    @pytest.mark.slow
    def test_a_killed_run_leaves_nothing_that_looks_finished(self, scene, tmp_path, monkeypatch):
        folder = tmp_path / "out"
        folder.mkdir()
        out = folder / "fused.tif"
        monkeypatch.setattr(rasters, "WINDOW", 1)
        model = MeanFusion(bipolar_input=True).fit(np.zeros((1, 3)))
        expected = fuse_raster(model, scene, tmp_path / "whole.tif", block=64).read_bytes()
        script = KILLED.replace(
            "fuse_raster(Stuck", "from bimichi.scale import rasters; rasters.WINDOW = 1\nfuse_raster(Stuck"
        )
        with subprocess.Popen([sys.executable, "-c", script, scene, out], stdout=subprocess.PIPE, text=True) as run:
            try:
                assert run.stdout.readline() == "halfway\n"
                with pytest.raises(BimichiError, match="another run is writing it now"):
                    fuse_raster(model, scene, out, block=64)
            finally:
                run.send_signal(signal.SIGKILL)
        assert run.returncode == -signal.SIGKILL
        assert all(re.fullmatch(r"\.fused\.tif\.(lock|\w{16}\.part)", path.name) for path in folder.iterdir())
        assert fuse_raster(model, scene, out, block=64).read_bytes() == expected
        assert [path.name for path in folder.iterdir()] == ["fused.tif"]

    @pytest.mark.parametrize("when", ["writing", "syncing"])
    def test_a_full_disk_is_reported_and_the_old_file_stays(self, scene, tmp_path, monkeypatch, when):
        out = tmp_path / "out.tif"
        out.write_bytes(b"old")

        def full(*arguments, **named):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        if when == "writing":
            monkeypatch.setattr(geotiffs.GeoTiff, "_filled", full)
        else:
            monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(BimichiError, match=r"Cannot write .*out\.tif: No space left on device"):
            fuse_raster(MEASURE, scene, out)
        assert out.read_bytes() == b"old"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out.tif", "scene.tif"]

    @pytest.mark.parametrize("free", [0, 1 << 40])
    def test_what_gdal_cannot_write_is_reported(self, scene, tmp_path, monkeypatch, free):
        def fail(self, fused):
            raise rasterio.errors.RasterioIOError("Write failed.") from RuntimeError("error at scanline 3")

        monkeypatch.setattr(geotiffs.GeoTiff, "_filled", fail)
        monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": free}))
        reason = r"error at scanline 3\." if free else r"No space left on device \(error at scanline 3\)"
        with pytest.raises(BimichiError, match=rf"Cannot write .*out\.tif: {reason}"):
            fuse_raster(MEASURE, scene, tmp_path / "out.tif")
        assert [path.name for path in tmp_path.iterdir()] == ["scene.tif"]

    @pytest.mark.parametrize("overviews", [False, True])
    def test_a_tile_that_was_lost_in_silence_is_noticed(self, scene, tmp_path, overviews):
        out = fuse_raster(MEASURE, scene, tmp_path / "out.tif", block=64, overviews=overviews)
        geotiffs._check_whole(out)
        whole = out.read_bytes()
        out.write_bytes(whole[:-100])
        with pytest.raises(rasterio.errors.RasterioError, match="was not written"):
            geotiffs._check_whole(out)

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may mount a small disk")
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_on_a_disk_that_is_full(self, scene, tmp_path, n_jobs):
        disk = tmp_path / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True).returncode:
            pytest.skip("no disk can be mounted here")
        try:
            with pytest.raises(BimichiError, match="No space left on device"):
                fuse_raster(MEASURE, scene, disk / "out.tif", block=64, n_jobs=n_jobs)
            assert list(disk.iterdir()) == []
        finally:
            subprocess.run(["umount", disk], check=True)


class TestFrames:
    @pytest.fixture
    def frames(self, planes, tmp_path):
        found = {}
        for k in range(12):
            part = planes[:, 20 * k : 20 * k + 20, :40]
            found[f"frame {k:02}"] = [
                write(tmp_path / f"{k:02}_{name}.tif", [p]) for name, p in zip(NAMES, part, strict=True)
            ]
        return found

    def test_all_cores_one_result_a_frame(self, frames, planes, tmp_path):
        result = fuse_frames(MEASURE, frames, tmp_path / "new" / "out", n_jobs=3)
        assert [path.stem for path in result.done] == list(frames)
        assert result == FrameResults(done=result.done)
        for k, path in enumerate(result.done):
            np.testing.assert_array_equal(read(path), choquet(list(planes[:, 20 * k : 20 * k + 20, :40]), MEASURE))

    def test_one_corrupt_frame_is_reported_and_the_rest_done(self, frames, tmp_path):
        bad = Path(frames["frame 05"][1])
        bad.write_bytes(bad.read_bytes()[:500])
        Path(frames["frame 07"][0]).unlink()
        result = fuse_frames(MEASURE, frames, tmp_path / "out", n_jobs=2)
        assert list(result.failed) == ["frame 05", "frame 07"]
        assert "05_red.tif" in result.failed["frame 05"]
        assert "No such file" in result.failed["frame 07"]
        assert len(result.done) == 10
        assert sorted((tmp_path / "out").iterdir()) == sorted(result.done)
        assert str(result).startswith("10 done, 0 skipped, 2 failed\nframe 05: Cannot read")

    def test_resume_does_what_is_left_to_the_same_bytes(self, frames, tmp_path):
        whole = fuse_frames(MEASURE, frames, tmp_path / "whole").done
        out = tmp_path / "out"
        out.mkdir()
        (out / "frame 03.tif").write_bytes(b"done before")
        (out / ".frame 04.tif.lock").write_text(16 * "a")
        (out / f".frame 04.tif.{16 * 'a'}.part").write_bytes(b"left by a killed run")
        result = fuse_frames(MEASURE, frames, out, resume=True)
        assert result.skipped == [out / "frame 03.tif"]
        assert len(result.done) == 11
        assert (out / "frame 03.tif").read_bytes() == b"done before"
        assert sorted(path.name for path in out.iterdir()) == [f"{name}.tif" for name in frames]
        for path in whole:
            assert path.stem == "frame 03" or (out / path.name).read_bytes() == path.read_bytes()
        assert len(fuse_frames(MEASURE, frames, out).done) == 12
        assert (out / "frame 03.tif").read_bytes() == whole[3].read_bytes()

    def test_frames_of_a_sequence_are_named_by_their_first_file(self, frames, tmp_path):
        result = fuse_frames(MEASURE, list(frames.values())[:2], tmp_path / "out")
        assert [path.name for path in result.done] == ["00_thermal.tif", "01_thermal.tif"]

    def test_a_bar_counts_frames(self, frames, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        fuse_frames(MEASURE, frames, tmp_path / "out", verbose=1)
        assert "12/12" in capsys.readouterr().err

    def test_stopped_by_hand_begins_no_other_frame(self, frames, tmp_path, monkeypatch):
        begun, stopped = [], threading.Event()
        shutdown = ThreadPoolExecutor.shutdown

        def slow(model, sources, output, **options):
            begun.append(output)
            if len(begun) > 1:
                stopped.wait()

        def stop(steps, value):
            raise KeyboardInterrupt

        def cancel(self, wait=True, **options):
            shutdown(self, wait=False, **options)
            stopped.set()
            shutdown(self)

        monkeypatch.setattr("bimichi.scale.frames.fuse_raster", slow)
        monkeypatch.setattr("bimichi.scale.frames.progress_bar", lambda *_: nullcontext(stop))
        monkeypatch.setattr(ThreadPoolExecutor, "shutdown", cancel)
        with pytest.raises(KeyboardInterrupt):
            fuse_frames(MEASURE, frames, tmp_path / "out", n_jobs=1)
        assert len(begun) <= 2

    def test_refused(self, frames, tmp_path):
        files = frames["frame 00"]
        with pytest.raises(InvalidInputError, match="frames is empty"):
            fuse_frames(MEASURE, {}, tmp_path)
        with pytest.raises(InvalidInputError, match=r"got the single path a\.tif"):
            fuse_frames(MEASURE, "a.tif", tmp_path)
        with pytest.raises(InvalidInputError, match="2 frames would be named '00_thermal'"):
            fuse_frames(MEASURE, [files, files], tmp_path)
        with pytest.raises(InvalidInputError, match=r"without folder, got '\.\./x'"):
            fuse_frames(MEASURE, {"../x": files}, tmp_path)
        with pytest.raises(InvalidInputError, match=r"output_folder cannot be .*00_thermal\.tif: File exists"):
            fuse_frames(MEASURE, frames, files[0])
        with pytest.raises(ValueError, match="not fitted"):
            fuse_frames(MeanFusion(), frames, tmp_path)


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(ImportError, match=r"needs rasterio; install it with: pip install 'bimichi\[raster\]'"):
        fuse_raster(MEASURE, "a.tif", "b.tif")
