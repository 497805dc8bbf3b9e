"""Targets found in the maps that `bimichi fuse` has written."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bimichi.cli.outputs import output_file
from bimichi.errors import InvalidInputError

if TYPE_CHECKING:
    from bimichi.decision import Decision
    from bimichi.imaging.bands import Image
    from bimichi.imaging.detection_files import Georeference
    from bimichi.imaging.detections import Detections


def check_detections(path: Path, maps: Mapping[str, list[Path]], decision: "Decision") -> Path:
    """Refuse, before anything is fused, a file of detections that could not be written."""
    from bimichi.imaging.detection_files import SUFFIXES

    if decision.threshold is None:
        raise InvalidInputError(
            "The model has no threshold to find targets by. Pass one (--threshold), or train with --decision."
        )
    pictures = [files[0] for files in maps.values() if files[0].suffix.lower() == ".png"]
    if pictures:
        raise InvalidInputError(
            f"{pictures[0]} has 8 bits, too few for a threshold. With --detections, write the map as .tif; --png adds "
            "a picture."
        )
    return output_file(path, SUFFIXES)


def write_found(path: Path, maps: Mapping[str, Path], decision: "Decision", many: bool) -> dict[str, int]:
    """Find targets in maps, smoothed already, and write them; return how many there are in each scene."""
    from bimichi.imaging.detection_files import write_detections
    from bimichi.imaging.detections import detect

    found: dict[str, Detections] = {}
    places: dict[str, Georeference] = {}
    for name, file in maps.items():
        fused, place = _read(file)
        found[name] = detect(fused, replace(decision, smooth=None))
        if place is not None:
            places[name] = place
    if many:
        write_detections(path, found, places)
    else:
        (name,) = found
        write_detections(path, found[name], places.get(name))
    return {name: len(some) for name, some in found.items()}


def _read(file: Path) -> "tuple[Image, Georeference | None]":
    """Return a map, NaN where it has no data, and where it lies, if that is known."""
    from bimichi.imaging.collecting import open_scenes
    from bimichi.imaging.detection_files import Georeference

    scene = open_scenes(file)[0]
    place = Georeference(tuple(scene.transform)[:6], scene.crs) if scene.transform is not None else None
    return scene.read()[0], place
