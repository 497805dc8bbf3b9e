"""One way to open whatever a user names: `open_layer` decides by the content of a file, not by its name."""

from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from bimichi._checks import is_xarray
from bimichi._extras import import_optional
from bimichi.errors import InvalidInputError
from bimichi.imaging.bands import Image, check_image
from bimichi.imaging.gdal import gdal_settings
from bimichi.imaging.grids import Window
from bimichi.imaging.labelled_layers import is_store, labelled_layer, open_store
from bimichi.imaging.layers import Layer, MemoryLayer, memory_layer
from bimichi.imaging.limits import AGAIN, check_file, check_size
from bimichi.imaging.raster_layers import RasterLayer, raster_layer
from bimichi.imaging.reading import TIFF, has_geotags, is_image, read_arrays, read_image

START = 132  # bytes that show what a file is
NETCDF, ZIP = (b"CDF", b"\x89HDF"), b"PK"


def open_layer(source: Any, drivers: Sequence[str] = (), label: str = "the array") -> Layer:
    """Open a file, an array, or an object of xarray; rasters and xarray are not read yet.

    `drivers` are those of GDAL that may read files of formats that are not known here; `label` is for errors.
    """
    if is_xarray(source):
        return labelled_layer(source, label)
    if isinstance(source, np.ndarray):
        return _array_layer(source, label)
    if not isinstance(source, str | PathLike):
        raise InvalidInputError(
            f"A source must be a path, an array, or an object of xarray, got {type(source).__name__}."
        )
    path = Path(source)
    if is_store(path):
        return open_store(path)
    try:
        with check_file(path).open("rb") as file:
            start = file.read(START)
    except OSError as error:
        raise InvalidInputError(f"Cannot read {path}: {error.strerror or error}.") from error
    if not start:
        raise InvalidInputError(f"Cannot read {path}: it is empty. {AGAIN}")
    return _by_content(path, start, drivers)


def read_band(path: Path) -> Image:
    """Read a file of one band, such as a mask; integers stay integers, and are -1 where there is no data."""
    layer = open_layer(path)
    if len(layer.bands) != 1:
        raise InvalidInputError(
            f"{path} has {len(layer.bands)} bands; a mask has one. Save it with one band, 0 for "
            "background and above 0 for targets."
        )
    check_size(layer.grid.width * layer.grid.height, f"{path}")
    settings = gdal_settings() if isinstance(layer, RasterLayer) else nullcontext()
    with settings, ExitStack() as held:
        (values,) = layer.reader(layer.grid, held)([0], Window(0, 0, *layer.grid.shape))
    stored = layer.bands[0].dtype
    if values.dtype.kind != "f" or stored.kind == "f":
        return np.asarray(values)
    missing = np.isnan(values)
    return np.where(missing, -1, values).astype(np.int64) if missing.any() else values.astype(stored)


def _by_content(path: Path, start: bytes, drivers: Sequence[str]) -> Layer:
    if start.startswith(TIFF) and has_geotags(path):
        return raster_layer(path, drivers)
    if is_image(start):
        image = read_image(path)
        return memory_layer(str(path), image, path=path, colour=image.shape[2:] == (3,))
    if path.name.lower().endswith(NIFTI):
        return nifti_layer(path)
    if start[128:132] == b"DICM":
        return dicom_layer(path)
    if drivers:
        return raster_layer(path, drivers)
    if start.startswith(NETCDF):
        return open_store(path)
    if start.startswith(ZIP):
        arrays = read_arrays(path)
        return memory_layer(str(path), np.stack([*arrays.values()], axis=-1), [*arrays], path=path)
    raise InvalidInputError(
        f"Cannot read {path}: it is neither PNG, JPEG, TIFF, .npy, .npz, Zarr, NetCDF, DICOM nor NIfTI. Convert it, or "
        "name the driver of GDAL that reads it (--driver)."
    )


def _array_layer(array: Any, label: str) -> Layer:
    holed = isinstance(array, np.ma.MaskedArray)
    if holed:
        kind = np.result_type(array.dtype, np.float32)
        stored, array = array.dtype, array.astype(kind).filled(np.nan)
    image = check_image(array, bands=None)
    check_size(image.size, label)
    layer = memory_layer(label, image, colour=image.shape[2:] == (3,))
    if not holed:
        return layer
    bands = tuple(band._replace(dtype=stored) for band in layer.bands)
    return type(layer)(label, bands, layer.grid, layer.colour, arrays=layer.arrays)


NIFTI = (".nii", ".nii.gz")


def dicom_layer(path: Path) -> MemoryLayer:
    """Read a DICOM image of one frame: values in the units of the modality, padding without data."""
    pydicom = import_optional("pydicom")
    try:
        image = pydicom.dcmread(check_file(path))
        frames, samples = int(image.get("NumberOfFrames", 1) or 1), int(image.get("SamplesPerPixel", 1))
        if frames > 1:
            raise InvalidInputError(f"Cannot read {path}: it has {frames} frames; save the one you need as a file.")
        check_size(int(image.Rows) * int(image.Columns) * samples, f"{path}")
        stored = image.pixel_array
        values = import_optional("pydicom.pixels").apply_modality_lut(stored, image)
    except (ImportError, InvalidInputError):
        raise
    except Exception as error:  # pydicom raises all kinds of errors
        raise InvalidInputError(f"Cannot read {path}: it is damaged, or has no image ({error}). {AGAIN}") from error
    if np.array_equal(values, stored):
        values = stored
    padding = image.get("PixelPaddingValue")
    if padding is not None and values.ndim == 2 and (stored == padding).any():
        values = np.where(stored == padding, np.nan, values.astype(np.float32))
    return memory_layer(str(path), np.ascontiguousarray(values), path=path, colour=values.ndim == 3)


def nifti_layer(path: Path) -> MemoryLayer:
    """Read a NIfTI image; slices of a volume along its third axis are bands, of which one has to be chosen."""
    nibabel = import_optional("nibabel")
    try:
        image = nibabel.load(check_file(path))
        shape = tuple(n for k, n in enumerate(image.shape) if k < 3 or n > 1)
        check_size(int(np.prod(shape)), f"{path}")
        plain = image.dataobj.slope == 1 and image.dataobj.inter == 0
        values: Any = np.asarray(image.dataobj.get_unscaled() if plain else image.dataobj).reshape(shape)
    except InvalidInputError:
        raise
    except Exception as error:
        raise InvalidInputError(f"Cannot read {path}: it is damaged, or not NIfTI ({error}). {AGAIN}") from error
    if values.ndim not in (2, 3) or values.dtype.kind not in "buif":
        raise InvalidInputError(
            f"Cannot read {path}: it holds {values.dtype} of shape {values.shape}; save one volume of real numbers."
        )
    upright = np.ascontiguousarray(values.swapaxes(0, 1), dtype=values.dtype.newbyteorder("="))
    one = upright.ndim == 2 or upright.shape[2] == 1
    return memory_layer(str(path), upright.reshape(upright.shape[:2]) if one else upright, path=path, slices=not one)
