"""The settings of the paper under one name: its sources, its search, its rows, and which rows are marked."""

import numpy as np
from refusals import refused

from bimichi import BiMIChI, EvolutionarySolver, KNNFusion, paper_methods
from bimichi.datasets import street
from bimichi.datasets.public import pedestrian_sources
from bimichi.evaluate.study import street_scenes
from bimichi.fit.solvers import get_solver, solver_from_record, solver_record
from bimichi.paper import run_pedestrian
from bimichi.paper.figures import PEDESTRIAN

SMALL = {"height": 80, "width": 96, "n_segments": 40}


def test_sources_of_the_paper_are_brighter_and_mark_less_as_bright():
    scene = street(240, 320, random_state=0)
    ours, names = pedestrian_sources(scene.rgb, scene.thermal)
    printed, same = pedestrian_sources(scene.rgb, scene.thermal, preset="paper")
    assert names == same
    assert 0.01 < (printed[0] < 0).mean() < 0.1 < (ours[0] < 0).mean()
    np.testing.assert_array_equal(printed[1], ours[1])
    assert (printed[2] >= ours[2] - 1e-6).all()
    np.testing.assert_array_equal(street(random_state=0, **SMALL).sources, street(random_state=0, **SMALL).sources)
    made = street_scenes([0], preset="paper", **SMALL)[0]
    np.testing.assert_array_equal(made.sources, street(random_state=0, preset="paper", **SMALL).sources)
    with refused("choice:preset"):
        pedestrian_sources(scene.rgb, scene.thermal, preset="papers")


def test_presets_of_the_search():
    paper, literal = EvolutionarySolver.preset("paper"), EvolutionarySolver.preset("literal", max_iter=9)
    assert (paper.element_choice, paper.sampling, paper.patience) == ("touched", "breadth-first", 500)
    assert (literal.patience, literal.max_iter) == (1, 9)
    assert EvolutionarySolver.preset("default") == EvolutionarySolver()
    assert get_solver("paper") == paper
    assert solver_from_record(*solver_record(get_solver("literal"))) == EvolutionarySolver.preset("literal")
    with refused("choice:name"):
        EvolutionarySolver.preset("fast")
    with refused("solver-unknown:solver"):
        get_solver("fast")


def test_rows_of_the_paper():
    rows = paper_methods(["1", "2", "3"], preset="paper")
    assert list(rows) == ["empty map", *list(PEDESTRIAN)[:8], "KNN, k = 5", *list(PEDESTRIAN)[8:]]
    assert isinstance(rows["KNN, k = 5"], KNNFusion)
    assert rows["KNN, k = 5"].n_neighbors == 5
    assert all(one.solver == get_solver("paper") for one in rows.values() if isinstance(one, BiMIChI))
    with refused("choice:preset"):
        paper_methods(["1"], preset="ours")


def test_only_methods_of_the_paper_are_marked():
    scene = street(80, 96, n_people=2, random_state=0, n_segments=40)
    slow = ("KNN", "SVM", "MICI noisy-or", "MICI generalised mean", "MICI min-max", "Bi-MIChI auto")
    table = run_pedestrian(scene, leave_out=slow).table()
    rows = {row[0].text: row for row in table.rows}
    marked = {name for name, row in rows.items() if any(cell.bold or cell.underlined for cell in row)}
    printed = {"CI-QP", "MICI-BFM", "Bi-MIChI (objective 1)", "Bi-MIChI (objective 2)"}
    assert marked <= printed
    for column in (title for title in ("AUC", "RMSE", "AP") if title in table.header):
        k = list(table.header).index(column)
        best = [float(rows[name][k].text) for name in printed if rows[name][k].bold]
        assert best == [(min if column == "RMSE" else max)(float(rows[name][k].text) for name in printed)] * len(best)
        assert best
