import sys

import numpy as np
from um import um

from bimichi import EvolutionarySolver
from bimichi._progress import progress_bar
from bimichi.fit.objectives import OBJECTIVES
from bimichi.fit.problem import InMemory


def test_nothing_is_drawn_unless_asked_for_on_a_terminal(capsys):
    for verbose in (0, 1):
        with progress_bar("evolving", 10, verbose) as advance:
            advance(5, 1.25)
    assert capsys.readouterr().err == ""


def test_a_bar_is_drawn_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    problem = InMemory(um()[0], OBJECTIVES["bipolar"])
    EvolutionarySolver(max_iter=50).solve(problem, np.random.default_rng(0), verbose=1)
    drawn = capsys.readouterr().err
    assert "evolving" in drawn
    assert "50/50" in drawn
    assert "J =" in drawn
