"""Slips in the content of images."""

import numpy as np
from program import SHAPE, make_scenes

from slips import files
from slips.commands import (
    BOXES,
    FUSE,
    GEO,
    GREY,
    TRAIN,
    Slip,
)
from slips.files import image, text

IMAGES = [
    Slip(
        "text called .png",
        TRAIN,
        ("Cannot read grey.png: it is neither PNG", "Convert it"),
        text("grey.png", "this is no image"),
    ),
    Slip("truncated PNG", TRAIN, ("grey.png: it is damaged", "Copy or export it again"), files.truncated),
    Slip("empty file", TRAIN, ("grey.png: it is empty", "Copy or export it again"), text("grey.png", "")),
    Slip(
        "sizes differ",
        TRAIN,
        ("60 x 40 pixels", "60 x 20 pixels", "--align"),
        image("grey.png", GREY[:20]),
        f"{TRAIN} --align",
    ),
    Slip(
        "width and height exchanged",
        f"{TRAIN} --align",
        ("width and height are swapped", "transpose one of them"),
        image("grey.png", np.ascontiguousarray(GREY.T)),
        TRAIN,
        image("grey.png", GREY),
    ),
    Slip(
        "RGB without recipe", TRAIN, ("has 3 bands", "The recipe to_bipolar"), files.rgb, f"{TRAIN} --recipe to_bipolar"
    ),
    Slip(
        "transparent RGBA",
        f"{TRAIN} --recipe to_bipolar",
        ("126 transparent pixels", "remove the alpha channel"),
        files.transparent,
        f"{TRAIN} --recipe to_bipolar",
        files.rgb,
    ),
    Slip(
        "pages of a TIFF",
        TRAIN.replace("grey.png", "grey.tif"),
        ("it has 3 pages; save the one you need",),
        files.pages,
        TRAIN.replace("grey.png", "grey.tif"),
        files.one_page,
    ),
    Slip(
        "floats outside [-1, 1]",
        TRAIN.replace("thermal.png", "thermal.tif"),
        ("reaches 306.25", "--scale"),
        files.kelvin,
        f"{TRAIN.replace('thermal.png', 'thermal.tif')} --scale minmax",
    ),
    Slip(
        "all NaN",
        TRAIN.replace("thermal.png", "thermal.tif"),
        ("'thermal' of scene", "has no data", "leave it out"),
        image("thermal.tif", np.full(SHAPE, np.nan, np.float32)),
    ),
    Slip(
        "all nodata",
        f"{GEO} --scale minmax",
        ("'grey' of scene", "has no data", "its nodata value"),
        files.nothing_but_nodata,
    ),
    Slip(
        "constant source",
        TRAIN,
        ("Warning: Source 'grey' is constant", "Leave it out"),
        image("grey.png", np.full(SHAPE, 7, np.uint8)),
    ),
    Slip(
        "16-bit sliver",
        TRAIN,
        ("Warning: Source 'thermal' (uint16)", "--scale minmax"),
        files.counts,
        f"{TRAIN} --scale minmax",
    ),
    Slip(
        "16 bits for a model of 8",
        FUSE,
        ("is uint16, but the model was trained on uint8", "Convert it to uint8"),
        files.counts,
        FUSE,
        make_scenes,
    ),
    Slip(
        "other units",
        FUSE.replace("thermal.png", "thermal.tif"),
        ("trained on uint8", "Convert it to uint8"),
        files.kelvin,
    ),
    Slip(
        "constant image for a model",
        FUSE,
        ("Warning: Source 'grey' of scene", "is constant (7)", "Check its units"),
        image("grey.png", np.full(SHAPE, 7, np.uint8)),
    ),
    Slip(
        "undeclared nodata with minmax",
        f"{GEO} --scale minmax",
        ("Warning: Source 'thermal' of scene", "is -9999 in 15.0% of its pixels", "declare it as the nodata value"),
        files.holed,
        f"{GEO} --scale minmax",
        files.declared,
    ),
    Slip(
        "undeclared nodata in check",
        "check thermal.tif grey.tif --labels mask.png --superpixels 40",
        ("is -9999 in 15.0%", "declare it"),
        files.holed,
    ),
    Slip(
        "the same file twice",
        f"train grey.png grey.png {BOXES} --objective mean --superpixels 40 -o m.json",
        ("Warning: Sources 'grey' and 'grey 2' are identical", "--recipe"),
        remedy=f"train grey.png grey.png {BOXES} --objective mean --recipe equalize,edge_strength -o m.json",
    ),
    Slip(
        "copies under other names",
        f"train grey.png copy.png {BOXES} --objective mean --superpixels 40 -o m.json",
        ("Warning: Sources 'grey' and 'copy' are identical", "Leave one out"),
        image("copy.png", GREY),
    ),
    Slip(
        "damaged DICOM",
        TRAIN.replace("grey.png", "grey.dcm"),
        ("grey.dcm: it is damaged", "again"),
        files.damaged("grey.dcm", b"DICM", 128),
    ),
    Slip("damaged NIfTI", TRAIN.replace("grey.png", "t1.nii.gz"), ("t1.nii.gz: it is damaged", "again"), files.nifti),
    Slip(
        "Git LFS pointer",
        TRAIN,
        ("Cannot read grey.png: it is neither PNG",),
        text("grey.png", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
    ),
]
