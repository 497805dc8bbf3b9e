"""Small bags, rows and scenes to learn from."""

import numpy as np

from bimichi import Bags, Scene
from bimichi.datasets import street
from bimichi.paper import SLOW

SMALL = {"height": 96, "width": 128, "n_segments": 60}
"""A street that is quickly drawn."""
LEFT_OUT = {*SLOW, "KNN", "SVM", "MICI min-max"}
"""Methods of the paper that would add nothing but time."""


def rows(seed=0, n_bags=40, size=25, m=3):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n_bags), size)
    y = (ids % 4 == 0).astype(int)
    X = np.clip(rng.normal(-0.3, 0.35, (len(ids), m)) + 0.8 * (y * (rng.random(len(ids)) < 0.3))[:, None], -1, 1)
    X[:, 1] *= -1
    return X, y, ids


def scene(seed, name, positive=True):
    rng = np.random.default_rng(seed)
    truth = np.zeros((20, 24), dtype=bool)
    truth[5:9, 6:12] = positive
    sources = np.clip(rng.normal(-0.3, 0.3, (20, 24, 2)) + 0.9 * truth[..., None], -1, 1)
    row, column = np.mgrid[:20, :24]
    segments = row // 5 * 6 + column // 4
    labels = {int(s): bool(truth[segments == s].any()) for s in np.unique(segments) if s != 3}
    return Scene(sources, name, segments=segments, labels=labels, truth=truth)


def make_bags(m, n_bags=24, size=8, seed=0):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n_bags), size)
    y = (ids % 3 == 0).astype(int)
    X = rng.normal(-0.2, 0.4, (len(ids), m))
    hits = (y == 1) & (rng.random(len(ids)) < 0.4)
    X[hits] += rng.normal(0.4, 0.4, m)
    X[rng.random(X.shape) < 0.1] = 0
    return Bags.from_instances(np.clip(X, -1, 1), y, ids)


def uninformative_rows():
    """Rows of two sources that say nothing about the label, which is positive for a quarter of them."""
    return np.repeat([[0.5, -0.5], [-0.5, 0.5], [0.5, 0.5], [-0.5, -0.5]], 20, axis=0), np.tile([1, 0, 0, 0], 20)


def weighted_rows(n):
    """Rows, labels and whole weights; and the same rows and labels, each as often as its weight."""
    X, y = probable_rows(n)
    weight = np.random.default_rng(2).integers(1, 4, len(X))
    times = np.repeat(np.arange(len(X)), weight)
    return (X, y, weight), (X[times], y[times])


def probable_rows(n=400, m=3, seed=0):
    """Rows, and labels whose log-odds are nearly an integral."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, m))
    f = 3 * np.minimum(X[:, 0], X[:, 1]) + X[:, 0] - 1
    return X, rng.random(n) < 1 / (1 + np.exp(-f))


def probable_scenes(n=3):
    """Scenes of such rows, in bags of one class."""
    made = []
    for k in range(n):
        X, y = probable_rows(600, 3, k)
        segments = np.arange(600).reshape(20, 30) % 12 + 12 * y.reshape(20, 30)
        labels = {int(s): bool(s >= 12) for s in np.unique(segments)}
        made.append(
            Scene(
                name=f"s{k}",
                sources=X.reshape(20, 30, 3),
                source_names=["a", "b", "c"],
                segments=segments,
                labels=labels,
            )
        )
    return made


def small_streets(seeds):
    return [street(**SMALL, n_people=2, random_state=seed) for seed in seeds]
