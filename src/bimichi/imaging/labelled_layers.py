"""Layers of xarray objects, and of Zarr and NetCDF files, which xarray reads."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bimichi._extras import import_optional
from bimichi._nodata import fills_of, to_nan
from bimichi.errors import InvalidInputError
from bimichi.imaging.bands import Image
from bimichi.imaging.grids import Grid
from bimichi.imaging.layers import Band, Layer, ReadBands, float_type, resized

if TYPE_CHECKING:
    import xarray as xr

ROWS, COLUMNS = ("y", "lat", "latitude", "row"), ("x", "lon", "longitude", "column")
SOURCES = ("source", "band")  # dimensions of sources
PACKED = ("scale_factor", "add_offset")


@dataclass(frozen=True, eq=False)
class LabelledLayer(Layer):
    """Planes of xarray, in memory or with Dask, read in windows."""

    planes: tuple[Any, ...] = ()
    fills: tuple[tuple[float, ...], ...] = ()

    @property
    def lazy(self) -> bool:
        return True

    def _kept(self, chosen: list[int]) -> Self:
        planes, fills = tuple(self.planes[k] for k in chosen), tuple(self.fills[k] for k in chosen)
        return replace(super()._kept(chosen), planes=planes, fills=fills)

    def reader(self, grid: Grid, held: ExitStack) -> ReadBands:
        if not self.grid.matches(grid):
            whole = [resized(self._values(k, np.s_[:, :]), grid.shape) for k in range(len(self.bands))]
            return lambda bands, window: [whole[k][window.slices] for k in bands]
        return lambda bands, window: [self._values(k, window.slices) for k in bands]

    def _values(self, k: int, part: tuple[slice, slice]) -> Image:
        try:
            values = np.asarray(self.planes[k][part].values)
        except Exception as error:  # whatever the storage raises
            raise InvalidInputError(f"Cannot read {self.label}: {error}.") from error
        return to_nan(values, self.fills[k], float_type(values.dtype))


def open_store(path: Path) -> LabelledLayer:
    """Open a Zarr store or a NetCDF file, without reading its values."""
    xarray = import_optional("xarray")
    try:
        if path.is_dir():
            import_optional("zarr")
            opened = xarray.open_zarr(path, consolidated=False, chunks=None)
        else:
            opened = xarray.open_dataset(path)
    except ImportError:
        raise
    except Exception as error:
        raise InvalidInputError(f"Cannot read {path}: {error}.") from error
    return replace(labelled_layer(opened, str(path)), path=path)


def labelled_layer(given: "xr.DataArray | xr.Dataset", label: str) -> LabelledLayer:
    """Return the layer of an array or a dataset; its planes have the dimensions y and x, in this order if so named."""
    planes, names = _planes(given, label)
    for name, plane in zip(names, planes, strict=True):
        if plane.ndim != 2 or plane.size == 0 or plane.dtype.kind not in "buif":
            raise InvalidInputError(
                f"{label}: source {name or plane.name!r} has the dimensions {', '.join(map(str, plane.dims))} and type "
                f"{plane.dtype}; it must have two, rows and columns, of real numbers. Select one time or level first."
            )
    planes = [_upright(plane) for plane in planes]
    first = planes[0]
    for name, plane in zip(names, planes, strict=True):
        if plane.shape != first.shape:
            raise InvalidInputError(f"{label}: source {name!r} has shape {plane.shape}, the first {first.shape}.")
    bands = tuple(
        Band(k + 1, name, _stored(plane), None, plane.attrs.get("units"))
        for k, (plane, name) in enumerate(zip(planes, names, strict=True))
    )
    fills = tuple(tuple(fills_of({**given.attrs, **plane.attrs})) for plane in planes)
    grid = Grid(first.shape[1], first.shape[0], *_place(given, first))
    return LabelledLayer(label, bands, grid, planes=tuple(planes), fills=fills)


def _planes(given: "xr.DataArray | xr.Dataset", label: str) -> tuple[list[Any], list[str | None]]:
    if hasattr(given, "data_vars"):
        # A variable without dimensions is no source: it holds the CRS, as files of the CF conventions have it.
        found = {str(name): variable for name, variable in given.data_vars.items() if variable.ndim}
        if not found:
            raise InvalidInputError(f"{label} is a dataset without variables; it must have one per source.")
        if len(found) > 1 or next(iter(found.values())).ndim == 2:
            return list(found.values()), list(found)
        given = next(iter(found.values()))
    if given.ndim == 2:
        return [given], [None if given.name is None else str(given.name)]
    dimension = next((name for name in SOURCES if name in given.dims), None)
    if dimension is None:
        raise InvalidInputError(
            f"{label} has the dimensions {', '.join(map(str, given.dims))}, none of which is {' or '.join(SOURCES)}. "
            "Rename that of its sources with rename."
        )
    n = given.sizes[dimension]
    labels = given.coords[dimension].values.tolist() if dimension in given.coords else []
    described = given.attrs.get("long_name", ())
    names: list[str | None] = [None] * n
    if labels and all(isinstance(text, str) for text in labels):
        names = list(labels)
    elif isinstance(described, list | tuple) and len(described) == n:
        names = [str(text) for text in described]
    return [given.isel({dimension: k}) for k in range(n)], names


def _upright(plane: Any) -> Any:
    rows, columns = (next((name for name in known if name in plane.dims), None) for known in (ROWS, COLUMNS))
    return plane.transpose(rows, columns) if rows and columns else plane


def _stored(plane: Any) -> np.dtype[Any]:
    """Return the type of the values; that in the file, if NaN alone made them floats."""
    own: np.dtype[Any] = plane.dtype
    kept: np.dtype[Any] = np.dtype(plane.encoding.get("dtype", own))
    return kept if kept.kind in "iu" and not any(name in plane.encoding for name in PACKED) else own


def _place(given: Any, plane: Any) -> tuple[Any, Any]:
    """Return the CRS, as rioxarray and the CF conventions keep it, and the transform; None where there is none."""
    holders = [given[name] for name in (*given.coords, *getattr(given, "data_vars", ())) if given[name].ndim == 0]
    text = next((h.attrs[key] for h in holders for key in ("crs_wkt", "spatial_ref") if key in h.attrs), None)
    if text is None or find_spec("rasterio") is None:
        return text, None
    crs = import_optional("rasterio.crs").CRS.from_user_input(text)
    affine = import_optional("affine", "raster").Affine
    steps: list[float] = []
    for name in reversed(plane.dims):
        values = np.asarray(plane.coords[name].values, dtype=np.float64) if name in plane.coords else np.empty(0)
        gaps = np.diff(values)
        if gaps.size == 0 or not np.allclose(gaps, gaps[0], rtol=1e-3):
            numbers = next((str(h.attrs["GeoTransform"]).split() for h in holders if "GeoTransform" in h.attrs), None)
            return crs, affine.from_gdal(*map(float, numbers)) if numbers else None
        step = float(values[-1] - values[0]) / (len(values) - 1)
        steps += [step, float(values[0]) - step / 2]
    return crs, affine(steps[0], 0.0, steps[1], 0.0, steps[2], steps[3])


def is_store(path: Path) -> bool:
    """Whether a folder is a Zarr store."""
    return path.is_dir() and any((path / name).is_file() for name in ("zarr.json", ".zgroup", ".zattrs", ".zmetadata"))
