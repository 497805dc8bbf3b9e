"""The numbers printed in the paper, to be shown beside those measured here.

References
----------
H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty", FUZZ-IEEE 2024:
Tables II and III (UM), and VII (pedestrians; one KAIST frame; the paper does not say which).
"""

__all__ = ["PEDESTRIAN", "UM"]

UM = {"bipolar": {"U": 0.97, "background": -0.85}, "magnitude": {"U": 0.99, "background": 0.07}}
"""By objective: g(12, 3), which is the integral on the U, and g(23, 1), which is that on the background."""

PEDESTRIAN = {
    "source 1": (0.495, 1.948),
    "source 2": (0.470, 1.168),
    "source 3": (0.812, 0.897),
    "min": (0.634, 0.717),
    "max": (0.494, 1.966),
    "mean": (0.621, 1.279),
    "weighted mean": (0.813, 0.928),
    "KNN": (0.795, 0.405),
    "SVM": (0.740, 0.936),
    "Mask R-CNN": (0.499, 0.375),
    "CI-QP": (0.640, 0.806),
    "MICI noisy-or": (0.650, 0.810),
    "MICI-BFM": (0.634, 0.805),
    "Bi-MIChI (objective 1)": (0.711, 0.388),
    "Bi-MIChI (objective 2)": (0.654, 0.390),
}
"""AUC and RMSE, by method under the names of `bimichi.paper_methods`."""
