"""Slips in paths and outputs."""

from slips import files
from slips.commands import BOXES, FUSE, PLAIN, QUOTED, TRAIN, Slip
from slips.files import both, folder

PATHS = [
    Slip(
        "missing file",
        TRAIN.replace("thermal", "termal"),
        ("[file-missing]",),
    ),
    Slip("missing folder", "fuse model.json day/ir day/vi -o maps", ("[file-missing]",)),
    Slip(
        "empty folder",
        "train empty grey --boxes all.csv -o m.json",
        ("[pattern-empty]", ".png"),
        both(files.many, folder("empty")),
    ),
    Slip(
        "folder above the images",
        "train thermal grey --boxes boxes.csv -o m.json",
        ("[pattern-empty]",),
        files.twins,
    ),
    Slip(
        "pattern without match",
        QUOTED.replace("thermal", "ir"),
        ("[pattern-empty]", "_ir.png", "s0_thermal.png"),
        files.flat,
        QUOTED,
    ),
    Slip(
        "unquoted patterns",
        "train flat/s0_thermal.png flat/s1_thermal.png flat/s0_grey.png flat/s1_grey.png --boxes all.csv -o m.json",
        ("look like 2 scenes of 2 sources", "[sources-look-like-scenes]", "'flat/*_thermal.png'"),
        files.flat,
        QUOTED,
    ),
    Slip(
        "unquoted patterns of folders",
        "fuse model.json thermal/s0.png thermal/s1.png grey/s0.png grey/s1.png -o f.tif",
        ("2 scenes of 2 sources", "'thermal/*.png'"),
        files.many,
        "fuse model.json 'thermal/*.png' 'grey/*.png' -o maps",
    ),
    Slip(
        "file and folder",
        "fuse model.json thermal grey.png -o f.tif",
        ("[sources-mixed]", "grey.png"),
        files.many,
        "fuse model.json thermal grey -o maps",
    ),
    Slip("standard input", f"train - grey.png {BOXES} -o m.json", ("[file-missing]",)),
    Slip(
        "standard output",
        "fuse model.json thermal.png grey.png -o -",
        ("[output-stdout]",),
        remedy=FUSE,
    ),
    Slip(
        "model is a folder",
        "fuse other thermal.png grey.png -o f.tif",
        ("[model-unreadable]", "`bimichi train`"),
        remedy=FUSE,
    ),
    Slip(
        "model is missing",
        "fuse no.json thermal.png grey.png -o f.tif",
        ("[model-unreadable]", "no.json", "`bimichi train`"),
        remedy=FUSE,
    ),
    Slip(
        "model forgotten",
        "fuse thermal.png grey.png -o f.tif",
        ("[json]", "`bimichi train`"),
        remedy=FUSE,
    ),
    Slip(
        "model as image",
        "fuse model.json model.json grey.png -o f.tif",
        ("[file-format]", "model.json"),
        remedy=FUSE,
    ),
    Slip(
        "boxes as image",
        f"train thermal.png boxes.csv {BOXES} -o m.json",
        ("[file-format]", "boxes.csv"),
        remedy=TRAIN,
    ),
    Slip(
        "image as boxes",
        f"{PLAIN} --boxes grey.png",
        ("[several-classes]", "grey.png", "[one-class-only]"),
        remedy=TRAIN,
    ),
    Slip("newer model", FUSE, ("version 99", "[model-version]"), files.newer_model),
]

OUTPUTS = [
    Slip("output is a folder", f"train thermal.png grey.png {BOXES} -o other", ("[output-folder]",)),
    Slip(
        "output below a file",
        f"train thermal.png grey.png {BOXES} -o grey.png/m.json",
        ("[folder-unwritable]", "grey.png"),
    ),
    Slip(
        "map of unknown suffix",
        "fuse model.json thermal.png grey.png -o f.jpg",
        ("[output-suffix]",),
        remedy=FUSE,
    ),
    Slip(
        "model called like an image",
        f"train thermal.png grey.png {BOXES} -o m.tif",
        ("[model-suffix]", "m.tif"),
    ),
    Slip(
        "output is an input",
        "fuse model.json thermal.png grey.png -o grey.png",
        ("[output-is-input]",),
    ),
    Slip("output is the labels", f"train thermal.png grey.png {BOXES} -o boxes.csv", ("[output-is-input]",)),
    Slip(
        "one map for many scenes",
        "fuse model.json thermal grey -o f.tif",
        ("[output-not-folder]",),
        files.many,
        "fuse model.json thermal grey -o maps",
    ),
    Slip(
        "folder of maps is a file",
        "fuse model.json thermal grey -o boxes.csv",
        ("[folder-unwritable]", "boxes.csv"),
        files.many,
    ),
]
