"""The experiments: what they reach, what they write, how they go on, and their commands."""

import json
from dataclasses import replace

import numpy as np
import pytest
from program import run
from threadpoolctl import threadpool_limits

from bimichi import BiMIChI, ChoquetQP, Comparison, InvalidInputError, experiments
from bimichi.cli import demo as demo_command
from bimichi.cli.scenes import input_files
from bimichi.datasets import street, um
from bimichi.estimators import GradientBoosting, SignedSource
from bimichi.estimators.base import Fusion
from bimichi.evaluation import Result, split, study
from bimichi.evaluation.files import file_name, write_json
from bimichi.evaluation.methods import Candidate, candidates
from bimichi.evaluation.metrics import scores
from bimichi.experiments import (
    SLOW,
    StudyResult,
    mean_table,
    run_pedestrian,
    run_study,
    run_um,
    scene_folder,
    split_scenes,
    street_scenes,
)
from bimichi.experiments.paper import PEDESTRIAN, bicapacity_markdown
from bimichi.imaging import write_image
from bimichi.learning.scene import Scenes
from bimichi.rule import FusionRule

pytestmark = pytest.mark.filterwarnings("ignore:The slope of the log-odds has reached")  # streets are small

SMALL = {"height": 96, "width": 128, "n_segments": 60}
QUICK = {*SLOW, "KNN", "SVM", "MICI min-max"}
"""Left out where all methods would add nothing but time."""


def small_streets(seeds):
    return [street(**SMALL, n_people=2, random_state=seed) for seed in seeds]


@pytest.fixture(scope="module")
def letters():
    return run_um()


@pytest.fixture(scope="module")
def streets():
    return small_streets(range(4))


@pytest.fixture(scope="module")
def people(streets):
    return run_pedestrian(streets[0], leave_out=SLOW)


# --- UM


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
    with pytest.raises(InvalidInputError, match="other sources"):
        run_um(um(noise=0.1))


# --- pedestrians


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
    assert text.count("A \\\\ B") == 5  # the QP, both objectives of the paper, and two of ours
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
    with pytest.raises(InvalidInputError, match="has 6 sources"):
        run_pedestrian(street_scenes([0], 6, **SMALL)[0])
    empty = replace(streets[0], truth=np.zeros(streets[0].shape, bool))
    with pytest.raises(InvalidInputError, match="'street-0' shows no people"):
        run_pedestrian(empty)


def test_mean_over_scenes(streets):
    results = [run_pedestrian(scene, leave_out=QUICK) for scene in streets[:2]]
    rows = {row[0].text: row for row in mean_table(results).rows}
    both = [result.comparison["weighted mean"].scores[0].auc for result in results]
    assert rows["weighted mean"][1].text == f"{np.mean(both):.3f}"
    assert rows["Mask R-CNN"][1].text == ""
    with pytest.warns(DeprecationWarning, match="now called mean_table"):
        assert experiments.summary(results) == mean_table(results)


# --- drawing scenes


class Counted(list):
    """Scenes that remember which were read."""

    read: list

    def __getitem__(self, which):
        self.read.append(which)
        return super().__getitem__(which)


def test_split_tests_on_people_alone_and_reads_each_scene_once(streets):
    nobody = [replace(scene, name=f"empty-{scene.name}", truth=np.zeros(scene.shape, bool)) for scene in streets]
    scenes = Counted([*streets, *nobody])
    for seed in range(5):
        scenes.read = []
        train, test = split_scenes(scenes, 5, 3, seed)
        assert sorted(scenes.read) == list(range(8))
        assert all(scene.truth.any() for scene in test)
        assert sorted(scene.name for scene in [*train, *test]) == sorted(scene.name for scene in scenes)
        again = split_scenes(scenes, 5, 3, seed)
        assert [[one.name for one in part] for part in again] == [[one.name for one in part] for part in (train, test)]


def test_split_reads_no_more_than_it_takes(streets):
    scenes = Counted(streets)
    scenes.read = []
    train, test = split_scenes(scenes, 1, 1)
    assert (len(train), len(test), len(scenes.read)) == (1, 1, 2)


