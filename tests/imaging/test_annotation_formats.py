"""One dataset in every annotation format gives the same labels; damaged files give our error."""

import json
import os
import random
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import rasterio
from annotation_files import BOXES, CRS, PLACES, SHAPE, WRITERS, coco, csv, expected, geojson, text, voc, yolo
from mutation import mutate

from bimichi import InvalidInputError
from bimichi.errors import AnnotationWarning
from bimichi.imaging import (
    ANNOTATION_FORMATS,
    Disc,
    ImageAnnotations,
    Placement,
    Polygons,
    box_mask,
    in_pixels,
    rasterise,
    read_annotations,
    read_boxes,
    write_annotations,
    write_image,
)
from bimichi.imaging.annotations import START
from bimichi.imaging.collecting import collect_scenes
from bimichi.imaging.formats.loading import read_xml
from bimichi.imaging.labelling import Labelling, SceneReader
from bimichi.imaging.rle import decode_brush, decode_coco, encode_coco
from bimichi.imaging.shapes import corners_of, runs_of
from bimichi.imaging.targets import SceneTargets

EVERY = [(name, writer) for name, writers in WRITERS.items() for writer in writers]
DATA = os.environ.get("BIMICHI_DATA")


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """Two scenes of two sources: GeoTIFF, and PNG."""
    root = tmp_path_factory.mktemp("scenes")
    (root / "ir").mkdir()
    (root / "vi").mkdir()
    rng = np.random.default_rng(0)
    for image, place in PLACES.items():
        band = rng.integers(0, 255, SHAPE).astype(np.uint8)
        options = {"height": SHAPE[0], "width": SHAPE[1], "count": 1, "dtype": "uint8", "crs": CRS}
        path = root / "ir" / image.replace(".png", ".tif")
        with rasterio.open(path, "w", driver="GTiff", transform=rasterio.Affine(*place.transform), **options) as opened:
            opened.write(band, 1)
        write_image(root / "vi" / image, band)
    return root


def collected(root):
    return collect_scenes([str(root / "ir"), str(root / "vi")])


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


@pytest.mark.skipif(DATA is None, reason="BIMICHI_DATA names no folder with llvip_small")
def test_llvip():
    root = Path(DATA, "llvip_small")
    if not root.exists():
        pytest.skip(f"{root} is missing")
    some = collect_scenes([str(root / "infrared"), str(root / "visible")])
    found = SceneTargets(root / "annotations", some, "person")
    assert found.notes == []
    assert found.of("010001").boxes[0].tolist() == [287, 428, 64, 234]
    table = read_annotations(root / "annotations")
    assert sorted(table) == [f"01000{k}.jpg" for k in range(1, 7)]
    for name in some.names:
        boxes = read_boxes(root / "annotations" / f"{name}.xml")
        np.testing.assert_array_equal(rasterise(found.of(name), (1024, 1280)).targets, box_mask(boxes, (1024, 1280)))


# --- shapes and pixels ---


def test_a_hole_leaves_the_pixels_that_it_covers_whole():
    outer, hole = np.array([[1, 1], [9, 1], [9, 9], [1, 9]], float), np.array([[3.5, 3], [6, 3], [6, 6], [3.5, 6]])
    mask = np.zeros((10, 10), bool)
    Polygons(((outer, hole),)).paint(mask)
    truth = box_mask([(1, 1, 8, 8)], (10, 10))
    truth[3:6, 4:6] = False
    np.testing.assert_array_equal(mask, truth)


def test_a_disc_marks_the_pixels_that_it_overlaps():
    mask = np.zeros((7, 7), bool)
    Disc(3.5, 3.5, 1.5).paint(mask)
    assert mask.sum() == 9  # the corners of the 3 x 3 pixels reach into it, the next pixels touch it only
    assert mask[2:5, 2:5].all()
    mask[:] = False
    Disc(3.2, 3.9).paint(mask)
    assert np.argwhere(mask).tolist() == [[3, 3]]


def test_runs_of_masks_are_those_of_coco():
    rng = np.random.default_rng(1)
    for _ in range(20):
        mask = rng.random((7, 5)) < rng.choice([0.1, 0.5, 0.95])
        runs = runs_of(mask)
        np.testing.assert_array_equal(runs.array(), mask)
        np.testing.assert_array_equal(decode_coco(encode_coco(runs.counts)), runs.counts)
        if mask.any():
            rows, columns = np.nonzero(mask)
            height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
            assert runs.box.tolist() == [columns.min(), rows.min(), width, height]
    assert encode_coco([6, 1, 40, 4, 5, 4, 5, 4, 21]) == "61X13mN000`0"  # of the reference implementation


