"""The methods of the paper's comparison, ready to run."""

from collections.abc import Sequence
from typing import Any

from bimichi.estimators.averages import (
    ConstantFusion,
    MaxFusion,
    MeanFusion,
    MinFusion,
    SingleSource,
    WeightedMeanFusion,
)
from bimichi.estimators.base import Fusion
from bimichi.estimators.bimichi import BiMIChI
from bimichi.estimators.choquet_qp import BiCapacityQP, ChoquetQP
from bimichi.estimators.classifiers import KNNFusion, SVMFusion
from bimichi.estimators.detector import DetectorMask
from bimichi.estimators.mici import MICI, BinaryMICI

__all__ = ["paper_methods"]


def paper_methods(
    source_names: Sequence[str], detector: DetectorMask | None = None, random_state: Any = 0
) -> dict[str, Fusion]:
    """Return the methods of the paper's table, for sources in [-1, 1], and a few that belong beside them.

    Beyond the paper: the empty map, MICI's other objectives, the `mean` objective, and a bi-capacity fitted to the
    label of every instance, which shows what labels of bags cost.

    Parameters
    ----------
    source_names : sequence of str
        Names of the sources.
    detector : DetectorMask, optional
        A detector with weights or ready-made masks; without, its row says that it was not run.
    random_state : int, optional
        Seed of all that draw.
    """
    names = list(source_names)
    plain: dict[str, Any] = {"source_names": names, "bipolar_input": True}
    seeded = plain | {"random_state": random_state}
    bipolar: dict[str, Any] = {"source_names": names, "random_state": random_state}
    return {
        "empty map": ConstantFusion(**plain),
        **{f"source {name}": SingleSource(k, **plain) for k, name in enumerate(names)},
        "min": MinFusion(**plain),
        "max": MaxFusion(**plain),
        "mean": MeanFusion(**plain),
        "weighted mean": WeightedMeanFusion(**plain),
        "KNN": KNNFusion(random_state=random_state),
        "SVM": SVMFusion(random_state=random_state),
        "Mask R-CNN": DetectorMask() if detector is None else detector,
        "CI-QP": ChoquetQP(**plain),
        "bi-capacity QP": BiCapacityQP(source_names=names),
        "MICI noisy-or": MICI("noisy-or", **seeded),
        "MICI min-max": MICI("min-max", **seeded),
        "MICI generalised mean": MICI("generalized-mean", **seeded),
        "MICI-BFM": BinaryMICI(**seeded),
        "Bi-MIChI (objective 1)": BiMIChI("bipolar", **bipolar),
        "Bi-MIChI (objective 2)": BiMIChI("magnitude", **bipolar),
        "Bi-MIChI (mean)": BiMIChI("mean", **bipolar),
    }
