"""Pascal VOC XML, one file per image, as LabelImg and many others write it."""

import re
from pathlib import Path
from xml.etree.ElementTree import Element

from bimichi.errors import InvalidInputError
from bimichi.io.annotations.parse import box_between, naming, number, read_xml, text_or_none
from bimichi.scenes.annotations import AnnotationFormat, Annotations, AnnotationTable, Found, image_annotations

ROOT = re.compile(rb"<annotation[\s>]")


def read_voc(path: Path) -> Annotations:
    """Read the boxes of one image; objects that are difficult are ignored.

    Corners are taken as edges of the box, as current tools write them, so that a box is xmax - xmin wide. The files
    of the challenge itself count pixels from 1, which differs by at most one pixel on each side.
    """
    root = read_xml(path)
    if root.tag != "annotation":
        raise InvalidInputError(f"{path} must have the root <annotation>, got <{root.tag}>.", code="voc-root")
    objects = []
    for k, element in enumerate(root.findall("object")):
        with naming(f"{path}, object {k + 1}"):
            box = element.find("bndbox")
            if box is None:
                raise InvalidInputError("it has no <bndbox>.", code="voc-box")
            corners = [number(_text(box, side), side) for side in ("xmin", "ymin", "xmax", "ymax")]
            difficult = _text(element, "difficult") not in (None, "0", "false", "False")
            objects.append(Found(box_between(*corners), _text(element, "name"), difficult))
    return AnnotationTable({_text(root, "filename"): image_annotations(objects)})


def _text(element: Element, tag: str) -> str | None:
    return text_or_none(element.findtext(tag))


VOC = AnnotationFormat(
    "voc",
    "Pascal VOC XML, one file per image; difficult objects are ignored",
    lambda path, start: bool(ROOT.search(start)),
    read_voc,
)
