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
        ("[file-format]", "grey.png"),
        text("grey.png", "this is no image"),
    ),
    Slip("truncated PNG", TRAIN, ("[image-damaged]", "grey.png"), files.truncated),
    Slip("empty file", TRAIN, ("[file-empty]", "grey.png"), text("grey.png", "")),
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
        ("[grids-swapped]",),
        image("grey.png", np.ascontiguousarray(GREY.T)),
        TRAIN,
        image("grey.png", GREY),
    ),
    Slip(
        "RGB as it is",
        f"{TRAIN} --recipe as_is",
        ("[bands-many]",),
        files.rgb,
        f"{TRAIN} --recipe to_bipolar",
    ),
    Slip(
        "transparent RGBA",
        f"{TRAIN} --recipe to_bipolar",
        ("[image-alpha]", "126"),
        files.transparent,
        f"{TRAIN} --recipe to_bipolar",
        files.rgb,
    ),
    Slip(
        "pages of a TIFF",
        TRAIN.replace("grey.png", "grey.tif"),
        ("[image-frames]",),
        files.pages,
        TRAIN.replace("grey.png", "grey.tif"),
        files.one_page,
    ),
    Slip(
        "floats outside [-1, 1]",
        f"{TRAIN.replace('thermal.png', 'thermal.tif')} --recipe as_is,to_bipolar",
        ("reaches 306.25", "--scale"),
        files.kelvin,
        f"{TRAIN.replace('thermal.png', 'thermal.tif')} --scale minmax",
    ),
    Slip(
        "all NaN",
        TRAIN.replace("thermal.png", "thermal.tif"),
        ("[source-no-data]", "'thermal'"),
        image("thermal.tif", np.full(SHAPE, np.nan, np.float32)),
    ),
    Slip(
        "all nodata",
        f"{GEO} --scale minmax",
        ("[source-no-data]", "'grey'"),
        files.nothing_but_nodata,
    ),
    Slip(
        "constant source",
        TRAIN,
        ("[source-constant]", "'grey'"),
        image("grey.png", np.full(SHAPE, 7, np.uint8)),
    ),
    Slip(
        "16-bit sliver",
        TRAIN,
        ("[source-narrow]", "'thermal'", "--scale minmax"),
        files.counts,
        f"{TRAIN} --scale minmax",
    ),
    Slip(
        "16 bits for a model of 8",
        FUSE,
        ("[type-of-training]",),
        files.counts,
        FUSE,
        make_scenes,
    ),
    Slip(
        "other units",
        FUSE.replace("thermal.png", "thermal.tif"),
        ("[type-of-training]",),
        files.kelvin,
    ),
    Slip(
        "constant image for a model",
        FUSE,
        ("[source-constant]", "'grey'"),
        image("grey.png", np.full(SHAPE, 7, np.uint8)),
    ),
    Slip(
        "undeclared nodata with minmax",
        f"{GEO} --scale minmax",
        ("[nodata-undeclared]", "'thermal'", "9999", "15.0"),
        files.holed,
        f"{GEO} --scale minmax",
        files.declared,
    ),
    Slip(
        "undeclared nodata in check",
        "check thermal.tif grey.tif --labels mask.png --superpixels 40",
        ("[nodata-undeclared]", "9999", "15.0"),
        files.holed,
    ),
    Slip(
        "the same file twice",
        f"train grey.png grey.png {BOXES} --objective mean --superpixels 40 -o m.json",
        ("[sources-identical]", "'grey'", "'grey 2'", "--recipe"),
        remedy=f"train grey.png grey.png {BOXES} --objective mean --recipe equalize,edge_strength -o m.json",
    ),
    Slip(
        "copies under other names",
        f"train grey.png copy.png {BOXES} --objective mean --superpixels 40 -o m.json",
        ("[sources-identical]", "'grey'", "'copy'"),
        image("copy.png", GREY),
    ),
    Slip(
        "damaged DICOM",
        TRAIN.replace("grey.png", "grey.dcm"),
        ("[image-damaged]", "again"),
        files.damaged("grey.dcm", b"DICM", 128),
    ),
    Slip("damaged NIfTI", TRAIN.replace("grey.png", "t1.nii.gz"), ("[image-damaged]", "again"), files.nifti),
    Slip(
        "Git LFS pointer",
        TRAIN,
        ("[file-format]", "grey.png"),
        text("grey.png", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
    ),
]