def test_the_brush_of_label_studio():
    height, width = 2, 3
    alpha = np.array([[0, 1, 1], [0, 0, 1]], bool)
    values = np.zeros((height, width, 4), np.uint8)
    values[..., 3] = 255 * alpha
    bits = [f"{values.size:032b}", f"{7:05b}", *(f"{size - 1:04b}" for size in (3, 4, 8, 16))]
    flat = values.ravel().tolist()
    bits += ["0", "10", f"{11:08b}", *(f"{value:08b}" for value in flat[:12])]  # twelve values as they are
    for value in flat[12:]:
        bits += ["1", "00", f"{0:03b}", f"{value:08b}"]  # and twelve runs of one
    joined = "".join(bits)
    content = [int(joined[k : k + 8].ljust(8, "0"), 2) for k in range(0, len(joined), 8)]
    np.testing.assert_array_equal(decode_brush(content, height, width), alpha)


def test_crowds_and_difficult_objects_are_ignored_unless_counted(tmp_path):
    data = json.loads(coco(tmp_path).read_text())
    data["annotations"][0]["iscrowd"] = 1
    found = read_annotations(text(tmp_path / "crowd.json", json.dumps(data)))["images/a.png"]
    regions = rasterise(found, SHAPE, "person")
    np.testing.assert_array_equal(regions.ignored, box_mask([BOXES["a.png"][0][1:]], SHAPE))
    assert rasterise(found, SHAPE, "person", count_ignored=True).targets.sum() > regions.targets.sum()
    voc(tmp_path)
    content = (tmp_path / "a.xml").read_text().replace("<difficult>0", "<difficult>1", 1)
    found = read_annotations(text(tmp_path / "a.xml", content))["a.png"]
    assert found.is_ignored.tolist() == [True, False, False]


def test_points_take_a_radius():
    found = ImageAnnotations(np.array([[3, 3, 1, 1.0]]), [None], shapes=[Disc(3.5, 3.5)])
    assert rasterise(found, (7, 7)).targets.sum() == 1
    assert rasterise(found, (7, 7), point_radius=1.5).targets.sum() == 9


def test_unknown_pixels_of_a_mask_are_ignored(tmp_path):
    np.save(tmp_path / "m.npy", np.array([[-1, 0, 1]], np.int16))
    regions = rasterise(read_annotations(tmp_path / "m.npy")[None], (1, 3))
    assert regions.targets.tolist() == [[False, False, True]]
    assert regions.ignored.tolist() == [[True, False, False]]


def test_unknown_pixels_are_not_scored(scenes, tmp_path):
    mask = np.zeros(SHAPE, np.int16)
    mask[5:9, 5:9], mask[20:, :] = 1, -1
    np.save(tmp_path / "truth.npy", mask)
    collection = collect_scenes([str(scenes / "vi" / "a.png")])
    path = str(tmp_path / "truth.npy")
    (scene,) = SceneReader(collection, Labelling(labels=path, superpixels=20), truth=path).scenes
    np.testing.assert_array_equal(scene.truth, mask == 1)
    np.testing.assert_array_equal(scene.ignore, mask == -1)
    assert len(scene.labels) < len(np.unique(scene.segments))


def test_polygons_of_boxes_cover_the_same_pixels():
    rng = np.random.default_rng(0)
    for k in range(200):
        box = rng.uniform(-5, 25, 4)
        box[2:] = np.abs(box[2:]) + 5.01
        box = np.round(box) + 1e-9 if k % 2 else box
        mask = np.zeros((20, 30), bool)
        Polygons(((corners_of(box),),)).paint(mask)
        if (box[:2] + box[2:] > 0.1).all() and (box[:2] < [29.9, 19.9]).all():
            np.testing.assert_array_equal(mask, box_mask([box], (20, 30)))
            found = ImageAnnotations(box[None], ["a"])
            np.testing.assert_array_equal(rasterise(found, (20, 30)).targets, mask)


