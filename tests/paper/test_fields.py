"""Experiments in other fields: fusion beats the best source, and what they write can be learned from by the program."""

import json
import shlex
import shutil

import numpy as np
import pytest
from program import run
from refusals import refused

from bimichi import BiMIChI, compare, paper as experiments
from bimichi.datasets import flood
from bimichi.methods import SignedSource
from bimichi.paper import run_field
from bimichi.paper.fields import AUTO, BOOSTING, FIELDS

pytestmark = pytest.mark.filterwarnings("ignore:The slope of the log-odds has reached")  # scenes are small

SLOW = (AUTO, BOOSTING, "MICI min-max", "CI-QP", "bi-capacity QP", "Bi-MIChI (objective 1), polarity learned")
SMALL = {
    "flood": {"height": 80, "width": 80, "n_segments": 50},
    "lesions": {"height": 110, "width": 92, "n_segments": 90},
}


@pytest.fixture(scope="module", params=list(FIELDS))
def result(request):
    return run_field(request.param, 2, 2, leave_out=SLOW, **SMALL[request.param])


def test_fusion_beats_the_best_source_on_scenes_not_seen(result):
    best, source = result.best_fusion(), result.best_source()
    assert best.mean("average_precision") > source.mean("average_precision")
    assert source.name in result.verdict()
    assert best.model.needs == "bags"
    assert not any(one.problem for one in result.comparison.results)
    assert set(result.train).isdisjoint(scene.name for scene in result.test)


@pytest.fixture(scope="module")
def folder(result, tmp_path_factory):
    """What the command writes."""
    out = tmp_path_factory.mktemp(result.field)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments, "run_field", lambda *args: result)
        shown = run("reproduce", result.field, "--train", 2, "--test", 2, "-o", out)
    assert shown.exit_code == 0, shown.output
    assert "best single source" in " ".join(shown.output.split())
    return out


def test_reproduce_writes_all_of_it(result, folder):
    names = {path.name for path in folder.iterdir()}
    expected = {"images", "scene.png", "maps.png", "report.html", "table.tex", "results.md", "results.json", "run.json"}
    assert names == expected
    data = json.loads((folder / "results.json").read_text())
    assert data["experiment"] == result.field
    assert len(data["methods"]["mean"]["scores"]) == 2
    text = (folder / "results.md").read_text()
    assert result.verdict() in text
    assert FIELDS[result.field].commands in text


def test_the_commands_learn_from_the_written_files(result, folder, monkeypatch):
    monkeypatch.chdir(folder)
    train, fuse, report = FIELDS[result.field].commands.splitlines()
    shown = run(*shlex.split(train)[1:], "--objective", "mean", "--superpixels", 60, "--quiet")
    assert shown.exit_code == 0, shown.output
    shown = run(*shlex.split(fuse)[1:])
    assert shown.exit_code == 0, shown.output
    assert len(list((folder / "fused").glob("*.tif"))) == 4
    shown = run(*shlex.split(report)[1:])
    assert shown.exit_code == 0, shown.output
    for name in ("fused", "reports", "model.json", "model.json.run.json"):
        made = folder / name
        shutil.rmtree(made) if made.is_dir() else made.unlink()


def test_bad_arguments():
    with refused("choice:field"):
        run_field("fire")
    with refused("whole-number:n_train"):
        run_field("flood", 0)


def test_comparisons_leave_out_pixels_without_data():
    scenes = [flood(96, 96, random_state=k, n_segments=40) for k in range(2)]
    holes = [scene.__class__(**(vars(scene) | {"ignore": None})) for scene in scenes]
    methods = {"source": SignedSource(source=2), "mean": BiMIChI("mean", random_state=0)}
    known, unknown = (compare(methods, some, n_jobs=1) for some in (scenes, holes))
    for name in methods:
        assert not unknown[name].problem
        np.testing.assert_allclose(unknown[name].scores, known[name].scores)
