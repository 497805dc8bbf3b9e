"""The command-line program, `bimichi`. One command per file; see docs/command-line.md."""

import os
import sys
from pathlib import Path

__all__ = ["main"]


def main() -> None:
    """Run the program, or print what it needs."""
    # Closed standard streams lead nowhere; else the next file to be opened would take their place.
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which takes the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w" if number else "r", encoding="utf-8"))  # noqa: SIM115  # to the end
    try:
        from bimichi.cli.app import run
    except ImportError as error:
        sys.exit(f"bimichi: the command line needs more packages ({error}): pip install 'bimichi[cli]'")
    except KeyboardInterrupt:
        sys.exit(130)
    run()
