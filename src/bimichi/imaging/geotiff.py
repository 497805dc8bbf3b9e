"""`write_geotiff`: arrays to georeferenced files."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bimichi._extras import import_optional
from bimichi._files import replacing
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.imaging.gdal import open_dataset, reason_of


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
        raise InvalidInputError(f"{rule}, got {array.dtype} of shape {np.shape(image)}.")
    if Path(path).suffix.lower() not in (".tif", ".tiff"):
        raise InvalidInputError(f"path must end in .tif or .tiff, got {path!s}.")
    if crs is None or transform is None or len(tuple(transform)) < 6:
        given = f"crs is {crs!r} and transform {transform!r}"
        raise InvalidInputError(f"{given}; give both, or write an image without coordinates with write_image.")
    if names is not None and len(names) != array.shape[2]:
        raise InvalidInputError(f"names has {len(names)} entries, but image has {array.shape[2]} bands.")
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
            raise BimichiError(f"Cannot write {path}: {reason_of(error)}.") from error