def test_one_file_per_scene_by_a_pattern(scenes, tmp_path):
    voc(tmp_path)
    content = (tmp_path / "a.xml").read_text().replace("a.png", "old.png")
    text(tmp_path / "a.xml", content)
    found = SceneTargets(str(tmp_path / "*.xml"), collected(scenes), "person")
    np.testing.assert_array_equal(rasterise(found.of("a"), SHAPE, "person").targets, expected("person")["a.png"])
    assert "is about the image 'old.png'; by its own name it is taken for 'a'" in found.notes[0]


# --- hostile files ---


def test_entities_are_refused(tmp_path):
    laughs = '<!DOCTYPE a [<!ENTITY l "ha">]><annotation><filename>&l;</filename></annotation>'
    outside = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><annotations>&x;</annotations>'
    for content in (laughs, outside):
        for encoding in ("utf-8", "utf-16"):
            path = tmp_path / "a.xml"
            path.write_bytes(content.encode(encoding))
            with pytest.raises(InvalidInputError, match="document type"):
                read_xml(path)


def test_files_beyond_the_limits(tmp_path):
    deep = text(tmp_path / "deep.json", '{"images": ' + "[" * 200_000)
    with pytest.raises(InvalidInputError, match="is damaged: it is not JSON"):
        read_annotations(deep)
    bomb = {"images": [{"id": 1, "file_name": "a"}], "annotations": []}
    bomb["annotations"] = [{"image_id": 1, "segmentation": {"size": [10**5, 10**5], "counts": [10**10]}}]
    with pytest.raises(InvalidInputError, match="annotation 0"):
        read_annotations(text(tmp_path / "bomb.json", json.dumps(bomb)))
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with pytest.raises(InvalidInputError, match="it is a named pipe; name a file"):
        read_annotations(pipe)


def test_messages_are_short(tmp_path):
    path = text(tmp_path / "a.json", json.dumps({"anything": "x" * 100_000}))
    with pytest.raises(InvalidInputError) as caught:
        read_annotations(path)
    assert len(str(caught.value)) <= 2000
    assert len(str(InvalidInputError("y" * 10**6))) <= 2000
    assert str(InvalidInputError("short")) == "short"


# --- images and scenes ---


def test_images_are_matched_by_path_name_or_stem(scenes, tmp_path):
    for name in ("a", "a.png", "vi/a.png", "x\\vi\\a.png", str(scenes / "ir" / "a.tif"), "D:\\old\\a.jpg"):
        path = text(tmp_path / "b.csv", f"file,x1,y1,x2,y2\n{name},1,2,4,8\nb,1,1,2,2\n")
        found = SceneTargets(path, collected(scenes))
        assert found.of("a").boxes.tolist() == [[1, 2, 3, 6]]
        assert found.notes == [f"{path}: columns x1, y1, x2, y2 are read as two corners, in pixels; images by file."]


def test_what_fits_twice_is_an_error(scenes, tmp_path):
    path = text(tmp_path / "b.csv", "image,x,y,w,h\nset1/a.png,1,2,3,4\nset2/a.png,1,2,3,4\n")
    with pytest.raises(InvalidInputError, match=r"'set1/a\.png', 'set2/a\.png' may all be scene 'a'"):
        SceneTargets(path, collected(scenes))
    for place in ("p", "q"):
        (tmp_path / place).mkdir()
        write_image(tmp_path / place / "img.png", np.zeros(SHAPE, np.uint8))
    path = text(tmp_path / "c.csv", "image,x,y,w,h\nimg.png,1,2,3,4\n")
    many = collect_scenes([str(tmp_path / "*" / "img.png")])
    with pytest.raises(InvalidInputError, match=r"'img\.png' may be any of the scenes 'p', 'q'"):
        SceneTargets(path, many)
    path = text(tmp_path / "c.csv", "image,x,y,w,h\nq/img.png,1,2,3,4\n")
    assert len(SceneTargets(path, many).of("q").boxes) == 1


def test_boxes_of_other_images_are_counted(scenes, tmp_path):
    path = text(tmp_path / "b.csv", "image,x,y,w,h\na,1,2,3,4\nc,1,2,3,4\nc,5,2,3,4\nd,1,2,3,4\n")
    notes = " ".join(SceneTargets(path, collected(scenes)).notes)
    assert "left out 3 objects of 2 other images: 'c', 'd'" in notes
    assert "does not name 1 scene: 'b'; no targets" in notes
    one = collect_scenes([str(scenes / "vi" / "a.png")])
    assert "left out 3 objects of 2 other images" in " ".join(SceneTargets(path, one).notes)
    path = text(tmp_path / "b.csv", "image,x,y,w,h\nz,1,2,3,4\n")
    with pytest.warns(
        AnnotationWarning, match=r"about one image, 'z', which is none of a.png; it is taken for scene 'a'"
    ):
        SceneTargets(path, one)
    with pytest.raises(InvalidInputError, match="boxes of the image 'z', but the scenes are 'a', 'b'"):
        SceneTargets(path, collected(scenes))


