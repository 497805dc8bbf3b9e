"""Files of results."""

import json
from dataclasses import replace

from bimichi.evaluate.study import file_name, write_json
from bimichi.paper import scene_folder


def test_file_names_are_safe(tmp_path, streets):
    assert file_name("../../etc/passwd") == "etc-passwd"
    assert file_name("..") == "unnamed"
    assert scene_folder(tmp_path, replace(streets[0], name="set09/V000/I01139")) == tmp_path / "set09-V000-I01139"


def test_json_has_no_nan(tmp_path):
    path = write_json(tmp_path / "a.json", {"a": [float("nan"), 1.5, "x"], "b": {"c": float("inf")}})
    assert json.loads(path.read_text()) == {"a": [None, 1.5, "x"], "b": {"c": None}}
