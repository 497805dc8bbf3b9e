"""Which files and bands are fused, on which grid, and what is refused."""

import sys

import numpy as np
import pytest
from rasters import MEASURE, NAMED, NAMES, at, read, write
from refusals import refused

from bimichi import BiCapacity, MeanFusion, choquet
from bimichi.fuse import fuse_raster


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
        message = "sources-number"
        with refused(message):
            fuse_raster(NAMED, described, tmp_path / "out.tif")
        fuse_raster(NAMED, described, tmp_path / "out.tif", names=NAMES)
        with refused("sources-number"):
            fuse_raster(MEASURE, [scene, scene], tmp_path / "out.tif")
        with refused("names-number:source_names"):
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
        with refused("grids-differ") as raised:
            fuse_raster(g, [scene, other], tmp_path / "out.tif")
        text = str(raised.value)
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
        with refused("align-crs", "other.tif"):
            fuse_raster(BiCapacity.random(6, random_state=0), [scene, other], tmp_path / "out.tif", align=True)


class TestRefused:
    def test_arguments(self, scene, tmp_path):
        out = tmp_path / "out.tif"
        for options, message in (
            ({"block": 100}, "block-size:block"),
            ({"compress": "jpeg"}, "choice:compress"),
            ({"n_jobs": 0}, "n-jobs:n_jobs"),
        ):
            with refused(message):
                fuse_raster(MEASURE, scene, out, **options)
        with refused("output-suffix"):
            fuse_raster(MEASURE, scene, tmp_path / "out.png")
        with refused("folder-missing"):
            fuse_raster(MEASURE, scene, tmp_path / "nowhere" / "out.tif")
        with refused("output-is-input:output"):
            fuse_raster(MEASURE, scene, scene)
        with refused("sources-empty:sources"):
            fuse_raster(MEASURE, [], out)
        with refused("model-kind:model"):
            fuse_raster("model", scene, out)
        assert not out.exists()

    def test_files(self, planes, scene, tmp_path):
        with refused("file-unreadable", "missing.tif"):
            fuse_raster(MEASURE, tmp_path / "missing.tif", tmp_path / "out.tif")
        odd = write(tmp_path / "odd.tif", planes.astype(np.complex64))
        with refused("source-type"):
            fuse_raster(MEASURE, odd, tmp_path / "out.tif")
        cut = tmp_path / "cut.tif"
        cut.write_bytes(scene.read_bytes()[: scene.stat().st_size // 2])
        with refused("image-damaged", "cut.tif"):
            fuse_raster(MEASURE, cut, tmp_path / "out.tif")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.tif", "odd.tif", "scene.tif"]

    def test_a_band_out_of_range_is_named(self, planes, tmp_path, small_windows):
        planes[1, 299, 419] = 1.5
        scene = write(tmp_path / "scene.tif", planes, NAMES)
        message = "source-range"
        with refused(message):
            fuse_raster(NAMED, scene, tmp_path / "out.tif", block=64, n_jobs=2)
        assert [path.name for path in tmp_path.iterdir()] == ["scene.tif"]


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(ImportError, match=r"needs rasterio; install it with: pip install 'bimichi\[raster\]'"):
        fuse_raster(MEASURE, "a.tif", "b.tif")
