"""Annotation files on the command line: what is said of them, and what users get wrong."""

import json
from pathlib import Path

import numpy as np
import pytest
from program import BOX, SHAPE, run, target_mask

from bimichi.io import write_image

BAGS = ("bags", "thermal.png", "grey.png", "--superpixels", 20, "-o", "bags.png")


def counts(done):
    scene = json.loads(done.stdout)["scenes"][0]
    return scene["positive"], scene["negative"], scene["left_out"]


def corners():
    x, y, w, h = BOX
    return x, y, x + w, y + h


def test_what_was_recognised_and_left_out_is_said(here):
    left, top, right, bottom = corners()
    rows = [f"C:\\shots\\thermal.png;Person;{left},0;{top};{right},0;{bottom}", "other.png;dog;1;2;3;4"]
    Path("corners.csv").write_text("\n".join(["filename;class;xmin;ymin;xmax;ymax", *rows]))
    done = run(*BAGS, "--boxes", "corners.csv", "--json")
    assert "xmin, ymin, xmax, ymax are read as two corners" in done.stderr
    assert "separated by semicolons" in done.stderr
    assert "left out 1 object of 1 other image: 'other.png'" in done.stderr
    assert counts(done) == counts(run(*BAGS, "--boxes", "boxes.csv", "--json"))
    assert run(*BAGS, "--boxes", "corners.csv", "--quiet").stderr == ""
    failed = run(*BAGS, "--boxes", "corners.csv", "--target", "person", code=1)
    assert "[label-unknown]" in failed.stderr


def test_a_folder_of_files_for_many_scenes(many):
    left, top, right, bottom = corners()
    Path("voc").mkdir()
    for name in ("s0", "s2"):
        box = f"<xmin>{left}</xmin><ymin>{top}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax>"
        found = f"<object><name>a</name><bndbox>{box}</bndbox></object>"
        content = f"<annotation><filename>{name}.jpg</filename>{found}</annotation>"
        Path("voc", f"{name}.xml").write_text(content)
    common = ("bags", "thermals", "greys", "--superpixels", 20, "-o", "pictures", "--json")
    tables = [
        [(one["positive"], one["negative"]) for one in json.loads(run(*common, *labels).stdout)["scenes"]]
        for labels in (("--boxes", "voc"), ("--labels", "voc"), ("--boxes", "all.csv"))
    ]
    assert tables[0] == tables[1] == tables[2]
    record = json.loads(Path("pictures/run.json").read_text())
    assert "all.csv" in record["inputs"]


def test_doubts_are_warnings(here):
    x, y, right, bottom = corners()
    Path("wrong.csv").write_text(f"x,y,w,h\n{x},{y},{right},{bottom}\n30,20,45,30\n")
    done = run(*BAGS, "--boxes", "wrong.csv")
    assert "Warning: wrong.csv: width and height exceed x and y in every box" in done.stderr
    write_image("classes.png", np.where(target_mask(), 2, 0).astype(np.uint8) + (np.indices(SHAPE)[0] < 2))
    done = run(*BAGS, "--labels", "classes.png")
    assert "[several-classes]" in done.stderr
    assert "Warning" not in run(*BAGS, "--labels", "classes.png", "--target", 2).stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"images": [{"id": k, "file_name": "x" * 99} for k in range(9999)], "annotations": 3}, "[list]"),
        ({"images": [{"id": 1, "file_name": "thermal.png"}], "annotations": []}, "[targets-missing]"),
        ([{"image_id": 1, "bbox": [1, 2, 3, 4]}], "[label-studio-export]"),
        ({"hello": ["world" * 10**6]}, "[annotations-format]"),
    ],
)
def test_wrong_files_give_short_messages(here, content, message):
    Path("wrong.json").write_text(json.dumps(content))
    failed = run("train", *BAGS[1:5], "-o", "model.json", "--boxes", "wrong.json", code=1)
    assert message in failed.stderr
    assert len(failed.stderr) < 2100
