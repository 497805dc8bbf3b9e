"""Slips in paths and outputs."""

from slips import files
from slips.commands import BOXES, FUSE, PLAIN, QUOTED, TRAIN, Slip
from slips.files import both, folder

PATHS = [
    Slip(
        "missing file",
        TRAIN.replace("thermal", "termal"),
        ("no file or folder termal.png", "Did you mean thermal.png?"),
    ),
    Slip("missing folder", "fuse model.json day/ir day/vi -o maps", ("no file or folder day/ir", "Check the path")),
    Slip(
        "empty folder",
        "train empty grey --boxes all.csv -o m.json",
        ("empty has no image files", ".png"),
        both(files.many, folder("empty")),
    ),
    Slip(
        "folder above the images",
        "train thermal grey --boxes boxes.csv -o m.json",
        ("no image files", "has mon/, tue/; name"),
        files.twins,
    ),
    Slip(
        "pattern without match",
        QUOTED.replace("thermal", "ir"),
        ("*_ir.png has no files", "s0_thermal.png", "name the one you mean"),
        files.flat,
        QUOTED,
    ),
    Slip(
        "unquoted patterns",
        "train flat/s0_thermal.png flat/s1_thermal.png flat/s0_grey.png flat/s1_grey.png --boxes all.csv -o m.json",
        ("look like 2 scenes of 2 sources", "Quote patterns, as in 'flat/*_thermal.png'"),
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
        ("grey.png is a file, but thermal is a folder", "one folder or pattern per source"),
        files.many,
        "fuse model.json thermal grey -o maps",
    ),
    Slip("standard input", f"train - grey.png {BOXES} -o m.json", ("Standard input is not read; name a file",)),
    Slip(
        "standard output",
        "fuse model.json thermal.png grey.png -o -",
        ("not to standard output; name one",),
        remedy=FUSE,
    ),
    Slip(
        "model is a folder",
        "fuse other thermal.png grey.png -o f.tif",
        ("model file other: Is a directory", "`bimichi train`"),
        remedy=FUSE,
    ),
    Slip(
        "model is missing",
        "fuse no.json thermal.png grey.png -o f.tif",
        ("no.json: No such file", "`bimichi train`"),
        remedy=FUSE,
    ),
    Slip(
        "model forgotten",
        "fuse thermal.png grey.png -o f.tif",
        ("thermal.png is not a valid bimichi model", "`bimichi train`"),
        remedy=FUSE,
    ),
    Slip(
        "model as image",
        "fuse model.json model.json grey.png -o f.tif",
        ("Cannot read model.json: it is neither PNG", "Convert it"),
        remedy=FUSE,
    ),
    Slip(
        "boxes as image",
        f"train thermal.png boxes.csv {BOXES} -o m.json",
        ("Cannot read boxes.csv: it is neither PNG",),
        remedy=TRAIN,
    ),
    Slip(
        "image as boxes",
        f"{PLAIN} --boxes grey.png",
        ("grey.png has several values above 0", "every known pixel is target"),
        remedy=TRAIN,
    ),
    Slip("newer model", FUSE, ("version 99", "Upgrade bimichi"), files.newer_model),
]

OUTPUTS = [
    Slip("output is a folder", f"train thermal.png grey.png {BOXES} -o other", ("it is a folder; name a file in it",)),
    Slip(
        "output below a file",
        f"train thermal.png grey.png {BOXES} -o grey.png/m.json",
        ("Cannot write to the folder grey.png",),
    ),
    Slip(
        "map of unknown suffix",
        "fuse model.json thermal.png grey.png -o f.jpg",
        ("must end in .tif or .tiff or .png, got f.jpg",),
        remedy=FUSE,
    ),
    Slip(
        "model called like an image",
        f"train thermal.png grey.png {BOXES} -o m.tif",
        ("name it .json or .npz, got m.tif",),
    ),
    Slip(
        "output is an input",
        "fuse model.json thermal.png grey.png -o grey.png",
        ("is one of the inputs", "Choose another name"),
    ),
    Slip("output is the labels", f"train thermal.png grey.png {BOXES} -o boxes.csv", ("is one of the inputs",)),
    Slip(
        "one map for many scenes",
        "fuse model.json thermal grey -o f.tif",
        ("the output must be a folder",),
        files.many,
        "fuse model.json thermal grey -o maps",
    ),
    Slip(
        "folder of maps is a file",
        "fuse model.json thermal grey -o boxes.csv",
        ("Cannot write to the folder boxes.csv",),
        files.many,
    ),
]