@pytest.mark.parametrize(
    ("n_train", "n_test", "said"),
    [
        (0, 1, "n_train must be"),
        (1, True, "n_test must be"),
        (4, 1, "5 scenes, but there are 4"),
        (1, 3, "only 2 of 4"),
    ],
)
def test_split_refuses(streets, n_train, n_test, said):
    scenes = [*streets[:2], *(replace(scene, truth=np.zeros(scene.shape, bool)) for scene in streets[2:])]
    with pytest.raises(InvalidInputError, match=said):
        split_scenes(scenes, n_train, n_test)


# --- the study


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


def test_study_goes_on_where_it_was_stopped(studied, streets, tmp_path):
    whole, _, _ = studied
    own = [row for row in whole.rows if row.kind == "bi-michi"]

    def stop(line):
        if line.startswith(f"{own[2].name}: learned"):
            raise KeyboardInterrupt

    options = {"rows": "bi-michi", "folder": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        run_study(streets[:2], streets[2:], progress=stop, **options)
    assert len(json.loads((tmp_path / "results.json").read_text())["rows"]) == 2
    with pytest.raises(InvalidInputError, match="holds results already"):
        run_study(streets[:2], streets[2:], **options)
    lines = []
    result = run_study(streets[:2], streets[2:], resume=True, progress=lines.append, **options)
    assert [line for line in lines if line.endswith("done before")] == [f"{row.name}: done before" for row in own[:2]]
    assert [(row.name, row.scores, row.inverted) for row in result.rows] == [
        (row.name, row.scores, row.inverted) for row in own
    ]
    assert StudyResult.from_dict(json.loads((tmp_path / "results.json").read_text())) == result


def test_study_resumes_results_of_older_versions(studied, streets, tmp_path):
    whole, _, _ = studied
    data = whole.to_dict()
    for row in data["rows"]:  # as they were written before sources were called inverted
        row["name"] = row["name"].replace(", inverted", ", turned over")
        row["turned_over"] = row.pop("inverted")
    write_json(tmp_path / "results.json", data)
    lines = []
    result = run_study(streets[:2], streets[2:], folder=tmp_path, resume=True, progress=lines.append)
    assert result == whole
    assert lines == [f"{row.name}: done before" for row in whole.rows]


@pytest.mark.parametrize("room", [0, 1 << 30])
def test_study_of_scenes_that_are_read_when_needed(studied, streets, monkeypatch, room):
    whole, _, _ = studied
    monkeypatch.setattr(split, "KEPT", room)
    read = []
    scenes = Scenes([one.name for one in streets], lambda name: read.append(name) or streets[int(name[-1])])
    train, test = split_scenes(scenes, 2, 2)
    assert len(read) == 4
    one, two = (run_study(list(train), list(test), rows="bi-michi"), run_study(train, test, rows="bi-michi"))
    assert (len(read) == 4) == (room > 0)
    assert [row.scores for row in one.rows] == [row.scores for row in two.rows]
    assert one.setting == two.setting
    assert [row.name for row in one.rows] == [row.name for row in whole.rows if row.kind == "bi-michi"]


def test_study_of_own_folders(streets, tmp_path):
    rows = ["image,x,y,w,h"]
    for scene in streets:
        for kind, image in (("ir", scene.thermal), ("vi", scene.rgb), ("mask", scene.truth)):
            (tmp_path / kind).mkdir(exist_ok=True)
            write_image(tmp_path / kind / f"{scene.name}.png", image)
        rows += [",".join(map(str, [scene.name, *box])) for box in scene.boxes]
    (tmp_path / "boxes.csv").write_text("\n".join(rows))
    options = ["--recipe", "gamma_correction,equalize", "--boxes", tmp_path / "boxes.csv", "--superpixels", 60]
    command = ["study", tmp_path / "ir", tmp_path / "vi", *options, "--train", 2, "--test", 1, "--rows", "bi-michi"]
    out = tmp_path / "out"
    found = json.loads(run(*command, "--truth", tmp_path / "mask", "-o", out, "--json").stdout)
    assert found["setting"]["sources"] == ["ir", "vi"]
    assert not any(row["problem"] for row in found["rows"])
    assert len(json.loads((out / "run.json").read_text())["inputs"]) == 3 * 3 + 1
    assert "--truth" in run(*command, "-o", tmp_path / "other", code=2).stderr
    assert "give SOURCES or one of" in run(*command, "--street", "-o", tmp_path / "other", code=2).stderr
    assert "only for your own" in run("study", "--street", *options, "-o", tmp_path / "other", code=2).stderr
    assert not (tmp_path / "other").exists()


def test_study_resumes_only_itself(studied, streets, tmp_path):
    _, folder, _ = studied
    with pytest.raises(InvalidInputError, match="another seed: 0, not 1"):
        run_study(streets[:2], streets[2:], seed=1, folder=folder, resume=True)
    with pytest.raises(InvalidInputError, match="another test"):
        run_study(streets[:2], streets[3:], folder=folder, resume=True)
    with pytest.raises(InvalidInputError, match="needs the folder"):
        run_study(streets[:2], streets[2:], resume=True)
    (tmp_path / "results.json").write_text('{"rows": 3}')
    with pytest.raises(InvalidInputError, match="does not hold the results of a study"):
        run_study(streets[:2], streets[2:], folder=tmp_path, resume=True)
    with pytest.raises(InvalidInputError, match="Test scene 'street-2' needs a truth"):
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
    with pytest.raises(InvalidInputError, match="which must be one of all, bi-michi"):
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


def test_street_scenes_are_drawn_when_asked_for():
    scenes = street_scenes([3, 1], n_sources=6, **SMALL)
    assert scenes.names == ("street-3", "street-1")
    assert scenes["street-1"].sources.shape == (96, 128, 6)


# --- files


def test_file_names_are_safe(tmp_path, streets):
    assert file_name("../../etc/passwd") == "etc-passwd"
    assert file_name("..") == "unnamed"
    assert scene_folder(tmp_path, replace(streets[0], name="set09/V000/I01139")) == tmp_path / "set09-V000-I01139"


def test_json_has_no_nan(tmp_path):
    path = write_json(tmp_path / "a.json", {"a": [float("nan"), 1.5, "x"], "b": {"c": float("inf")}})
    assert json.loads(path.read_text()) == {"a": [None, 1.5, "x"], "b": {"c": None}}


# --- commands


@pytest.fixture(scope="module")
def road_scenes(tmp_path_factory, streets):
    """A folder laid out as MSRS, of four scenes of the night; the last shows nobody."""
    root = tmp_path_factory.mktemp("msrs")
    for kind in ("vi", "ir", "label"):
        (root / kind).mkdir()
    for k, scene in enumerate(streets):
        write_image(root / "vi" / f"0000{k}N.png", scene.rgb)
        write_image(root / "ir" / f"0000{k}N.png", scene.thermal)
        write_image(root / "label" / f"0000{k}N.png", (scene.truth * (2 if k < 3 else 0)).astype(np.uint8))
    return root


@pytest.fixture
def quick(monkeypatch):
    """Leave out slow methods, whatever is run."""
    from bimichi.experiments import pedestrian

    every = pedestrian.paper_methods
    monkeypatch.setattr(
        pedestrian,
        "paper_methods",
        lambda *arguments: {name: method for name, method in every(*arguments).items() if name not in QUICK},
    )


def test_reproduce_um(tmp_path):
    printed = run("reproduce", "um", "-o", tmp_path / "new", "--json").stdout
    data = json.loads(printed)
    assert data["runs"][0]["objective_value"] == pytest.approx(data["optimum"]["objective_value"], abs=1e-6)
    record = json.loads((tmp_path / "new" / "run.json").read_text())
    assert record["command"] == "reproduce um"
    assert record["outputs"] == data["files"]
    (tmp_path / "file").write_text("")
    assert "Cannot write to the folder" in run("reproduce", "um", "-o", tmp_path / "file", code=1).stderr


def test_reproduce_pedestrian_on_scenes_of_msrs(road_scenes, tmp_path, quick):
    result = run("reproduce", "pedestrian", "--msrs", road_scenes, "--limit", 2, "-o", tmp_path)
    assert "paper's AUC" in result.stdout
    assert "2/2 00001N, scored on pixels" in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"00000N", "00001N", "results.md", "results.json", "run.json"}
    assert (tmp_path / "00001N" / "maps.png").stat().st_size > 10_000
    inputs = json.loads((tmp_path / "run.json").read_text())["inputs"]
    assert sorted(inputs) == sorted(
        str(road_scenes / f"{k}/0000{n}N.png") for k in ("vi", "ir", "label") for n in (0, 1)
    )
    assert (
        "shows no people"
        in run("reproduce", "pedestrian", "--msrs", road_scenes, "--scene", "00003N", "-o", tmp_path, code=1).stderr
    )


