"""What a slip is, and the commands that most of them vary."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from program import SHAPE, images, target_mask

from slips.files import H, W, X, Y, boxes, mask

BOXES = "--boxes boxes.csv"
PLAIN = "train thermal.png grey.png --objective mean --superpixels 40 -o m.json"
TRAIN = f"{PLAIN} {BOXES}"
MASKED = f"{PLAIN} --labels mask.png"
GEO = "train thermal.tif grey.tif --objective mean --superpixels 40 --labels mask.png -o m.json"
MANY = "train thermal grey --objective mean --superpixels 40 -o m.json"
NESTED = "train '*/thermal/1.png' '*/grey/1.png' --objective mean --superpixels 40 -o m.json"
FUSE = "fuse model.json thermal.png grey.png -o f.tif"
REPORT = "report model.json thermal.png grey.png --truth mask.png -o r.html"
PROJECTED = "train --project . --objective mean --superpixels 40 -o m.json"
MASK, GREY = target_mask(), images(0)["grey"]
CORNERS = (f"{X},{Y},{X + W},{Y + H}", "30,20,38,30", "40,10,46,21")
WHOLE = boxes(f"{X},{Y},{W},{H}")
CLASSES = mask(MASK + 2 * (np.arange(SHAPE[1]) > 50) * ~MASK)
QUOTED = "train 'flat/*_thermal.png' 'flat/*_grey.png' --boxes all.csv --objective mean --superpixels 40 -o m.json"


class Slip(NamedTuple):
    """A command on files that `make` writes.

    `says` are parts of the message, in any order. `remedy` is the command that succeeds afterwards, after `mend` has
    changed the files, if need be.
    """

    name: str
    command: str
    says: tuple[str, ...]
    make: Callable[[], object] = lambda: None
    remedy: str = ""
    mend: Callable[[], object] = lambda: None
