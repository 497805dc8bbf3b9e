"""A fused map to files, strip by strip, so that it need not be in memory as a whole."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bimichi._extras import import_optional
from bimichi._files import atomic_write
from bimichi.imaging import write_image

__all__ = ["write_strips"]

Strip = NDArray[np.float32]


def write_strips(path: Path, strips: Iterator[Strip], shape: tuple[int, int], png: bool) -> tuple[list[Path], int]:
    """Write a map in [-1, 1]: a TIFF of float32, a PNG of 8 bits, or both; each whole or not at all.

    Parameters
    ----------
    path : Path
        Ends in .tif, .tiff or .png.
    strips : iterator of ndarray of float32, shape (n_rows, width)
        The map from above; all strips but the last have equally many rows.
    shape : (int, int)
        Of the map.
    png : bool
        Whether to write a PNG beside the TIFF.

    Returns
    -------
    files : list of Path
        What was written.
    missing : int
        How many pixels are NaN, if there is a PNG, where they are 0.
    """
    picture = path.with_suffix(".png") if png or path.suffix.lower() == ".png" else None
    levels = np.empty(shape if picture else (0, 0), np.uint8)
    missing = 0

    def watched() -> Iterator[Strip]:
        nonlocal missing
        row = 0
        for strip in strips:
            if picture:
                missing += int(np.isnan(strip).sum())
                levels[row : row + len(strip)] = np.rint((np.nan_to_num(strip, nan=-1.0) + 1) * np.float32(127.5))
                row += len(strip)
            yield strip

    files = []
    if path == picture:
        for _ in watched():
            pass
    else:
        _write_tiff(path, watched(), shape)
        files.append(path)
    if picture:
        write_image(picture, levels)
        files.append(picture)
    return files, missing


def _write_tiff(path: Path, strips: Iterator[Strip], shape: tuple[int, int]) -> None:
    first = next(strips)
    content: Iterable[bytes] = (np.ascontiguousarray(strip).tobytes() for strip in chain([first], strips))
    atomic_write(
        path,
        lambda file: import_optional("tifffile").imwrite(
            file,
            content,
            shape=shape,
            dtype=np.float32,
            rowsperstrip=len(first),
            photometric="minisblack",
            metadata=None,
        ),
    )