def test_reproduce_pedestrian_on_frames_of_kaist(tmp_path, streets, quick):
    root, name = tmp_path / "kaist", "set09/V000"
    for folder in (f"images/{name}/visible", f"images/{name}/lwir", f"annotations/{name}"):
        (root / folder).mkdir(parents=True)
    write_image(root / "images" / name / "visible" / "I00001.png", streets[0].rgb)
    write_image(root / "images" / name / "lwir" / "I00001.png", streets[0].thermal)
    lines = [f"person {' '.join(str(int(value)) for value in box)} 0 0 0 0 0 0 0" for box in streets[0].boxes]
    (root / "annotations" / name / "I00001.txt").write_text("\n".join(["% bbGt version=3", *lines]))
    result = run("reproduce", "pedestrian", "--kaist", root, "-o", tmp_path / "out")
    assert "scored on boxes" in result.stderr
    assert "Scored on the inside of boxes" in (tmp_path / "out/set09-V000-I00001/results.md").read_text()


def test_reproduce_asks_for_one_place(road_scenes, tmp_path):
    said = run("reproduce", "pedestrian", "--msrs", road_scenes, "--street", "-o", tmp_path, code=2).stderr
    assert "give exactly one" in said
    said = run("reproduce", "pedestrian", "--street", "--scene", "00001N", "-o", tmp_path, code=2).stderr
    assert "street-0, street-1" in said


