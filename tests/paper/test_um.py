"""The UM experiment: what it reaches, shows and writes."""

import json

import numpy as np
import pytest
from refusals import refused

from bimichi.datasets import um
from bimichi.paper import run_um


@pytest.fixture(scope="module")
def letters():
    return run_um()


def test_um_reaches_the_closed_form(letters):
    best = letters.optimum
    exact, evolved = (letters.run("bipolar", solver) for solver in ("convex", "evolutionary"))
    assert exact.model.objective_value_ == pytest.approx(best.objective_value, abs=1e-6)
    assert exact.model.bicapacity_[(0, 1), (2,)] == pytest.approx(1, abs=1e-6)
    assert exact.model.bicapacity_[(1, 2), (0,)] == pytest.approx(best.background, abs=1e-5)
    assert best.objective_value <= evolved.model.objective_value_ < best.objective_value + 0.01
    for solver in ("convex", "evolutionary"):
        found = letters.run("magnitude", solver)
        assert found.model.objective_value_ == pytest.approx(0, abs=1e-3)
        assert found.scores.auc == 1
        assert found.scores.rmse == pytest.approx(0, abs=0.02)
        np.testing.assert_array_equal(found.fused, np.abs(found.integral))


def test_um_table_has_the_paper_beside_it(letters):
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in letters.table().rows}
    assert len(rows) == 10
    literal = letters.run("bipolar", "literal").model
    assert literal.solution_.n_iter < 20  # it stops at the first generation that does not improve
    assert literal.objective_value_ > letters.optimum.objective_value + 0.5
    assert rows["Objective 1 (bipolar): paper, its own picture"][1:3] == ["0.9700", "-0.8500"]
    closed = rows["Objective 1 (bipolar): closed form"]
    assert closed == [*rows["Objective 1 (bipolar): convex"][:3], "", "", ""]


def test_um_figure_shows_what_the_paper_shows(letters):
    figure = letters.figure()
    titles = [ax.get_title().replace("\n", " ") for ax in figure.axes]
    assert titles[:9] == [
        "Source 1",
        "Source 2",
        "Source 3",
        "Labelled bags",
        "Truth",
        "Fusion 1",
        "Truth 2",
        "Fusion 2 without absolute value",
        "Fusion 2",
    ]
    assert len(figure.axes) == 10  # one colour bar for all
    assert figure.axes[9].get_ylim() == (-1, 1)
    truth = np.asarray(figure.axes[4].images[0].get_array())
    neutral = np.asarray(figure.axes[6].images[0].get_array())
    assert set(np.unique(truth)) == {-1, 1}
    assert set(np.unique(neutral)) == {0, 1}


def test_um_writes_all_of_it(letters, tmp_path):
    written = letters.write(tmp_path)
    assert sorted(path.name for path in written) == sorted(path.name for path in tmp_path.iterdir())
    data = json.loads((tmp_path / "results.json").read_text())
    assert data["optimum"]["objective_value"] == letters.optimum.objective_value
    assert [run["objective_value"] for run in data["runs"]] == [run.model.objective_value_ for run in letters.runs]
    text = (tmp_path / "results.md").read_text()
    assert text.count("| A \\\\ B |") == 4
    bold = letters.run("bipolar").model.usage_["touched"] > 0
    assert letters.run("bipolar").model.bicapacity_.to_markdown(bold) in text


def test_um_takes_another_picture_but_none_with_noise():
    found = run_um(um(60, 48, n_segments=30))
    assert found.run("bipolar").model.objective_value_ == pytest.approx(found.optimum.objective_value, abs=1e-6)
    with refused("letters-sources"):
        run_um(um(noise=0.1))
