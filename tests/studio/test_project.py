"""Projects of the studio: saved all the time, opened again wherever their images are, never with labels on others."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from studio_server import SIZE, opened, served, shapes, tab_of, write_scenes
from websockets.sync.client import connect

import bimichi
from bimichi import InvalidInputError
from bimichi._files import sha256_of
from bimichi.errors import BimichiError
from bimichi.io import write_image
from bimichi.io.annotations import read_annotations
from bimichi.io.project import read_project
from bimichi.studio.open import Options, open_project, open_workspace
from bimichi.studio.project import ProjectLock, recent_projects, remember, view_file
from bimichi.studio.start import Start

STROKE = {"id": "s", "kind": "stroke", "label": "not", "points": [[5, 30], [20.1234567, 35]], "width": 4}
POLYGON = {"id": "p", "kind": "polygon", "label": "ignore", "points": [[1, 1], [6, 1], [3, 7]]}


@pytest.fixture(autouse=True)
def no_state_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def saved(tmp_path):
    """A folder with images and a project, and what was drawn."""
    folder = tmp_path / "work"
    work = opened(folder, names=["heat", "light"])
    work.draw(0, 3, [*shapes(), STROKE, POLYGON])
    work.draw(1, 2, shapes("two"))
    work.settings, work.threshold, work.mode = replace(work.settings, additivity=2), 0.3, "once"
    work.save()
    return folder, work


def drawn(work):
    return [(one.revision, one.shapes) for one in work.labels]


def test_a_project_holds_all_that_was_drawn(saved):
    folder, work = saved
    again = open_workspace([str(folder / "bimichi.toml")], Options())
    assert drawn(again) == drawn(work)
    assert (again.settings, again.threshold, again.mode) == (work.settings, 0.3, "once")
    assert again.store.source_names == ["heat", "light"]
    files = [folder / name for name in ("bimichi.toml", "labels.json", ".bimichi-studio.json")]
    first = [path.read_bytes() for path in files]
    again.save()
    assert [path.read_bytes() for path in files[:2]] == first[:2]
    assert json.loads(files[2].read_text()) | {"saved": ""} == json.loads(first[2]) | {"saved": ""}


def test_a_project_has_relative_paths_and_hashes(saved):
    folder, _ = saved
    data = json.loads((folder / ".bimichi-studio.json").read_text())
    assert [file["path"] for file in data["scenes"][0]["files"]] == ["warm/one.png", "grey/one.png"]
    assert data["scenes"][0]["files"][0]["sha256"] == sha256_of(folder / "warm" / "one.png")
    assert [source.path for source in read_project(folder).sources] == ["warm", "grey"]
    for path in (folder / "bimichi.toml", folder / "labels.json", folder / ".bimichi-studio.json"):
        assert str(folder) not in path.read_text()


def test_what_the_studio_alone_knows_may_be_deleted_or_damaged(saved):
    folder, work = saved
    for spoil in (lambda path: path.write_text('{"scenes": 7}'), lambda path: path.unlink()):
        spoil(view_file(folder / "bimichi.toml"))
        again = open_workspace([str(folder)], Options())
        assert drawn(again) == drawn(work)
        assert again.settings == work.settings


def test_labels_are_an_annotation_file_as_any_other(saved):
    folder, work = saved
    table = read_annotations(folder / "labels.json")
    assert {name: len(found.objects) for name, found in table.items()} == {"one": 4, "two": 1}
    assert table["one"].labels == ["target", "target", "not", "ignore"]
    assert table["one"].is_ignored.tolist() == [False, False, False, True]
    data = json.loads((folder / "labels.json").read_text())
    data["annotations"][0]["bbox"] = [1, 2, 5, 6]  # by another program
    del data["annotations"][3]["drawn"]
    (folder / "labels.json").write_text(json.dumps(data))
    first, _, third, fourth = open_workspace([str(folder)], Options()).labels[0].shapes
    assert first.points == ((1.0, 2.0), (6.0, 8.0))
    assert third == work.labels[0].shapes[2]
    assert (fourth.kind, fourth.label, fourth.points) == ("polygon", "ignore", work.labels[0].shapes[3].points)


def test_labels_of_other_programs_stay_as_they_are(tmp_path):
    write_scenes(tmp_path)
    text = json.dumps({"images": [{"id": 1, "file_name": "one.png"}], "annotations": [], "categories": []})
    (tmp_path / "labels.json").write_text(text)
    (tmp_path / "bimichi.toml").write_text(TOML + 'boxes = "labels.json"\n\n[fuse]\nmin_size = 3\n')
    work = open_workspace([str(tmp_path)], Options())
    work.draw(0, 2, shapes())
    work.save()
    assert (tmp_path / "labels.json").read_text() == text
    project = read_project(tmp_path)
    assert (project.labels["boxes"], project.commands["fuse"]) == ("labels-2.json", {"min_size": 3})
    assert drawn(open_workspace([str(tmp_path)], Options())) == drawn(work)


def test_a_folder_is_moved_as_a_whole(saved, tmp_path):
    folder, work = saved
    folder.rename(tmp_path / "elsewhere")
    assert drawn(open_workspace([str(tmp_path / "elsewhere")], Options())) == drawn(work)


def test_moved_images_are_found_by_their_content(saved):
    folder, work = saved
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "warm" / "one.png").rename(folder / "deep" / "er" / "other name.png")
    again = open_workspace([str(folder / "bimichi.toml")], Options())
    assert drawn(again) == drawn(work)
    assert again.store.scenes[0].files.files[0].name == "other name.png"
    assert any("found again by their content" in note for note in again.notes)


def test_exchanged_images_are_told_apart(saved):
    folder, work = saved
    one, two = folder / "warm" / "one.png", folder / "warm" / "two.png"
    one.rename(folder / "third.png")
    two.rename(one)
    (folder / "third.png").rename(two)
    again = open_workspace([str(folder / "bimichi.toml")], Options())
    assert [scene.files.files[0].name for scene in again.store.scenes] == ["two.png", "one.png"]
    assert drawn(again) == drawn(work)


def test_labels_are_not_shown_on_a_changed_image_but_kept(saved):
    folder, work = saved
    former = (folder / "warm" / "one.png").read_bytes()
    write_image(folder / "warm" / "one.png", np.full(SIZE, 7, np.uint8))
    again = open_workspace([str(folder / "bimichi.toml")], Options())
    scene = again.state()["scenes"][0]
    assert (scene["usable"], scene["shapes"]) == (False, [])
    assert "has changed since it was labelled" in scene["problems"][0]
    assert [k for k, _, _ in again.task().labels] == [1]
    with refused("scene-unreadable"):
        again.draw(0, 9, shapes())
    again.save()
    (folder / "warm" / "one.png").write_bytes(former)
    assert drawn(open_workspace([str(folder / "bimichi.toml")], Options())) == drawn(work)


def test_an_image_that_is_replaced_while_it_is_open_does_not_inherit_labels(saved):
    folder, _ = saved
    work = open_workspace([str(folder / "bimichi.toml")], Options())
    former = (folder / "warm" / "one.png").read_bytes()
    write_image(folder / "warm" / "one.png", np.full(SIZE, 7, np.uint8))
    work.draw(0, 9, shapes())
    work.save()
    assert open_workspace([str(folder / "bimichi.toml")], Options()).lost == ["one"]
    (folder / "warm" / "one.png").unlink()
    work.draw(0, 10, shapes(n=1))
    work.save()  # what is drawn is saved although the image is gone
    (folder / "warm" / "one.png").write_bytes(former)
    assert drawn(open_workspace([str(folder / "bimichi.toml")], Options()))[0][0] == 10


def test_missing_images_are_found_in_a_folder_that_is_opened_later(saved, tmp_path):
    folder, work = saved
    away = tmp_path / "away"
    away.mkdir()
    for kind in ("warm", "grey"):
        shutil.move(folder / kind / "one.png", away / f"{kind}.png")
    lost = open_workspace([str(folder / "bimichi.toml")], Options())
    assert lost.lost == ["one"]
    assert "is missing" in lost.store.scenes[0].problems[0]
    with served(lost) as client:
        client.session.roots.add(tmp_path)
        state = client.post(f"{client.base}open", {"paths": [str(away)]}).json()
    assert [len(scene["shapes"]) for scene in state["scenes"]] == [len(one) for _, one in drawn(work)]
    assert state["project"] == "bimichi.toml"


def test_a_project_without_any_image_is_not_opened(saved):
    folder, _ = saved
    before = (folder / "bimichi.toml").read_bytes()
    shutil.rmtree(folder / "warm")
    with refused("scenes-unreadable"):
        open_workspace([str(folder / "bimichi.toml")], Options())
    assert (folder / "bimichi.toml").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data["annotations"][0].pop("image_id"), "labels-damaged"),
        (lambda data: data["annotations"][2]["drawn"].update(kind="circle"), "shape-kind"),
        (lambda data: data["annotations"][0].update(category_id=7), "labels-damaged"),
        (lambda data: data.update(images=7), "labels-damaged"),
    ],
)
def test_damaged_labels_are_refused_in_words(saved, change, said):
    folder, _ = saved
    data = json.loads((folder / "labels.json").read_text())
    change(data)
    (folder / "labels.json").write_text(json.dumps(data))
    with refused(said):
        open_project(folder / "bimichi.toml")


@pytest.mark.parametrize(
    ("line", "other", "said"),
    [
        ('recipe = "to_bipolar"', 'recipe = "os:system"', "project-recipe"),
        ('objective = "logistic"', 'objective = "nonsense"', "choice"),
        ('name = "heat"', 'nam = "heat"', "project-key"),
    ],
)
def test_damaged_projects_are_refused_in_words(saved, line, other, said):
    folder, _ = saved
    text = (folder / "bimichi.toml").read_text()
    assert line in text
    (folder / "bimichi.toml").write_text(text.replace(line, other, 1))
    with refused(said):
        open_project(folder / "bimichi.toml")


def test_what_is_drawn_is_saved_and_a_killed_server_loses_nothing(tmp_path):
    sources = write_scenes(tmp_path / "images")
    command = [sys.executable, "-m", "bimichi.cli", "studio", *sources, "--no-browser", "--project", "p.toml"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        url = next(line.split()[-1] for line in process.stderr if "http://" in line)
        origin = "/".join(url.split("/")[:3])
        with connect(url.replace("http", "ws") + "socket", origin=origin, max_size=None, open_timeout=60) as socket:
            socket.send(json.dumps({"type": "hello", "tab": "a"}))
            socket.send(json.dumps({"type": "labels", "scene": 0, "revision": 1, "shapes": shapes()}))
            while True:
                message = socket.recv(timeout=60)
                if isinstance(message, str) and json.loads(message)["type"] == "saved":
                    break
    finally:
        process.kill()
        process.communicate()
    again = Start(sources, Options(), tmp_path / "p.toml").workspace()
    assert [len(one.shapes) for one in again.labels] == [2, 0]
    assert any("Went on with p.toml" in note for note in again.notes)


def test_the_server_saves_soon_after_an_edit_and_at_the_end(tmp_path):
    work = opened(tmp_path)
    with served(work) as client, tab_of(client) as tab:
        tab.send(type="mode", mode="off")
        tab.draw(0, 1, shapes())
        assert tab.until("saved")["at"]
        tab.draw(0, 2, shapes(n=1))
    assert drawn(open_workspace([str(tmp_path / "bimichi.toml")], Options()))[0][0] == 2
    assert recent_projects() == [(tmp_path / "bimichi.toml").resolve()]


def test_a_failure_to_save_is_told(tmp_path, monkeypatch):
    def full(self):
        raise BimichiError("No space left on device.")

    with served(opened(tmp_path)) as client, tab_of(client) as tab:
        monkeypatch.setattr(type(client.session.workspace), "save", full)
        tab.send(type="mode", mode="off")
        assert "No space left" in tab.until("problem")["text"]
        monkeypatch.undo()


def test_a_project_is_open_in_one_studio_at_a_time(tmp_path):
    first, second = ProjectLock(), ProjectLock()
    first.move(tmp_path / "a.toml")
    with refused("project-locked", kind=BimichiError):
        second.move(tmp_path / "a.toml")
    first.release()
    second.move(tmp_path / "a.toml")
    second.release()
    assert list(tmp_path.iterdir()) == []


def test_new_scenes_get_a_project_of_their_own(saved, tmp_path, monkeypatch):
    folder, work = saved
    monkeypatch.chdir(folder)
    same = Start([str(folder / "warm"), str(folder / "grey")], Options()).workspace()
    assert drawn(same) == drawn(work)
    others = write_scenes(tmp_path / "others", ("two",))
    new = Start(others, Options()).workspace()
    assert new.project == folder / "bimichi-2.toml"
    with refused("project-of-another"):
        Start(others, Options(), folder / "bimichi.toml").workspace()
    with refused("project-missing"):
        Start([], Options(), folder / "new.toml").workspace()
    assert Start([], Options()).workspace().store is None
    with pytest.raises(InvalidInputError):
        Start(others, Options(), folder / "new.json").workspace()


def test_a_folder_is_looked_into(tmp_path):
    write_scenes(tmp_path / "images")
    (tmp_path / "images" / "boxes.csv").write_text("image,x,y,w,h\none,8,6,12,16\n")
    work = open_workspace([str(tmp_path / "images")], Options())
    assert sorted(work.store.source_names) == ["grey", "warm"]
    assert [len(one.shapes) for one in work.labels] == [1, 0]
    (tmp_path / "empty").mkdir()
    with refused("images-missing"):
        open_workspace([str(tmp_path / "empty")], Options())


TOML = """
[[sources]]
path = "warm"
name = "heat"
recipe = "to_bipolar"

