"""Bags like those of MICI's demonstration: three binary sources, and targets where the first two agree."""

import numpy as np
from numpy.typing import NDArray
from real import real

TRUE_MEASURE = [0, 0, 0, 1, 0, 0, 1]
"""By size, then lexicographically: 1, 2, 3, 12, 13, 23, 123."""


Data = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def demo(seed: int = 0, n_bags: int = 50, size: int = 20) -> Data:
    """Rows, labels of bags for each row, bag ids, and what each row really is."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n_bags), size)
    positive = ids % 2 == 1
    first = rng.random(len(ids)) < 0.5
    target = positive & (rng.random(len(ids)) < 0.25)
    target[np.flatnonzero(positive[::size]) * size] = True  # every positive bag has one
    X = np.column_stack([first | target, ~first | target, rng.random(len(ids)) < 0.5]).astype(float)
    return X, positive.astype(int), ids, target.astype(int)


def real_demo() -> Data:
    """MICI's own demonstration, where BIMICHI_DATA names a folder that has it."""
    data = np.load(real("mici_demo") / "mici_demo.npz")
    ids = data["bag_ids"]
    return data["X"], data["bag_labels"][ids].astype(int), ids, data["true_fusion"].astype(int)
