"""The paper's experiments, and a study over many scenes: each runs, and writes its figures, tables and numbers."""

from bimichi.evaluation.split import names_of, shows_both, split_scenes, street_scenes
from bimichi.evaluation.study import StudyResult, StudyRow, check_folder, run_study
from bimichi.experiments.pedestrian import SLOW, PedestrianResult, run_pedestrian, scene_folder, summary
from bimichi.experiments.um import UMResult, UMRun, run_um

__all__ = [
    "SLOW",
    "PedestrianResult",
    "StudyResult",
    "StudyRow",
    "UMResult",
    "UMRun",
    "check_folder",
    "names_of",
    "run_pedestrian",
    "run_study",
    "run_um",
    "scene_folder",
    "shows_both",
    "split_scenes",
    "street_scenes",
    "summary",
]
