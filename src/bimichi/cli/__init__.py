"""The command-line program, `bimichi`. One command per file; see docs/command-line.md."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the program, or print what it needs."""
    try:
        from bimichi.cli.app import run
    except ImportError as error:
        sys.exit(f"bimichi: the command line needs more packages ({error}): pip install 'bimichi[cli]'")
    except KeyboardInterrupt:
        sys.exit(130)
    run()
