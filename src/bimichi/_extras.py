"""Packages that only some functions need, imported when one of those is first called."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

EXTRAS = {
    "PIL": "image",
    "affine": "raster",
    "dask": "raster",
    "distributed": "cluster",
    "matplotlib": "plot",
    "nibabel": "medical",
    "onnxruntime": "detector",
    "pandas": "frame",
    "pydicom": "medical",
    "pyogrio": "vector",
    "rasterio": "raster",
    "rich": "progress",
    "skimage": "image",
    "starlette": "studio",
    "tifffile": "image",
    "typer": "cli",
    "uvicorn": "studio",
    "websockets": "studio",
    "xarray": "raster",
    "zarr": "raster",
}
"""The extra of bimichi that installs each package."""


def is_installed(module: str) -> bool:
    """Whether a module is there, without importing it."""
    try:
        return find_spec(module) is not None
    except ValueError:  # it is in sys.modules, as None or by hand
        return False


def import_optional(name: str, extra: str | None = None) -> Any:
    """Import a module of an optional package; if it is missing, an ImportError gives the pip command for `extra`."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(
            f"This needs {package}; install it with: pip install 'bimichi[{extra or EXTRAS[package]}]'"
        ) from error