def test_input_files_are_those_of_the_scenes(tmp_path):
    for path in ("set09/V000/I1.png", "set09/V001/I1.png", "set09/V000/I2.png", "ann/set09/V000/I1.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    found = input_files(tmp_path, ["set09/V000/I1"])
    assert found == [tmp_path / "ann/set09/V000/I1.txt", tmp_path / "set09/V000/I1.png"]
    assert input_files(None, ["street-0"]) == []


def test_study_command(road_scenes, tmp_path):
    options = ["--msrs", road_scenes, "--train", 2, "--test", 1, "--sources", 3, "--rows", "bi-michi", "-o", tmp_path]
    result = run("study", *options)
    assert "The best row of Bi-MIChI" in result.stdout
    assert "read 1/3: " in result.stderr
    assert {"results.json", "results.md", "run.json"} < {path.name for path in tmp_path.iterdir()}
    assert len(json.loads((tmp_path / "run.json").read_text())["inputs"]) == 9
    assert "holds results already" in run("study", *options, code=1).stderr
    again = run("study", *options, "--resume", "--json")
    assert [row["name"] for row in json.loads(again.stdout)["rows"]] == [
        row.name for row in candidates("abc", "bi-michi")
    ]
    assert again.stderr.count("done before") == 22
    (road_scenes / "elsewhere").symlink_to(road_scenes, target_is_directory=True)
    other = ["--msrs", road_scenes / "elsewhere", *options[2:], "--resume"]
    assert "holds a study with another way of making scenes" in run("study", *other, code=1).stderr
    assert "--street" in run("study", "-o", tmp_path / "other", code=2).stderr


@pytest.mark.slow
def test_demo_ends_with_table_pictures_and_what_to_try(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_command, "SIZE", (96, 128))
    printed = run("demo", "-o", tmp_path).stdout
    parts = ["Objective 2 (magnitude)", "Bi-MIChI (mean)", "Pictures and reports:", "What to try next:"]
    assert (np.diff([printed.index(part) for part in parts]) > 0).all()
    pictures = [line.strip() for line in printed.splitlines() if line.endswith(".png")]
    images = tmp_path / "images"
    drawn = [path for path in sorted(tmp_path.rglob("*.png")) if images not in path.parents]
    assert [str(path) for path in drawn] == sorted(pictures)
    assert f"bimichi studio {images}" in printed.replace("\n", "")
    assert (images / "bimichi.toml").exists()
    assert json.loads((tmp_path / "run.json").read_text())["seconds"].keys() == {"UM", "street", "compile", "total"}
