"""The command-line program, `bimichi`. One command a file."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the program, or say what it needs."""
    try:
        from bimichi.cli.app import run
    except ImportError as error:
        sys.exit(f"bimichi: the command line needs more packages ({error}): pip install 'bimichi[cli]'")
    run()
