import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bimichi
from bimichi._jit import _places, cache_folder, jit

FILES = {
    "helper.py": """
from bimichi._jit import cache_folder, jit
@jit
def helped(x):
    return x + 1
""",
    "settings.py": "FACTOR = 10\n",
    "caller.py": """
from bimichi._jit import cache_folder, jit
from bimichi.helper import helped
from bimichi.settings import FACTOR
@jit(error_model="numpy", fastmath={"contract", "nsz"})
def called(x):
    return FACTOR * helped(x)
""",
}
RUN = """
import json, sys
exec(sys.argv[1])
from bimichi._jit import cache_folder
from bimichi.caller import called
print(json.dumps([called(2), sum(called.stats.cache_hits.values()), str(cache_folder())]))
"""


class Copy:
    """A small package named bimichi that compiles as the large one does."""

    def __init__(self, root):
        self.root, self.folder = root, root / "bimichi"
        self.folder.mkdir()
        for name in ("_jit.py", "_progress.py", "_files.py", "_version.py", "errors.py"):
            shutil.copy(Path(bimichi.__file__).with_name(name), self.folder)
        (self.folder / "__init__.py").write_text("")
        for name, text in FILES.items():
            (self.folder / name).write_text(text)

    def change(self, name, old, new):
        text = (self.folder / name).read_text()
        assert old in text
        (self.folder / name).write_text(text.replace(old, new))

    def run(self, before="", **environment):
        """Return the value of ``called(2)``, the number of kernels found compiled, and the folder."""
        clean = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "PYTHONPATH")}
        paths = {"PYTHONPATH": str(self.root), "HOME": str(self.root / "home"), "LOCALAPPDATA": str(self.root / "home")}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", RUN, before],
            env=clean | paths | {"XDG_CACHE_HOME": str(self.root / "home")} | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return tuple(json.loads(done.stdout))


@pytest.fixture
def package(tmp_path):
    return Copy(tmp_path)


def test_a_change_of_a_kernel_recompiles_its_callers(package):
    value, hits, first = package.run()
    assert (value, hits) == (30, 0)
    assert package.run() == (30, 1, first)
    assert Path(first).parent == package.folder / "__pycache__" / "kernels"
    package.change("helper.py", "x + 1", "x + 5")
    value, hits, second = package.run()
    assert (value, hits) == (70, 0)
    assert list(Path(first).parent.iterdir()) == [Path(second)]  # the old folder is gone
    package.change("settings.py", "10", "20")  # a file without kernels, but of a constant that one reads
    assert package.run() == (140, 0, second)


def test_a_source_that_changes_after_its_import_is_not_mistaken(package):
    edit = "from bimichi import caller; import pathlib; p = pathlib.Path(caller.__file__).with_name('helper.py'); "
    edit += "p.write_text(p.read_text().replace('x + 1', 'x + 5'))"
    assert package.run(before=edit)[0] == 30  # what was imported is run, after the sources were changed
    value, hits, _ = package.run()
    assert (value, hits) == (70, 0)


def test_damaged_files_are_replaced(package):
    folder = Path(package.run()[2])
    for damage in (lambda content: content[:100], lambda content: content[:-1] + b"?", lambda _: b""):
        for path in folder.iterdir():
            assert len(path.read_bytes()) > 100
            path.write_bytes(damage(path.read_bytes()))
        assert package.run()[:2] == (30, 0)
    assert package.run()[:2] == (30, 1)


def test_places_that_cannot_be_written_to(package):
    (package.folder / "__pycache__").write_text("a file where a folder should be")
    _, hits, folder = package.run()
    assert Path(folder).is_relative_to(package.root / "home")
    assert (hits, package.run()[1]) == (0, 1)
    shutil.rmtree(package.root / "home")
    (package.root / "home").write_text("another one")
    assert package.run() == (30, 0, "None")


def test_without_a_home_nothing_is_kept_where_the_program_runs(monkeypatch):
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **options: Path("~/.cache/bimichi"))
    assert all(place.is_absolute() for place in _places())


def test_the_folder_that_numba_is_given(package):
    folder = package.run(NUMBA_CACHE_DIR=str(package.root / "given"))[2]
    assert Path(folder).is_relative_to(package.root / "given")
    assert any(Path(folder).iterdir())


def test_a_full_disk_is_no_error(package):
    full = "import os\ndef full(_): raise OSError(28, 'No space left on device')\nos.fsync = full"
    value, _, folder = package.run(before=full)
    assert value == 30
    assert list(Path(folder).iterdir()) == []


def test_kernels_of_others_are_compiled_but_not_kept():
    @jit
    def foreign(x):
        return x + 1

    assert foreign(np.float64(1)) == 2
    assert foreign._cache._path(foreign.signatures[0]) is None


@pytest.mark.slow
@pytest.mark.skipif(cache_folder() is None, reason="no place to keep compiled code")
def test_every_kernel_of_a_fit_is_found_again():
    """Keys must be the same in every process: for sets of options, function pointers, tuples of arguments."""
    script = """
import numpy as np
from bimichi import BiMIChI, MICI, BinaryMICI
from bimichi._jit import KernelCache
missed, load = [], KernelCache.load_overload
def watched(self, *arguments):
    found = load(self, *arguments)
    if found is None:
        missed.append(self._function.__qualname__)
    return found
KernelCache.load_overload = watched
rng = np.random.default_rng(0)
X, y, bags = rng.uniform(0, 1, (40, 3)), np.repeat([0, 1], 20), np.repeat(range(8), 5)
for model in (BiMIChI(), BiMIChI("mean", additivity=2), BiMIChI(solver="evolutionary"), MICI("noisy-or"), BinaryMICI()):
    model.set_params(random_state=0).fit(X, y, bags=bags).fuse(X)
print(missed)
"""
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"


def test_all_kernels_of_the_package_are_compiled_here():
    for path in Path(bimichi.__file__).parent.rglob("*.py"):
        if path.name != "_jit.py":
            assert "njit" not in path.read_text(), f"{path} must use bimichi._jit"
            assert "cfunc" not in path.read_text(), f"{path} must use bimichi._jit"


def test_all_functions_but_kernels_are_annotated():
    """In modules with kernels mypy does not ask for it, as numba types those; here, all other functions are."""
    kernels = {"jit", "_fast", "_vectorised"}
    bare = []
    for path in sorted(Path(bimichi.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.returns is None and not node.name.endswith("_term"):
                marks = {mark.func if isinstance(mark, ast.Call) else mark for mark in node.decorator_list}
                if not kernels & {getattr(mark, "id", "") for mark in marks}:
                    bare.append(f"{path.name}:{node.lineno} {node.name}")
    assert bare == []
