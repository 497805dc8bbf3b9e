"""One dataset in every annotation format gives the same labels; damaged and hostile files give our error."""

import json
import os
import random
from dataclasses import replace

import numpy as np
import pytest
from annotation_files import BOXES, PLACES, SHAPE, WRITERS, coco, collected, csv, expected, text, voc, yolo
from mutation import mutate
from real import real
from refusals import refused

from bimichi import InvalidInputError
from bimichi.io import ANNOTATION_FORMATS, read_annotations, read_boxes
from bimichi.io.annotations import START
from bimichi.io.annotations.match import SceneTargets
from bimichi.io.annotations.parse import read_xml
from bimichi.io.dataset import collect_scenes
from bimichi.scenes import Placement, box_mask, in_pixels, rasterise

EVERY = [(name, writer) for name, writers in WRITERS.items() for writer in writers]


def test_every_format_has_a_writer_here():
    assert set(WRITERS) == set(ANNOTATION_FORMATS)


@pytest.mark.parametrize(("name", "writer"), EVERY)
def test_all_formats_give_the_same_labels(name, writer, scenes, tmp_path):
    path = writer(tmp_path)
    target = {"mask": "1"}.get(name, "person")
    found = SceneTargets(path, collected(scenes), target)
    for image, truth in expected("person").items():
        one = found.of(image[0])
        regions = rasterise(one, SHAPE, target)
        np.testing.assert_array_equal(regions.targets, truth)
        assert not regions.ignored.any()
        np.testing.assert_array_equal(rasterise(one, SHAPE).targets, expected()[image])


@pytest.mark.parametrize(("name", "writer"), EVERY)
def test_one_format_recognises_each_file(name, writer, tmp_path):
    for file in [writer(tmp_path)] if writer(tmp_path).is_file() else sorted(tmp_path.iterdir()):
        if file.name not in ("classes.txt", "data.yaml"):
            start = file.read_bytes()[:START]
            assert [one.name for one in ANNOTATION_FORMATS.values() if one.recognises(file, start)] == [name]


@pytest.mark.parametrize(("name", "writer"), [pair for pair in EVERY if pair[0] != "mask"])
def test_damaged_files_give_our_error(name, writer, tmp_path):
    path = writer(tmp_path)
    if path.is_dir():
        path = next(file for file in sorted(path.iterdir()) if file.stem == "a")
    original, rng, messages = path.read_bytes(), random.Random(7), []
    n = 15 if name == "vector" else 120
    for _ in range(n):
        path.write_bytes(mutate(original, rng))
        try:
            for image, one in read_annotations(path).items():
                where = {"map": PLACES["a.png"]}.get(one.units, Placement(SHAPE))
                rasterise(in_pixels(one, where), SHAPE)
                assert image is None or isinstance(image, str)
        except InvalidInputError as error:
            messages.append(str(error))
    assert len(messages) > n / 5
    assert max(map(len, messages)) <= 2000


def test_llvip():
    root = real("llvip_small")
    some = collect_scenes([str(root / "infrared"), str(root / "visible")])
    found = SceneTargets(root / "annotations", some, "person")
    assert found.notes == []
    assert found.of("010001").boxes[0].tolist() == [287, 428, 64, 234]
    table = read_annotations(root / "annotations")
    assert sorted(table) == [f"01000{k}.jpg" for k in range(1, 7)]
    for name in some.names:
        boxes = read_boxes(root / "annotations" / f"{name}.xml")
        np.testing.assert_array_equal(rasterise(found.of(name), (1024, 1280)).targets, box_mask(boxes, (1024, 1280)))


def test_crowds_and_difficult_objects_are_ignored_unless_counted(tmp_path):
    data = json.loads(coco(tmp_path).read_text())
    data["annotations"][0]["iscrowd"] = 1
    found = read_annotations(text(tmp_path / "crowd.json", json.dumps(data)))["images/a.png"]
    regions = rasterise(found, SHAPE, "person")
    np.testing.assert_array_equal(regions.ignored, box_mask([BOXES["a.png"][0][1:]], SHAPE))
    assert rasterise(replace(found, ignored=()), SHAPE, "person").targets.sum() > regions.targets.sum()
    voc(tmp_path)
    content = (tmp_path / "a.xml").read_text().replace("<difficult>0", "<difficult>1", 1)
    found = read_annotations(text(tmp_path / "a.xml", content))["a.png"]
    assert found.is_ignored.tolist() == [True, False, False]


def test_entities_are_refused(tmp_path):
    laughs = '<!DOCTYPE a [<!ENTITY l "ha">]><annotation><filename>&l;</filename></annotation>'
    outside = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><annotations>&x;</annotations>'
    for content in (laughs, outside):
        for encoding in ("utf-8", "utf-16"):
            path = tmp_path / "a.xml"
            path.write_bytes(content.encode(encoding))
            with refused("xml-doctype"):
                read_xml(path)


def test_files_beyond_the_limits(tmp_path):
    deep = text(tmp_path / "deep.json", '{"images": ' + "[" * 200_000)
    with refused("json"):
        read_annotations(deep)
    bomb = {"images": [{"id": 1, "file_name": "a"}], "annotations": []}
    bomb["annotations"] = [{"image_id": 1, "segmentation": {"size": [10**5, 10**5], "counts": [10**10]}}]
    with refused("number"):
        read_annotations(text(tmp_path / "bomb.json", json.dumps(bomb)))
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with refused("file-kind"):
        read_annotations(pipe)


def test_messages_are_short(tmp_path):
    path = text(tmp_path / "a.json", json.dumps({"anything": "x" * 100_000}))
    with pytest.raises(InvalidInputError) as caught:
        read_annotations(path)
    assert len(str(caught.value)) <= 2000
    assert len(str(InvalidInputError("y" * 10**6))) <= 2000
    assert str(InvalidInputError("short")) == "short"


def test_folders_of_several_formats_are_refused(tmp_path):
    voc(tmp_path)
    yolo(tmp_path)
    with refused("annotations-formats"):
        read_annotations(tmp_path)


def test_a_csv_says_what_it_was_taken_for(tmp_path):
    assert read_annotations(csv(tmp_path)).about.endswith(
        "columns x, y, w, h are read as x and y of the upper left corner, width and height, in pixels; "
        "images by image; labels by label."
    )
