"""The paper's experiments, two in other fields, and a study; each writes its figures, tables and numbers."""

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
]
