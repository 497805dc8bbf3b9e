"""Drawn scenes as a folder of image files, boxes and truth, with a project file, like a user's own data."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from bimichi._checks import check_choice, check_integer
from bimichi.datasets.streets import street
from bimichi.imaging.annotation_writing import write_annotations
from bimichi.imaging.formats import ImageAnnotations
from bimichi.imaging.projects import FILE_NAME, Project, ProjectSource, write_project
from bimichi.imaging.writing import write_image
from bimichi.learning.scene import Scene


@dataclass(frozen=True)
class Field:
    """Scenes of one field: how one is drawn (height, width, seed), its images, and the sources made of them."""

    draw: Callable[[int, int, int], Scene]
    images: tuple[str, ...]
    sources: tuple[ProjectSource, ...]
    label: str


def _source(name: str, image: str, recipe: str) -> ProjectSource:
    return ProjectSource(image, names=(name,), recipes=(recipe,))


FIELDS = {
    "street": Field(
        lambda height, width, seed: street(height, width, random_state=seed),
        ("thermal", "rgb"),
        (
            _source("warm", "thermal", "to_bipolar"),
            _source("warm contrast", "thermal", "local_contrast"),
            _source("warm edges", "thermal", "vertical_edges"),
            _source("light", "rgb", "to_bipolar"),
            _source("light contrast", "rgb", "local_contrast"),
        ),
        "person",
    ),
}


def write_folder(
    folder: str | PathLike[str],
    kind: str = "street",
    seeds: Iterable[int] = range(6),
    size: tuple[int, int] = (480, 640),
) -> list[Path]:
    """Draw scenes and write them as image files, boxes and truth, with a project file.

    Parameters
    ----------
    folder : path
        It is made if it does not exist; existing files of the same names are replaced.
    kind : {"street"}
        What is drawn.
    seeds : iterable of int
        One scene per seed.
    size : (int, int)
        Height and width of the images.

    Returns
    -------
    list of path
        All files: one folder per image with one PNG file per scene, "truth" with masks, "boxes.csv" and "bimichi.toml".
    """
    check_choice(kind, "kind", FIELDS)
    field, root = FIELDS[kind], Path(folder)
    written: list[Path] = []

    def write(what: str, name: str, image: Any) -> None:
        (root / what).mkdir(parents=True, exist_ok=True)
        written.append(root / what / f"{name}.png")
        write_image(written[-1], image)

    boxes: dict[str | None, ImageAnnotations] = {}
    for seed in seeds:
        scene = field.draw(*size, check_integer(seed, "seeds", minimum=0))
        for what in (*field.images, "truth"):
            write(what, scene.name, np.asarray(getattr(scene, what)))
        boxes[f"{scene.name}.png"] = ImageAnnotations(scene.boxes, [field.label] * len(scene.boxes))
    write_annotations(root / "boxes.csv", boxes)
    write_project(root / FILE_NAME, Project(field.sources, labels={"boxes": "boxes.csv"}))
    return [*written, root / "boxes.csv", root / FILE_NAME]
