"""``X.bimichi.fuse(model)`` on arrays and datasets of xarray, once this module is imported."""

from typing import Any

import xarray as xr

from bimichi.integral.labelled import fuse_array

__all__ = ["FusionAccessor"]


@xr.register_dataarray_accessor("bimichi")  # type: ignore[no-untyped-call]  # xarray has no types there
@xr.register_dataset_accessor("bimichi")  # type: ignore[no-untyped-call]  # xarray has no types there
class FusionAccessor:
    """What bimichi can do with an array or a dataset; ``import bimichi.scale`` makes it known to xarray."""

    def __init__(self, X: Any) -> None:
        self._X = X

    def fuse(self, model: Any, source_dim: str = "source") -> xr.DataArray:
        """Fuse the sources by a fitted model or a measure; see `bimichi.scale.fuse_array`."""
        return fuse_array(model, self._X, source_dim)
