"""Slips that users make: each ends in a message that names the remedy, and the remedies that are tried work."""

import contextlib
import re
import shlex
import shutil
import warnings
from pathlib import Path

import pytest
from program import make_scenes, run
from slips import SLIPS
from slips.commands import FUSE, TRAIN
from slips.files import H, W, X, Y, boxes
from typer.testing import CliRunner

from bimichi.cli.app import app

LONGEST = 2_000


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A folder with scenes and a model."""
    with contextlib.chdir(tmp_path_factory.mktemp("start")):
        make_scenes()
        run(*shlex.split(TRAIN.replace("m.json", "model.json")))
        return Path.cwd()


def call(command):
    """Call the program; returns the exit code and the message, without frames and line breaks."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        done = CliRunner().invoke(app, shlex.split(command))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done.exit_code, re.sub(r"[\s│╭╮╰╯─]+", " ", done.stderr)


def test_there_are_enough():
    assert len({slip.name for slip in SLIPS}) == len(SLIPS) > 100
    assert sum(bool(slip.remedy) for slip in SLIPS) > 50


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.name)
def test_slip(slip, start, tmp_path, monkeypatch):
    here = shutil.copytree(start, tmp_path / "night")
    monkeypatch.chdir(here)
    slip.make()
    code, message = call(slip.command)
    assert code in (1, 2) or "Warning: " in message, f"accepted silently: {message}"
    assert len(message) <= LONGEST
    assert [part for part in slip.says if part not in message] == [], message
    if code:
        assert not Path("m.json").exists()
        assert not Path("f.tif").exists()
    if slip.remedy:
        slip.mend()
        code, after = call(slip.remedy)
        assert code == 0, after
        assert "Warning: " not in after


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
def test_encodings_of_spreadsheets_are_read(start, tmp_path, monkeypatch, encoding):
    monkeypatch.chdir(shutil.copytree(start, tmp_path / "night"))
    boxes(f"{X},{Y},{W},{H},Fußgänger", header="x,y,w,h,label", encoding=encoding)()
    assert call(f"{TRAIN} --target Fußgänger")[0] == 0


def test_folders_of_outputs_are_made(start, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(start, tmp_path / "night"))
    assert call(FUSE.replace("f.tif", "new/folder/f.tif")) == (0, "Wrote new/folder/f.tif. ")
