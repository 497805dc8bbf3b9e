import numpy as np
import pytest
from rasters import write

from bimichi.fuse import rasters


@pytest.fixture
def planes(rng):
    return rng.uniform(-1, 1, (3, 300, 420)).astype(np.float32)


@pytest.fixture
def scene(planes, tmp_path):
    return write(tmp_path / "scene.tif", planes)


@pytest.fixture
def small_windows(monkeypatch):
    """So that a small raster has many windows, cut in columns, too, and many slices."""
    monkeypatch.setattr(rasters, "MEMORY", 3 * 2 * 64**2 * 16)
    monkeypatch.setattr(rasters, "WINDOW", 1)
    monkeypatch.setattr(rasters, "SLICE", 1000)
