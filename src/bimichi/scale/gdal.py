"""Rasterio with care: imported when first needed, its memory bounded, its datasets opened without a warning."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from threading import Lock
from typing import Any

from bimichi._extras import import_optional
from bimichi.errors import InvalidInputError

__all__ = ["gdal_settings", "open_dataset", "open_source", "reason_of"]

CACHE = 64 << 20
"""Bytes of blocks that GDAL may keep. Its own default, a share of the machine's memory, would bound nothing."""

_OPENING = Lock()
_SETTING = Lock()


@contextmanager
def gdal_settings() -> Iterator[None]:
    """Bound GDAL's cache of blocks while the context lasts, and let it look beside a file without listing the folder.

    Settings are the process's, so only the first of several threads sets them and puts the old ones back.
    """
    environment = import_optional("rasterio").Env
    if not _SETTING.acquire(blocking=False):
        with environment():
            yield
        return
    try:
        with environment(GDAL_CACHEMAX=CACHE, GDAL_DISABLE_READDIR_ON_OPEN="TRUE"):
            yield
    finally:
        _SETTING.release()


def open_dataset(path: str | PathLike[str], mode: str = "r", **options: Any) -> Any:
    """Open a dataset; one without coordinates is no reason for a warning.

    Filters of warnings are the process's, so threads open one after another.
    """
    rasterio = import_optional("rasterio")
    with _OPENING, warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        return rasterio.open(fspath(path), mode, **options)


def open_source(path: str | PathLike[str]) -> Any:
    """Open a file to read; if that fails, the error names it."""
    errors = import_optional("rasterio.errors")
    try:
        return open_dataset(path)
    except (errors.RasterioError, OSError, TypeError, ValueError) as error:
        raise InvalidInputError(f"Cannot read {path!s}: {reason_of(error)}.") from error


def reason_of(error: BaseException) -> str:
    """Say what GDAL said; rasterio's own text often merely points to it."""
    cause = error.__cause__
    while cause is not None and cause.__cause__ is not None:
        cause = cause.__cause__
    text = str(error) if cause is None else str(getattr(cause, "errmsg", cause))
    return text.rstrip(".")
