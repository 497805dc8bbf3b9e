"""`bimichi draw`: files that the other commands take as a user's own."""

from pathlib import Path

import numpy as np
import pytest
from program import run

from bimichi.datasets import street
from bimichi.imaging import read_image


def test_a_drawn_folder_can_be_learned_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("draw", "street", "-o", "street", "--scenes", "2", "--seed", "3", "--size", "128x96")
    scene = street(96, 128, random_state=3)
    np.testing.assert_array_equal(read_image("street/thermal/street-3.png"), scene.thermal)
    np.testing.assert_array_equal(read_image("street/truth/street-3.png") > 0, scene.truth)
    run("train", "--project", "street", "--objective", "logistic", "--additivity", "1", "-o", "model.json")
    run("fuse", "model.json", "--project", "street", "-o", "fused")
    assert sorted(path.name for path in Path("fused").glob("*.tif")) == ["street-3.tif", "street-4.tif"]


def test_an_odd_size_is_refused(tmp_path: Path) -> None:
    found = run("draw", "street", "-o", str(tmp_path / "out"), "--size", "wide", code=2)
    assert "320x240" in found.stderr
