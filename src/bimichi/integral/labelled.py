"""`choquet` for every kind of array; arrays of xarray as plain ones, and results with their coordinates."""

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._checks import FILLS, fills_of, is_xarray, to_nan
from bimichi._extras import import_optional
from bimichi.errors import InvalidInputError
from bimichi.integral.integrals import check_arguments, integrate
from bimichi.measures.base import Measure, check_names

if TYPE_CHECKING:
    import xarray as xr


SOURCE = "source"
"""The dimension of sources of an array."""

OF_SOURCES = {*FILLS, "scale_factor", "add_offset", "valid_min", "valid_max", "valid_range"}
"""Attributes that describe how sources are stored, which do not apply to the fused array."""


class Fuser(NamedTuple):
    """A function that fuses a list of planes; it can be pickled if the model can, so that workers may run it."""

    fuse: Callable[[list[NDArray[Any]]], NDArray[Any]]
    n_sources: int
    names: tuple[str, ...] | None
    """None if the sources have no names; they are then taken in their order."""


def fuser_of(model: Any, n_jobs: int | None = None, method: str = "fuse", **options: Any) -> Fuser:
    """Return a function of planes for a rule, a fitted method, or the Choquet integral over a measure.

    A fitted model has `rule_`, or at least `fuse` and `n_features_in_`. `method` is that of a model or a rule to call;
    `options` are those of `choquet` for a measure. By default, a model's own number of threads is used.
    """
    if isinstance(model, Measure):
        return Fuser(partial(integrate, g=model, n_jobs=n_jobs, **options), model.n_sources, own_names(model))
    rule = getattr(model, "rule_", model)
    if isinstance(getattr(rule, "measure", None), Measure):
        return Fuser(partial(getattr(rule, method), n_jobs=n_jobs), rule.n_sources, own_names(rule))
    if not hasattr(model, "fuse") or getattr(model, "needs", None) == "image":
        raise InvalidInputError(
            f"model must be a fitted method that fuses sources, a rule or a measure, got {type(model).__name__}.",
            code="model-kind",
            argument="model",
            value=model,
        )
    n_sources = getattr(model, "n_features_in_", None)
    if n_sources is None:
        raise InvalidInputError(
            f"model is not fitted: this {type(model).__name__} has no n_features_in_. Call fit.",
            code="not-fitted",
            argument="model",
        )
    names = getattr(model, "source_names", None)
    names = getattr(model, "feature_names_in_", None) if names is None else names
    if n_jobs is not None and hasattr(model, "n_jobs"):
        model = copy(model)
        model.n_jobs = n_jobs
    return Fuser(getattr(model, method), n_sources, None if names is None else check_names(names, n_sources))


def match_sources(
    expected: Sequence[str] | None,
    n_expected: int,
    names: Sequence[str] | None,
    n_sources: int,
    where: str,
    remedy: str,
) -> list[int]:
    """Return the position, among the sources found, of each source that is expected.

    If either has no names, sources are taken in order. `where` and `remedy` are for the error if they differ: what
    holds the sources found, and what to do.
    """
    if expected is None or names is None:
        fits, positions = n_sources == n_expected, list(range(n_sources))
    else:
        fits = sorted(names) == sorted(expected)
        positions = [list(names).index(name) for name in expected] if fits else []
    if not fits:
        own, other = _source_list(names, n_sources), _source_list(expected, n_expected)
        raise InvalidInputError(f"{where} has {own}, but the model has {other}. {remedy}", code="sources-number")
    return positions


def own_names(model: Any) -> tuple[str, ...] | None:
    """Return the names of the sources, None if they are merely numbered."""
    names = tuple(model.source_names)
    return None if names == check_names(None, model.n_sources) else names


def _source_list(names: Sequence[str] | None, n: int) -> str:
    count = "1 source" if n == 1 else f"{n} sources"
    return count if names is None else f"{count} ({', '.join(names)})"


def choquet(
    X: ArrayLike | Sequence[ArrayLike],
    g: Measure,
    *,
    nan: str = "propagate",
    check_range: bool = True,
    out: NDArray[Any] | None = None,
    n_jobs: int | None = None,
) -> NDArray[Any]:
    """Fuse every instance by the Choquet integral.

    Parameters
    ----------
    X : array-like of shape (..., n_sources), or list or tuple of n_sources equally shaped arrays
        The sources, as rows or as planes (no full copy is made of either). They must lie in [-1, 1], in [0, 1] for a
        `Capacity`. An array or a dataset of xarray gives an array of xarray back; see `bimichi.fuse.fuse_array`.
    g : BiCapacity, Capacity or AdditiveBiCapacity
        The measure.
    nan : {"propagate", "raise"}
        An instance with NaN in any source gives NaN, or is an error.
    check_range : bool, default=True
        Whether values outside the range are an error. Without the check, the same formula is applied to them.
    out : ndarray, optional
        Where to write the result, of the result's shape and type.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.

    Returns
    -------
    fused : ndarray of shape (...)
        float32 if all sources are float32 (or float16), else float64.

    Notes
    -----
    O(n m log^2 m). Two to four sources of a bi-capacity need no sort: the integral is a sum over subsets S of
    min |x| over S times a polynomial in the signs, which is vectorised over planes. Nor does an
    `AdditiveBiCapacity`: O(n m^2).
    """
    if not is_xarray(X):
        return integrate(X, g, nan=nan, check_range=check_range, out=out, n_jobs=n_jobs)
    check_arguments(g, nan)
    if out is not None:
        raise InvalidInputError(
            "out cannot be given with an array of xarray; leave it out.", code="out-with-xarray", argument="out"
        )
    return fuse_array(g, X, nan=nan, check_range=check_range, n_jobs=n_jobs)  # type: ignore[return-value,arg-type]


