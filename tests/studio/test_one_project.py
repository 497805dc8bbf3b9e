"""What the studio shows is what `bimichi train --project .` learns from the files that it saves."""

import shutil
from dataclasses import replace

import numpy as np
import program
import pytest
from studio_server import SIZE, shapes, write_scenes

from bimichi.io import write_image
from bimichi.io.project import LABEL_OPTIONS, read_project
from bimichi.studio.learning import Learner
from bimichi.studio.open import Options, open_project, open_workspace
from bimichi.studio.project import view_file

CORNERS = [[33.25, 9.5], [45.1, 10.75], [44.4, 28.123], [34, 27]]
LOOP = [[34, 12], [43, 12], [43, 26], [34, 26], [34, 13.5]]  # around a hole
DRAWN = {
    "box": {"kind": "box", "points": [[34.4, 10.3], [44.1, 27.7]]},
    "polygon": {"kind": "polygon", "points": CORNERS},
    "polygon with a hole": {"kind": "polygon", "points": CORNERS, "holes": [[[37.2, 14], [41, 14.1], [39.5, 22]]]},
    "stroke": {"kind": "stroke", "points": [[36, 13], [41.333, 25.2]], "width": 7.5},
    "stroke around a hole": {"kind": "stroke", "points": LOOP, "width": 3},
    "dot": {"kind": "stroke", "points": [[39.2, 18.9]], "width": 1},
    "beyond the border": {"kind": "polygon", "points": [[48, 30], [70, 31], [49, 60]]},
}
SETTINGS = {
    "default": {},
    "rest unknown": {"rest": "unknown"},
    "other cores": {"core": (0.7, 1.0), "seed": 3},
    "directions learned": {"objective": "mean", "additivity": 2, "polarity": "learn"},
    "full measure": {"objective": "bipolar", "additivity": None},
    "ranks": {"sources": "rarity"},
    "inverted ranks": {"sources": "rarity", "inverted": (1,), "rest": "unknown"},
}


@pytest.fixture
def work(tmp_path):
    made = open_workspace(write_scenes(tmp_path), Options())
    made.project = tmp_path / "bimichi.toml"
    return made


def learned(work, path, auto=False):
    learner = Learner(work.store, 1)
    (learner.auto if auto else learner.fit)(work.task()).rule.save(path)
    return path.read_bytes()


def trained(folder, monkeypatch, *options):
    monkeypatch.chdir(folder)
    program.run("train", "--project", ".", *options, "-o", "command.json")
    return (folder / "command.json").read_bytes()


def check(work, folder, monkeypatch, auto=False):
    """Check that the command, and the studio that is opened again, learn the model of this one."""
    model = learned(work, folder / "studio-model.json", auto)
    work.save()
    assert trained(folder, monkeypatch) == model
    for _ in range(2):
        again = open_project(folder / "bimichi.toml")
        assert [one.shapes for one in again.labels] == [one.shapes for one in work.labels]
        assert again.auto == auto
        assert auto or again.settings == work.settings
        assert learned(again, folder / "again.json", auto) == model
        view_file(folder / "bimichi.toml").unlink(missing_ok=True)  # without loss


