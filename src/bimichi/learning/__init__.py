"""Learning a measure: bags, objectives, spaces, problems, solvers, and data that come in parts."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bimichi.learning.fit import FitResult, check_training, fit_measure

__all__ = ["FitResult", "check_training", "fit_measure"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'bimichi.learning' has no attribute {name!r}")
    return getattr(import_module("bimichi.learning.fit"), name)  # scenes alone need none of it