def fuse_array(
    model: Any, X: "xr.DataArray | xr.Dataset", source_dim: str = "source", method: str = "fuse", **options: Any
) -> "xr.DataArray":
    """Fuse an array or a dataset of xarray.

    ``model.fuse(X)``, ``choquet(X, g)`` and ``X.bimichi.fuse(model)`` call it.

    Parameters
    ----------
    model : fitted Fusion, FusionRule or Measure
        What fuses.
    X : xarray.DataArray or xarray.Dataset
        An array with a dimension of sources, or a dataset with one variable per source; in memory or with Dask. Sources
        with names (text on the coordinate of that dimension, or variables) are matched with those of the model, in any
        order. NaN, and the values of the attributes `_FillValue` and `missing_value`, give NaN.
    source_dim : str, default="source"
        The dimension of sources of an array.
    method : str, default="fuse"
        Which method of the model; `BiMIChI` also has "integral".
    **options
        Of a measure: `nan`, `check_range` and `n_jobs` of `choquet`.

    Returns
    -------
    fused : xarray.DataArray
        Without the dimension of sources, but with coordinates, CRS (such as rioxarray's `spatial_ref`), and attributes,
        except those that describe how sources are stored or that have one entry per source. float32 if all sources are
        float32 (or float16), otherwise float64.

    Notes
    -----
    Each Dask block is fused on its own by one thread; nothing is computed or rechunked here. Blocks may hold all
    sources, or one each.

    Examples
    --------
    >>> import xarray as xr
    >>> from bimichi import BiCapacity
    >>> g = BiCapacity.additive([0.75, 0.25], source_names=["thermal", "rgb"])
    >>> X = xr.DataArray([[0.0, 0.8], [0.4, 0.4]], dims=("source", "x"), coords={"source": ["rgb", "thermal"]})
    >>> fuse_array(g, X).values
    array([0.3, 0.5])
    """
    xarray = import_optional("xarray")
    if not isinstance(X, xarray.DataArray | xarray.Dataset):
        raise InvalidInputError(
            f"X must be a DataArray or a Dataset of xarray, got {type(X).__name__}.",
            code="xarray-kind",
            argument="X",
            value=X,
        )
    planes, names = sources_of(
        X,
        source_dim,
        "Name the one of its sources: import bimichi.xarray, then X.bimichi.fuse(model, source_dim=...); or rename it "
        "with X.rename.",
    )
    lazy = any(plane.chunks is not None for plane in planes)
    if lazy or "n_jobs" not in options:
        options["n_jobs"] = 1 if lazy else None
    fuser = fuser_of(model, method=method, **options)
    where, remedy = (
        (f"The dimension {source_dim!r}", f"Choose with X.sel({source_dim}=[...]), or rename them.")
        if isinstance(X, xarray.DataArray)
        else ("The dataset", "Choose its variables with X[[...]], or rename them.")
    )
    positions = match_sources(fuser.names, fuser.n_sources, names, len(planes), where, remedy)
    planes = [planes[k] for k in positions]
    check_alike(planes)
    narrow = all(plane.dtype in (np.float16, np.float32) for plane in planes)
    fused: xr.DataArray = xarray.apply_ufunc(
        _fuse_block,
        *planes,
        kwargs={"fuser": fuser, "fills": [fills_of({**X.attrs, **plane.attrs}) for plane in planes]},
        dask="parallelized",
        output_dtypes=[np.float32 if narrow else np.float64],
        keep_attrs="drop_conflicts",
    )
    return _with_attributes(fused.rename("fused"), X, planes)


def _fuse_block(*planes: NDArray[Any], fuser: Fuser, fills: list[list[float]]) -> NDArray[Any]:
    return fuser.fuse([to_nan(plane, own) for plane, own in zip(planes, fills, strict=True)])


def sources_of(
    X: "xr.DataArray | xr.Dataset", source_dim: str, remedy: str
) -> tuple[list["xr.DataArray"], list[str] | None]:
    """Return one array per source, and the names of the sources, if they have any."""
    if isinstance(X, import_optional("xarray").Dataset):
        # A variable without dimensions is no source: it holds the CRS, as files of the CF conventions have it.
        variables = {str(name): variable for name, variable in X.data_vars.items() if variable.ndim}
        if not variables:
            raise InvalidInputError(
                "X is a dataset without variables; it must have one per source.", code="sources-empty", argument="X"
            )
        return list(variables.values()), list(variables)
    if source_dim not in X.dims:
        raise InvalidInputError(
            f"X has the dimensions {', '.join(map(str, X.dims))}, none of which is {source_dim!r}. {remedy}",
            code="source-dimension",
            argument="X",
        )
    names = None
    if source_dim in X.coords:
        labels = X.coords[source_dim].values.tolist()
        names = labels if all(isinstance(label, str) for label in labels) else None
    whole = cast("xr.DataArray", X)
    bare = whole.drop_vars([name for name, coordinate in X.coords.items() if source_dim in coordinate.dims])
    return [bare.isel({source_dim: k}) for k in range(X.sizes[source_dim])], names


