import json
import sys

import numpy as np
import pytest
from program import run

from bimichi._extras import EXTRAS, is_installed
from bimichi.cli import doctor as self_test
from bimichi.scenes.bags import Bags


def test_all_is_well():
    found = json.loads(run("doctor", "--json").stdout)
    assert found["passed"]
    assert [check["check"] for check in found["checks"]] == list(self_test.CHECKS)
    assert all(check["passed"] for check in found["checks"])
    assert found["packages"]["numpy"] == np.__version__
    assert set(found["extras"]) == set(EXTRAS.values())
    assert found["extras"]["image"]["install"] is None
    assert set(found["seconds"]) == {"self-test", "compile"}


def test_what_is_missing_is_named_with_its_command(monkeypatch):
    monkeypatch.setattr(self_test, "CHECKS", {"GeoTIFF": self_test.CHECKS["GeoTIFF"]})
    monkeypatch.setitem(sys.modules, "rasterio", None)
    printed = run("doctor").stdout
    assert "extra raster: missing; pip install 'bimichi[raster]'" in printed
    assert "GDAL: missing" in printed
    assert "--  GeoTIFF: left out: rasterio is not installed" in printed
    assert "All is well." in printed
    assert not is_installed("rasterio")


def test_a_wrong_integral_fails(monkeypatch):
    monkeypatch.setattr(self_test, "CHECKS", {"integral": self_test.CHECKS["integral"]})
    monkeypatch.setattr("bimichi.choquet", lambda X, g: np.zeros(len(X)), raising=False)
    printed = run("doctor", code=1).stdout
    assert "FAILED  integral: The integral departs from that in plain Python by" in printed
    assert "Something is broken" in printed


@pytest.mark.parametrize(
    ("where", "broken"),
    [
        ("bimichi.evaluate.metrics.scores", lambda *_: (_ for _ in ()).throw(RuntimeError("no scores"))),
        ("bimichi.scenes.bags.Bags.from_image", classmethod(lambda cls, *_, **__: Bags(np.zeros((2, 3)), [0, 1, 2]))),
    ],
)
def test_whatever_breaks_is_reported_and_the_rest_goes_on(where, broken, monkeypatch):
    kept = {name: self_test.CHECKS[name] for name in ("learning", "images")}
    monkeypatch.setattr(self_test, "CHECKS", kept)
    monkeypatch.setattr(where, broken)
    failed, passed = json.loads(run("doctor", "--json", code=1).stdout)["checks"]
    assert failed["passed"] is False
    assert "Error" in failed["found"]
    assert passed["passed"] is True
