"""Slips in annotation files and masks."""

import numpy as np

from slips import files
from slips.commands import (
    CLASSES,
    CORNERS,
    MANY,
    MASK,
    MASKED,
    NESTED,
    PLAIN,
    REPORT,
    TRAIN,
    WHOLE,
    Slip,
)
from slips.files import COCO, W, X, Y, boxes, document, image, mask, text, yolo

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
]

MASKS = [
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
