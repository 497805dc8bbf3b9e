"""Scenes, and their bags as one."""

import numpy as np
import pytest
from refusals import refused
from sklearn.metrics import roc_auc_score

from bimichi.datasets import Dataset
from bimichi.scenes.scene import Scene, join_bags


def auc(scene, fused):
    return roc_auc_score(scene.truth.ravel(), fused.ravel())


def test_scenes_are_read_when_asked_for():
    read = []

    def load(name):
        read.append(name)
        return Scene(np.zeros((2, 1)), name)

    scenes = Dataset(["a", "b", "c", "d"], load)
    assert (len(scenes), "b" in scenes, "e" in scenes) == (4, True, False)
    assert scenes[1:][1:].names == ("c", "d")
    assert repr(scenes) == "Dataset(4: a, b, c, ...)"
    assert read == []
    assert [scene.name for scene in (scenes[-1], scenes["b"], *scenes[2:])] == read == ["d", "b", "c", "d"]
    with refused("scene-unknown", "'e'"):
        scenes["e"]
    with refused("scene-unknown", "'e'"):
        scenes.select(["a", "e"])
    with pytest.raises(IndexError):
        scenes[4]


def test_what_a_dataset_keeps_is_read_and_reduced_once():
    read, reduced = [], []

    def load(name):
        read.append(name)
        return Scene(np.zeros((2, 1)), name, segments=np.array([0, 1]), labels={0: True, 1: False})

    def reduce(part):
        reduced.append(part.name)
        return part.n_given

    plain = Dataset(["a", "b", "c"], load)
    assert list(plain.select(["c", 0]).apply(reduce, key="plan")) == [2, 2]
    assert read == reduced == ["c", "a"]
    kept = plain.keeping(1 << 20)
    for data in (kept, kept.select(["b", "c"]), kept):
        assert list(data.apply(reduce, key="plan")) == [2] * len(data)
    assert (read[2:], reduced[2:]) == (["a", "b", "c"], ["a", "b", "c"])
    list(kept.apply(reduce, key="another plan"))
    assert (len(read), len(reduced)) == (5, 8)
    assert plain.keeping(1).select("a").apply(reduce, key="plan").__next__() == 2  # too little room to keep it
    assert len(read) == 6


def test_a_replaced_scene_is_forgotten():
    data = Dataset().keeping(1 << 20)
    for size in (2, 3):
        data.put("a", Scene(np.zeros((size, 1)), "a", segments=np.arange(size), labels={0: True, 1: False}))
        assert list(data.apply(lambda part: part.n_given, key="size")) == [size]
    assert data.names == ("a",)


def test_joined_bags_are_those_of_each_scene(rng):
    scenes = []
    for name in ("a", "b", "c"):
        segments = rng.integers(3, 9, (10, 12))
        labels = {int(s): bool(s % 2) and name != "b" for s in np.unique(segments) if s != 5}
        scenes.append(Scene(rng.uniform(-1, 1, (10, 12, 2)), name, segments=segments, labels=labels))
    joined = join_bags(iter(scenes))
    assert sorted(joined.ids) == sorted((scene.name, segment) for scene in scenes for segment in scene.labels)
    everything = np.concatenate([scene.sources.reshape(-1, 2) for scene in scenes])
    np.testing.assert_array_equal(everything[joined.instance], joined.X)
    for k, (name, segment) in enumerate(joined.ids):
        scene = scenes["abc".index(name)]
        rows = joined.X[joined.offsets[k] : joined.offsets[k + 1]]
        np.testing.assert_array_equal(rows, scene.sources[scene.segments == segment])
        assert joined.labels[k] == scene.labels[segment]


def test_scene_is_shown_on_a_line():
    scene = Scene(np.zeros((4, 6, 2)), "a", ("warm", "bright"), segments=np.arange(24).reshape(4, 6))
    assert repr(scene) == "Scene('a', 4 x 6; warm, bright)"
    assert repr(scene.with_bags(scene.segments, {0: True, 3: False})).endswith("bright; 2 bags, 1 positive)")


def test_scenes_that_cannot_be_joined():
    scene = Scene(np.zeros((2, 2)), "a", segments=np.array([0, 1]), labels={0: True, 1: False})
    other = Scene(np.zeros((2, 2)), "b", ("left", "right"), segments=np.array([0, 1]), labels={0: True})
    for scenes, message in (
        ([], "scenes-empty:scenes"),
        ([scene, scene], "scenes-names"),
        ([scene, other], "sources-differ"),
        ([Scene(np.zeros((2, 2)), "c")], "bags-missing"),
        ([scene.with_bags(scene.segments, {7: True})], "labels-segments"),
        ([scene.with_bags(scene.segments, {0: True})], "one-class"),
    ):
        with refused(message):
            join_bags(scenes)