[[sources]]
path = "warm"
name = "edges"
recipe = "vertical_edges"

[labels]
"""


def test_a_project_file_in_a_folder_gives_sources_recipes_and_labels(tmp_path, monkeypatch):
    folder = tmp_path / "images"
    write_scenes(folder)
    (folder / "truth").mkdir()
    write_image(folder / "truth" / "one.png", np.eye(*SIZE, dtype=np.uint8))
    (folder / "boxes.csv").write_text("image,x,y,w,h,label\none,8,6,12,16,person\none,30,6,12,16,car\n")
    labels = 'boxes = "boxes.csv"\ntarget = "person"\nrest = "unknown"\nmin_overlap = 0.4\n'
    (folder / "bimichi.toml").write_text(TOML + labels)
    monkeypatch.chdir(tmp_path)
    plain = Start([str(folder / "warm")], Options()).workspace()
    plain.save()
    work = Start([str(folder)], Options()).workspace()
    assert work.project == folder / "bimichi.toml"
    assert work.store.source_names == ["heat", "edges"]
    assert work.store.recipes == ("to_bipolar", "vertical_edges")
    assert [[one.points for one in drawn.shapes] for drawn in work.labels] == [[((8.0, 6.0), (20.0, 22.0))], []]
    assert work.settings.rest == "unknown"
    assert [scene.truth is not None for scene in work.store.scenes] == [True, False]
    assert any("min_overlap" in note for note in work.notes)


def test_masks_that_a_project_file_names_as_labels_are_labels(tmp_path):
    write_scenes(tmp_path)
    (tmp_path / "outlines").mkdir()
    mask = np.zeros(SIZE, np.uint8)
    mask[6:22, 8:20] = 255
    for name in ("one", "two"):
        write_image(tmp_path / "outlines" / f"{name}.png", mask)
    (tmp_path / "bimichi.toml").write_text(TOML + 'labels = "outlines"\n')
    work = open_workspace([str(tmp_path)], Options())
    assert [[one.label for one in drawn.shapes] for drawn in work.labels] == [["target"], ["target"]]
    (tmp_path / "bimichi.toml").unlink()
    found = open_workspace([str(tmp_path)], Options())
    assert [
        (len(drawn.shapes), scene.truth is not None)
        for drawn, scene in zip(found.labels, found.store.scenes, strict=True)
    ] == [(0, True)] * 2


def test_images_that_do_not_fit_are_reported_in_the_words_of_the_readers(tmp_path):
    sources = write_scenes(tmp_path / "images")
    write_image(tmp_path / "images" / "grey" / "two.png", np.zeros((5, 5), np.uint8))
    work = open_workspace(sources, Options())
    scene = work.state()["scenes"][1]
    assert not scene["usable"]
    assert "[grids-differ]" in scene["problems"][0]
    with refused("file-missing"):
        open_workspace([str(tmp_path / "none.png")], Options())


def test_recent_projects_are_those_that_exist(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").touch()
        remember(tmp_path / f"{name}.toml")
    remember(tmp_path / "a.toml")
    assert [path.name for path in recent_projects()] == ["a.toml", "b.toml"]
    (tmp_path / "a.toml").unlink()
    assert [path.name for path in recent_projects()] == ["b.toml"]


def test_without_a_home_no_project_is_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr("bimichi.studio.project.user_state_path", lambda *_, **options: Path("~/.local/state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").touch()
    remember(tmp_path / "a.json")
    assert recent_projects() == []
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_arrays_become_files(tmp_path, monkeypatch):
    from bimichi.studio.open import as_files

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    planes = {"warm": np.zeros(SIZE, np.uint8), "grey": np.ones(SIZE, np.float32)}
    files, names = as_files(planes)
    assert names == ["warm", "grey"]
    assert np.array_equal(np.load(files[1]), planes["grey"])
    assert callable(bimichi.open_studio)
