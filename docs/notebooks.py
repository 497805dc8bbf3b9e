"""Execute the notebooks in examples/notebooks and keep their outputs: ``python docs/notebooks.py``."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"


def execute(path: Path) -> nbformat.NotebookNode:
    """Return a notebook with the outputs of a fresh run; an error in a cell is raised."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    NotebookClient(notebook, timeout=600, kernel_name="python3", record_timing=False).execute()
    return notebook


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(execute(path), path)
