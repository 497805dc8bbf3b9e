"""`bimichi draw`: files that the other commands take as a user's own."""

import json
from pathlib import Path

import numpy as np
import pytest
from program import run

from bimichi.datasets import street
from bimichi.io import read_image
from bimichi.io.check import separation
from bimichi.scenes import scene_labels
from bimichi.sources import vertical_edges


def test_a_drawn_folder_can_be_learned_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("draw", "street", "-o", "street", "--scenes", "2", "--seed", "3", "--size", "128x96")
    scene = street(96, 128, random_state=3)
    np.testing.assert_array_equal(read_image("street/thermal/street-3.png"), scene.thermal)
    np.testing.assert_array_equal(read_image("street/truth/street-3.png") > 0, scene.truth)
    run("train", "--project", "street", "--objective", "logistic", "--additivity", "1", "-o", "model.json")
    run("fuse", "model.json", "--project", "street", "-o", "fused")
    assert sorted(path.name for path in Path("fused").glob("*.tif")) == ["street-3.tif", "street-4.tif"]


@pytest.mark.parametrize(("kind", "size"), [("flood", "96x80"), ("lesions", "80x96")])
def test_other_fields_can_be_learned_from(
    kind: str, size: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run("draw", kind, "-o", kind, "--scenes", "2", "--size", size)
    how = ("--objective", "logistic", "--additivity", "1", "--bags", "boxes")
    run("train", "--project", kind, *how, "-o", "model.json")
    run("fuse", "model.json", "--project", kind, "-o", "fused")
    truth = {"flood": lambda mask: mask == 1, "lesions": lambda mask: mask > 0}[kind]
    fused, mask = (read_image(next(Path(folder).glob(f"{kind}-0.*"))) for folder in ("fused", f"{kind}/truth"))
    assert separation(fused.astype(float), np.where(truth(mask), 2, -1).astype(np.int8)) > 0.9


def test_an_odd_size_is_refused(tmp_path: Path) -> None:
    found = run("draw", "street", "-o", str(tmp_path / "out"), "--size", "wide", code=2)
    assert "320x240" in found.stderr


def test_two_recipes_of_one_image_are_no_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("draw", "street", "-o", "street", "--scenes", "1", "--size", "128x96")
    found = json.loads(run("check", "--project", "street", "--json").stdout)
    scene = street(96, 128, random_state=0)
    assert not any(pair["duplicate"] for pair in found["pairs"])
    assert not any("copy" in line for line in found["warnings"])
    assert found["train"]["polarity"] == "learn"
    edges = separation(vertical_edges(scene.thermal).astype(float), scene_labels(scene))
    assert found["sources"][2]["auc"] == pytest.approx(edges)
