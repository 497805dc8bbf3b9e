"""Targets in fused maps: regions, boxes, scores, outlines, and files of them."""

import csv
import json
from itertools import pairwise

import numpy as np
import pytest
from refusals import refused
from scipy import ndimage

from bimichi import BiCapacity, Decision, FusionRule
from bimichi.fuse import Detections, Georeference, detect, write_detections
from bimichi.io import read_boxes
from bimichi.scenes import boxes_of
from bimichi.scenes.shapes import outline


@pytest.fixture
def fused(rng):
    image = ndimage.gaussian_filter(rng.normal(size=(40, 50)), 1.5)
    image /= np.abs(image).max()
    image[rng.random(image.shape) < 0.03] = np.nan
    return image


def area(ring):
    """Signed, above 0 if counterclockwise where y points down."""
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in pairwise(ring)) / 2


def test_regions_boxes_and_scores_against_loops(fused):
    found = detect(fused, threshold=0.2, min_size=4)
    regions, n = ndimage.label(fused >= 0.2, np.ones((3, 3)))
    expected = {}
    for k in range(1, n + 1):
        if (regions == k).sum() >= 4:
            expected[fused[regions == k].mean()] = regions == k
    assert len(found) == len(expected) > 3
    np.testing.assert_allclose(found.scores, sorted(expected, reverse=True))
    for k, score in enumerate(sorted(expected, reverse=True)):
        mask = expected[score]
        np.testing.assert_array_equal(found.regions == k + 1, mask)
        np.testing.assert_array_equal(found.boxes[k], boxes_of(mask)[0])
        assert found.sizes[k] == mask.sum()
    np.testing.assert_array_equal(found.mask, sum(expected.values()) > 0)


def test_decisions_come_from_rules_models_or_arguments(fused):
    rule = FusionRule(BiCapacity.additive([0.75, 0.25]), decision=Decision(0.2, "", 4, (1, 1)))
    smoothed = rule.decision.smoothed(fused)
    np.testing.assert_array_equal(detect(fused, rule).mask, detect(smoothed, threshold=0.2, min_size=4).mask)
    np.testing.assert_array_equal(
        detect(fused, rule, threshold=0.3).boxes, detect(smoothed, threshold=0.3, min_size=4).boxes
    )
    nothing = detect(np.full((3, 4), np.nan), threshold=0)
    assert len(nothing) == 0
    assert nothing.boxes.shape == (0, 4)
    assert nothing.polygons == []
    assert detect([[0, 1]], threshold=1).boxes.tolist() == [[1, 0, 1, 1]]


def test_outlines_enclose_exactly_the_pixels(rng):
    for _ in range(60):
        region = rng.random((9, 11)) < rng.uniform(0.1, 0.95)
        polygons = outline(region, 3, 5)
        assert len(polygons) == ndimage.label(region)[1]
        total = np.zeros((9, 11))
        for outer, *holes in polygons:
            assert area(outer) < 0  # counterclockwise where y points up
            assert all(area(hole) > 0 for hole in holes)
            for ring in (outer, *holes):
                corners = [tuple(corner) for corner in ring.tolist()]
                assert corners[0] == corners[-1]
                assert len(set(corners[1:])) == len(corners) - 1  # no ring meets itself
                steps = np.sign(np.diff(ring, axis=0))
                assert (steps != np.roll(steps, 1, axis=0)).any(axis=1).all()  # every corner is a turn
                total += winding(ring - [3, 5], region.shape)
        np.testing.assert_array_equal(total, region)


def winding(ring, shape):
    """How often a ring goes around the centre of each pixel: left edges less right edges in its row."""
    count = np.zeros(shape)
    for (x, y), (x2, y2) in zip(ring[:-1].astype(int), ring[1:].astype(int), strict=True):
        if x == x2:
            count[min(y, y2) : max(y, y2), x:] += 1 if y2 > y else -1
    return count


def square_with_hole():
    fused = np.zeros((8, 10))
    fused[1:6, 2:7] = 1
    fused[3, 4] = 0
    fused[6, 7] = 1  # meets a corner
    return detect(fused, threshold=0.5)


