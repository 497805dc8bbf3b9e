"""Write results to files, each completely or not at all."""

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bimichi._files import atomic_write, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


DOTS_PER_INCH = 130


def write_text(path: Path, text: str) -> Path:
    """Write text and a final newline; returns the path. What names of files hold that is no valid text is escaped."""
    atomic_write(path, lambda file: file.write(f"{text}\n".encode(errors="backslashreplace")))
    return path


def write_json(path: Path, data: Mapping[str, Any]) -> Path:
    """Write data as JSON, with null for NaN; returns the path."""
    return write_text(path, json.dumps(plain(data), indent=1, allow_nan=False, ensure_ascii=False))


def write_figure(path: Path, figure: "Figure") -> Path:
    """Write a figure as PNG and close it; returns the path."""
    import matplotlib.pyplot as plt

    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
    plt.close(figure)
    atomic_write(path, lambda file: file.write(buffer.getvalue()))
    return path


def file_name(title: str) -> str:
    """Turn a title into a name that every file system accepts.

    Examples
    --------
    >>> file_name("set09/V000/I01139"), file_name("Bi-MIChI mean, polarity learned")
    ('set09-V000-I01139', 'Bi-MIChI-mean-polarity-learned')
    """
    kept = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._-") else " " for sign in title)
    return "-".join(kept.split()).lstrip(".-") or "unnamed"
