import importlib
import pickle
import subprocess
import sys
import warnings

import pytest

import bimichi
from bimichi._moved import MOVED

MODULES = [
    *MOVED.items(),
    ("objectives.mean", "learning.objectives.mean"),
    ("solvers.convex", "learning.solvers.convex"),
]


@pytest.fixture(autouse=True)
def forget():
    """Old names are forgotten before and after each test: the warning comes with the first import alone."""

    def drop():
        for name in list(sys.modules):
            if any(f"{name}.".startswith(f"bimichi.{old}.") for old in MOVED):
                del sys.modules[name]

    drop()
    yield
    drop()


@pytest.mark.parametrize(("old", "new"), MODULES)
def test_old_paths_lead_to_the_same_modules_with_a_warning(old, new):
    expected = importlib.import_module(f"bimichi.{new}")
    with pytest.warns(DeprecationWarning, match="has moved") as caught:
        found = importlib.import_module(f"bimichi.{old}")
    assert found is expected
    assert found.__spec__.name == found.__name__ == f"bimichi.{new}"
    assert str(caught[-1].message).startswith(f"bimichi.{old} has moved: import bimichi.{new} instead")


def test_the_warning_points_to_the_import_statement():
    with pytest.warns(DeprecationWarning, match="has moved") as caught:
        from bimichi.bags import Bags
    assert caught[0].filename == __file__
    assert Bags is bimichi.Bags


def test_old_pickles_are_read():
    measure = bimichi.Bags
    data = pickle.dumps(measure, protocol=0).replace(b"bimichi.learning.bags", b"bimichi.bags")
    with pytest.warns(DeprecationWarning, match="has moved"):
        assert pickle.loads(data) is measure


def test_no_module_has_an_old_name_beside_its_new_one():
    with pytest.warns(DeprecationWarning, match="has moved"):
        importlib.import_module("bimichi.solvers.convex")
    assert sys.modules["bimichi.solvers.convex"] is sys.modules["bimichi.learning.solvers.convex"]


def test_what_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError, match=r"bimichi\.nothing"):
        importlib.import_module("bimichi.nothing")
    with pytest.warns(DeprecationWarning, match="has moved"), pytest.raises(ModuleNotFoundError, match="nothing"):
        importlib.import_module("bimichi.solvers.nothing")


def test_metrics_is_a_public_name():
    script = (
        "import bimichi; found = bimichi.metrics; from bimichi.metrics import scores; import bimichi.metrics as m; "
        "from bimichi.evaluation import metrics; assert found is m and m.scores is scores is metrics.scores"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_new_paths_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for new in MOVED.values():
            importlib.import_module(f"bimichi.{new}")
