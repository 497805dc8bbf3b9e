"""Module paths of earlier versions, which code and pickled objects may still name: each leads to the new place."""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["MOVED", "MovedFinder"]

MOVED = {
    "bags": "learning.bags",
    "bicapacity": "measures.bicapacity",
    "capacity": "measures.capacity",
    "compact": "measures.compact",
    "comparison": "evaluation.comparison",
    "datasets.kaist_frames": "datasets.public",
    "datasets.msrs_scenes": "datasets.public",
    "experiments.candidates": "evaluation.methods",
    "experiments.files": "evaluation.files",
    "experiments.published": "experiments.paper",
    "experiments.split": "evaluation.split",
    "experiments.study": "evaluation.study",
    "gram": "learning.gram",
    "io": "measures.files",
    "lattice": "measures.lattice",
    "learned": "learning.learned",
    "linear": "integral.linear",
    "measure": "measures.base",
    "methods": "evaluation.methods",
    "objectives": "learning.objectives",
    "parts": "learning.parts",
    "planes": "integral.planes",
    "plotting.capacity": "plotting.bars",
    "plotting.history": "plotting.curves",
    "plotting.importance": "plotting.bars",
    "plotting.interaction": "plotting.matrix",
    "plotting.outlines": "plotting.bags",
    "plotting.roc": "plotting.curves",
    "polarity": "learning.polarity",
    "problem": "learning.problem",
    "progress": "_progress",
    "reduction": "learning.reduction",
    "sampling": "measures.sampling",
    "scale.arrays": "integral.labelled",
    "scale.cluster": "learning.cluster",
    "scaling": "learning.scaling",
    "scene": "learning.scene",
    "solvers": "learning.solvers",
    "squares": "learning.squares",
    "streaming": "learning.streaming",
    "tables": "_tables",
    "term_kernels": "integral.terms",
    "term_problem": "learning.term_problem",
    "terms": "measures.terms",
    "training": "learning.training",
    "two_additive": "measures.additive",
}
"""Old and new paths of modules and packages, within bimichi."""


class MovedFinder:  # no base class: importing those of importlib.abc takes longer than all of bimichi
    """Finds modules under their old paths, with a warning; the module found is the one at the new path, no copy."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a moved module or one inside a moved package, None for any other."""
        new = _new_place(fullname)
        if new is None:
            return None
        warnings.warn(
            f"{fullname} has moved: import {new} instead. The old path will go in a later version.",
            DeprecationWarning,
            stacklevel=2,  # the import statement: Python leaves out the frames of the import system
        )
        return ModuleSpec(fullname, self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import system make the module, which is then replaced."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the module at the new path under the old name as well; the import system takes it from there."""
        sys.modules[module.__name__] = import_module(str(_new_place(module.__name__)))


def _new_place(fullname: str) -> str | None:
    package, _, rest = fullname.partition(".")
    if package != "bimichi":
        return None
    names = rest.split(".")
    for n in range(1, len(names) + 1):
        new = MOVED.get(".".join(names[:n]))
        if new is not None:
            return ".".join(["bimichi", new, *names[n:]])
    return None
