"""Projects of the studio: saved all the time, opened again wherever their images are, never with labels on others."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from studio_server import SIZE, opened, served, shapes, tab_of, write_scenes
from websockets.sync.client import connect

import bimichi
from bimichi._files import sha256_of
from bimichi.errors import BimichiError
from bimichi.io import write_image
from bimichi.studio.labels import mapped, parse_shapes
from bimichi.studio.open import Options, open_studio, open_workspace
from bimichi.studio.project import ProjectLock, read_studio, recent_projects, remember
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
    again = open_workspace([str(folder / "studio.json")], Options())
    assert drawn(again) == drawn(work)
    assert (again.settings, again.threshold, again.mode) == (work.settings, 0.3, "once")
    assert again.store.source_names == ["heat", "light"]
    assert again.arguments == [str(folder.resolve() / "warm"), str(folder.resolve() / "grey")]
    first = json.loads((folder / "studio.json").read_text())
    again.save()
    assert json.loads((folder / "studio.json").read_text()) | {"saved": ""} == first | {"saved": ""}


def test_a_project_has_relative_paths_and_hashes(saved):
    folder, _ = saved
    data = json.loads((folder / "studio.json").read_text())
    assert [file["path"] for file in data["scenes"][0]["files"]] == ["warm/one.png", "grey/one.png"]
    assert data["scenes"][0]["files"][0]["sha256"] == sha256_of(folder / "warm" / "one.png")
    assert str(folder) not in (folder / "studio.json").read_text()


def test_a_folder_is_moved_as_a_whole(saved, tmp_path):
    folder, work = saved
    folder.rename(tmp_path / "elsewhere")
    assert drawn(open_workspace([str(tmp_path / "elsewhere")], Options())) == drawn(work)


def test_moved_images_are_found_by_their_content(saved):
    folder, work = saved
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "warm" / "one.png").rename(folder / "deep" / "er" / "other name.png")
    again = open_workspace([str(folder / "studio.json")], Options())
    assert drawn(again) == drawn(work)
    assert again.store.scenes[0].files.files[0].name == "other name.png"
    assert any("found again by their content" in note for note in again.notes)


def test_exchanged_images_are_told_apart(saved):
    folder, work = saved
    one, two = folder / "warm" / "one.png", folder / "warm" / "two.png"
    one.rename(folder / "third.png")
    two.rename(one)
    (folder / "third.png").rename(two)
    again = open_workspace([str(folder / "studio.json")], Options())
    assert [scene.files.files[0].name for scene in again.store.scenes] == ["two.png", "one.png"]
    assert drawn(again) == drawn(work)


def test_labels_are_not_shown_on_a_changed_image_but_kept(saved):
    folder, work = saved
    former = (folder / "warm" / "one.png").read_bytes()
    write_image(folder / "warm" / "one.png", np.full(SIZE, 7, np.uint8))
    again = open_workspace([str(folder / "studio.json")], Options())
    scene = again.state()["scenes"][0]
    assert (scene["usable"], scene["shapes"]) == (False, [])
    assert "has changed since it was labelled" in scene["problems"][0]
    assert [k for k, _, _ in again.task().labels] == [1]
    with refused("scene-unreadable"):
        again.draw(0, 9, shapes())
    again.save()
    (folder / "warm" / "one.png").write_bytes(former)
    assert drawn(open_workspace([str(folder / "studio.json")], Options())) == drawn(work)


def test_an_image_that_is_replaced_while_it_is_open_does_not_inherit_labels(saved):
    folder, _ = saved
    work = open_workspace([str(folder / "studio.json")], Options())
    former = (folder / "warm" / "one.png").read_bytes()
    write_image(folder / "warm" / "one.png", np.full(SIZE, 7, np.uint8))
    work.draw(0, 9, shapes())
    work.save()
    assert open_workspace([str(folder / "studio.json")], Options()).lost == ["one"]
    (folder / "warm" / "one.png").unlink()
    work.draw(0, 10, shapes(n=1))
    work.save()  # what is drawn is saved although the image is gone
    (folder / "warm" / "one.png").write_bytes(former)
    assert drawn(open_workspace([str(folder / "studio.json")], Options()))[0][0] == 10


def test_missing_images_are_found_in_a_folder_that_is_opened_later(saved, tmp_path):
    folder, work = saved
    away = tmp_path / "away"
    away.mkdir()
    for kind in ("warm", "grey"):
        shutil.move(folder / kind / "one.png", away / f"{kind}.png")
    lost = open_workspace([str(folder / "studio.json")], Options())
    assert lost.lost == ["one"]
    assert "is missing" in lost.store.scenes[0].problems[0]
    with served(lost) as client:
        client.session.roots.add(tmp_path)
        state = client.post(f"{client.base}open", {"paths": [str(away)]}).json()
    assert [len(scene["shapes"]) for scene in state["scenes"]] == [len(one) for _, one in drawn(work)]
    assert state["project"] == "studio.json"


def test_a_project_without_any_image_is_not_opened(saved):
    folder, _ = saved
    before = (folder / "studio.json").read_bytes()
    shutil.rmtree(folder / "warm")
    with refused("scenes-unreadable"):
        open_workspace([str(folder / "studio.json")], Options())
    assert (folder / "studio.json").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data.update(version=99), "project-version"),
        (lambda data: data.update(format="other"), "project-format"),
        (lambda data: data["scenes"][0]["files"][0].pop("sha256"), "project-damaged"),
        (lambda data: data["scenes"][0]["shapes"][0].update(kind="circle"), "shape-kind"),
        (lambda data: data["sources"].update(recipes=["os:system", "to_bipolar"]), "project-recipe"),
        (lambda data: data["settings"].update(objective="nonsense"), "choice"),
        (lambda data: data.update(scenes=7), "project-damaged"),
    ],
)
def test_damaged_projects_are_refused_in_words(saved, change, said):
    folder, _ = saved
    data = json.loads((folder / "studio.json").read_text())
    change(data)
    (folder / "studio.json").write_text(json.dumps(data))
    with refused(said):
        open_studio(read_studio(folder / "studio.json"))


def test_what_is_drawn_is_saved_and_a_killed_server_loses_nothing(tmp_path):
    sources = write_scenes(tmp_path / "images")
    command = [sys.executable, "-m", "bimichi.cli", "studio", *sources, "--no-browser", "--project", "p.json"]
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
    again = Start(sources, Options(), tmp_path / "p.json").workspace()
    assert [len(one.shapes) for one in again.labels] == [2, 0]
    assert any("Went on with p.json" in note for note in again.notes)


def test_the_server_saves_soon_after_an_edit_and_at_the_end(tmp_path):
    work = opened(tmp_path)
    with served(work) as client, tab_of(client) as tab:
        tab.send(type="mode", mode="off")
        tab.draw(0, 1, shapes())
        assert tab.until("saved")["at"]
        tab.draw(0, 2, shapes(n=1))
    assert drawn(open_workspace([str(tmp_path / "studio.json")], Options()))[0][0] == 2
    assert recent_projects() == [(tmp_path / "studio.json").resolve()]


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
    first.move(tmp_path / "a.json")
    with refused("project-locked", kind=BimichiError):
        second.move(tmp_path / "a.json")
    first.release()
    second.move(tmp_path / "a.json")
    second.release()
    assert list(tmp_path.iterdir()) == []


def test_new_scenes_get_a_project_of_their_own(saved, tmp_path, monkeypatch):
    folder, work = saved
    monkeypatch.chdir(folder)
    same = Start([str(folder / "warm"), str(folder / "grey")], Options()).workspace()
    assert drawn(same) == drawn(work)
    others = write_scenes(tmp_path / "others", ("two",))
    new = Start(others, Options()).workspace()
    assert new.project == folder / "studio-2.json"
    with refused("project-of-another"):
        Start(others, Options(), folder / "studio.json").workspace()
    with refused("project-missing"):
        Start([], Options(), folder / "new.json").workspace()
    assert Start([], Options()).workspace().store is None


def test_labels_of_a_map_are_saved_in_its_coordinates(tmp_path):
    import rasterio

    image = np.random.default_rng(0).integers(0, 255, (2, *SIZE)).astype(np.uint8)
    how = {"driver": "GTiff", "height": SIZE[0], "width": SIZE[1], "count": 2, "dtype": "uint8", "crs": "EPSG:32630"}
    turned = rasterio.Affine(10, 2, 500_000, 3, -10, 4_600_000)
    with rasterio.open(tmp_path / "a.tif", "w", transform=turned, **how) as file:
        file.write(image)
    work = open_workspace([str(tmp_path / "a.tif")], Options())
    work.project = tmp_path / "studio.json"
    work.draw(0, 1, [*shapes(), STROKE, POLYGON])
    work.save()
    entry = json.loads((tmp_path / "studio.json").read_text())["scenes"][0]
    x, y = shapes()[0]["points"][0]
    assert (entry["units"], entry["crs"]) == ("map", "EPSG:32630")
    assert entry["shapes"][0]["points"][0] == pytest.approx([10 * x + 2 * y + 500_000, 3 * x - 10 * y + 4_600_000])
    assert drawn(open_workspace([str(tmp_path / "studio.json")], Options())) == drawn(work)
    placement = work.store.scenes[0].placement
    some = parse_shapes([STROKE, POLYGON], SIZE)
    assert mapped(mapped(some, placement, True), placement, False) == some


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
    assert work.project == tmp_path / "studio-2.json"  # the other project has other sources
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
        (tmp_path / f"{name}.json").touch()
        remember(tmp_path / f"{name}.json")
    remember(tmp_path / "a.json")
    assert [path.name for path in recent_projects()] == ["a.json", "b.json"]
    (tmp_path / "a.json").unlink()
    assert [path.name for path in recent_projects()] == ["b.json"]


def test_arrays_become_files(tmp_path, monkeypatch):
    from bimichi.studio.open import as_files

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    planes = {"warm": np.zeros(SIZE, np.uint8), "grey": np.ones(SIZE, np.float32)}
    files, names = as_files(planes)
    assert names == ["warm", "grey"]
    assert np.array_equal(np.load(files[1]), planes["grey"])
    assert callable(bimichi.open_studio)
