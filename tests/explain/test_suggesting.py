"""Suggestions on small drawn scenes: what is missing, wrong or never seen is what is suggested."""

from dataclasses import replace

import numpy as np
import pytest
from refusals import refused

from bimichi import BiMIChI, Decision, Scene
from bimichi.explain import bootstrap, suggest, uncertainty
from bimichi.explain.suggestions import blocks, boxes_of, cover_same_place, peaks, touch

SIDE = 10  # of the squares of which scenes consist
SHAPE = (40, 60)


def draw(name, targets, seed, hot=(), both=False):
    """A scene of squares, numbered row by row; targets are high in both sources, `hot` ones in the first alone."""
    rng = np.random.default_rng(seed)
    squares = np.arange(SHAPE[0])[:, None] // SIDE * (SHAPE[1] // SIDE) + np.arange(SHAPE[1]) // SIDE
    sources = np.full((*SHAPE, 2), -0.5)
    sources[np.isin(squares, targets)] = 0.6
    sources[np.isin(squares, hot), 0] = 0.8
    if both:
        sources[np.isin(squares, hot), 1] = 0.8
    sources = np.clip(sources + rng.normal(0, 0.05, sources.shape), -1, 1)
    return Scene(sources, name, ("heat", "light"), segments=squares), squares


def labelled(scene, positive, left_out=()):
    labels = {int(s): bool(s in positive) for s in np.unique(scene.segments) if s not in left_out}
    return scene.with_bags(scene.segments, labels)


