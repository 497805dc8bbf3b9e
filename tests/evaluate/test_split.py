"""Drawing scenes to learn from and scenes to score."""

from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from samples import SMALL

from bimichi.paper import split_scenes, street_scenes


class Counted(list):
    """Scenes that remember which were read."""

    read: list

    def __getitem__(self, which):
        self.read.append(which)
        return super().__getitem__(which)


def test_split_tests_on_people_alone_and_reads_each_scene_once(streets):
    nobody = [replace(scene, name=f"empty-{scene.name}", truth=np.zeros(scene.shape, bool)) for scene in streets]
    scenes = Counted([*streets, *nobody])
    for seed in range(5):
        scenes.read = []
        train, test = split_scenes(scenes, 5, 3, seed)
        assert sorted(scenes.read) == list(range(8))
        assert all(scene.truth.any() for scene in test)
        assert sorted(scene.name for scene in [*train, *test]) == sorted(scene.name for scene in scenes)
        again = split_scenes(scenes, 5, 3, seed)
        assert [[one.name for one in part] for part in again] == [[one.name for one in part] for part in (train, test)]


def test_split_reads_no_more_than_it_takes(streets):
    scenes = Counted(streets)
    scenes.read = []
    train, test = split_scenes(scenes, 1, 1)
    assert (len(train), len(test), len(scenes.read)) == (1, 1, 2)


@pytest.mark.parametrize(
    ("n_train", "n_test", "said"),
    [
        (0, 1, "whole-number:n_train"),
        (1, True, "whole-number:n_test"),
        (4, 1, "study-split"),
        (1, 3, "study-split"),
    ],
)
def test_split_refuses(streets, n_train, n_test, said):
    scenes = [*streets[:2], *(replace(scene, truth=np.zeros(scene.shape, bool)) for scene in streets[2:])]
    with refused(said):
        split_scenes(scenes, n_train, n_test)


def test_street_scenes_are_drawn_when_asked_for():
    scenes = street_scenes([3, 1], n_sources=6, **SMALL)
    assert scenes.names == ("street-3", "street-1")
    assert scenes["street-1"].sources.shape == (96, 128, 6)
