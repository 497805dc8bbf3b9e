"""Drawn scenes as folders of image files, labels and truth, with a project file, like a user's own data."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from bimichi._checks import check_choice, check_integer
from bimichi.datasets.brains import draw_lesions
from bimichi.datasets.drawing import image_files
from bimichi.datasets.floods import draw_flood
from bimichi.datasets.streets import street
from bimichi.io.annotations.write import write_annotations
from bimichi.io.project import FILE_NAME, Project, ProjectSource, write_project
from bimichi.io.write import write_image
from bimichi.scenes.annotations import ImageAnnotations
from bimichi.scenes.shapes import boxes_of

Written = tuple[list[Path], ImageAnnotations | None]


@dataclass(frozen=True)
class Field:
    """Scenes of one field: how one is drawn and written (folder, height, width, seed), its size, its project file."""

    write: Callable[[Path, int, int, int], Written]
    size: tuple[int, int]
    project: Project


def _source(name: str, folder: str, recipe: str) -> ProjectSource:
    return ProjectSource(folder, names=(name,), recipes=(recipe,))


def _write_street(folder: Path, height: int, width: int, seed: int) -> Written:
    scene, kinds = street(height, width, random_state=seed), ("thermal", "rgb", "truth")
    paths = image_files(folder, kinds, f"{scene.name}.png")
    for path, kind in zip(paths, kinds, strict=True):
        write_image(path, np.asarray(getattr(scene, kind)))
    return paths, ImageAnnotations(scene.boxes, ["person"] * len(scene.boxes))


def _write_lesions(folder: Path, height: int, width: int, seed: int) -> Written:
    drawn = draw_lesions(height, width, random_state=seed)
    boxes = boxes_of(drawn.lesions)
    return drawn.write(folder), ImageAnnotations(boxes, ["lesion"] * len(boxes))


FIELDS = {
    "street": Field(
        _write_street,
        (480, 640),
        Project(
            (
                _source("warm", "thermal", "to_bipolar"),
                _source("warm contrast", "thermal", "local_contrast"),
                _source("warm edges", "thermal", "vertical_edges"),
                _source("light", "rgb", "to_bipolar"),
                _source("light contrast", "rgb", "local_contrast"),
            ),
            labels={"boxes": "boxes.csv"},
        ),
    ),
    "flood": Field(
        lambda folder, height, width, seed: (draw_flood(height, width, random_state=seed).write(folder), None),
        (384, 384),
        Project(
            (ProjectSource("s1"), ProjectSource("s2"), ProjectSource("occurrence")),
            (
                "low VV: clip(-(VV + 15) / 10, -1, 1)",  # open water is dark to the radar
                "low VH: clip(-(VH + 21) / 11, -1, 1)",
                "MNDWI: nd(B3, B11)",
                "dry before: 1 - occurrence / 50",
            ),
            labels={"labels": "outlines"},
        ),
    ),
    "lesions": Field(
        _write_lesions,
        (218, 182),
        Project(
            tuple(
                _source(name, folder, "quantile")
                for name, folder in (("FLAIR", "flair"), ("T1", "t1"), ("T1 post", "t1post"), ("T2", "t2"))
            ),
            labels={"boxes": "boxes.csv"},
        ),
    ),
}


def write_folder(
    folder: str | PathLike[str],
    kind: str = "street",
    seeds: Iterable[int] = range(6),
    size: tuple[int, int] | None = None,
) -> list[Path]:
    """Draw scenes and write them as image files, labels and truth, with a project file.

    Parameters
    ----------
    folder : path
        It is made if it does not exist; existing files of the same names are replaced.
    kind : {"street", "flood", "lesions"}
        What is drawn; see the functions of these names.
    seeds : iterable of int
        One scene per seed.
    size : (int, int), optional
        Height and width of the images; by default as these functions have them.

    Returns
    -------
    list of path
        All files: one folder per image with one file per scene, "truth" with masks, the labels ("boxes.csv", or masks
        in "outlines"), and "bimichi.toml".
    """
    check_choice(kind, "kind", FIELDS)
    field, root = FIELDS[kind], Path(folder)
    written: list[Path] = []
    boxes: dict[str | None, ImageAnnotations] = {}
    for seed in seeds:
        paths, annotations = field.write(root, *(size or field.size), check_integer(seed, "seeds", minimum=0))
        written += paths
        if annotations is not None:
            boxes[paths[0].name] = annotations
    return [*written, *write_project_of(root, kind, boxes)]


def write_project_of(root: Path, kind: str, boxes: Mapping[str | None, ImageAnnotations]) -> list[Path]:
    """Write the project file for images of a field, and their boxes beside it, if there are any; return the files."""
    files = [root / "boxes.csv"] if boxes else []
    for file in files:
        write_annotations(file, boxes)
    write_project(root / FILE_NAME, FIELDS[kind].project)
    return [*files, root / FILE_NAME]
