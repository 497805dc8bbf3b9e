import sys
import tomllib
from pathlib import Path

import pytest

from bimichi._extras import EXTRAS, import_optional


@pytest.mark.parametrize("package", EXTRAS)
def test_a_missing_package_says_how_to_install_it(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"needs {package}; .*pip install 'bimichi\[{EXTRAS[package]}\]'"):
        import_optional(package)
    with pytest.raises(ImportError, match=r"pip install 'bimichi\[other\]'"):
        import_optional(package, extra="other")


def test_extras_are_those_of_the_package():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS.values()) <= set(project["optional-dependencies"])


def test_a_module_of_an_installed_package_is_imported():
    assert import_optional("json.decoder") is sys.modules["json.decoder"]
