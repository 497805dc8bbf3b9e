"""The registry that objectives, solvers, methods, recipes and formats share; plug-ins, sound and broken."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from program import ENVIRONMENT, make_scenes

from bimichi import FusionRule, registry
from bimichi.fit.objectives import OBJECTIVES, REGISTRY
from bimichi.fit.solvers import SOLVERS
from bimichi.io.annotations import ANNOTATION_FORMATS
from bimichi.methods.registry import METHODS, registered_methods
from bimichi.registry import Registry
from bimichi.sources.recipes import RECIPES

ROOT = Path(__file__).parents[1]
FAMILIES = (REGISTRY, SOLVERS, METHODS, RECIPES, ANNOTATION_FORMATS)


class Package:
    name = "plugged"


def declare(monkeypatch, group, **values):
    """Let packages seem to declare these plug-ins."""
    entries = [EntryPoint(name, value, group) for name, value in values.items()]
    for entry in entries:
        vars(entry)["dist"] = Package
    monkeypatch.setattr(registry, "_declared", lambda: EntryPoints(entries))


def whole_numbers(monkeypatch, newest_first=False, **values):
    declare(monkeypatch, "numbers", **values)

    def check(name, loaded):
        if not isinstance(loaded, int):
            raise TypeError(f"{name} is no whole number")
        return loaded

    return Registry("numbers", {"bins": "bimichi.link:BINS"}, check, newest_first)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.group)
def test_built_in_entries_are_declared_as_plug_ins_would_be(family):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"][family.group] == dict(family.built_in)
    assert set(family.built_in) <= set(family)


def test_every_group_of_the_package_is_a_family():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(project["entry-points"]) == {family.group for family in FAMILIES}


def test_order_and_what_is_registered(monkeypatch):
    numbers = whole_numbers(monkeypatch, later="json.scanner:NUMBER_RE.flags", early="bimichi.measures.files:VERSION")
    numbers.register("own", 7)
    assert list(numbers.names()) == list(numbers) == ["bins", "early", "later", "own"]
    assert (numbers["bins"], numbers["early"], numbers["own"], len(numbers)) == (100, 1, 7, 4)
    numbers.forget("own")
    assert "own" not in numbers
    assert list(whole_numbers(monkeypatch, True, early="bimichi.measures.files:VERSION")) == ["early", "bins"]


def test_nothing_is_searched_for_what_is_built_in(monkeypatch):
    numbers = whole_numbers(monkeypatch)
    monkeypatch.setattr(registry, "_declared", lambda: pytest.fail("searched"))
    assert numbers["bins"] == 100
    assert next(iter(numbers)) == "bins"


@pytest.mark.parametrize(
    "value", ["no_such_package:entry", "bimichi.link:no_such_name", "bimichi.link:Link", "a b", "tests_exit:entry"]
)
def test_a_broken_plug_in_is_named_and_left_out(monkeypatch, tmp_path, value):
    (tmp_path / "tests_exit.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    numbers = whole_numbers(monkeypatch, broken=value, sound="bimichi.measures.files:VERSION")
    with pytest.warns(UserWarning, match=r"'broken' .*numbers.*plugged") as warned:
        assert dict(numbers) == {"bins": 100, "sound": 1}
    assert len(warned) == 1
    assert "broken" not in numbers  # and nothing is said twice


def test_a_plug_in_replaces_nothing(monkeypatch):
    numbers = whole_numbers(monkeypatch, bins="bimichi.measures.files:VERSION")
    with pytest.warns(UserWarning, match="bins"):
        assert dict(numbers) == {"bins": 100}


def test_damaged_metadata_leave_what_is_built_in(monkeypatch):
    numbers = whole_numbers(monkeypatch)

    def damaged():
        raise ValueError("no metadata")

    monkeypatch.setattr(registry, "_declared", damaged)
    with pytest.warns(UserWarning, match="numbers"):
        assert dict(numbers) == {"bins": 100}


def test_what_an_earlier_version_declared_is_ignored(monkeypatch):
    monkeypatch.setattr(Package, "name", "bimichi")
    assert dict(whole_numbers(monkeypatch, gone="bimichi.gone:GONE")) == {"bins": 100}


@pytest.fixture
def plugged(monkeypatch):
    """Let a family be searched anew, and forget afterwards what it found."""
    searched = []

    def plug(family, **values):
        declare(monkeypatch, family.group, **values)
        vars(family).pop("_plug_ins", None)
        searched.append((family, values))

    yield plug
    for family, values in searched:
        vars(family).pop("_plug_ins", None)
        for name in values:
            family._loaded.pop(name, None)


@pytest.mark.parametrize(
    ("family", "value"),
    [
        (REGISTRY, "bimichi.fit.objectives:MEAN"),  # of another name
        (SOLVERS, "bimichi.link:BINS"),
        (METHODS, "bimichi.link:Link"),
        (METHODS, "bimichi.methods.registry:_mici"),  # rows that there are already
        (RECIPES, "bimichi.sources.operators:grey"),
        (ANNOTATION_FORMATS, "bimichi.io.annotations.text:CSV"),
    ],
)
def test_every_family_leaves_out_what_it_cannot_use(plugged, family, value):
    before = [*map(repr, registered_methods())]
    plugged(family, another=value)
    with pytest.warns(UserWarning, match="'another'"):
        after = (set(family), [*map(repr, registered_methods())])
    assert set(family.built_in) <= after[0]
    assert after[1] == before
    assert "another" not in set(family)


def test_a_class_is_enough_for_a_row(plugged):
    plugged(METHODS, **{"the mean again": "bimichi.methods:MeanFusion"})
    assert registered_methods("comparison")[-1].name == "the mean again"


def blocks():
    """The files of the package on the page, by name."""
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    return dict(re.findall(r"`([\w./-]+)`:\n\n```(?:toml|python)\n(.*?)```", page, re.DOTALL))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The package of docs/extending.md, installed beside the others."""
    pytest.importorskip("hatchling")
    folder, target = tmp_path_factory.mktemp("package"), tmp_path_factory.mktemp("site")
    for name, text in blocks().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    done = subprocess.run([*pip, "--target", target, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


def program(installed, *arguments):
    environment = ENVIRONMENT | {"PYTHONPATH": os.pathsep.join([ENVIRONMENT["PYTHONPATH"], str(installed)])}
    command = [sys.executable, "-m", "bimichi.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.slow
def test_the_package_on_the_page_is_used_by_the_program(installed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_scenes()
    commands = re.findall(r"^bimichi (.+)$", (ROOT / "docs" / "extending.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        done = program(installed, *command.split())
        assert done.returncode == 0, done.stderr
    rule = FusionRule.load("model.json")
    assert (rule.recipes, rule.training.objective) == (("to_bipolar", "darkness"), "distance")
    assert Path("fused.tif").exists()
    assert "distance" not in OBJECTIVES  # of this process, in which it is not installed
    alone = program("", "fuse", "model.json", "thermal.png", "grey.png", "-o", "again.tif")
    assert (alone.returncode, "darkness" in alone.stderr) == (1, True)


@pytest.mark.slow
def test_a_package_that_breaks_does_not_break_the_program(installed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_scenes()
    next(installed.glob("bimichi_dark*.py")).write_text("raise RuntimeError('out of order')")
    options = ("--recipe", "to_bipolar", "--boxes", "boxes.csv", "--objective", "mean", "-o", "m.json")
    done = program(installed, "train", "thermal.png", "grey.png", *options)
    assert done.returncode == 0, done.stderr
    refused = program(installed, "train", "thermal.png", "grey.png", *options[2:], "--recipe", "darkness")
    assert refused.returncode in (1, 2)
    for part in ("'darkness'", "bimichi_dark", "out of order"):
        assert part in refused.stderr.replace("\n", " "), refused.stderr
    assert "Traceback" not in refused.stderr
