"""Split scenes into those to learn from and those to score on."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Literal

import numpy as np

from bimichi._checks import check_integer
from bimichi.datasets import Scenes, street
from bimichi.errors import InvalidInputError
from bimichi.learning.scene import Scene

__all__ = ["names_of", "shows_both", "split_scenes", "street_scenes"]

KEPT = 1 << 30
"""Bytes of scenes that stay in memory; the others are read again whenever they are needed."""


def street_scenes(
    seeds: Iterable[int], n_sources: Literal[3, 6] = 3, height: int = 480, width: int = 640, n_segments: int = 300
) -> Scenes:
    """List streets of these seeds, each drawn when needed; see `bimichi.datasets.street`.

    Examples
    --------
    >>> street_scenes(range(7, 9))
    Scenes(2: street-7, street-8)
    """
    numbers = {f"street-{seed}": seed for seed in seeds}

    def draw(name: str) -> Scene:
        return street(height, width, random_state=numbers[name], n_segments=n_segments, n_sources=n_sources)

    return Scenes(list(numbers), draw)


def shows_both(scene: Scene) -> bool:
    """Return whether the pixels that count show both targets and others, so that AUC is defined."""
    if scene.truth is None:
        return False
    counted = scene.truth if scene.ignore is None else scene.truth[~scene.ignore]
    return bool(counted.any() and not counted.all())


def names_of(scenes: Sequence[Scene]) -> list[str]:
    """Return the names of scenes, without reading lazy ones."""
    return list(scenes.names) if isinstance(scenes, Scenes) else [scene.name for scene in scenes]


def split_scenes(
    scenes: Sequence[Scene],
    n_train: int,
    n_test: int,
    seed: int = 0,
    progress: Callable[[str], None] = lambda line: None,
) -> tuple[Sequence[Scene], Sequence[Scene]]:
    """Draw scenes at random: the first ones that show targets are for the test, the next ones for training.

    A scene without targets has no AUC, so that it is never tested on; it may be trained on. Scenes passed over for the
    test are taken for training last.

    Parameters
    ----------
    scenes : sequence of Scene
        The scenes to draw from; each is read once, and no more of them than needed.
    n_train, n_test : int
        How many.
    seed : int, default=0
        Seed of the draw.
    progress : callable, optional
        Receives one line for each scene that is read.

    Returns
    -------
    train, test : sequences of Scene
        Lists, or `Scenes` if `scenes` are: up to 1 GiB of them stays in memory, without the images for display; the
        others are read again when needed.
    """
    for what, number in (("n_train", n_train), ("n_test", n_test)):
        check_integer(number, what)
    if n_train + n_test > len(scenes):
        raise InvalidInputError(
            f"n_train = {n_train} and n_test = {n_test} ask for {n_train + n_test} scenes, but there are {len(scenes)}."
        )
    kept = _Kept(scenes, KEPT)
    order = np.random.default_rng(seed).permutation(len(scenes)).tolist()
    drawn = _read(kept, order, n_train + n_test, progress)
    test: list[int] = []
    passed: list[int] = []
    while len(test) < n_test:
        which, scene = next(drawn, (-1, None))
        if scene is None:
            raise InvalidInputError(
                f"n_test is {n_test}, but only {len(test)} of {len(scenes)} scenes show targets (and not them alone)."
            )
        (test if shows_both(scene) else passed).append(which)
    train = [which for which, _ in islice(drawn, n_train)]
    return kept.some(train + passed[: n_train - len(train)]), kept.some(test)


class _Kept:
    """Scenes by number; the first that are read stay in memory, up to a limit in bytes."""

    def __init__(self, scenes: Sequence[Scene], limit: int) -> None:
        self._scenes, self._free = scenes, limit
        self._lazy = isinstance(scenes, Scenes)
        self._known: dict[int, Scene] = {}

    def __getitem__(self, which: int) -> Scene:
        if which in self._known:
            return self._known[which]
        scene = self._scenes[which]
        if self._lazy:
            scene = replace(scene, rgb=None, thermal=None)
        size = sum(array.nbytes for array in vars(scene).values() if isinstance(array, np.ndarray))
        if size <= self._free or not self._lazy:  # what the user holds takes no room
            self._known[which] = scene
            self._free -= size
        return scene

    def some(self, which: Sequence[int]) -> Sequence[Scene]:
        """Return the scenes of these numbers."""
        if not isinstance(self._scenes, Scenes):
            return [self[k] for k in which]
        number = {self._scenes.names[k]: k for k in which}
        return Scenes(list(number), lambda name: self[number[name]])


def _read(
    scenes: _Kept, order: Sequence[int], wanted: int, progress: Callable[[str], None]
) -> Iterator[tuple[int, Scene]]:
    for count, which in enumerate(order, 1):
        scene = scenes[which]
        note = "" if shows_both(scene) else ", which shows no target"
        progress(f"read {count}/{max(wanted, count)}: {scene.name}{note}")
        yield which, scene