def check_alike(planes: Sequence["xr.DataArray"], chunks: bool = True) -> None:
    """Refuse sources that are no numbers, or whose dimensions, or chunks, differ."""
    first = planes[0]
    for plane in planes:
        if plane.dtype.kind not in "biuf":
            raise InvalidInputError(
                f"Source {plane.name!r} has type {plane.dtype}; sources must be real numbers.", code="source-type"
            )
        if set(plane.dims) != set(first.dims):
            raise InvalidInputError(
                f"Source {first.name!r} has the dimensions {first.dims}, {plane.name!r} has {plane.dims}; "
                "they must agree. Broadcast them with xarray.broadcast.",
                code="source-dimensions",
            )
        if chunks and dict(plane.chunksizes) != dict(first.chunksizes):
            raise InvalidInputError(
                f"Source {first.name!r} has the chunks {dict(first.chunksizes)}, {plane.name!r} has "
                f"{dict(plane.chunksizes)}; they must agree. Choose, with X.chunk or X.unify_chunks.",
                code="source-chunks",
            )


def _with_attributes(
    fused: "xr.DataArray", X: "xr.DataArray | xr.Dataset", planes: Sequence["xr.DataArray"]
) -> "xr.DataArray":
    """Give the result those attributes of its sources that also hold for it."""
    attributes = {**X.attrs, **fused.attrs} if isinstance(X, import_optional("xarray").Dataset) else fused.attrs
    fused.attrs = {
        name: value
        for name, value in attributes.items()
        if name not in OF_SOURCES and not (isinstance(value, list | tuple) and len(value) == len(planes))
    }
    if any(name in holder.attrs for holder in (X, *planes) for name in FILLS):
        fused.attrs["_FillValue"] = float("nan")
    mapping = {plane.encoding.get("grid_mapping") for plane in planes}
    if len(mapping) == 1 and None not in mapping:
        fused.encoding["grid_mapping"] = mapping.pop()
    return fused


class Unlabelled(NamedTuple):
    """One plain array per source, the names of the sources if they have any, and an array with their coordinates."""

    planes: list[NDArray[Any]]
    names: list[str] | None
    like: "xr.DataArray"


def unlabelled(X: Any, model: Any = None) -> Unlabelled:
    """Load the sources of an array with the dimension "source", or of a dataset; values that mean nodata become NaN.

    Sources with names are put in the order of those of a rule or a measure, if one is given. Lazy arrays are computed.
    """
    planes, names = sources_of(X, SOURCE, "Rename the one of its sources, e.g. X.rename(band='source').")
    if model is not None:
        where, remedy = "X", "Choose and name the sources as the model has them, with X.sel or X[[...]]."
        order = match_sources(own_names(model), model.n_sources, names, len(planes), where, remedy)
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
    array: xr.DataArray = import_optional("xarray").DataArray(values, dims=dimensions, coords=coordinates, name=name)
    return array


def aligned(array: Any, like: "xr.DataArray | None", argument: str) -> Any:
    """Return an array of xarray that belongs to the pixels of `like` as a plain one, its axes in the same order.

    What is not of xarray is returned as it is.
    """
    if not is_xarray(array):
        return array
    xarray = import_optional("xarray")
    if not isinstance(array, xarray.DataArray):
        raise InvalidInputError(
            f"{argument} must be one array, got a {type(array).__name__}. Take a variable of it, X[name].",
            code="xarray-dataset",
            argument=argument,
        )
    if like is None:
        return array.values
    try:
        placed = xarray.align(array, like.drop_vars(list(set(like.coords) - set(like.dims))), join="exact")[0]
        return placed.transpose(*like.dims).values
    except ValueError as error:
        own, other = (", ".join(f"{name} ({n})" for name, n in sizes.items()) for sizes in (array.sizes, like.sizes))
        raise InvalidInputError(
            f"{argument} has the dimensions {own} and the sources have {other}; both, and their "
            f"coordinates, must agree. Match them, e.g. with {argument}.reindex_like or {argument}.interp_like.",
            code="dimensions-differ",
            argument=argument,
        ) from error


def as_image(image: Any) -> "tuple[NDArray[Any], xr.DataArray]":
    """Return an array of xarray of one band, or of several along "source", as (height, width[, bands])."""
    if not hasattr(image, "data_vars") and image.ndim == 2:
        planes, _, like = unlabelled(image.expand_dims(SOURCE))
        return planes[0], like
    planes, _, like = unlabelled(image)
    return np.stack(planes, axis=-1), like
