"""The paper's experiments, and a study over many scenes: each runs, and writes its figures, tables and numbers."""

from bimichi.experiments.pedestrian import PedestrianResult, run_pedestrian, scene_folder, summary
from bimichi.experiments.um import UMResult, run_um

__all__ = ["PedestrianResult", "UMResult", "run_pedestrian", "run_um", "scene_folder", "summary"]