@pytest.mark.parametrize("label", ["target", "not", "ignore"])
@pytest.mark.parametrize("kind", DRAWN)
def test_every_shape_of_every_class(work, tmp_path, monkeypatch, kind, label):
    against = {"id": "n", "kind": "stroke", "label": "not", "points": [[3, 35], [30, 36]], "width": 3}
    work.draw(0, 1, [*shapes(n=1), against, {**DRAWN[kind], "id": "x", "label": label}])
    work.draw(1, 4, shapes("two"))
    for rest in ("negative", "unknown"):
        work.settings = replace(work.settings, rest=rest)
        check(work, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting(work, tmp_path, monkeypatch, name):
    work.settings = replace(work.settings, **SETTINGS[name])
    against = {"id": "n", "kind": "stroke", "label": "not", "points": [[3, 35], [30, 36]], "width": 3}
    drawn = [{**shape, "id": name, "label": "target"} for name, shape in DRAWN.items()]
    work.draw(0, 1, [*drawn, against])
    check(work, tmp_path, monkeypatch)


def test_every_command_reads_the_project(work, tmp_path, monkeypatch):
    work.draw(0, 1, [*shapes(), {**DRAWN["stroke around a hole"], "id": "x", "label": "not"}])
    work.draw(1, 1, shapes("two"))
    work.save()
    trained(tmp_path, monkeypatch)
    program.run("check", "--project", ".")
    program.run("bags", "--project", ".", "-o", "bags")
    program.run("fuse", "command.json", "--project", ".", "-o", "fused")
    program.run("report", "command.json", "--project", ".", "-o", "report")
    (tmp_path / "bimichi.toml").unlink()
    program.run("init", ".")  # which knows what the labels mean
    assert read_project(tmp_path).labels == {"boxes": "labels.json", **LABEL_OPTIONS}


def test_what_cross_validation_chooses(work, tmp_path, monkeypatch):
    work.settings = replace(work.settings, objective="mean", additivity=2, seed=2)
    work.draw(0, 1, shapes())
    work.draw(1, 1, shapes("two"))
    work.auto = True
    check(work, tmp_path, monkeypatch, auto=True)
    work.draw(0, 2, shapes(n=1))
    assert not work.auto  # edits are learned by settings


@pytest.mark.parametrize("case", ["names", "one scene", "two bands", "expressions", "moved", "in another folder"])
def test_every_way_to_name_sources(tmp_path, monkeypatch, case):
    warm, grey = write_scenes(tmp_path / "images")
    folder, options, paths = tmp_path, Options(recipes=["to_bipolar", "local_contrast"]), [warm, grey]
    if case == "names":
        options = replace(options, names=["heat", "heat again"])
        paths = [warm, warm]
    if case == "one scene":
        paths = [f"{warm}/one.png", f"{grey}/one.png"]
    if case == "two bands":
        bands = np.random.default_rng(0).integers(0, 255, (*SIZE, 3)).astype(np.uint8)
        write_image(tmp_path / "rgb.tif", bands)
        paths, options = [f"{tmp_path / 'rgb.tif'}[1,3]", f"{warm}/one.png"], Options(names=["a", "b", "c"])
    if case == "expressions":
        options = Options(expressions=["sum: (warm + grey) / 600", "warm: warm / 255", "rest: grey / 255"])
    work = open_workspace(paths, options)
    work.project = folder / "bimichi.toml"
    work.draw(0, 1, shapes())
    if case == "moved":
        work.save()
        (tmp_path / "images" / "warm" / "one.png").rename(tmp_path / "elsewhere.png")
        work = open_project(folder / "bimichi.toml")
        assert work.labels[0].shapes
    if case == "in another folder":
        work.project = tmp_path / "other" / "bimichi.toml"
        folder = work.project.parent
        folder.mkdir()
    check(work, folder, monkeypatch)
    assert bool(read_project(folder).scenes) == (case in ("moved", "two bands"))  # which is named by its folder


def test_a_scene_that_is_named_by_its_folder_keeps_its_name(tmp_path, monkeypatch):
    warm, grey = write_scenes(tmp_path)
    (tmp_path / "before").mkdir()
    for folder, name in ((warm, "warm.png"), (grey, "grey.png")):
        shutil.move(f"{folder}/one.png", tmp_path / "before" / name)
    work = open_workspace([str(tmp_path / "before" / name) for name in ("warm.png", "grey.png")], Options())
    work.project = tmp_path / "before" / "bimichi.toml"
    work.draw(0, 1, shapes())
    work.save()
    shutil.move(tmp_path / "before", tmp_path / "after")
    again = open_project(tmp_path / "after" / "bimichi.toml")
    assert [scene.name for scene in again.store.scenes] == ["before"]
    assert again.labels == work.labels
    check(again, tmp_path / "after", monkeypatch)


def test_images_on_other_grids_and_recipes_in_python(tmp_path, monkeypatch):
    paths = write_scenes(tmp_path)
    for seed, name in enumerate(("one", "two")):
        coarse = np.random.default_rng(seed).integers(0, 256, (SIZE[0] // 2, SIZE[1] // 2)).astype(np.uint8)
        write_image(tmp_path / "grey" / f"{name}.png", coarse)
    work = open_workspace(paths, Options(align=True))
    work.project = tmp_path / "bimichi.toml"
    work.draw(0, 1, shapes())
    work.draw(1, 1, shapes("two"))
    check(work, tmp_path, monkeypatch)
    (tmp_path / "own_recipes.py").write_text("def half(image):\n    return image / 255.0 / 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    work = open_workspace([paths[0]], Options(recipes=["own_recipes:half"]))
    work.project = tmp_path / "python.toml"
    work.draw(0, 1, shapes())
    work.save()
    assert read_project(work.project).recipes() is None  # it names no code