def box_of(square):
    row, column = divmod(square, SHAPE[1] // SIDE)
    return (column * SIDE, row * SIDE, SIDE, SIDE)


def fit(scene, **options):
    made = {"objective": "logistic", "additivity": 1, "random_state": 0, "source_names": scene.source_names} | options
    return BiMIChI(**made).fit(scene.bags())


def test_a_target_without_a_label_comes_first():
    scene, squares = draw("a", targets=[3, 8, 14], seed=0)
    given = labelled(scene, positive=[3, 8])  # 14 is a target, too, but counts as none
    found = suggest(fit(given), given, regions=squares, assumed=np.ones(SHAPE, bool))
    assert found[0].box == box_of(14)
    assert found[0][:2] == (0, "a")
    assert found[0].kind == "conflict"
    assert found[0].score > 0.9
    assert found[0].reason.startswith("Nothing is drawn here, so it counts as no target, but fused at 0.")
    said = suggest(fit(given), given, regions=squares)
    assert said[0].reason.startswith("Labelled as no target, but fused at ")
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_a_label_on_what_is_no_target_is_a_conflict():
    scene, squares = draw("a", targets=[3, 8], seed=0)
    given = labelled(scene, positive=[3, 8, 20])  # 20 shows nothing
    found = suggest(fit(given), given, regions=squares)
    assert found[0].box == box_of(20)
    assert found[0].kind == "conflict"
    assert found[0].reason.startswith("Labelled as a target, but fused at 0.")
    ranks = float(found[0].reason.split(": ")[1].split(" %")[0])
    assert found[0].score == pytest.approx(ranks / 100, abs=0.01)


def test_what_no_training_pixel_shows_is_open():
    scene, _ = draw("a", targets=[3, 8], seed=0)
    model = fit(labelled(scene, positive=[3, 8]), objective="mean", additivity=None)
    other, squares = draw("b", targets=[5], seed=1, hot=[16, 17])  # hot but dark: never seen in training
    found = suggest(model, [labelled(scene, [3, 8]), other], regions=[squares, squares])
    open_ones = [one for one in found if one.kind == "open"]
    assert [(one.scene, one.name, one.box) for one in open_ones] in ([(1, "b", box_of(16))], [(1, "b", box_of(17))])
    width = uncertainty(model, other.sources).width
    assert open_ones[0].score == pytest.approx(np.sort(width[squares == 16])[-4], abs=0.05)
    assert (
        "No training pixel shows high heat and low light as this one does (g_{heat,light} is open)" in found[0].reason
    )


def test_unlabelled_regions_at_the_threshold_are_uncertain():
    scene, squares = draw("a", targets=[3, 8], seed=0)
    given = labelled(scene, positive=[3, 8], left_out=[20, 21])
    sources = given.sources.copy()
    sources[squares == 20] += 0.45  # half-way
    given = Scene(sources, "a", given.source_names, squares, given.labels)
    model = fit(given)
    peak = np.sort(model.fuse(given.sources)[squares == 20])[-4]
    decided = replace(model.rule_, decision=Decision(float(peak)))
    found = suggest(decided, given, regions=squares)
    assert [one.box for one in found if one.kind == "uncertain"] == [box_of(20)]
    assert found[0].score == pytest.approx(0.5)
    assert f"near {peak:.2f}" in found[0].reason


def test_with_refits_the_spread_counts():
    scene, squares = draw("a", targets=[3, 8, 22], seed=0)
    given = labelled(scene, positive=[3, 8, 22], left_out=[20])
    sources = given.sources.copy()
    sources[squares == 20, 0] = 0.7  # what the labels say little about
    given = Scene(sources, "a", given.source_names, squares, given.labels)
    model = fit(given)
    stability = bootstrap(model, given.bags(), n_resamples=8, random_state=1)
    found = suggest(model, given, regions=squares, stability=stability)
    mine = next(one for one in found if one.kind == "uncertain")
    assert mine.box == box_of(20)
    spread = uncertainty(model, sources, stability=stability).spread
    assert mine.score == pytest.approx(np.sort(spread[squares == 20])[-4], abs=1e-6)
    assert "Had other regions been labelled" in mine.reason


def test_nan_and_ignored_pixels_are_left_out():
    scene, squares = draw("a", targets=[3, 8, 14], seed=0)
    model = fit(labelled(scene, positive=[3, 8]))
    sources = scene.sources.copy()
    sources[squares == 14] = np.nan
    given = labelled(Scene(sources, "a", scene.source_names, squares), positive=[3, 8])
    assert box_of(14) not in {one.box for one in suggest(model, given, regions=squares)}
    ignored = labelled(scene, positive=[3, 8])
    ignored = Scene(scene.sources, "a", scene.source_names, squares, ignored.labels, ignore=np.isin(squares, [14]))
    assert box_of(14) not in {one.box for one in suggest(model, ignored, regions=squares)}
    nothing = Scene(np.full((*SHAPE, 2), np.nan), "empty", scene.source_names)
    assert len(suggest(model, nothing)) == 0


def test_blocks_by_default_and_a_limit():
    scene, _ = draw("a", targets=[3, 8, 14], seed=0)
    given = labelled(scene, positive=[3, 8])
    model = fit(given)
    found = suggest(model, given, limit=3)
    assert 1 <= len(found) <= 3
    assert touch(found[0].box, box_of(14))
    assert "suggestions" in repr(found)
    assert list(found) == list(found.items)
    pairs = [(a, b) for a in found for b in found if a is not b and a.kind == b.kind]
    assert not any(touch(a.box, b.box) for a, b in pairs)


def test_no_kind_takes_all_places():
    scene, squares = draw("a", targets=[0, 2, 4, 12, 14, 16], seed=0, hot=[8])
    given = labelled(scene, positive=[0, 2], left_out=[23])
    found = suggest(fit(given, objective="mean", additivity=None), given, regions=squares, limit=4)
    assert sum(one.kind == "conflict" for one in found) <= 4
    many = suggest(fit(given), given, regions=squares, limit=20)
    assert sum(one.kind == "conflict" for one in many) >= 4  # places that no other kind fills are used


def test_mistakes_are_named():
    scene, squares = draw("a", targets=[3, 8], seed=0)
    model = fit(labelled(scene, positive=[3, 8]))
    with refused("arrays-per-scene:regions"):
        suggest(model, [scene, scene], regions=squares)
    with refused("regions-shape:regions", "'a'"):
        suggest(model, scene, regions=squares[1:])
    with refused("assumed-shape:assumed", "'a'"):
        suggest(model, scene, assumed=squares)
    with refused("sources-not-image"):
        suggest(model, Scene(np.zeros((5, 2)), "rows", scene.source_names))
    with refused("scenes-empty:scenes"):
        suggest(model, [])


def test_peaks_and_boxes():
    values = np.array([[0.1, 0.9, np.nan], [0.3, 0.4, 0.5]])
    regions = np.array([[0, 0, 2], [0, 1, 1]])
    found, pixel = peaks(values, regions, 4)
    assert np.array_equal(found, [0.9, 0.5, np.nan, np.nan], equal_nan=True)
    assert pixel.tolist() == [1, 5, -1, -1]
    assert peaks(np.arange(20.0), np.zeros(20, int), 1)[0] == 16
    assert boxes_of(np.array([[0, 0, -1], [0, 2, 2]])) == [(0, 0, 2, 2), None, (1, 1, 2, 1)]
    assert blocks((240, 320)).max() + 1 == 300
    assert blocks((16, 20)).max() + 1 == 6
    assert touch((0, 0, 2, 2), (2, 0, 2, 2))
    assert not touch((0, 0, 2, 2), (3, 0, 2, 2))
    assert cover_same_place((0, 0, 4, 4), (1, 1, 2, 2))
    assert not cover_same_place((0, 0, 4, 4), (3, 0, 4, 4))
