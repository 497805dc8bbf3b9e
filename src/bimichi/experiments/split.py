"""Which scenes to learn from, and which to score on."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal

import numpy as np

from bimichi.datasets import Scenes, street
from bimichi.errors import InvalidInputError
from bimichi.scene import Scene

__all__ = ["shows_both", "split_scenes", "street_scenes"]


def street_scenes(
    seeds: Iterable[int], n_sources: Literal[3, 6] = 3, height: int = 480, width: int = 640, n_segments: int = 300
) -> Scenes:
    """List streets of these seeds, each drawn when it is asked for; see `bimichi.datasets.street`.

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
    """Whether the pixels that count show both targets and something else, so that AUC is defined."""
    if scene.truth is None:
        return False
    counted = scene.truth if scene.ignore is None else scene.truth[~scene.ignore]
    return bool(counted.any() and not counted.all())


def split_scenes(
    scenes: Sequence[Scene],
    n_train: int,
    n_test: int,
    seed: int = 0,
    progress: Callable[[str], None] = lambda line: None,
) -> tuple[list[Scene], list[Scene]]:
    """Draw scenes at random: the first ones that show targets are for the test, the next ones for training.

    A scene without targets has no AUC, so that it is never tested on; it may be trained on. Those that were passed over
    for the test are taken for training last, so that it has its share of them where there are scenes enough.

    Parameters
    ----------
    scenes : sequence of Scene
        What to draw from; each is read once, and no more of them than it takes.
    n_train, n_test : int
        How many.
    seed : int, default=0
        Of the draw.
    progress : callable, optional
        Is told of each scene, on one line.

    Returns
    -------
    train, test : list of Scene
    """
    for what, number in (("n_train", n_train), ("n_test", n_test)):
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
            raise InvalidInputError(f"{what} must be a whole number of at least 1, got {number!r}.")
    if n_train + n_test > len(scenes):
        raise InvalidInputError(
            f"n_train = {n_train} and n_test = {n_test} ask for {n_train + n_test} scenes, but there are {len(scenes)}."
        )
    drawn = _read(scenes, np.random.default_rng(seed).permutation(len(scenes)).tolist(), n_train + n_test, progress)
    test: list[Scene] = []
    passed: list[Scene] = []
    while len(test) < n_test:
        scene = next(drawn, None)
        if scene is None:
            raise InvalidInputError(
                f"n_test is {n_test}, but only {len(test)} of {len(scenes)} scenes show people (and not people alone)."
            )
        (test if shows_both(scene) else passed).append(scene)
    train = list(islice(drawn, n_train))
    return train + passed[: n_train - len(train)], test


def _read(
    scenes: Sequence[Scene], order: Sequence[int], wanted: int, progress: Callable[[str], None]
) -> Iterator[Scene]:
    for count, which in enumerate(order, 1):
        scene = scenes[which]
        progress(
            f"read {count}/{max(wanted, count)}: {scene.name}{'' if shows_both(scene) else ', which shows nobody'}"
        )
        yield scene
