"""Packages that only some functions need, imported when one of those is first called."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

PACKAGES = {
    "cli": "typer",
    "cluster": "distributed",
    "detector": "onnxruntime",
    "frame": "pandas",
    "image": "PIL skimage tifffile",
    "medical": "nibabel pydicom",
    "notebook": "anywidget",
    "plot": "matplotlib",
    "progress": "rich",
    "raster": "affine dask rasterio xarray zarr",
    "studio": "starlette uvicorn websockets",
    "vector": "pyogrio",
}
EXTRAS = {package: extra for extra, packages in PACKAGES.items() for package in packages.split()}
"""The extra of bimichi that installs each package."""


def is_installed(module: str) -> bool:
    """Return whether a module is installed, without importing it."""
    try:
        return find_spec(module) is not None
    except ValueError:  # it is in sys.modules, as None or by hand
        return False


def import_optional(name: str, extra: str | None = None) -> Any:
    """Import a module of an optional package; the ImportError if it is missing gives the pip command for `extra`."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(
            f"This needs {package}; install it with: pip install 'bimichi[{extra or EXTRAS[package]}]'"
        ) from error
