"""Packages that only some functions need, imported when one of those is first called."""

from importlib import import_module
from typing import Any

PACKAGES = {
    "cluster": "distributed",
    "detector": "onnxruntime",
    "frame": "pandas",
    "image": "PIL skimage tifffile",
    "medical": "nibabel pydicom",
    "plot": "matplotlib",
    "raster": "affine dask rasterio xarray zarr",
    "vector": "pyogrio",
}
EXTRAS = {package: extra for extra, packages in PACKAGES.items() for package in packages.split()}
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
