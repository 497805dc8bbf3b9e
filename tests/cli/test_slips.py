"""Slips that users make: each ends in a message that names the remedy, and the remedies that are tried work.

`says` are parts of the message, in any order, without regard to line breaks. `remedy` is the command that succeeds
afterwards, after `mend` has changed the files, if need be.
"""

import contextlib
import re
import shlex
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import slip_files as files
from program import SHAPE, images, make_scenes, run, target_mask
from rasters import write
from slip_files import COCO, PROJECT, H, W, X, Y, both, boxes, document, folder, image, mask, text, yolo
from typer.testing import CliRunner

from bimichi.cli.app import app

LONGEST = 2_000
BOXES = "--boxes boxes.csv"
PLAIN = "train thermal.png grey.png --objective mean --superpixels 40 -o m.json"
TRAIN = f"{PLAIN} {BOXES}"
MASKED = f"{PLAIN} --labels mask.png"
GEO = "train thermal.tif grey.tif --superpixels 40 --labels mask.png -o m.json"
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
    name: str
    command: str
    says: tuple[str, ...]
    make: Callable[[], object] = lambda: None
    remedy: str = ""
    mend: Callable[[], object] = lambda: None


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
        ("*_ir.png has no files", "s0_thermal.png", "name what you mean"),
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
        ("width and height are exchanged", "transpose one of them"),
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
        ("Warning: Sources 'grey' and 'grey 2' are the same", "--recipe"),
        remedy=f"train grey.png grey.png {BOXES} --superpixels 40 --recipe equalize,edge_strength -o m.json",
    ),
    Slip(
        "copies under other names",
        f"train grey.png copy.png {BOXES} --objective mean --superpixels 40 -o m.json",
        ("Warning: Sources 'grey' and 'copy' are the same", "Leave one out"),
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
SOURCES = [
    Slip(
        "too many bands",
        "check bands.tif --labels mask.png",
        (
            "15 sources are more than the 14",
            "'s2.tif[B3,B8]'",
            "--additivity 2",
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
        ("Warning: names (--names)", "may be swapped", "or none"),
        remedy="fuse model.json grey.png thermal.png -o f.tif",
    ),
    Slip(
        "other names",
        "fuse model.json a.png b.png -o f.tif",
        ("2 sources (a, b), but the model has 2 sources (thermal, grey)", "--names"),
        both(image("a.png", images(0)["thermal"]), image("b.png", GREY)),
        "fuse model.json a.png b.png --names thermal,grey -o f.tif",
    ),
    Slip(
        "GeoTIFFs of other names",
        "fuse model.json a.tif b.tif -o f.tif",
        ("(a, b), but the model has", "--names"),
        lambda: [write(f"{n}.tif", [GREY]) for n in "ab"],
    ),
    Slip("fewer sources", "fuse model.json grey.png -o f.tif", ("1 source (grey)", "Give thermal, too"), remedy=FUSE),
    Slip(
        "more sources",
        "fuse model.json thermal.png grey.png mask.png -o f.tif",
        ("3 sources (thermal, grey, mask)", "Leave out mask"),
        remedy=FUSE,
    ),
    Slip(
        "bands of other names",
        "fuse model.json both.tif -o f.tif",
        ("2 sources (B3, B8)", "--names"),
        files.stacked,
        "fuse model.json both.tif --names thermal,grey -o f.tif",
    ),
    Slip(
        "too few names", f"{TRAIN} --names a", ("1 names for 2 sources", "Give one each"), remedy=f"{TRAIN} --names a,b"
    ),
    Slip(
        "duplicate names",
        f"{TRAIN} --names a,a",
        ("'a' occurs more than once", "a name of its own"),
        remedy=f"{TRAIN} --names a,b",
    ),
    Slip(
        "too many recipes",
        f"{TRAIN} --recipe equalize,equalize,equalize",
        ("3 recipes for 2 sources", "one for all, or one each"),
        remedy=f"{TRAIN} --recipe equalize",
    ),
    Slip(
        "unknown recipe",
        f"{TRAIN} --recipe equalise",
        ("'equalise' is not one of", "equalize"),
        remedy=f"{TRAIN} --recipe equalize",
    ),
    Slip(
        "unknown band",
        "train 'both.tif[B3,B9]' --labels mask.png -o m.json",
        ("no band 'B9'; it has 1 (B3), 2 (B8)",),
        files.stacked,
        "train 'both.tif[B3,B8]' --labels mask.png --objective mean --superpixels 40 -o m.json",
    ),
    Slip(
        "unknown band in an expression",
        "train both.tif --expression 'n: B3-B9' --labels mask.png -o m.json",
        ("no band `B9`", "there are `B3`, `B8`"),
        files.stacked,
    ),
    Slip(
        "open bracket in an expression",
        "train both.tif --expression 'n: (B3-B8' --labels mask.png -o m.json",
        ("at column 4: '(' was never closed",),
        files.stacked,
    ),
    Slip("other coordinate system", GEO, ("EPSG:32632", "EPSG:32633", "--align"), files.elsewhere),
    Slip("other grid", GEO, ("60 x 40 pixels", "30 x 20 pixels", "--align"), files.coarser, f"{GEO} --align"),
]
ANNOTATIONS = [
    Slip(
        "annotations in folders of a folder",
        f"{NESTED} --boxes notes",
        ("notes has no annotation file, but the folders mon, tue", "a quoted pattern", "--labels"),
        files.nested,
        f"{NESTED} --labels 'notes/*/1.csv'",
    ),
    Slip(
        "unquoted patterns of nested folders",
        "train mon/thermal/1.png tue/thermal/1.png mon/grey/1.png tue/grey/1.png --labels notes -o m.json",
        ("look like 2 scenes of 2 sources. Quote patterns, or the shell",),
        files.nested,
        f"{NESTED} --labels 'notes/*/1.csv'",
    ),
    Slip(
        "missing boxes",
        f"{PLAIN} --boxes box.csv",
        ("no file or folder box.csv", "Did you mean boxes.csv?"),
        remedy=TRAIN,
    ),
    Slip(
        "column missing",
        TRAIN,
        ("names its columns", "x,y,w,h", "found 'x,y,w'"),
        boxes(f"{X},{Y},{W}", header="x,y,w"),
        TRAIN,
        WHOLE,
    ),
    Slip(
        "no header",
        TRAIN,
        ("must start with a line that names its columns", "found '12,8,9,14'"),
        text("boxes.csv", "12,8,9,14\n"),
        TRAIN,
        WHOLE,
    ),
    Slip(
        "corners as sizes",
        TRAIN,
        ("Warning: boxes.csv: width and height exceed x and y", "xmin, ymin, xmax, ymax"),
        boxes(*CORNERS),
        TRAIN,
        boxes(*CORNERS, header="xmin,ymin,xmax,ymax"),
    ),
    Slip(
        "fractions",
        TRAIN,
        ("Warning:", "fractions of the image", "Multiply x and width by 60, y and height by 40"),
        boxes("0.2,0.2,0.15,0.35"),
        TRAIN,
        boxes("12,8,9,14"),
    ),
    Slip(
        "x and y swapped",
        TRAIN,
        ("seem to be swapped", "Exchange x with y"),
        boxes("8,50,14,9", "20,45,9,8"),
        TRAIN,
        boxes("50,8,9,14", "45,20,8,9"),
    ),
    Slip(
        "some boxes outside",
        TRAIN,
        ("1 of 2 boxes exceed the image of 60 x 40", "(300, 200, 9, 14)", "in pixels of this image"),
        boxes("12,8,9,14", "300,200,9,14"),
        TRAIN,
        WHOLE,
    ),
    Slip("empty CSV", TRAIN, ("names its columns", "found nothing"), text("boxes.csv", "")),
    Slip("header only", TRAIN, ("boxes.csv has no targets", "Check that it names these images"), boxes()),
    Slip(
        "boxes of another image",
        TRAIN,
        ("Warning: boxes.csv is about one image, 'noon'", "none of thermal.png, grey.png"),
        boxes("noon,12,8,9,14", header="image,x,y,w,h"),
        TRAIN,
        boxes("grey.png,12,8,9,14", header="image,x,y,w,h"),
    ),
    Slip(
        "boxes of other images",
        TRAIN,
        ("the images 'noon', 'dawn'", "matched by path, name"),
        boxes("noon,12,8,9,14", "dawn,1,2,3,4", header="image,x,y,w,h"),
    ),
    Slip(
        "ambiguous images",
        "train 'thermal/*/1.png' 'grey/*/1.png' --boxes boxes.csv -o m.json",
        ("'1.png' may be any of the scenes 'mon', 'tue'", "by its path"),
        files.twins,
        "train 'thermal/*/1.png' 'grey/*/1.png' --boxes boxes.csv --objective mean --superpixels 40 -o m.json",
        boxes("mon/1.png,12,8,9,14", header="image,x,y,w,h"),
    ),
    Slip(
        "no image for many",
        f"{MANY} --boxes boxes.csv",
        ("in which of the 2 scenes", "needs a column image"),
        files.many,
        f"{MANY} --boxes all.csv",
    ),
    Slip(
        "target misspelled",
        f"{TRAIN} --target persn",
        ("no label 'persn'; it has 'person' (1)",),
        remedy=f"{TRAIN} --target person",
    ),
    Slip(
        "target in other case",
        f"{TRAIN} --target Person",
        ("but 'person' (1)", "--target 'person'"),
        remedy=f"{TRAIN} --target 'person'",
    ),
    Slip(
        "target without labels",
        f"{TRAIN} --target person",
        ("gives no labels", "pass no label (--target)"),
        WHOLE,
        TRAIN,
    ),
    Slip(
        "negative width", TRAIN, ("line 2: w and h must be above 0, got -9 and 14",), boxes("21,8,-9,14"), TRAIN, WHOLE
    ),
    Slip(
        "text for a number", TRAIN, ("line 2: y must be a number, got 'eight'",), boxes("12,eight,9,14"), TRAIN, WHOLE
    ),
    Slip(
        "decimal commas between commas",
        TRAIN,
        ("8 fields under 4 columns", "separate columns by semicolons"),
        boxes("12,5,8,5,9,0,14,0"),
        TRAIN,
        boxes("12,5;8,5;9,0;14,0", header="x;y;w;h"),
    ),
    Slip(
        "COCO without annotations",
        f"{PLAIN} --boxes coco.json",
        ("coco.json has no targets", "--target"),
        document("coco.json", {k: v for k, v in COCO.items() if k != "annotations"}),
        f"{PLAIN} --boxes coco.json",
        document("coco.json", COCO),
    ),
    Slip(
        "JSON of something else",
        f"{PLAIN} --boxes a.json",
        ("a.json is not an annotation file of a known format", "COCO JSON"),
        document("a.json", {"a": 1}),
    ),
    Slip(
        "YOLO without classes",
        f"{PLAIN} --boxes yolo --target person",
        ("no label 'person'; it has '0' (1)",),
        yolo("0 0.28 0.38 0.15 0.35"),
        f"{PLAIN} --boxes yolo --target 0",
    ),
    Slip(
        "YOLO in pixels",
        f"{PLAIN} --boxes yolo",
        ("must be in fractions of the image", "CSV file with the columns x, y, w, h"),
        yolo("0 12 8 9 14", "person"),
        TRAIN,
        WHOLE,
    ),
    Slip(
        "YOLO with a number missing",
        f"{PLAIN} --boxes yolo",
        ("thermal.txt, line 1", "a class number and x, y, width, height"),
        yolo("0 0.28 0.38 0.15", "person"),
    ),
    Slip(
        "YOLO of a class without a name",
        f"{PLAIN} --boxes yolo",
        ("class 3 has no name in yolo/classes.txt, which names 0 person",),
        yolo("3 0.28 0.38 0.15 0.35", "person"),
    ),
    Slip("missing mask", f"{PLAIN} --labels masc.png", ("Did you mean mask.png?",), remedy=MASKED),
    Slip(
        "classes without target",
        MASKED,
        ("Warning: mask.png has several values above 0", "--target VALUE"),
        CLASSES,
        f"{MASKED} --target 1",
    ),
    Slip(
        "mask of another size", MASKED, ("mask.png is 60 x 20 pixels", "Name the mask of this scene"), mask(MASK[:20])
    ),
    Slip("mask all 0", MASKED, ("mask.png has no targets", "targets are above 0"), mask(0 * MASK)),
    Slip("mask all 1", MASKED, ("every known pixel is target", "the background is 0"), mask(0 * MASK + 1)),
    Slip(
        "inverted mask",
        MASKED,
        ("Warning: mask.png: 95% of the image are targets", "invert the mask"),
        mask(~MASK),
        MASKED,
        mask(MASK),
    ),
    Slip(
        "value that the mask lacks",
        f"{MASKED} --target 7",
        ("No mask has the value 7 (--target)", "0, 255"),
        remedy=f"{MASKED} --target 255",
    ),
    Slip(
        "colour mask",
        f"{PLAIN} --labels rgb.png",
        ("rgb.png has 3 bands; a mask has one", "Save it with one band"),
        lambda: files.rgb("rgb.png"),
    ),
    Slip(
        "scene without a mask",
        f"{MANY} --labels masks",
        ("no file for s1; it has s0", "add it, or leave the scene out"),
        files.lacking_mask,
        f"{MANY} --labels masks",
        files.many,
    ),
    Slip(
        "one mask for many",
        f"{MANY} --labels mask.png",
        ("must be a folder or a pattern", "got mask.png"),
        files.many,
        f"{MANY} --labels masks",
    ),
    Slip(
        "bags of another size",
        f"{TRAIN} --bags segments.png",
        ("segments.png is 3 x 3 pixels", "60 x 40"),
        image("segments.png", np.ones((3, 3), np.uint8)),
    ),
    Slip(
        "truth of another size", REPORT, ("mask.png is 60 x 20 pixels", "Name the mask of this scene"), mask(MASK[:20])
    ),
    Slip(
        "truth without targets",
        REPORT,
        ("Warning: mask.png gives no scores", "Check that it is the mask of this scene"),
        mask(0 * MASK),
        REPORT,
        mask(MASK),
    ),
]
OPTIONS = [
    Slip("boxes and labels", f"{TRAIN} --labels mask.png", ("'--boxes' / '--labels': give exactly one",), remedy=TRAIN),
    Slip("neither boxes nor labels", PLAIN, ("'--boxes' / '--labels': give exactly one",), remedy=TRAIN),
    Slip("unknown objective", f"{TRAIN} --objective bipolr", ("objective must be one of bipolar", "'bipolr'")),
    Slip("unknown solver", f"{TRAIN} --solver evolution", ("solver must be one of convex, evolutionary",)),
    Slip("no superpixels", TRAIN.replace("40", "0"), ("'--superpixels'", "greater than or equal to 1"), remedy=TRAIN),
    Slip(
        "more superpixels than pixels",
        TRAIN.replace("40", "99999"),
        ("Warning: superpixels (--superpixels) is 99,999", "2,400 pixels", "Use fewer"),
        remedy=TRAIN,
    ),
    Slip(
        "overlap in percent",
        f"{TRAIN} --min-overlap 50",
        ("'--min-overlap'", "less than or equal to 1"),
        remedy=f"{TRAIN} --min-overlap 0.5",
    ),
    Slip(
        "overlap that no bag has",
        f"{TRAIN} --min-overlap 1",
        ("0 are positive", "another min_overlap", "`bimichi bags`"),
        boxes("13,9,3,3"),
        TRAIN,
    ),
    Slip("negative seed", f"{TRAIN} --seed -1", ("'--seed'", "greater than or equal to 0")),
    Slip("no jobs", f"{TRAIN} --jobs 0", ("'--jobs'", "greater than or equal to 1")),
    Slip("misspelled option", f"{TRAIN} --objektive mean", ("No such option: --objektive", "--objective")),
    Slip("output forgotten", f"train thermal.png grey.png {BOXES}", ("Missing option '--output' / '-o'",)),
    Slip(
        "unknown key in a project",
        PROJECTED,
        ("bimichi.toml has an unknown key 'superpixel' in [labels]", "Did you mean 'superpixels'?"),
        text("bimichi.toml", f"{PROJECT}superpixel = 40\n"),
        PROJECTED,
        text("bimichi.toml", PROJECT),
    ),
    Slip(
        "wrong type in a project",
        "train --project . -o m.json",
        ("'--superpixels'", "valid integer", "(a value of the project file)"),
        text("bimichi.toml", f"{PROJECT}superpixels = 'many'\n"),
    ),
    Slip(
        "missing file of a project",
        PROJECTED,
        ("no file or folder gray.png", "Did you mean grey.png?"),
        text("bimichi.toml", PROJECT.replace("grey.png", "gray.png")),
        PROJECTED,
        text("bimichi.toml", PROJECT),
    ),
    Slip(
        "project outside its folder",
        PROJECTED,
        ("no file or folder ../", "thermal.png"),
        text("bimichi.toml", PROJECT.replace("thermal", "../elsewhere/thermal")),
    ),
    Slip(
        "project that is no TOML",
        PROJECTED,
        ("bimichi.toml: it is no TOML", "at line 1"),
        text("bimichi.toml", PROJECT.replace("]]", "]")),
    ),
    Slip(
        "project that writes",
        "train --project .",
        ("bimichi.toml sets output in [train]", "remove it"),
        text("bimichi.toml", f"{PROJECT}[train]\noutput = 'm.json'\n"),
    ),
    Slip("no project file", "train --project other -o m.json", ("other/bimichi.toml", "`bimichi init` writes one")),
    Slip(
        "second init",
        "init .",
        ("exists already; it is kept", "--force"),
        text("bimichi.toml", PROJECT),
        "init . --force",
    ),
    Slip(
        "init of an empty folder", "init empty", ("Found no images", "name the folder of the images"), folder("empty")
    ),
]
SLIPS = PATHS + OUTPUTS + IMAGES + SOURCES + ANNOTATIONS + OPTIONS


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A folder with scenes and a model."""
    with contextlib.chdir(tmp_path_factory.mktemp("start")):
        make_scenes()
        run(*shlex.split(TRAIN.replace("m.json", "model.json")))
        return Path.cwd()


def call(command):
    """Call the program; returns the exit code and the message, without frames and line breaks."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        done = CliRunner().invoke(app, shlex.split(command))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done.exit_code, re.sub(r"[\s│╭╮╰╯─]+", " ", done.stderr)


def test_there_are_enough():
    assert len({slip.name for slip in SLIPS}) == len(SLIPS) > 100
    assert sum(bool(slip.remedy) for slip in SLIPS) > 50


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.name)
def test_slip(slip, start, tmp_path, monkeypatch):
    here = shutil.copytree(start, tmp_path / "night")
    monkeypatch.chdir(here)
    slip.make()
    code, message = call(slip.command)
    assert code in (1, 2) or "Warning: " in message, f"accepted silently: {message}"
    assert len(message) <= LONGEST
    assert [part for part in slip.says if part not in message] == [], message
    if code:
        assert not Path("m.json").exists()
        assert not Path("f.tif").exists()
    if slip.remedy:
        slip.mend()
        code, after = call(slip.remedy)
        assert code == 0, after
        assert "Warning: " not in after


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
def test_encodings_of_spreadsheets_are_read(start, tmp_path, monkeypatch, encoding):
    monkeypatch.chdir(shutil.copytree(start, tmp_path / "night"))
    boxes(f"{X},{Y},{W},{H},Fußgänger", header="x,y,w,h,label", encoding=encoding)()
    assert call(f"{TRAIN} --target Fußgänger")[0] == 0


def test_folders_of_outputs_are_made(start, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(start, tmp_path / "night"))
    assert call(FUSE.replace("f.tif", "new/folder/f.tif")) == (0, "Wrote new/folder/f.tif. ")
