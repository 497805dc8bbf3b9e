"""`bimichi study --repeats`: several draws of scenes, their spread, and how they go on."""

import json
from pathlib import Path

from program import run
from samples import SMALL

from bimichi.datasets import street
from bimichi.methods.registry import candidates

LEARNED = "Bi-MIChI mean, 1-additive, polarity given"


def test_a_study_of_several_draws(here, monkeypatch):
    def few(*given):
        return [row for row in candidates(*given) if row.kind == "source" or row.name == LEARNED]

    monkeypatch.setattr("bimichi.evaluate.study.candidates", few)
    monkeypatch.setattr("bimichi.evaluate.study.street", lambda *size, **options: street(**options | SMALL))
    common = ("--street", "--train", 3, "--test", 1, "--sources", 3, "--repeats", 2, "-o", "out")
    done = json.loads(run("study", *common, "--json").stdout)
    assert [draw["setting"]["seed"] for draw in done["draws"]] == [0, 1]
    table = Path("out/repeats.md").read_text()
    assert "Study of 2 draws" in table
    assert LEARNED in table
    assert "±" in table
    assert {path.name for path in Path("out").iterdir()} == {"draw-0", "draw-1", "repeats.md", "repeats.json"}
    again = run("study", *common, "--resume").stdout
    assert LEARNED in again
