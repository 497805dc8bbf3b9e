"""The paper's experiments, two in other fields, and a study; each writes its figures, tables and numbers."""

import warnings
from collections.abc import Sequence

from bimichi._tables import Table
from bimichi.evaluate.study import (
    StudyResult,
    StudyRow,
    check_folder,
    names_of,
    run_study,
    shows_both,
    split_scenes,
    street_scenes,
)
from bimichi.paper.fields import FieldResult, field_methods, run_field
from bimichi.paper.pedestrian import SLOW, PedestrianResult, mean_table, run_pedestrian, scene_folder
from bimichi.paper.um import UMResult, UMRun, run_um

__all__ = [
    "SLOW",
    "FieldResult",
    "PedestrianResult",
    "StudyResult",
    "StudyRow",
    "UMResult",
    "UMRun",
    "check_folder",
    "field_methods",
    "mean_table",
    "names_of",
    "run_field",
    "run_pedestrian",
    "run_study",
    "run_um",
    "scene_folder",
    "shows_both",
    "split_scenes",
    "street_scenes",
    "summary",
]


def summary(results: Sequence[PedestrianResult]) -> Table:
    """Return `mean_table`, under its name before version 0.2; deprecated."""
    warnings.warn("bimichi.paper.summary is now called mean_table.", DeprecationWarning, stacklevel=2)
    return mean_table(results)