def test_labels_are_named_as_found(scenes, tmp_path):
    path = coco(tmp_path)
    with pytest.raises(InvalidInputError, match=r"no label 'Person', but 'person' \(3\); .*--target 'person'"):
        SceneTargets(path, collected(scenes), "Person")
    with pytest.raises(InvalidInputError, match=r"no label 'dog'; it has 'person' \(3\), 'car' \(1\)"):
        SceneTargets(path, collected(scenes), "dog")
    assert "all labels count as targets: 'person' (3), 'car' (1)" in SceneTargets(path, collected(scenes)).notes[0]


def test_folders_of_several_formats_are_refused(tmp_path):
    voc(tmp_path)
    yolo(tmp_path)
    with pytest.raises(InvalidInputError, match=r"several formats: yolo \(a\.txt\), voc \(a\.xml\)"):
        read_annotations(tmp_path)


def test_a_map_needs_a_georeference(scenes, tmp_path):
    found = SceneTargets(geojson(tmp_path), collect_scenes([str(scenes / "vi" / "a.png")]))
    with pytest.raises(InvalidInputError, match="the image has no georeference"):
        found.of("a")


def test_places_beyond_the_system_of_the_image_are_outside_it(tmp_path):
    data = json.loads(geojson(tmp_path, None).read_text())
    far = {"type": "Polygon", "coordinates": [[[170, 95], [171, 95], [171, 96], [170, 95]]]}
    data["features"].append({"type": "Feature", "properties": {"label": "person"}, "geometry": far})
    found = read_annotations(text(tmp_path / "far.geojson", json.dumps(data)))[None]
    assert len(found.boxes) == 5
    placed = in_pixels(found, PLACES["b.png"])
    np.testing.assert_array_equal(rasterise(placed, SHAPE).targets, expected()["b.png"])


# --- warnings ---


def warned(scenes, rows, **how):
    path = text(scenes / "rows.csv", "image,x,y,w,h\n" + "\n".join(rows))
    reader = SceneReader(collect_scenes([str(scenes / "vi")]), Labelling(boxes=path, superpixels=20, **how))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        list(reader.scenes)
    return [str(one.message) for one in caught if one.category is AnnotationWarning]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["a,.1,.2,.3,.1", "b,.5,.5,.1,.1"], "seem to be fractions of the image. Multiply x and width by 60"),
        (["a,30,15,50,35"], "seem to be the opposite corner. Name such columns xmin"),
        (["a,3,5,10,20", "a,8,9,12,14", "a,11,3,33,21"], "seem to be the opposite corner"),
        (["a,5,38,8,14", "a,2,45,9,10"], "seem to be swapped. Exchange x with y"),
        (
            ["a,50,30,90,90", "a,5,6,2,2"],
            "1 of 2 boxes exceed the image of 60 x 40 pixels, the first is (50, 30, 90, 90)",
        ),
        (["a,0,0,60,30"], "75% of the image are targets"),
        (["a,0,0,60,40"], "every known pixel is target"),
    ],
)
def test_doubtful_boxes(scenes, rows, message):
    assert any("rows.csv" in text and message in text for text in _warned_or_failed(scenes, rows))


def _warned_or_failed(scenes, rows):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        path = text(scenes / "rows.csv", "image,x,y,w,h\n" + "\n".join(rows))
        reader = SceneReader(collect_scenes([str(scenes / "vi")]), Labelling(boxes=path, superpixels=20))
        with suppress(InvalidInputError):  # a box outside the image, which the warning explains
            list(reader.scenes)
    return [str(one.message) for one in caught if one.category is AnnotationWarning]


def test_usual_boxes_are_not_doubtful(scenes):
    rows = [f"{image},{x},{y},{w},{h}" for image, rows in BOXES.items() for _, x, y, w, h in rows]
    assert warned(scenes, rows) == []
    assert warned(scenes, ["a,59,39,1.5,1.5", "b,0,0,10,10"]) == []


