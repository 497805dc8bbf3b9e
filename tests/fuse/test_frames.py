"""Frames in bulk: one result each, whatever happens to another."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from rasters import MEASURE, NAMES, read, write
from refusals import refused

from bimichi import MeanFusion, choquet
from bimichi.fuse import FrameResults, fuse_frames


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

        monkeypatch.setattr("bimichi.fuse.frames.fuse_raster", slow)
        monkeypatch.setattr("bimichi.fuse.frames.progress_bar", lambda *_: nullcontext(stop))
        monkeypatch.setattr(ThreadPoolExecutor, "shutdown", cancel)
        with pytest.raises(KeyboardInterrupt):
            fuse_frames(MEASURE, frames, tmp_path / "out", n_jobs=1)
        assert len(begun) <= 2

    def test_refused(self, frames, tmp_path):
        files = frames["frame 00"]
        with refused("frames-empty:frames"):
            fuse_frames(MEASURE, {}, tmp_path)
        with refused("frames-single", "a.tif"):
            fuse_frames(MEASURE, "a.tif", tmp_path)
        with refused("frames-names", "'00_thermal'"):
            fuse_frames(MEASURE, [files, files], tmp_path)
        with refused("frame-name", "'../x'"):
            fuse_frames(MEASURE, {"../x": files}, tmp_path)
        with refused("output-folder-unusable:output_folder"):
            fuse_frames(MEASURE, frames, files[0])
        with refused("not-fitted"):
            fuse_frames(MeanFusion(), frames, tmp_path)
