"""The experiments of the paper, and others like them; each writes its figures, tables and numbers.

H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty", FUZZ-IEEE 2024:

- Eq. (1), the integral: `bimichi.choquet`; its objectives 1 and 2: "bipolar" and "magnitude" of `bimichi.BiMIChI`.
- UM, Tables II and III: `um`; the picture and its best measure in closed form: `bimichi.datasets.um`, `um_optimum`.
- Pedestrians at night, Table VII: `pedestrian`; its sources: `bimichi.datasets.pedestrian_sources`; its methods:
  `bimichi.paper_methods`, both with the preset "paper".
- The numbers and figures that it prints: `figures`.

Not in the paper: floods and lesions (`fields`), and studies over many scenes (`run_study`).
"""

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
