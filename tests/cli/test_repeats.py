import json
from pathlib import Path

import pytest
from program import run

from bimichi.evaluation.methods import candidates


@pytest.mark.slow
def test_a_study_of_several_draws(here, monkeypatch):
    def few(names, which, seed, n_jobs):
        wanted = ("source", "mean, 1-additive, polarity given", "auto")
        return [row for row in candidates(names, "all", seed, n_jobs) if any(word in row.name for word in wanted)]

    monkeypatch.setattr("bimichi.evaluation.study.candidates", few)
    common = ("--street", "--train", 3, "--test", 1, "--sources", 3, "--repeats", 2, "-o", "out")
    done = json.loads(run("study", *common, "--json").stdout)
    assert [draw["setting"]["seed"] for draw in done["draws"]] == [0, 1]
    table = Path("out/repeats.md").read_text()
    assert "Study of 2 draws" in table
    assert "Bi-MIChI auto" in table
    assert "±" in table
    assert {path.name for path in Path("out").iterdir()} == {"draw-0", "draw-1", "repeats.md", "repeats.json"}
    again = run("study", *common, "--resume").stdout
    assert "Bi-MIChI auto" in again
