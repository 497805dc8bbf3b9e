"""Module paths of earlier versions, which code and pickled objects may still name: each leads to the new place."""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

SAME_NAME = {
    "": "progress tables",
    "evaluation": "comparison methods experiments.files experiments.split experiments.study",
    "integral": "linear planes",
    "learning": (
        "bags objectives parts polarity problem reduction scale.cluster scaling scene solvers streaming training"
    ),
    "measures": "bicapacity capacity compact lattice sampling terms",
}
OTHER_NAME = {
    "datasets.pedestrians": "datasets.public",
    "datasets.satellites": "datasets.terrain",
    "evaluation.repeats": "evaluation.study",
    "explain.data_weighted": "explain.indices",
    "imaging.cores": "imaging.segments",
    "imaging.detection_files": "imaging.detections",
    "imaging.gdal": "imaging.raster_layers",
    "imaging.geotiff": "imaging.writing",
    "imaging.labelled_layers": "imaging.opening",
    "imaging.making": "imaging.recipes",
    "imaging.matching": "imaging.targets",
    "imaging.medical": "imaging.opening",
    "imaging.outlines": "imaging.shapes",
    "imaging.rasterising": "imaging.placement",
    "integral.unlabelled": "integral.labelled",
    "io": "measures.files",
    "measure": "measures.base",
    "report.thumbnails": "_pictures",
    "scale.arrays": "integral.labelled",
    "scale.gdal": "imaging.raster_layers",
    "term_kernels": "integral.terms",
    "two_additive": "measures.additive",
}
MOVED = OTHER_NAME | {
    old: f"{home}.{old.rpartition('.')[2]}" if home else f"_{old}"
    for home, names in SAME_NAME.items()
    for old in names.split()
}
"""Old and new paths of modules and packages, within bimichi."""


class MovedFinder:  # no base class: importing those of importlib.abc takes longer than all of bimichi
    """Finds modules under their old paths, with a warning; the module found is the one at the new path, no copy."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a moved module or one inside a moved package, None for any other."""
        new = _new_path(fullname)
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
        sys.modules[module.__name__] = import_module(str(_new_path(module.__name__)))


def _new_path(fullname: str) -> str | None:
    package, *names = fullname.split(".")
    if package == "bimichi":
        for n in range(1, len(names) + 1):
            new = MOVED.get(".".join(names[:n]))
            if new is not None:
                return ".".join([package, new, *names[n:]])
    return None
