"""The registry of methods: what a line adds, what follows from it, what it refuses."""

import runpy
from pathlib import Path

import pytest
from refusals import refused
from registries import restored

from bimichi import KNNFusion, paper_methods
from bimichi.evaluate import register_method, registered_methods
from bimichi.methods.base import Fusion
from bimichi.methods.registry import METHODS, candidates
from bimichi.paper.figures import PEDESTRIAN


def test_rows_of_the_paper_are_marked():
    names = {f"source {k + 1}": "source {source}" for k in range(3)}
    assert {names.get(name, name) for name in PEDESTRIAN} == {e.name for e in registered_methods() if e.paper}


class Halved(Fusion):
    """Half of a source."""

    def __init__(self, source=0, source_names=None):
        self.source = source
        self.source_names = source_names

    def fit(self, X, y=None, bags=None):
        self.n_features_in_ = X.shape[1]
        return self

    def fuse(self, X):
        return self._split(X)[self.source] / 2


class TestRegistry:
    @pytest.fixture
    def registry(self):
        with restored(METHODS):
            yield

    def test_a_line_adds_a_row(self, registry):
        before = list(paper_methods(["a", "b"]))
        register_method("halved", Halved)
        methods = paper_methods(["a", "b"])
        assert list(methods) == [*before, "halved"]
        assert methods["halved"].source_names == ["a", "b"]
        register_method("half of {source}", Halved, tables=("study",), kind="half")
        rows = [row for row in candidates(["a", "b"]) if row.kind == "half"]
        assert [(row.name, row.labels) for row in rows] == [("half of a", "none"), ("half of b", "none")]

    def test_parameters_are_given_where_they_exist(self):
        entries = {entry.name: entry for entry in registered_methods("comparison")}
        method = entries["MICI min-max"].make(["a", "b"], random_state=3, n_jobs=2, nan="drop")
        given = {"objective": "min-max", "bipolar_input": True, "random_state": 3, "n_jobs": 2, "nan": "drop"}
        assert given.items() <= method.get_params().items()
        assert entries["SVM"].labels == "pixels"
        assert entries["KNN"].make(["a"]).get_params().keys() == KNNFusion().get_params().keys()

    def test_refuses(self):
        with refused("method-taken:name", "'KNN'"):
            register_method("KNN", Halved)
        with refused("method-kind:estimator", "'dict'"):
            register_method("dict", dict)


def test_the_docs_table_follows_the_registry():
    folder = Path(__file__).parents[2] / "docs"
    page = (folder / "methods.md").read_text(encoding="utf-8")
    assert runpy.run_path(str(folder / "tables.py"))["with_table"](page) == page, "run python docs/tables.py"
