"""What explanations start from: a measure, or a fitted model with the sources made ready as it makes them."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from bimichi.errors import InvalidInputError
from bimichi.estimators import BiMIChI
from bimichi.integral.planes import split_planes
from bimichi.measures.additive import TwoAdditive
from bimichi.measures.base import Measure
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.capacity import Capacity

__all__ = ["Explained", "check_elements", "lowest", "measure_of", "ready"]

Explained = BiCapacity | Capacity | TwoAdditive | BiMIChI
"""What can be explained."""


def measure_of(measure_or_model: Explained) -> BiCapacity | Capacity:
    """Return the measure itself, or the one that a fitted model has learned; a 2-additive one by its elements."""
    if isinstance(measure_or_model, BiCapacity | Capacity):
        return measure_or_model
    if isinstance(measure_or_model, TwoAdditive):
        return measure_or_model.to_bicapacity()
    if isinstance(measure_or_model, BiMIChI):
        check_is_fitted(measure_or_model)
        return measure_of(measure_or_model.bicapacity_)
    raise InvalidInputError(
        f"measure_or_model must be a BiCapacity, a Capacity or a fitted BiMIChI, got {type(measure_or_model).__name__}."
    )


def ready(measure_or_model: Explained, X: Any) -> tuple[BiCapacity | Capacity, Any]:
    """Return the measure, and the sources as its integral takes them: scaled and turned as `BiMIChI.integral` does."""
    measure = measure_of(measure_or_model)
    if not isinstance(measure_or_model, BiMIChI):
        return measure, X
    model = measure_or_model
    if hasattr(X, "columns"):  # a data frame: its columns must be those of fit, in their order
        X = validate_data(model, X, dtype=[np.float64, np.float32], reset=False, ensure_all_finite="allow-nan")
    _, planes = split_planes(X, model.n_features_in_)
    entered = model._scale.apply([np.atleast_1d(plane) for plane in planes], model.polarity_)
    return measure, [plane.reshape(planes[0].shape) for plane in entered]


def check_elements(measure_or_model: Explained, what: str) -> None:
    """Raise if a measure is told by terms, so that its elements are not free of each other."""
    measure = measure_or_model.bicapacity_ if isinstance(measure_or_model, BiMIChI) else measure_or_model
    if isinstance(measure, TwoAdditive):
        raise InvalidInputError(
            f"{what} is about elements that are free of each other; those of a measure with few terms are not. Look at "
            "its terms, or at indices(); or fit with additivity=None."
        )


def lowest(measure: Measure) -> float:
    """Return the least value that a source may take: -1, or 0 for a capacity."""
    return -1.0 if measure.lattice.base == 3 else 0.0