def test_csv_reads_back_as_boxes(fused, tmp_path):
    found = detect(fused, threshold=0.3)
    write_detections(tmp_path / "a.csv", found)
    np.testing.assert_array_equal(read_boxes(tmp_path / "a.csv"), found.boxes)
    write_detections(
        tmp_path / "b.csv", {"left": found, "none": detect(fused, threshold=9), "right": square_with_hole()}
    )
    np.testing.assert_array_equal(read_boxes(tmp_path / "b.csv", "right", "target"), [[2, 1, 6, 6]])
    with (tmp_path / "b.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["score"]) for row in rows if row["image"] == "left"] == found.scores.tolist()
    assert rows[-1]["size"] == "25"


def test_coco_has_outlines_and_runs_where_there_are_holes(tmp_path):
    plain = detect(np.pad(np.ones((2, 3)), 1), threshold=0.5)
    write_detections(tmp_path / "a.json", {"plain": plain, "holed": square_with_hole()}, label="person")
    document = json.loads((tmp_path / "a.json").read_text())
    assert document["categories"] == [{"id": 1, "name": "person"}]
    assert document["images"][1] == {"id": 2, "file_name": "holed", "width": 10, "height": 8}
    first, second = document["annotations"]
    assert first["bbox"] == [1, 1, 3, 2]
    assert first["area"] == 6
    (corners,) = first["segmentation"]
    assert sorted(zip(corners[::2], corners[1::2], strict=True)) == [(1, 1), (1, 3), (4, 1), (4, 3)]
    counts = second["segmentation"]["counts"]
    flat = np.repeat(np.arange(len(counts)) % 2, counts).astype(bool)
    np.testing.assert_array_equal(flat.reshape((8, 10), order="F"), square_with_hole().mask)


def test_geojson_is_in_longitude_and_latitude(tmp_path):
    found = square_with_hole()
    place = Georeference((10.0, 0.0, 500000.0, 0.0, -10.0, 4500000.0), "EPSG:32630")  # the central meridian of zone 30
    write_detections(tmp_path / "a.geojson", {"chip": found}, {"chip": place})
    document = json.loads((tmp_path / "a.geojson").read_text())
    assert document["type"] == "FeatureCollection"
    (feature,) = document["features"]
    assert feature["properties"] == {"label": "target", "score": 1.0, "size": 25, "image": "chip"}
    assert feature["geometry"]["type"] == "MultiPolygon"
    rings = [ring for polygon in feature["geometry"]["coordinates"] for ring in polygon]
    assert sorted(map(len, rings)) == [5, 5, 5]
    corners = np.concatenate(rings)
    assert (np.abs(corners - [-3, 40.65]) < 0.01).all()
    outer, hole = feature["geometry"]["coordinates"][np.argmax([len(p) for p in feature["geometry"]["coordinates"]])]
    assert area(outer) > 0 > area(hole)  # y points up: counterclockwise, and clockwise
    flipped = place._replace(transform=(10.0, 0.0, 500000.0, 0.0, 10.0, 4500000.0))
    write_detections(tmp_path / "b.geojson", detect(np.ones((2, 2)), threshold=0), flipped)
    geometry = json.loads((tmp_path / "b.geojson").read_text())["features"][0]["geometry"]
    assert geometry["type"] == "Polygon"
    assert area(geometry["coordinates"][0]) > 0


def test_bad_input(fused, tmp_path):
    for call, message in (
        (lambda: detect(fused), "threshold-missing"),
        (lambda: detect(fused[0], threshold=0), "map-shape"),
        (lambda: detect(fused, 0.5), "decision-kind:decision"),
        (lambda: write_detections(tmp_path / "a.shp", square_with_hole()), "detections-suffix"),
        (lambda: write_detections(tmp_path / "a.geojson", {"x": square_with_hole()}), "detections-not-georeferenced"),
    ):
        with refused(message):
            call()
    assert not list(tmp_path.iterdir())
    assert repr(square_with_hole()) == "Detections(1 in 10 x 8 pixels)"
    assert isinstance(square_with_hole(), Detections)
