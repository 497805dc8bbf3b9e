"""Signs that annotations were read in a sense that was not meant: each is one sentence with its remedy."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.imaging.formats import ImageAnnotations
from bimichi.imaging.regions import shown_box

SLACK = 1.0  # pixels that a box may exceed the image by, as tools round
FEW = 3  # boxes below which their proportions say little
MOST = 0.5  # share of an image above which targets are probably the background
MANY_VALUES = 12  # of a mask that are listed


class Doubt(NamedTuple):
    """Something about annotations that is probably a mistake: what kind, and a sentence that names the remedy."""

    kind: str
    text: str


def check_annotations(
    found: ImageAnnotations, shape: tuple[int, int], where: str, target: str | None = None
) -> list[Doubt]:
    """Return what is doubtful about the annotations of an image: its boxes, or its mask.

    Parameters
    ----------
    found : ImageAnnotations
        In pixels.
    shape : (int, int)
        Height and width of the image.
    where : str
        The file, and the image if the file is about several, for the sentences.
    target : str, optional
        The class of targets; by default all classes.

    Returns
    -------
    list of Doubt
        Empty if nothing is.
    """
    doubts = [] if found.mask is None else check_mask_values(found.mask, where, target)
    return doubts + check_boxes(found.boxes_of(target), shape, where)


def check_boxes(boxes: Floats, shape: tuple[int, int], where: str) -> list[Doubt]:
    """Return what is doubtful about boxes (x, y, width, height): normalised, corners, swapped axes, outside."""
    height, width = shape
    if not len(boxes) or min(shape) < 3:
        return []
    x, y, w, h = boxes.T
    beyond = (x < -SLACK) | (y < -SLACK) | (x + w > width + SLACK) | (y + h > height + SLACK)
    corners = (w > x) & (h > y) & (w <= width + SLACK) & (h <= height + SLACK) & (x >= 0) & (y >= 0)
    swapped = (x >= -SLACK) & (y >= -SLACK) & (y + h <= width + SLACK) & (x + w <= height + SLACK)
    first, size = shown_box(boxes[int(np.argmax(beyond))]), f"the image of {width} x {height} pixels"
    if (boxes <= 1).all() and (boxes != np.round(boxes)).any():
        kind = "normalised"
        text = (
            f"all values of the boxes lie below 1, the first is {shown_box(boxes[0])}, so they seem to be fractions of "
            f"the image. Multiply x and width by {width}, y and height by {height}."
        )
    elif corners.all() and (beyond.any() or (len(boxes) >= FEW and (x > 0).all() and (y > 0).all())):
        kind = "corners"
        text = (
            f"width and height exceed x and y in every box, as in {first}, so they seem to be the opposite corner. "
            "Name such columns xmin, ymin, xmax, ymax, or subtract x and y."
        )
    elif not beyond.any():
        return []
    elif swapped.all():
        kind = "swapped"
        text = (
            f"the box {first} exceeds {size}, but all boxes would lie inside if x and y were exchanged, so they "
            "seem to be swapped. Exchange x with y and width with height."
        )
    else:
        kind = "outside"
        text = (
            f"{int(beyond.sum())} of {len(boxes)} boxes exceed {size}, the first is {first}. Check that boxes are (x, "
            "y, width, height) in pixels of this image, not of one of another size."
        )
    return [Doubt(kind, f"{where}: {text}")]


def check_mask_values(mask: NDArray[Any], where: str, target: str | None = None) -> list[Doubt]:
    """Return what is doubtful about a mask: several classes without a target, or a target that it does not hold."""
    values, counts = np.unique(mask[~np.isnan(mask)] if mask.dtype.kind == "f" else mask, return_counts=True)
    if target is not None or (values > 0).sum() <= 1:
        return []
    shown = ", ".join(f"{v:g} ({n:,} pixels)" for v, n in zip(values[:MANY_VALUES].tolist(), counts, strict=False))
    shown += f" and {len(values) - MANY_VALUES} more" if len(values) > MANY_VALUES else ""
    text = f"{where} has several values above 0, which all count as targets: {shown}."
    return [Doubt("several classes", f"{text} To count one class alone, pass it as target (--target VALUE).")]


def check_targets(targets: Flags, ignored: Flags, where: str) -> list[Doubt]:
    """Return what is doubtful about the pixels that are targets: none, all, or more than half."""
    known = ~ignored
    total, hits = int(known.sum()), int((targets & known).sum())
    if not hits:
        kind = "nothing labelled"
        text = (
            "no pixel is target. If there should be some, check the names of images and the label (--target) in the "
            "file."
        )
    elif hits == total:
        kind = "one class only"
        text = (
            "every known pixel is target, so there is no background to learn from. Check that targets are above 0 in "
            "the mask and the background is 0, or choose a class (--target)."
        )
    elif hits > MOST * total:
        kind, remedy = "more than half", "invert the mask, or choose a class (--target)"
        text = f"{hits / total:.0%} of the image are targets. If these are the background, {remedy}."
    else:
        return []
    return [Doubt(kind, f"{where}: {text}")]


def check_target(counts: Mapping[str | None, int], target: str, where: str) -> None:
    """Raise an error that lists the labels found unless `target` is one of them."""
    if target in counts or not counts:
        return
    if set(counts) == {None}:
        raise InvalidInputError(
            f"{where} gives no labels, so none of its boxes is {target!r}; pass no label (--target)."
        )
    named = Counter({label: n for label, n in counts.items() if label is not None})
    alike = [label for label in named if label.casefold().strip() == target.casefold().strip()]
    if alike:
        raise InvalidInputError(
            f"{where} has no label {target!r}, but {alike[0]!r} ({named[alike[0]]:,}); pass it as it is written "
            f"(--target {alike[0]!r})."
        )
    raise InvalidInputError(
        f"{where} has no label {target!r}; it has {listed_labels(named)}. Pass one of them (--target)."
    )


def listed_labels(counts: Mapping[Any, int]) -> str:
    """Return labels with their counts, the most frequent first."""
    most = sorted(counts.items(), key=lambda pair: -pair[1])[:MANY_VALUES]
    shown = [f"{'no label' if label is None else repr(label)} ({n:,})" for label, n in most]
    return ", ".join(shown) + (f" and {len(counts) - MANY_VALUES} more" if len(counts) > MANY_VALUES else "")
