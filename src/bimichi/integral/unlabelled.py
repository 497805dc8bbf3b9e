"""Arrays and datasets of xarray as plain planes for functions that compute on those, and results with coordinates."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._checks import is_xarray
from bimichi._extras import import_optional
from bimichi._nodata import fills_of, to_nan
from bimichi.errors import InvalidInputError
from bimichi.integral.labelled import check_alike, sources_of
from bimichi.integral.matching import match_sources

if TYPE_CHECKING:
    import xarray as xr

SOURCE = "source"
"""The dimension of sources of an array."""


class Unlabelled(NamedTuple):
    """One plain array per source, the names of the sources if they have any, and an array with their coordinates."""

    planes: list[NDArray[Any]]
    names: list[str] | None
    like: "xr.DataArray"


def unlabelled(
    X: "xr.DataArray | xr.Dataset", expected: Sequence[str] | None = None, n_expected: int | None = None
) -> Unlabelled:
    """Load the sources of an array with the dimension "source", or of a dataset; values that mean nodata become NaN.

    Sources with names are put in the order of those expected. Lazy arrays are computed.
    """
    planes, names = sources_of(X, SOURCE, "Rename the one of its sources, e.g. X.rename(band='source').")
    if n_expected is not None:
        where, remedy = "X", "Choose and name the sources as the model has them, with X.sel or X[[...]]."
        order = match_sources(expected, n_expected, names, len(planes), where, remedy)
        planes, names = [planes[k] for k in order], None if names is None else [names[k] for k in order]
    check_alike(planes, chunks=False)
    dims, fills = planes[0].dims, [fills_of({**X.attrs, **plane.attrs}) for plane in planes]
    values = [np.asarray(plane.transpose(*dims).values) for plane in planes]
    return Unlabelled([to_nan(*pair) for pair in zip(values, fills, strict=True)], names, planes[0])


def relabelled(
    values: NDArray[Any], like: "xr.DataArray", name: str, source_names: Sequence[str] | None = None
) -> "xr.DataArray":
    """Return values with the coordinates of an array; with names, their last axis is that of the sources."""
    coordinates: dict[Any, Any] = dict(like.coords)
    dimensions = list(like.dims)
    if source_names is not None:
        dimensions.append(SOURCE)
        coordinates[SOURCE] = list(source_names)
    made: xr.DataArray = import_optional("xarray").DataArray(values, dims=dimensions, coords=coordinates, name=name)
    return made


def aligned(given: Any, like: "xr.DataArray | None", what: str) -> Any:
    """Return an array of xarray that belongs to the pixels of `like` as a plain one, its axes in the same order.

    What is not of xarray is returned as it is.
    """
    if not is_xarray(given):
        return given
    xarray = import_optional("xarray")
    if not isinstance(given, xarray.DataArray):
        raise InvalidInputError(
            f"{what} must be one array, got a {type(given).__name__}. Take a variable of it, X[name]."
        )
    if like is None:
        return given.values
    try:
        placed = xarray.align(given, like.drop_vars(list(set(like.coords) - set(like.dims))), join="exact")[0]
        return placed.transpose(*like.dims).values
    except ValueError as error:
        raise InvalidInputError(
            f"{what} has the dimensions {_sizes(given)} and the sources have {_sizes(like)}; both, and their "
            f"coordinates, must agree. Match them, e.g. with {what}.reindex_like or {what}.interp_like."
        ) from error


def _sizes(array: "xr.DataArray") -> str:
    return ", ".join(f"{name} ({size})" for name, size in array.sizes.items())


def as_image(image: Any) -> "tuple[NDArray[Any], xr.DataArray]":
    """Return an array of xarray of one band, or of several along "source", as (height, width[, bands])."""
    if not hasattr(image, "data_vars") and image.ndim == 2:
        planes, _, like = unlabelled(image.expand_dims(SOURCE))
        return planes[0], like
    planes, _, like = unlabelled(image)
    return np.stack(planes, axis=-1), like
