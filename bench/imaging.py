"""Sources of images."""

from collections.abc import Iterator

import numpy as np

from bench.marks import Mark, at_most, seconds
from bimichi.sources import rarity


def sources() -> Iterator[Mark]:
    rng = np.random.default_rng(0)
    floats = rng.normal(size=(480, 640)).astype(np.float32)
    bytes_ = rng.integers(0, 256, (480, 640)).astype(np.uint8)
    for what, image in (("float32", floats), ("uint8", bytes_)):
        yield at_most(f"rarity, 640 x 480, {what}", seconds(lambda i=image: rarity(i)), 0.1, "s")  # type: ignore[misc]


BENCHES = [sources]
