"""Pedestrians: scores beside the paper's, maps and files."""

import json
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from samples import LEFT_OUT, SMALL

from bimichi import BiMIChI, ChoquetQP, Comparison
from bimichi.evaluate import Result
from bimichi.paper import SLOW, mean_table, run_pedestrian, street_scenes
from bimichi.paper.figures import PEDESTRIAN, bicapacity_markdown

pytestmark = pytest.mark.filterwarnings("ignore:The slope of the log-odds has reached")  # streets are small


@pytest.fixture(scope="module")
def people(streets):
    return run_pedestrian(streets[0], leave_out=SLOW)


def test_pedestrian_scores_stand_beside_the_papers(people):
    names = [result.name for result in people.comparison.results]
    found, published = people.table(), people.published()
    assert [row[0].text for row in found.rows] == names
    assert set(PEDESTRIAN.values()) - {PEDESTRIAN["MICI noisy-or"]} == set(published.values()) - {None}
    assert published["source gamma thermal"] == PEDESTRIAN["source 3"]
    column = found.header.index("paper's RMSE")
    assert {row[column].text for row in found.rows if row[0].text == "Bi-MIChI (objective 1)"} == {"0.388"}
    own = people.comparison["Bi-MIChI (objective 1)"].scores[0]
    assert [row[1].text for row in found.rows if row[0].text == "Bi-MIChI (objective 1)"] == [f"{own.auc:.3f}"]


def test_pedestrian_maps_are_on_one_scale(people):
    maps = people.maps()
    assert len(maps) == len(people.comparison.results) - 1  # no detector
    assert all(plane.shape == people.scene.shape and abs(plane).max() <= 1 + 1e-6 for plane in maps.values())
    np.testing.assert_array_equal(maps["empty map"], -1)
    np.testing.assert_allclose(maps["source gamma thermal"], people.scene.sources[..., 2], atol=1e-6)
    assert len(people.figure().axes) == len(maps) + 1


def test_pedestrian_writes_all_of_it(people, tmp_path):
    written = people.write(tmp_path)
    assert sorted(path.name for path in written) == sorted(path.name for path in tmp_path.iterdir())
    data = json.loads((tmp_path / "results.json").read_text())
    assert data["methods"]["Mask R-CNN"]["scores"] is None
    assert data["methods"]["Mask R-CNN"]["fit_seconds"] is None  # never NaN, which is not JSON
    assert data["methods"]["mean"]["paper"] == {"auc": 0.621, "rmse": 1.279}
    text = (tmp_path / "results.md").read_text()
    assert text.count("A \\\\ B") in (
        5,
        6,
    )  # QP, the paper's two, two of ours; auto's, if not additive
    assert {"CI-QP", "MICI-BFM", "bi-capacity QP", "Bi-MIChI (mean)"} < people.models().keys()
    assert "MICI-BFM" in text.split("## Measures of the other methods")[1]
    assert "truth of every pixel" in text
    assert "Sources: 1 adaptive threshold; 2 equalised grey; 3 gamma thermal." in text


def test_tables_number_the_sources_and_say_which_are_inverted():
    X = np.array([[0.9, -0.8], [-0.7, 0.6], [-0.9, 0.7], [-0.8, 0.9]])
    rng = np.random.default_rng(0)
    many, y = X.repeat(30, axis=0) + rng.uniform(-0.1, 0.1, (120, 2)), np.repeat([1, 0, 0, 0], 30)
    model = BiMIChI("mean", polarity="learn", source_names=["hot", "bright"], random_state=0).fit(many, y)
    text = bicapacity_markdown(model)
    assert text.startswith("| A \\\\ B | ∅ | 1 | 2 | 12 |")
    assert text.endswith("Sources: 1 hot; 2 bright, inverted.")
    learned = ChoquetQP(bipolar_input=True, source_names=["hot", "bright"]).fit(X, [1, 0, 0, 0])
    table = Comparison([Result("a", learned)])
    assert table.measures_table().header == ["measure", "hot", "bright", "hot+bright"]
    numbered = table.measures_table(numbered=True)
    assert numbered.header == ["measure", "1", "2", "12"]
    assert [cell.text for cell in numbered.rows[0][1:]] == [f"{g:.2f}" for _, g in learned.capacity_.listing()]


def test_pedestrian_says_when_truth_is_boxes(people):
    boxes = replace(people, scene=replace(people.scene, truth_from="boxes", rgb=None, thermal=None))
    assert "Scored on the inside of boxes" in boxes.to_markdown()
    assert [ax.get_title() for ax in boxes.scene_figure().axes] == ["Truth, from boxes", "Labelled bags"]


def test_pedestrian_needs_people_and_few_sources(streets):
    with refused("pedestrian-sources"):
        run_pedestrian(street_scenes([0], 6, **SMALL)[0])
    empty = replace(streets[0], truth=np.zeros(streets[0].shape, bool))
    with refused("scene-without-people", "'street-0'"):
        run_pedestrian(empty)


def test_mean_over_scenes(streets):
    results = [run_pedestrian(scene, leave_out=LEFT_OUT) for scene in streets[:2]]
    rows = {row[0].text: row for row in mean_table(results).rows}
    both = [result.comparison["weighted mean"].scores[0].auc for result in results]
    assert rows["weighted mean"][1].text == f"{np.mean(both):.3f}"
    assert rows["Mask R-CNN"][1].text == ""
