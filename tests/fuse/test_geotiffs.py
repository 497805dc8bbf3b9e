"""Whole files only, whatever ends a run."""

import errno
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
import rasterio
from rasters import MEASURE
from refusals import refused

from bimichi import BimichiError, MeanFusion
from bimichi.fuse import fuse_raster, rasters, rasters as geotiffs

KILLED = """
import sys, threading
import numpy as np
from bimichi import MeanFusion
from bimichi.fuse import fuse_raster, rasters

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
        with subprocess.Popen([sys.executable, "-c", KILLED, scene, out], stdout=subprocess.PIPE, text=True) as run:
            try:
                assert run.stdout.readline() == "halfway\n"
                with refused("output-busy", kind=BimichiError):
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
        with refused("output-unwritable", "out.tif", kind=BimichiError):
            fuse_raster(MEASURE, scene, out)
        assert out.read_bytes() == b"old"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out.tif", "scene.tif"]

    @pytest.mark.parametrize("free", [0, 1 << 40])
    def test_what_gdal_cannot_write_is_reported(self, scene, tmp_path, monkeypatch, free):
        def fail(self, fused):
            raise rasterio.errors.RasterioIOError("Write failed.") from RuntimeError("error at scanline 3")

        monkeypatch.setattr(geotiffs.GeoTiff, "_filled", fail)
        monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": free}))
        reason = "error at scanline 3" if free else "No space left on device (error at scanline 3)"
        with refused("output-unwritable", "out.tif", reason, kind=BimichiError):
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
            with refused("output-unwritable", kind=BimichiError):
                fuse_raster(MEASURE, scene, disk / "out.tif", block=64, n_jobs=n_jobs)
            assert list(disk.iterdir()) == []
        finally:
            subprocess.run(["umount", disk], check=True)
