"""``X.bimichi.fuse(model)`` for xarray objects, available once this module is imported."""

from typing import Any

import xarray as xr

from bimichi.integral.labelled import fuse_array


@xr.register_dataarray_accessor("bimichi")  # type: ignore[no-untyped-call]  # xarray has no types there
@xr.register_dataset_accessor("bimichi")  # type: ignore[no-untyped-call]  # xarray has no types there
class FusionAccessor:
    """The accessor ``X.bimichi`` of xarray objects; ``import bimichi.xarray`` registers it."""

    def __init__(self, X: Any) -> None:
        self._X = X

    def fuse(self, model: Any, source_dim: str = "source") -> xr.DataArray:
        """Fuse the sources by a model, a rule or a measure; see `bimichi.fuse.fuse_array`."""
        return fuse_array(model, self._X, source_dim)
