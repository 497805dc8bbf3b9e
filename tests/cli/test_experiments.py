"""The commands `reproduce`, `study` and `demo`."""

import json

import numpy as np
import pytest
from program import run
from samples import LEFT_OUT

from bimichi.cli import experiments as demo_command
from bimichi.cli.study import input_files
from bimichi.io import write_image

pytestmark = pytest.mark.filterwarnings("ignore:The slope of the log-odds has reached")  # streets are small


def test_study_of_own_folders(streets, tmp_path, few_rows):
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
    """Leave out slow methods, and prove little, whatever is run."""
    from bimichi.paper import pedestrian

    monkeypatch.setattr("bimichi.cli.experiments.PROOF_NODES", 0)
    every = pedestrian.paper_methods
    monkeypatch.setattr(
        pedestrian,
        "paper_methods",
        lambda *arguments: {name: method for name, method in every(*arguments).items() if name not in LEFT_OUT},
    )


def test_reproduce_um(tmp_path):
    printed = run("reproduce", "um", "-o", tmp_path / "new", "--json").stdout
    data = json.loads(printed)
    assert data["runs"][0]["objective_value"] == pytest.approx(data["optimum"]["objective_value"], abs=1e-6)
    record = json.loads((tmp_path / "new" / "run.json").read_text())
    assert record["command"] == "reproduce um"
    assert record["outputs"] == data["files"]
    (tmp_path / "file").write_text("")
    assert "[folder-unwritable]" in run("reproduce", "um", "-o", tmp_path / "file", code=1).stderr


@pytest.mark.slow
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
        "[scene-without-people]"
        in run("reproduce", "pedestrian", "--msrs", road_scenes, "--scene", "00003N", "-o", tmp_path, code=1).stderr
    )


@pytest.mark.slow
def test_reproduce_pedestrian_on_frames_of_kaist(tmp_path, streets, quick, monkeypatch):
    monkeypatch.setattr("bimichi.cli.experiments.PROOF_NODES", 1)
    root, name = tmp_path / "kaist", "set09/V000"
    for folder in (f"images/{name}/visible", f"images/{name}/lwir", f"annotations/{name}"):
        (root / folder).mkdir(parents=True)
    write_image(root / "images" / name / "visible" / "I00001.png", streets[0].rgb)
    write_image(root / "images" / name / "lwir" / "I00001.png", streets[0].thermal)
    lines = [f"person {' '.join(str(int(value)) for value in box)} 0 0 0 0 0 0 0" for box in streets[0].boxes]
    (root / "annotations" / name / "I00001.txt").write_text("\n".join(["% bbGt version=3", *lines]))
    result = run("reproduce", "pedestrian", "--kaist", root, "-o", tmp_path / "out")
    assert "scored on boxes" in result.stderr
    text = (tmp_path / "out/set09-V000-I00001/results.md").read_text()
    assert "Scored on the inside of boxes" in text
    for objective in ("bipolar", "magnitude"):  # how far J is above the least possible
        assert f"set09/V000/I00001, {objective}: " in text


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


def test_study_command(road_scenes, tmp_path, few_rows):
    options = ["--msrs", road_scenes, "--train", 2, "--test", 1, "--sources", 3, "--rows", "bi-michi", "-o", tmp_path]
    result = run("study", *options)
    assert "The best row of Bi-MIChI" in result.stdout
    assert "read 1/3: " in result.stderr
    assert {"results.json", "results.md", "run.json"} < {path.name for path in tmp_path.iterdir()}
    assert len(json.loads((tmp_path / "run.json").read_text())["inputs"]) == 9
    assert "[study-exists]" in run("study", *options, code=1).stderr
    again = run("study", *options, "--resume", "--json")
    assert [row["name"] for row in json.loads(again.stdout)["rows"]] == few_rows
    assert again.stderr.count("done before") == len(few_rows)
    (road_scenes / "elsewhere").symlink_to(road_scenes, target_is_directory=True)
    other = ["--msrs", road_scenes / "elsewhere", *options[2:], "--resume"]
    assert "[study-differs]" in run("study", *other, code=1).stderr
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
