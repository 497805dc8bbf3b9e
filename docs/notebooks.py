"""Execute the notebooks of examples: ``python docs/notebooks.py`` keeps their outputs, ``--check`` does not."""

import sys
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"
SMALL = ["--InlineBackend.figure_formats=jpeg", "--log-level=ERROR"]  # PNG takes five times as much of the repository


def execute(path: Path) -> Any:
    """Return a notebook with the outputs of a fresh run; an error in a cell is raised."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=600, kernel_name="python3", record_timing=False, extra_arguments=SMALL).execute()
    return notebook


def main() -> None:
    """Execute all of them."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        start = time.perf_counter()
        done = execute(path)
        if "--check" not in sys.argv[1:]:
            nbformat.write(done, path)  # type: ignore[no-untyped-call]
        print(f"{path.name}: {len(done.cells)} cells, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
