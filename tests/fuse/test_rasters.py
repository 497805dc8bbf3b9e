"""Rasters in windows: the same numbers as in memory, where they belong."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import rasterio
from methods import METHODS, fitted
from rasterio.control import GroundControlPoint
from rasterio.enums import ColorInterp
from rasters import GRID, MEASURE, NAMED, NAMES, read, write
from refusals import refused

from bimichi import BiMIChI, FusionRule, MeanFusion, choquet
from bimichi.fuse import fuse_raster, rasters, rasters as geotiffs
from bimichi.io import raster as raster_layers
from bimichi.sources import RECIPES


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
        sources = [RECIPES[recipe].function(image) for recipe, image in zip(recipes, images, strict=True)]
        found = read(fuse_raster(rule, files[::-1], tmp_path / "out.tif"))
        np.testing.assert_array_equal(found, rule.fuse(sources))
        with refused("recipe-unknown", "'soup'"):
            fuse_raster(replace(rule, recipes=("soup",) * 3), files, tmp_path / "out.tif")

    def test_recipes_that_need_the_whole_image_see_it(self, planes, tmp_path, small_windows):
        images = (planes * 100 + 120).astype(np.uint8)
        images[0, 5, 6] = 0
        files = [write(tmp_path / f"{name}.tif", [image], nodata=0) for name, image in zip(NAMES, images, strict=True)]
        recipes = ("edge_strength", "to_bipolar", "equalize")
        rule = FusionRule(NAMED, recipes=recipes)
        floats = np.where(images == 0, np.nan, images / np.float32(255))
        sources = [RECIPES[recipe].function(image) for recipe, image in zip(recipes, floats, strict=True)]
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
        with refused("source-range", "25", "in.png"):
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
