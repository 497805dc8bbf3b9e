"""Rasterio, imported when first needed, with bounded memory, and datasets opened without warnings."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from threading import Lock
from typing import Any

from bimichi._extras import import_optional
from bimichi.errors import InvalidInputError

CACHE = 64 << 20  # bytes of blocks that GDAL may keep; its default, a share of the machine's memory, bounds nothing

NO_NETWORK = {"CPL_VSIL_CURL_ALLOWED_EXTENSIONS": ".none"}
"""No file may refer to one on a server."""

_OPENING = Lock()
_SETTING = Lock()


@contextmanager
def gdal_settings() -> Iterator[None]:
    """Bound GDAL's cache of blocks within the context, and let it look beside a file without listing the folder.

    Settings belong to the process, so only the first of several threads sets and restores them.
    """
    environment = import_optional("rasterio").Env
    if not _SETTING.acquire(blocking=False):
        with environment():
            yield
        return
    try:
        with environment(GDAL_CACHEMAX=CACHE, GDAL_DISABLE_READDIR_ON_OPEN="TRUE", **NO_NETWORK):
            yield
    finally:
        _SETTING.release()


def open_dataset(path: str | PathLike[str], mode: str = "r", **options: Any) -> Any:
    """Open a dataset, without a warning if it is not georeferenced.

    Warning filters belong to the process, so threads open one after another.
    """
    rasterio = import_optional("rasterio")
    with _OPENING, warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        return rasterio.open(fspath(path), mode, **options)


def open_source(path: str | PathLike[str], drivers: Sequence[str] = ()) -> Any:
    """Open a file for reading, as a GeoTIFF or by the drivers named; if that fails, the error names it.

    GDAL would try all its drivers, some of which follow references to other files and to the network.
    """
    errors = import_optional("rasterio.errors")
    failed: Exception | None = None
    for driver in drivers or ("GTiff",):
        try:
            return open_dataset(path, driver=driver)
        except (errors.RasterioError, OSError, TypeError, ValueError) as error:
            failed = failed or error
    assert failed is not None  # every driver has failed
    hint = "" if drivers else ", or it is not a GeoTIFF: then name its driver (--driver)"
    raise InvalidInputError(f"Cannot read {path!s}: {reason_of(failed)}{hint}.") from failed


def reason_of(error: BaseException) -> str:
    """Return the message of GDAL; that of rasterio often only refers to it."""
    cause = error.__cause__
    while cause is not None and cause.__cause__ is not None:
        cause = cause.__cause__
    text = str(error) if cause is None else str(getattr(cause, "errmsg", cause))
    return text.rstrip(".")
