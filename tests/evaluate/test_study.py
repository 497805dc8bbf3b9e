"""Studies: every row, its scores, and how they go on."""

import json
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from threadpoolctl import threadpool_limits

from bimichi import BiMIChI
from bimichi.evaluate import study, study as split
from bimichi.evaluate.metrics import scores
from bimichi.evaluate.study import file_name, write_json
from bimichi.methods import GradientBoosting, SignedSource
from bimichi.methods.base import Fusion
from bimichi.methods.registry import Candidate, candidates
from bimichi.paper import StudyResult, run_study, split_scenes
from bimichi.rule import FusionRule
from bimichi.scenes.dataset import Dataset

pytestmark = pytest.mark.filterwarnings("ignore:The slope of the log-odds has reached")  # streets are small


@pytest.fixture(scope="module")
def studied(streets, tmp_path_factory):
    """A study with all rows: its result, its folder, and what it said meanwhile."""
    folder, lines = tmp_path_factory.mktemp("study"), []
    with threadpool_limits(1, user_api="openmp"):
        result = run_study(streets[:2], streets[2:], folder=folder, progress=lines.append)
    return result, folder, lines


def test_study_has_every_row(studied, streets):
    result, folder, lines = studied
    names = [row.name for row in result.rows]
    assert names[0] == "empty map"
    assert sum(name.startswith("source") for name in names) == 6
    assert {"gradient boosting, bag labels", "gradient boosting, pixel labels", "CI-QP, pixel labels"} < set(names)
    assert sum(name.startswith("Bi-MIChI") for name in names) == 22
    assert not any(row.problem for row in result.rows)
    for scene in streets[2:]:
        assert sum(scene.name in line for line in lines) == len(names)  # a line for each method and scene
    models = {path.stem for path in folder.iterdir()} - {"results"}
    assert models == {file_name(name) for name in names if name.startswith(("Bi-MIChI", "CI-QP", "bi-capacity QP"))}
    assert FusionRule.load(folder / "CI-QP-pixel-labels.json").training.method == "ChoquetQP"
    assert BiMIChI.load(folder / "Bi-MIChI-mean-polarity-learned.json").objective == "mean"


def test_study_scores_are_those_of_the_maps(studied, streets):
    result, _, _ = studied
    test = streets[2:]
    expected = [scores(scene.truth, -scene.sources[..., 1], (-1, 1)) for scene in test]
    row = result["source equalised grey, inverted"]
    assert [row.scores[scene.name] for scene in test] == expected
    assert row.mean("auc") == pytest.approx(np.mean([one.auc for one in expected]))
    assert row.worst_auc == min(one.auc for one in expected)
    assert result["empty map"].mean("auc") == 0.5
    with pytest.raises(KeyError, match="no row 'nothing'; there are empty map"):
        result["nothing"]


def test_study_table_and_verdict(studied):
    result, folder, _ = studied
    table = result.table()
    bold = [(row[0].text, row[1].text) for row in table.rows if any(cell.bold for cell in row)]
    assert bold
    assert all(labels == "bags" for _, labels in bold)
    own = max((row for row in result.rows if row.kind == "bi-michi"), key=lambda row: row.mean("auc"))
    assert own.name in result.verdict()
    assert "gradient boosting, bag labels" in result.verdict()
    assert (folder / "results.md").read_text() == result.to_markdown() + "\n"
    assert StudyResult({}).verdict() == ""


