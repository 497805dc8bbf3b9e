"""Split scenes into those to learn from and those to score on."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal

import numpy as np

from bimichi._checks import check_integer
from bimichi.datasets import Scenes, street
from bimichi.errors import InvalidInputError
from bimichi.learning.scene import Scene

KEPT = 1 << 30  # bytes of scenes that stay in memory; the others are read again whenever they are needed


def street_scenes(
    seeds: Iterable[int],
    n_sources: Literal[3, 6] = 3,
    height: int = 480,
    width: int = 640,
    n_segments: int = 300,
    preset: str = "default",
) -> Scenes:
    """List streets of these seeds, each drawn when needed; see `bimichi.datasets.street`.

    Examples
    --------
    >>> street_scenes(range(7, 9))
    Scenes(2: street-7, street-8)
    """
    numbers = {f"street-{seed}": seed for seed in seeds}

    def draw(name: str) -> Scene:
        seed = numbers[name]
        return street(height, width, random_state=seed, n_segments=n_segments, n_sources=n_sources, preset=preset)

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

    A scene without targets has no AUC and is never tested on; it may be trained on, after the others.

    Parameters
    ----------
    scenes : sequence of Scene
        The scenes to draw from; each is read once, and no more of them than needed.
    n_train, n_test, seed : int
        How many, and the seed of the draw.
    progress : callable, optional
        Receives one line for each scene that is read.

    Returns
    -------
    train, test : sequences of Scene
        Lists; of `Scenes`, `Scenes` again, of which up to 1 GiB stays in memory, without the images for display.
    """
    for what, number in (("n_train", n_train), ("n_test", n_test)):
        check_integer(number, what)
    if n_train + n_test > len(scenes):
        wanted = f"n_train + n_test = {n_train + n_test} scenes"
        raise InvalidInputError(f"{wanted}, but there are {len(scenes)}; choose smaller numbers.")
    read = _reader(scenes, KEPT)
    train, test, passed = list[int](), list[int](), list[int]()
    for count, which in enumerate(np.random.default_rng(seed).permutation(len(scenes)).tolist(), 1):
        scene = read(which)
        shown = shows_both(scene)
        note = "" if shown else ", which shows no target"
        progress(f"read {count}/{max(n_train + n_test, count)}: {scene.name}{note}")
        (train if len(test) == n_test else test if shown else passed).append(which)
        if len(test) == n_test and len(train) == n_train:
            break
    if len(test) < n_test:
        found = f"only {len(test)} of {len(scenes)} scenes show targets and others"
        raise InvalidInputError(f"n_test is {n_test}, but {found}; choose a smaller one.")
    train += passed[: n_train - len(train)]
    return _chosen(scenes, train, read), _chosen(scenes, test, read)


def _reader(scenes: Sequence[Scene], room: int) -> Callable[[int], Scene]:
    """Return a function that reads a scene by number, once; of lazy scenes, no more stay in memory than fit `room`."""
    if not isinstance(scenes, Scenes):
        return cache(scenes.__getitem__)
    kept: dict[int, Scene] = {}

    def read(which: int) -> Scene:
        nonlocal room
        if which not in kept:
            scene = replace(scenes[which], rgb=None, thermal=None)
            size = sum(array.nbytes for array in vars(scene).values() if isinstance(array, np.ndarray))
            if size > room:
                return scene
            kept[which] = scene
            room -= size
        return kept[which]

    return read


def _chosen(scenes: Sequence[Scene], which: Sequence[int], read: Callable[[int], Scene]) -> Sequence[Scene]:
    if not isinstance(scenes, Scenes):
        return [read(k) for k in which]
    numbers = {scenes.names[k]: k for k in which}
    return Scenes(list(numbers), lambda name: read(numbers[name]))
