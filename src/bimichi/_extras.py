"""Packages that only some functions need, imported when one of those is first called."""

from importlib import import_module
from typing import Any

EXTRAS = {
    "PIL": "image",
    "affine": "raster",
    "anywidget": "notebook",
    "dask": "raster",
    "distributed": "cluster",
    "matplotlib": "plot",
    "nibabel": "medical",
    "onnxruntime": "detector",
    "pandas": "frame",
    "pydicom": "medical",
    "pyogrio": "vector",
    "rasterio": "raster",
    "skimage": "image",
    "starlette": "studio",
    "tifffile": "image",
    "uvicorn": "studio",
    "websockets": "studio",
    "xarray": "raster",
    "zarr": "raster",
}
"""The extra of bimichi that installs each package."""


def import_optional(name: str, extra: str | None = None) -> Any:
    """Import a module of an optional package; if it is missing, an ImportError gives the pip command for `extra`."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(
            f"This needs {package}; install it with: pip install 'bimichi[{extra or EXTRAS[package]}]'"
        ) from error