def test_study_goes_on_where_it_was_stopped(studied, streets, tmp_path, few_rows):
    whole, _, _ = studied
    own = [whole[name] for name in few_rows]

    def stop(line):
        if line.startswith(f"{own[2].name}: learned"):
            raise KeyboardInterrupt

    options = {"rows": "bi-michi", "folder": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        run_study(streets[:2], streets[2:], progress=stop, **options)
    assert len(json.loads((tmp_path / "results.json").read_text())["rows"]) == 2
    with refused("study-exists"):
        run_study(streets[:2], streets[2:], **options)
    lines = []
    result = run_study(streets[:2], streets[2:], resume=True, progress=lines.append, **options)
    assert [line for line in lines if line.endswith("done before")] == [f"{row.name}: done before" for row in own[:2]]
    assert [(row.name, row.scores, row.inverted) for row in result.rows] == [
        (row.name, row.scores, row.inverted) for row in own
    ]
    assert StudyResult.from_dict(json.loads((tmp_path / "results.json").read_text())) == result


def test_study_resumes_results_that_were_written(studied, streets, tmp_path):
    whole, _, _ = studied
    write_json(tmp_path / "results.json", whole.to_dict())
    lines = []
    result = run_study(streets[:2], streets[2:], folder=tmp_path, resume=True, progress=lines.append)
    assert result == whole
    assert lines == [f"{row.name}: done before" for row in whole.rows]


@pytest.mark.parametrize("room", [0, 1 << 30])
def test_study_of_scenes_that_are_read_when_needed(streets, monkeypatch, few_rows, room):
    monkeypatch.setattr(split, "KEPT", room)
    read = []
    scenes = Dataset([one.name for one in streets], lambda name: read.append(name) or streets[int(name[-1])])
    train, test = split_scenes(scenes, 2, 2)
    assert len(read) == 4
    one, two = (run_study(list(train), list(test), rows="bi-michi"), run_study(train, test, rows="bi-michi"))
    assert (len(read) == 4) == (room > 0)
    assert [row.scores for row in one.rows] == [row.scores for row in two.rows]
    assert one.setting == two.setting
    assert [row.name for row in one.rows] == few_rows


def test_study_resumes_only_itself(studied, streets, tmp_path):
    _, folder, _ = studied
    with refused("study-differs"):
        run_study(streets[:2], streets[2:], seed=1, folder=folder, resume=True)
    with refused("study-differs"):
        run_study(streets[:2], streets[3:], folder=folder, resume=True)
    with refused("resume-folder"):
        run_study(streets[:2], streets[2:], resume=True)
    (tmp_path / "results.json").write_text('{"rows": 3}')
    with refused("study-unreadable"):
        run_study(streets[:2], streets[2:], folder=tmp_path, resume=True)
    with refused("truth-one-class", "'street-2'"):
        run_study(streets[:2], [replace(streets[2], truth=None)])


class Broken(Fusion):
    def fit(self, X, y=None, bags=None):
        raise RuntimeError("out of order")

    def fuse(self, X):
        return X[..., 0]


def test_a_broken_method_stops_no_other(streets, monkeypatch):
    rows = [Candidate("broken", "pixels", "pixels", Broken()), Candidate("sound", "source", "none", SignedSource(2))]
    monkeypatch.setattr(study, "candidates", lambda *_: rows)
    result = run_study(streets[:1], streets[1:2])
    assert result["broken"].problem == "failed: RuntimeError: out of order"
    assert np.isnan(result["broken"].mean("auc"))
    assert result["sound"].scores
    assert "failed: RuntimeError: out of order" in result.to_markdown()


def test_candidates_can_be_chosen():
    own = candidates(["a", "b"], "bi-michi")
    assert {row.kind for row in own} == {"bi-michi"}
    assert [row.name for row in own] == [row.name for row in candidates(["a", "b"])[-len(own) :]]
    with refused("choice:which"):
        candidates(["a"], "best")


def test_boosting_learns_and_keeps_shapes(streets):
    scene = streets[0]
    rows, y = scene.sources.reshape(-1, 3), scene.truth.ravel()
    with threadpool_limits(1, user_api="openmp"):
        model = GradientBoosting().fit(rows[::2], y[::2])
    fused = model.fuse(scene.sources)
    assert fused.shape == scene.shape
    np.testing.assert_array_equal(fused.ravel(), model.classifier_.predict_proba(rows)[:, 1].astype(np.float32))
    assert scores(scene.truth, fused, model.output_range).auc > 0.9
