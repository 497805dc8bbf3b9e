"""Scenes that are added to a project that is open."""

import shlex
import shutil
from pathlib import Path

import numpy as np
import program
import pytest
from studio_server import SIZE, opened, served, shapes, tab_of, write_scenes

from bimichi.io import write_image
from bimichi.io.project import read_project
from bimichi.studio.open import Options, open_workspace


@pytest.fixture(autouse=True)
def no_state_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def client(tmp_path):
    with served(opened(tmp_path)) as made:
        made.session.roots.add(tmp_path)
        yield made


def more_scenes(folder, name="three"):
    """One more scene, in folders of the same names."""
    write_scenes(folder, ("one",))
    for kind in ("warm", "grey"):
        (folder / kind / "one.png").rename(folder / kind / f"{name}.png")
    return folder


def names_of(state):
    return [one["name"] for one in state["scenes"]]


def test_added_scenes_leave_labels_and_the_model_as_they_are(client, tmp_path):
    more = more_scenes(tmp_path / "more")
    with tab_of(client) as tab:
        tab.draw(0, 1, shapes())
        number = tab.until("model")["number"]
        tab.until("score")
        tab.until("idle")
        state = client.post(f"{client.base}add", {"paths": [str(more)]}).json()
        tab.until("state")
        tab.until("saved")
        assert names_of(state) == ["one", "two", "three"]
        assert [(one["revision"], len(one["shapes"])) for one in state["scenes"]] == [(1, 2), (0, 0), (0, 0)]
        assert state["model"]["number"] == number
        fused = client.get(f"{client.base}scenes/2/fused").content
        assert np.frombuffer(fused[:16], "<u4")[0] == number
        tab.draw(2, 1, shapes("one"))
        model = tab.until("model")
        assert (model["number"], model["revision"]) == (number + 1, {"0": 1, "2": 1})
        tab.until("score")
    assert read_project(tmp_path).scenes[2].files[0] == "more/warm/three.png"


def test_a_project_with_added_scenes_is_opened_again(client, tmp_path):
    more_scenes(tmp_path / "more", "one")
    client.post(f"{client.base}add", {"paths": ["more"]})
    with tab_of(client) as tab:
        tab.send(type="mode", mode="off")
        tab.draw(2, 1, shapes())
        tab.until("saved")
        while not (tmp_path / "labels.json").exists() or "one (2)" not in (tmp_path / "labels.json").read_text():
            tab.until("saved")  # that was of the added scenes
    again = open_workspace([str(tmp_path / "bimichi.toml")], Options())
    assert [(scene.name, len(drawn.shapes)) for scene, drawn in zip(again.store.scenes, again.labels, strict=True)] == [
        ("one", 0),
        ("two", 0),
        ("one (2)", 2),
    ]


def test_scenes_that_are_open_are_not_added_twice(client, tmp_path):
    refused = client.post(f"{client.base}add", {"paths": [str(tmp_path)]})
    assert refused.json()["code"] == "scenes-open"
    for kind in ("warm", "grey"):
        shutil.copy(tmp_path / kind / "one.png", tmp_path / kind / "three.png")
    state = client.post(f"{client.base}add", {"paths": [str(tmp_path)]}).json()
    assert names_of(state) == ["one", "two", "three"]


def test_one_file_per_source_is_matched_by_name_whatever_the_order(client, tmp_path):
    more = more_scenes(tmp_path / "more")
    paths = [str(more / kind / "three.png") for kind in ("grey", "warm")]
    state = client.post(f"{client.base}add", {"paths": paths}).json()
    assert names_of(state) == ["one", "two", "three"]
    files = client.session.workspace.store.scenes[2].files.files
    assert [file.parent.name for file in files] == ["warm", "grey"]


def test_a_source_with_several_recipes_is_found_for_each(tmp_path):
    warm, grey = write_scenes(tmp_path)
    work = open_workspace([warm, warm, grey], Options(recipes=["to_bipolar", "local_contrast", "to_bipolar"]))
    work.project = tmp_path / "bimichi.toml"
    more = more_scenes(tmp_path / "more")
    with served(work) as client:
        for paths in ([str(more)], [str(more / kind / "three.png") for kind in ("grey", "warm")]):
            answer = client.post(f"{client.base}add", {"paths": paths}).json()
            if "problem" in answer:
                assert answer["code"] == "scenes-open"
        files = work.store.scenes[2].files.files
    assert [file.parent.name for file in files] == ["warm", "warm", "grey"]


def write_other_source(folder):
    (folder / "grey").rename(folder / "radar")


def write_other_size(folder):
    write_image(folder / "grey" / "three.png", np.zeros((SIZE[0] + 1, SIZE[1]), np.uint8))


def leave_one_out(folder):
    shutil.rmtree(folder / "grey")
    (folder / "grey").mkdir()
    write_image(folder / "grey" / "four.png", np.zeros(SIZE, np.uint8))


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (write_other_source, "sources-differ"),
        (write_other_size, "scene-unfit"),
        (leave_one_out, "scene-file-missing"),
    ],
)
def test_images_that_do_not_fit_are_refused_and_nothing_changes(client, tmp_path, spoil, code):
    more = more_scenes(tmp_path / "more")
    spoil(more)
    refused = client.post(f"{client.base}add", {"paths": [str(more)]})
    assert refused.status_code == 400
    assert refused.json()["code"] == code
    assert names_of(client.get(f"{client.base}state").json()) == ["one", "two"]


def test_files_that_are_dragged_in_later_replace_no_earlier_ones(client, tmp_path):
    contents = []
    for batch in ("a", "b"):
        paths = []
        for kind in ("warm", "grey"):
            content = (tmp_path / kind / ("one.png" if batch == "a" else "two.png")).read_bytes()
            answer = client.post(f"{client.base}upload?batch={batch}&name={kind}/x.png", content).json()
            paths.append(answer["path"])
            contents.append((answer["path"], content))
        state = client.post(f"{client.base}add", {"paths": paths}).json()
    assert names_of(state) == ["one", "two", "x", "x (2)"]
    for path, content in contents:
        assert Path(path).read_bytes() == content


def test_the_command_learns_from_added_scenes_in_their_order(client, tmp_path):
    for kind in ("warm", "grey"):
        shutil.copy(tmp_path / kind / "one.png", tmp_path / kind / "a.png")
    client.post(f"{client.base}add", {"paths": [str(tmp_path)]})
    more_scenes(tmp_path / "more", "one")
    client.post(f"{client.base}add", {"paths": ["more"]})
    with tab_of(client) as tab:
        tab.draw(0, 1, shapes())
        tab.draw(2, 1, shapes())
        tab.draw(3, 1, shapes(n=1))
        while tab.until("model")["revision"] != {"0": 1, "2": 1, "3": 1}:
            pass
        tab.until("score")
        text = client.post(f"{client.base}export", {"kind": "command"}).json()["text"]
        made = client.post(f"{client.base}export", {"kind": "model"}).json()
    model = (Path(made["folder"]) / "model.json").read_bytes()
    (Path(made["folder"]) / "model.json").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        program.run(*shlex.split(text.splitlines()[-1])[1:])
    assert (Path(made["folder"]) / "model.json").read_bytes() == model
    assert [scene.name for scene in read_project(tmp_path).scenes] == ["one", "two", "a", "one (2)"]
