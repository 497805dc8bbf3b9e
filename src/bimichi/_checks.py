"""Checks of single arguments, which return the value in the type used inside or raise an error; nodata as NaN."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError

Choice = TypeVar("Choice")


def refuse_masked(value: Any, what: str) -> Any:
    """Return a value that is no masked array: NumPy functions ignore masks, so that masked values would count."""
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidInputError(
            f"{what} is a masked array, whose mask would be ignored. Pass {what}.filled(np.nan) for sources, floats, "
            "which marks masked values as missing; leave masked labels, bags and weights out.",
            code="masked-array",
            argument=what,
        )
    return value


def is_integer(value: Any) -> TypeGuard[int]:
    """Return whether `value` is a whole number of Python or numpy; a bool is not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether `value` is a real number of Python or numpy; a bool is not."""
    return is_integer(value) or isinstance(value, float | np.floating)


def check_integer(value: Any, name: str, minimum: int = 1, maximum: int | None = None) -> int:
    """Return a whole number within bounds as an int; `name` is the argument's, for the error."""
    if is_integer(value) and value >= minimum and (maximum is None or value <= maximum):
        return int(value)
    rule = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
    raise InvalidInputError(
        f"{name} must be a whole number {rule}, got {value!r}.", code="whole-number", argument=name, value=value
    )


def check_number(
    value: Any, name: str, minimum: float | None = None, maximum: float | None = None, *, exclusive: bool = False
) -> float:
    """Return a finite number within bounds as a float; with `exclusive`, the bounds themselves are refused."""
    low, high = -np.inf if minimum is None else minimum, np.inf if maximum is None else maximum
    if is_number(value) and np.isfinite(value) and (low < value < high or (not exclusive and low <= value <= high)):
        return float(value)
    rule = "a finite number"
    if minimum is not None and maximum is not None:
        rule = f"a number in {'(' if exclusive else '['}{minimum:g}, {maximum:g}{')' if exclusive else ']'}"
    elif minimum is not None:
        rule += f" above {minimum:g}" if exclusive else f" of at least {minimum:g}"
    elif maximum is not None:
        rule += f" below {maximum:g}" if exclusive else f" of at most {maximum:g}"
    raise InvalidInputError(f"{name} must be {rule}, got {value!r}.", code="number-range", argument=name, value=value)


def check_binary(labels: NDArray[Any], name: str) -> Flags:
    """Return which labels are those of targets, or raise if they are not 0 and 1, -1 and +1, or bool."""
    numeric = labels.dtype.kind in "biuf"
    positive = np.asarray(labels == 1)
    others = labels[~positive]
    if not numeric or not ((others == 0).all() or (others == -1).all()):
        found = np.unique(labels if numeric else labels.astype(str))[:5]
        shown = ", ".join(f"{value:g}" if numeric else value for value in found)
        raise InvalidInputError(
            f"{name} must be 0 and 1, -1 and +1, or bool; found {shown}.", code="labels-binary", argument=name
        )
    return positive


def check_choice(value: Any, name: str, choices: Iterable[Choice]) -> Choice:
    """Return the one of `choices` (strings, whole numbers, None) that `value` equals; True is not 1."""
    known = list(choices)
    for choice in known:
        if choice is value or ((isinstance(value, str) or is_integer(value)) and choice == value):
            return choice
    raise InvalidInputError(
        f"{name} must be one of {', '.join(map(str, known))}, got {value!r}.", code="choice", argument=name, value=value
    )


def is_xarray(X: Any) -> bool:
    """Return whether `X` is an array or a dataset of xarray, which need not be imported to know."""
    return any(kind.__module__.partition(".")[0] == "xarray" for kind in type(X).__mro__)


def check_boxes(boxes: Any, name: str) -> Floats:
    """Return boxes (x, y, width, height) as an array of shape (n_boxes, 4), also if there are none."""
    refuse_masked(boxes, name)
    try:
        array = np.asarray(boxes, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{name} must be numbers, boxes in rows of four: {error}.", code="boxes-numbers", argument=name
        ) from error
    array = array.reshape(-1, 4) if array.size == 0 else array
    if array.ndim != 2 or array.shape[1] != 4 or not np.isfinite(array).all() or (array[:, 2:] <= 0).any():
        raise InvalidInputError(
            f"{name} must have shape (n, 4): x, y, width and height in pixels, finite, width and height above 0; "
            f"got {array.tolist()[:1]} among {len(array)} of shape {array.shape}.",
            code="boxes-shape",
            argument=name,
        )
    return array


def real_array(values: Any, name: str, rule: str = "it must hold real numbers.") -> NDArray[Any]:
    """Return an array of real numbers, in the type they have."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InvalidInputError(
            f"{name} cannot be read as an array: {error}.", code="array-unreadable", argument=name
        ) from error
    if array.dtype.kind not in "biuf":
        raise InvalidInputError(f"{name} has type {array.dtype}; {rule}", code="real-numbers", argument=name)
    return array


FILLS = ("_FillValue", "missing_value")
"""Attributes that name a nodata value."""


def fills_of(attributes: Mapping[str, Any]) -> list[float]:
    """Return the values that mean nodata, by these attributes."""
    found = [np.ravel(attributes[name]) for name in FILLS if name in attributes]
    return [value for values in found if values.dtype.kind in "iuf" for value in values.tolist()]


def to_nan(plane: NDArray[Any], fills: Iterable[float], kind: Any = np.float64) -> NDArray[Any]:
    """Return the plane with NaN where it has one of the `fills`: a copy, if it has any; integers become `kind`."""
    for fill in fills:
        with np.errstate(over="ignore"):
            missing = plane == (plane.dtype.type(fill) if plane.dtype.kind == "f" else fill)
        if missing.any():
            plane = np.where(missing, np.nan, plane if plane.dtype.kind == "f" else plane.astype(kind))
    return plane
