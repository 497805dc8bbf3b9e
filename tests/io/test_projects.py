"""Project files: read strictly, written so that they read back."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from refusals import refused

from bimichi.io.project import Project, ProjectSource, read_project, write_project

FULL = """
expressions = ["ndwi: (B3-B8)/(B3+B8)"]

[[sources]]
path = "ir"
name = "heat"
recipe = "gamma_correction"

[[sources]]
path = "s2/*.tif"
bands = ["B3", "B8"]
names = ["green", "nir"]
recipe = "to_bipolar"

[labels]
boxes = "boxes.csv"
superpixels = 100

[train]
objective = "mean"
"""


def written(folder, text):
    file = folder / "bimichi.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_all_that_a_project_can_hold(tmp_path):
    project = read_project(written(tmp_path, FULL))
    assert project.arguments() == [f"{tmp_path}/ir", f"{tmp_path}/s2/*.tif[B3,B8]"]
    assert project.names() == ["heat", "green", "nir"]
    assert project.recipes() == ["gamma_correction", "to_bipolar", "to_bipolar"]
    assert project.expressions == ("ndwi: (B3-B8)/(B3+B8)",)
    assert project.labels == {"boxes": "boxes.csv", "superpixels": 100}
    assert project.commands == {"train": {"objective": "mean"}}
    assert read_project(tmp_path) == project
    assert project.located("/absolute/file") == "/absolute/file"


def test_a_project_reads_back_as_it_was_written(tmp_path):
    project = read_project(written(tmp_path, FULL))
    write_project(tmp_path / "bimichi.toml", project, ["a comment", "of\nlines"])
    assert read_project(tmp_path) == project
    assert (tmp_path / "bimichi.toml").read_text().startswith("# a comment\n# of lines\n")


@given(
    st.text(st.characters(blacklist_categories=["Cs"]), min_size=1).filter(
        lambda text: text.strip("\0 \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029\xa0")
    )
)
def test_any_path_is_written_so_that_it_reads_back(tmp_path_factory, path):
    if "\0" in path or not path.strip():
        return
    folder = tmp_path_factory.mktemp("project")
    write_project(folder / "bimichi.toml", Project([ProjectSource(path)], folder=folder))
    assert read_project(folder).sources == (ProjectSource(path),)


SOURCE = '[[sources]]\npath = "ir"\n'
REFUSED = {
    "": "project-sources",
    "sources = 3": "project-sources",
    "[sources]\npath = 'a'": "project-sources",
    "[[sources]]\nname = 'x'": "project-source-path",
    "[[sources]]\npath = 3": "project-source-path",
    "[[sources]]\npath = 'a'\nrecipies = 'equalize'": "project-key",
    f"{SOURCE}name = 'a'\nnames = ['b']": "project-source-keys",
    f"{SOURCE}name = 'a,b'": "project-commas",
    f"{SOURCE}name = ['']": "project-text",
    f"{SOURCE}bands = [1]": "project-text",
    f"{SOURCE}recipe = 'os:system'": "project-recipe",
    f"expressions = ['B3 +']\n{SOURCE}": "expression-syntax",
    f"objective = 'mean'\n{SOURCE}": "project-key",
    f"{SOURCE}[train]\nobjective = {{a = 1}}": "project-value",
    f"{SOURCE}[labels]\nboxes = 2020-01-01": "project-value",
    "not toml": "project-toml",
    "a = " + "[" * 5000: "project-toml",
    "x = '" + "a" * 2**24 + "'": "project-large",
}


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_what_is_wrong_is_refused(text, tmp_path):
    with refused(REFUSED[text]) as caught:
        read_project(written(tmp_path, text))
    assert len(str(caught.value)) < 600


def test_files_that_cannot_be_read(tmp_path):
    with refused("project-unreadable", "`bimichi init`"):
        read_project(tmp_path)
    (tmp_path / "bimichi.toml").write_bytes(b"\xff\xfe")
    with refused("project-toml"):
        read_project(tmp_path)
    with refused("project-unreadable"):
        read_project(Path("/dev/null"))


def test_names_are_given_for_all_sources_or_none(tmp_path):
    project = read_project(written(tmp_path, f'{SOURCE}name = "a"\n[[sources]]\npath = "vi"\n'))
    with refused("project-source-keys", "'vi'"):
        project.names()
    assert project.recipes() is None
