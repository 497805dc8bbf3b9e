"""Slips in which sources there are, and in rasters."""

from program import images
from rasters import write

from slips import files
from slips.commands import FUSE, GEO, GREY, TRAIN, Slip
from slips.files import both, image

SOURCES = [
    Slip(
        "bands that use little of their type",
        "check bands.tif --labels mask.png",
        (
            "band 1 (",
            "of the range of int16",
            "--scale minmax",
        ),
        files.fifteen,
        "check 'bands.tif[3,8]' --labels mask.png --scale minmax --superpixels 40",
    ),
    Slip(
        "swapped by names",
        "fuse model.json grey.png thermal.png --names thermal,grey -o f.tif",
        ("[names-swapped]", "--names"),
        remedy="fuse model.json grey.png thermal.png -o f.tif",
    ),
    Slip(
        "other names",
        "fuse model.json a.png b.png -o f.tif",
        ("[sources-number]", "--names"),
        both(image("a.png", images(0)["thermal"]), image("b.png", GREY)),
        "fuse model.json a.png b.png --names thermal,grey -o f.tif",
    ),
    Slip(
        "GeoTIFFs of other names",
        "fuse model.json a.tif b.tif -o f.tif",
        ("[sources-number]", "--names"),
        lambda: [write(f"{n}.tif", [GREY]) for n in "ab"],
    ),
    Slip("fewer sources", "fuse model.json grey.png -o f.tif", ("[sources-number]",), remedy=FUSE),
    Slip(
        "more sources",
        "fuse model.json thermal.png grey.png mask.png -o f.tif",
        ("[sources-number]",),
        remedy=FUSE,
    ),
    Slip(
        "bands of other names",
        "fuse model.json both.tif -o f.tif",
        ("2 sources (B3, B8)", "--names"),
        files.stacked,
        "fuse model.json both.tif --names thermal,grey -o f.tif",
    ),
    Slip("too few names", f"{TRAIN} --names a", ("[names-number]",), remedy=f"{TRAIN} --names a,b"),
    Slip(
        "duplicate names",
        f"{TRAIN} --names a,a",
        ("[names-distinct]", "'a'"),
        remedy=f"{TRAIN} --names a,b",
    ),
    Slip(
        "too many recipes",
        f"{TRAIN} --recipe equalize,equalize,equalize",
        ("[recipes-number]",),
        remedy=f"{TRAIN} --recipe equalize",
    ),
    Slip(
        "unknown recipe",
        f"{TRAIN} --recipe equalise",
        ("[recipe-unknown]", "'equalise'", "equalize"),
        remedy=f"{TRAIN} --recipe equalize",
    ),
    Slip(
        "unknown band",
        "train 'both.tif[B3,B9]' --labels mask.png -o m.json",
        ("[band-unknown]", "'B9'"),
        files.stacked,
        "train 'both.tif[B3,B8]' --labels mask.png --objective mean --superpixels 40 -o m.json",
    ),
    Slip(
        "unknown band in an expression",
        "train both.tif --expression 'n: B3-B9' --labels mask.png -o m.json",
        ("[band-unknown]", "`B9`", "`B3`", "`B8`"),
        files.stacked,
    ),
    Slip(
        "open bracket in an expression",
        "train both.tif --expression 'n: (B3-B8' --labels mask.png -o m.json",
        ("[expression-syntax]", "'('"),
        files.stacked,
    ),
    Slip("other coordinate system", GEO, ("EPSG:32632", "EPSG:32633", "--align"), files.elsewhere),
    Slip("other grid", GEO, ("60 x 40 pixels", "30 x 20 pixels", "--align"), files.coarser, f"{GEO} --align"),
]
