"""Scenes that are not files yet: arrays in memory, and drawn streets to try the studio with."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bimichi.datasets import street
from bimichi.imaging.collecting import open_scenes
from bimichi.imaging.writing import write_image
from bimichi.interactive.opening import NAME, Options, open_workspace
from bimichi.interactive.workspace import Workspace

STREETS, SIZE = 3, (360, 480)


def as_files(sources: Any) -> tuple[list[str], list[str] | None]:
    """Return arrays in memory as files in a new folder, so that a project can name them; paths as they are.

    The second is the names of the sources, None if the files name them.
    """
    collection = open_scenes(sources)
    scene = collection[0]
    folder = Path(tempfile.mkdtemp(prefix="bimichi-studio-")) / "sources"
    folder.mkdir()
    files = []
    for k, image in enumerate(scene.read()):
        np.save(folder / f"source{k + 1}.npy", image)
        files.append(str(folder / f"source{k + 1}.npy"))
    return files, list(scene.source_names)


def drawn_streets() -> Workspace:
    """Draw streets at night into a new folder, and open them: something to try the studio with."""
    folder = Path(tempfile.mkdtemp(prefix="bimichi-studio-"))
    for kind in ("colour", "thermal", "truth"):
        (folder / kind).mkdir()
    for seed in range(STREETS):
        scene = street(*SIZE, random_state=seed, n_segments=50)
        name = f"street-{seed + 1}.png"
        assert scene.rgb is not None
        assert scene.thermal is not None
        assert scene.truth is not None  # drawn scenes have all three
        write_image(folder / "colour" / name, scene.rgb)
        write_image(folder / "thermal" / name, scene.thermal)
        write_image(folder / "truth" / name, scene.truth.astype("uint8"))
    paths = [str(folder / "thermal"), str(folder / "colour"), str(folder / "colour")]
    options = Options(names=["thermal", "grey", "dark"], recipes=["gamma_correction", "equalize", "adaptive_threshold"])
    work = open_workspace(paths, replace(options, truth=str(folder / "truth")))
    work.title, work.project = "Streets at night", folder / NAME
    return work
