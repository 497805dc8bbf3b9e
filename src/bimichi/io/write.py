"""Images to files, plain or georeferenced, each written whole or not at all."""

from collections.abc import Sequence
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bimichi._extras import import_optional
from bimichi._files import atomic_write, replacing
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.io.raster import open_dataset, reason_of
from bimichi.sources.bands import Image


def write_image(path: str | PathLike[str], image: ArrayLike) -> None:
    """Write an image to a TIFF or PNG file; until it is complete, an old file stays in place.

    Parameters
    ----------
    path : str or path
        Ends in .tif, .tiff or .png; an existing file is replaced.
    image : array-like of shape (height, width) or (height, width, n_bands)
        TIFF holds any number of bands; floats, including NaN, are written as float32. PNG holds one band or RGB; floats
        in [-1, 1] are written as 0 to 255, and NaN is an error. uint8 and, except for RGB in PNG, uint16 are written as
        they are; bool becomes 0 and 255.
    """
    array = np.asarray(image)
    if array.ndim not in (2, 3) or array.size == 0:
        raise InvalidInputError(
            f"image must have shape (height, width) or (height, width, n_bands), got {array.shape}.",
            code="image-shape",
            argument="image",
            value=array.shape,
        )
    if array.dtype.kind != "f" and array.dtype not in (np.bool_, np.uint8, np.uint16):
        raise InvalidInputError(
            f"image has type {array.dtype}; it must be floats, uint8, uint16 or bool. Convert it.",
            code="image-type",
            argument="image",
        )
    if array.dtype == np.bool_:
        array = array * np.uint8(255)
    if array.shape[2:] == (1,):
        array = array[..., 0]
    writers = {".tif": _write_tiff, ".tiff": _write_tiff, ".png": _write_png}
    suffix = Path(str(path)).suffix.lower()
    if suffix not in writers:
        raise InvalidInputError(
            f"path must end in .tif, .tiff or .png, got {path!s}.", code="output-suffix", argument="path", value=path
        )
    encoded = BytesIO()  # of which a full disk is reported as such; numpy, writing to a file, does not say so
    writers[suffix](encoded, array)
    atomic_write(path, lambda file: file.write(encoded.getbuffer()))


def _write_tiff(file: BytesIO, image: Image) -> None:
    if image.dtype.kind == "f":
        image = image.astype(np.float32)
    colours = "rgb" if image.shape[2:] == (3,) and image.dtype != np.float32 else "minisblack"
    import_optional("tifffile").imwrite(file, image, photometric=colours, planarconfig="contig", metadata=None)


def _write_png(file: BytesIO, image: Image) -> None:
    if image.dtype.kind == "f":
        missing = int(np.isnan(image).sum())
        if missing:
            raise InvalidInputError(
                f"image has NaN in {missing:,} places, which PNG cannot hold. Write a TIFF, or fill them, "
                "e.g. with numpy.nan_to_num(image, nan=-1).",
                code="png-nan",
                argument="image",
            )
        low, high = float(image.min()), float(image.max())
        if low < -1 or high > 1:
            raise InvalidInputError(
                f"image has floats from {low:.6g} to {high:.6g}; PNG holds floats in [-1, 1]. Write a TIFF, or map it "
                "with bimichi.sources.to_bipolar.",
                code="png-range",
                argument="image",
            )
        image = np.rint((image.astype(np.float64) + 1) * 127.5).astype(np.uint8)
    if image.shape[2:] not in ((), (3,)) or (image.ndim == 3 and image.dtype == np.uint16):
        raise InvalidInputError(
            f"PNG holds one band, or RGB of 8 bits, got {image.dtype} of shape {image.shape}. Write a TIFF.",
            code="png-bands",
        )
    import_optional("PIL.Image").fromarray(np.ascontiguousarray(image)).save(file, "PNG")


def write_geotiff(
    path: str | PathLike[str],
    image: ArrayLike,
    *,
    crs: Any,
    transform: Sequence[float],
    names: Sequence[str] | None = None,
    nodata: float | None = None,
) -> None:
    """Write an array to a GeoTIFF; until it is complete, an old file stays in place.

    Parameters
    ----------
    path : str or path
        Ends in .tif or .tiff; an existing file is replaced.
    image : array-like of shape (height, width) or (height, width, n_bands)
        Integers or floats, written as they are; bool becomes 0 and 1.
    crs
        The reference system: "EPSG:32630", WKT, or what else rasterio takes; `Scene.crs`.
    transform : sequence of at least six numbers
        x = a column + b row + c, y = d column + e row + f; `Scene.transform`, or an Affine.
    names : sequence of str, optional
        Descriptions of the bands.
    nodata : float, optional
        The value that stands for no data.
    """
    array = np.asarray(image)
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or array.size == 0 or array.dtype.kind not in "biuf":
        rule = "image must be numbers of shape (height, width) or (height, width, n_bands)"
        raise InvalidInputError(f"{rule}, got {array.dtype} of shape {np.shape(image)}.", code="image-shape")
    if Path(path).suffix.lower() not in (".tif", ".tiff"):
        raise InvalidInputError(
            f"path must end in .tif or .tiff, got {path!s}.", code="output-suffix", argument="path", value=path
        )
    if crs is None or transform is None or len(tuple(transform)) < 6:
        problem = f"crs is {crs!r} and transform {transform!r}"
        raise InvalidInputError(
            f"{problem}; give both, or write an image without coordinates with write_image.",
            code="georeference-incomplete",
        )
    if names is not None and len(names) != array.shape[2]:
        raise InvalidInputError(
            f"names has {len(names)} entries, but image has {array.shape[2]} bands.",
            code="names-number",
            argument="names",
        )
    array = array.astype(np.uint8) if array.dtype == np.bool_ else array
    placed = {"crs": crs, "transform": import_optional("rasterio").Affine(*list(transform)[:6]), "nodata": nodata}
    size = {"height": array.shape[0], "width": array.shape[1], "count": array.shape[2], "dtype": array.dtype.name}
    with replacing(path) as temporary:
        try:
            with open_dataset(temporary, "w", driver="GTiff", compress="deflate", **size, **placed) as dataset:
                dataset.write(np.moveaxis(array, -1, 0))
                for k, name in enumerate(names or (), 1):
                    dataset.set_band_description(k, name)
        except import_optional("rasterio.errors").RasterioError as error:
            raise BimichiError(f"Cannot write {path}: {reason_of(error)}.", code="output-unwritable") from error
