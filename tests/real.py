"""Real scenes, which are no part of this repository."""

import os
from pathlib import Path

import pytest


def real(folder: str) -> Path:
    """A folder of real scenes; where BIMICHI_DATA names no folder that has it, the test is skipped."""
    root = os.environ.get("BIMICHI_DATA")
    if root is None or not (Path(root) / folder).is_dir():
        pytest.skip(f"no folder {folder} in the folder that the environment variable BIMICHI_DATA names")
    return Path(root) / folder