def test_masks_of_several_classes(scenes, tmp_path):
    for name in ("a", "b"):
        mask = np.zeros(SHAPE, np.uint8)
        mask[5:9, 5:9], mask[20:30, 5:9] = 1, 2
        write_image(tmp_path / f"{name}.png", mask)
    collection = collect_scenes([str(scenes / "vi")])
    reader = SceneReader(collection, Labelling(labels=str(tmp_path), superpixels=20))
    with pytest.warns(
        AnnotationWarning, match=r"0 \(2,344 pixels\), 1 \(16 pixels\), 2 \(40 pixels\).*--target"
    ) as seen:
        list(reader.scenes)
    assert len(seen) == 1
    list(SceneReader(collection, Labelling(labels=str(tmp_path), target="2", superpixels=20)).scenes)
    reader = SceneReader(collection, Labelling(labels=str(tmp_path), target="7", superpixels=20))
    list(reader.scenes)
    with pytest.raises(InvalidInputError, match=r"No mask has the value 7 \(--target\); the masks have 0, 1, 2"):
        reader.check_both()


# --- writing ---


def test_round_trips_are_exact(tmp_path):
    rng = np.random.default_rng(3)
    boxes = {
        image: ImageAnnotations(rng.uniform(1, 15, (4, 4)), ["person", None, "a,b", "car"], [False, True, False, False])
        for image in ("a.png", "sub/b.png")
    }
    boxes["empty.png"] = ImageAnnotations(np.empty((0, 4)), [])
    for suffix in (".json", ".csv", ".geojson"):
        path = tmp_path / f"out{suffix}"
        write_annotations(path, boxes)
        again = read_annotations(path)
        assert list(again) == list(boxes) or sorted(again) == sorted(boxes)
        for image, one in boxes.items():
            np.testing.assert_array_equal(again[image].boxes, one.boxes)
            assert list(again[image].labels) == list(one.labels)
            assert again[image].is_ignored.tolist() == one.is_ignored.tolist()


def shapes():
    ring, hole = rng_ring(0), np.array([[20, 15], [24, 15], [24, 19], [20, 19]], float)
    outlines = [Polygons(((ring,),)), Polygons(((ring * 0.9, hole), (rng_ring(1),))), Disc(12.3, 30.1, 4.7), None]
    box = np.array([2, 3, 7.5, 4])
    boxes = np.array([box if one is None else one.box for one in outlines])
    return {None: ImageAnnotations(boxes, ["a", "b", "c", "d"], shapes=outlines)}


def rng_ring(seed):
    angles = np.sort(np.random.default_rng(seed).uniform(0, 2 * np.pi, 9))
    return np.stack([25 + 12 * np.cos(angles), 18 + 12 * np.sin(angles)], axis=1)


@pytest.mark.parametrize("suffix", [".json", ".geojson"])
@pytest.mark.parametrize("place", [Placement(SHAPE), PLACES["a.png"]])
def test_shapes_keep_their_pixels(suffix, place, tmp_path):
    found = shapes()
    write_annotations(tmp_path / f"out{suffix}", found, place)
    again = in_pixels(read_annotations(tmp_path / f"out{suffix}")[None], place)
    for label in "abcd":
        np.testing.assert_array_equal(
            rasterise(again, SHAPE, label).targets, rasterise(found[None], SHAPE, label).targets
        )


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(InvalidInputError, match=r"CSV holds boxes only.*\.geojson"):
        write_annotations(tmp_path / "a.csv", shapes())
    with pytest.raises(InvalidInputError, match="pass placement"):
        write_annotations(tmp_path / "a.json", shapes())
    with pytest.raises(InvalidInputError, match=r"must end in \.json, \.csv, \.geojson"):
        write_annotations(tmp_path / "a.xml", {})
    mask = ImageAnnotations(np.empty((0, 4)), [], mask=np.array([[0, 1], [2, -1]]))
    write_annotations(tmp_path / "m.json", {"m": mask})
    again = read_annotations(tmp_path / "m.json")["m"]
    assert rasterise(again, (2, 2), "2").targets.tolist() == [[False, False], [True, False]]
    assert rasterise(again, (2, 2)).ignored.tolist() == [[False, False], [False, True]]


def test_a_csv_says_what_it_was_taken_for(tmp_path):
    assert read_annotations(csv(tmp_path)).about.endswith(
        "columns x, y, w, h are read as x and y of the upper left corner, width and height, in pixels; "
        "images by image; labels by label."
    )
