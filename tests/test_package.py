"""The package as users meet it: imports, the bare install, the examples, the README."""

import doctest
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import bimichi

ROOT = Path(__file__).parent.parent


def run(*command, python=sys.executable, cwd=ROOT, text=None, **environment):
    given = {"cwd": cwd, "env": os.environ | environment, "input": text}
    return subprocess.run([python, *command], capture_output=True, text=True, **given)


def test_import_is_lazy():
    script = (
        "import sys, bimichi; print(any(m in sys.modules for m in ('numba', 'numpy', 'scipy', 'sklearn')));"
        "bimichi.BiCapacity.additive([0.5, 0.5]); print('numba' in sys.modules);"
        "bimichi.choquet; print('numba' in sys.modules)"
    )
    assert run("-c", script).stdout.split() == ["False", "False", "True"]


def test_public_names_exist_and_others_do_not():
    assert set(bimichi.__all__) <= set(dir(bimichi))
    for name in bimichi.__all__:
        assert getattr(bimichi, name).__name__.removeprefix("bimichi.") == name
    with pytest.raises(AttributeError, match="nothing"):
        _ = bimichi.nothing


def modules():
    source = ROOT / "src"
    paths = sorted((source / "bimichi").rglob("*.py"))
    return [".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__") for path in paths]


def with_examples():
    """Return the modules that have examples; their files are read, as importing them all takes long."""
    paths = {name: ROOT / "src" / Path(*name.split(".")) for name in modules()}
    files = {name: path / "__init__.py" if path.is_dir() else path.with_suffix(".py") for name, path in paths.items()}
    return [name for name, file in files.items() if ">>> " in file.read_text()]


@pytest.mark.parametrize("name", with_examples())
def test_docstring_examples_run(name):
    done = doctest.testmod(importlib.import_module(name))
    assert done.attempted
    assert done.failed == 0


def test_packages_say_what_users_import_from_them():
    loaded = [importlib.import_module(name) for name in modules()]
    assert [module for module in loaded if hasattr(module, "__path__") and not isinstance(module.__all__, list)] == []


def test_public_methods_are_documented():
    """By themselves, or by what they override."""
    undocumented = [
        f"{kind.__module__}.{kind.__name__}.{key}"
        for name in modules()
        for kind in vars(importlib.import_module(name)).values()
        if isinstance(kind, type) and kind.__module__ == name and not kind.__name__.startswith("_")
        for key, member in vars(kind).items()
        if not key.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod))
        and not inspect.getdoc(getattr(kind, key))
    ]
    assert undocumented == []


@pytest.fixture
def bare_python():
    """The Python of an environment with no extra, which `make test` sets up."""
    python = ROOT / ".venv-bare" / "bin" / "python"
    if not python.exists():
        pytest.skip("no .venv-bare here: `make test` creates it")
    return str(python)


def test_bare_install(tmp_path, bare_python):
    script = """
import importlib.util
import sys
import zipfile
from bimichi import BiCapacity, choquet
g = BiCapacity.additive([0.5, 0.3, 0.2])
g.save(sys.argv[1])
assert BiCapacity.load(sys.argv[1]) == g
print(round(float(choquet([0.2, -0.4, 0.5], g)), 3))
print([m for m in ("matplotlib", "pytest", "hypothesis") if importlib.util.find_spec(m)])
"""
    done = run("-c", script, str(tmp_path / "g.json"), python=bare_python)
    assert done.stdout.splitlines() == ["0.08", "[]"], done.stderr


def test_bare_install_says_what_the_example_needs(tmp_path, bare_python):
    done = run("examples/three_sensors.py", str(tmp_path), python=bare_python)
    assert done.returncode != 0
    assert "pip install 'bimichi[plot]'" in done.stderr


@pytest.mark.slow
def test_demo_writes_a_picture(tmp_path):
    done = run("examples/three_sensors.py", str(tmp_path), MPLBACKEND="agg")
    assert done.returncode == 0, done.stderr
    picture = (tmp_path / "three_sensors.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert "three_sensors.png" in done.stdout


@pytest.mark.slow
def test_learning_example():
    done = run("examples/learn_from_bags.py")
    assert done.returncode == 0, done.stderr
    assert "Inverted before the integral: bright" in done.stdout
    assert "(converged)" in done.stdout


PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "```python" in page.read_text() and page.name != "tutorial.md" and page.parent.name != "how-to"
]
"""Pages whose blocks run alone; tests/test_docs.py runs the others."""


BLOCKS = """
import contextlib, io, json, sys
printed = []
for block in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        exec(block, {"__name__": "__main__"})
    printed.append(text.getvalue())
print(json.dumps(printed))
"""
"""A program that runs blocks one after the other, none of which sees the names of another."""


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_of_the_docs_runs(page, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert blocks
    done = run("-c", BLOCKS, cwd=tmp_path, text=json.dumps(blocks))
    assert done.returncode == 0, done.stderr
    for block, printed in zip(blocks, json.loads(done.stdout), strict=True):
        for expected in re.findall(r"print\(.*\)  # (.*)", block):
            assert expected in printed


def test_no_pin_names_a_host_and_all_dependencies_are_pinned():
    pins = (ROOT / "constraints.txt").read_text()
    assert "://" not in pins
    pinned = {line.split("==")[0].lower() for line in pins.splitlines() if "==" in line}
    wanted = re.findall(r'^  "([a-z-]+)>=', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert set(wanted) <= pinned


def test_the_version_is_one(tmp_path):
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == bimichi.__version__
    archived = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    assert archived["license"] == "MIT"
    assert archived["title"] in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_wheel_holds_every_file_of_the_package(tmp_path):
    done = run("-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert bimichi.__version__ in wheel.name
    held = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("bimichi/")}
    there = {
        path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "bimichi").rglob("*") if path.is_file()
    }
    assert held == {name for name in there if "__pycache__" not in name}
    assert {"bimichi/report/report.js", "bimichi/report/report.css", "bimichi/report/templates/page.html"} <= held


def test_what_runs_elsewhere_is_there():
    """Workflows name scripts and targets of this repository, and cannot be run here."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        text = workflow.read_text()
        assert set(re.findall(r"run: make ([a-z]+)", text)) <= targets
        for script in re.findall(r"run: (\.ci/[a-z-]+)", text):
            assert os.access(ROOT / script, os.X_OK), script
