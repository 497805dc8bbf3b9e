"""`um`: the paper's synthetic experiment, a "U" above an "M" in three sources, and its best measure in closed form."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._checks import check_integer, check_number
from bimichi._types import Flags
from bimichi.datasets.drawing import LICENCE, capsule
from bimichi.errors import InvalidInputError
from bimichi.measures.lattice import random_generator
from bimichi.scenes.labels import label_bags
from bimichi.scenes.scene import Scene
from bimichi.scenes.shapes import boxes_of
from bimichi.scenes.superpixels import superpixels

U, BACKGROUND, M = (1.0, 1.0, -1.0), (-1.0, 1.0, 1.0), (-1.0, -1.0, -1.0)  # the three patterns of sources
STROKE, HALF = 0.03, 0.14  # half the width of a stroke and of a letter, as parts of the image's height


def um(
    height: int = 100,
    width: int = 80,
    n_segments: int = 50,
    compactness: float = 1.0,
    noise: float = 0.0,
    random_state: int | np.random.Generator | None = 0,
) -> Scene:
    """Draw the paper's synthetic experiment [1]_: a "U" above an "M", both targets.

    Source 1 is +1 on the U and -1 elsewhere; source 2 is -1 on the M and +1 elsewhere; source 3 is -1 on both letters
    and +1 on the background. Superpixels of the truth are the bags; those that touch a letter are positive. All three
    sources are -1 on the M, where every integral is -1: the bipolar objective must miss it, and the magnitude finds it.

    Parameters
    ----------
    height, width : int
        Size of the image; at least 20 each.
    n_segments, compactness : int, float
        See `bimichi.scenes.superpixels`.
    noise : float, default=0
        Standard deviation of Gaussian noise on the sources, which stay in [-1, 1].
    random_state : int, numpy.random.Generator or None, default=0
        Seed of the noise.

    References
    ----------
    .. [1] H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty",
       FUZZ-IEEE 2024, Section IV-A.

    Examples
    --------
    >>> scene = um()
    >>> np.unique(scene.sources.reshape(-1, 3), axis=0)
    array([[-1., -1., -1.],
           [-1.,  1.,  1.],
           [ 1.,  1., -1.]])
    """
    for name, value in (("height", height), ("width", width)):
        check_integer(value, name, minimum=20)
    check_number(noise, "noise", minimum=0)
    y = (np.arange(height)[:, None] + 0.5) / height
    x = ((np.arange(width)[None, :] + 0.5) / width - 0.5) * 0.8
    angles = np.linspace(0, np.pi, 17)
    bowl = zip(-HALF * np.cos(angles), 0.44 - STROKE - HALF + HALF * np.sin(angles), strict=True)
    u = _stroke(x, y, [(-HALF, 0.08), *bowl, (HALF, 0.08)])
    m = _stroke(x, y, [(-HALF, 0.9), (-HALF, 0.58), (0.0, 0.84), (HALF, 0.58), (HALF, 0.9)])
    truth = u | m
    sources = np.where(u[..., None], U, np.where(m[..., None], M, BACKGROUND))
    if noise:
        sources = np.clip(sources + random_generator(random_state).normal(0, noise, sources.shape), -1, 1)
    segments = superpixels(truth.astype(np.float64), n_segments, compactness, sigma=0)
    return Scene(
        sources,
        "UM",
        segments=segments,
        labels=label_bags(segments, mask=truth),
        truth=truth,
        boxes=boxes_of(truth),
        licence=LICENCE,
        citation="After H. Vakharia and X. Du, FUZZ-IEEE 2024; drawn by bimichi.datasets.um",
    )


def _stroke(x: NDArray[Any], y: NDArray[Any], corners: list[tuple[float, float]]) -> Flags:
    strokes = [capsule(start, end, STROKE, STROKE)(x, y) < 0 for start, end in pairwise(corners)]
    return np.asarray(np.any(strokes, axis=0))


class UMOptimum(NamedTuple):
    """The optimum of the bipolar objective, and the numbers of bags that decide it; see `um_optimum`."""

    negative: int  # n, bags of background alone
    mixed: int  # k, positive bags with background and no U
    missed: int  # f, positive bags of M alone
    background: float  # g(23, 1)
    letter: float  # g(12, 3)
    objective_value: float


def um_optimum(scene: Scene) -> UMOptimum:
    """Return the optimum of Objective Function 1 ("bipolar") on a UM picture without noise, in closed form.

    Only two elements matter: g(12, 3) on the U, and x = g(23, 1) on the background; on the M, the integral is
    g(empty, 123) = -1. Neither is above the other in the order. So the U is best at 1, and its bags cost nothing; n
    negative bags cost (x + 1)^2 each; k positive bags with background but no U cost (x - 1)^2 each, as the M in them
    would cost 4, the most there is; f bags of M alone do cost 4. The sum is least at x = (k - n) / (k + n).

    Examples
    --------
    >>> best = um_optimum(um())
    >>> best.background == (best.mixed - best.negative) / (best.mixed + best.negative)
    True
    """
    bags = scene.bags()
    kinds = [np.flatnonzero(np.equal(bags.X, pattern).all(axis=1)) for pattern in (U, BACKGROUND, M)]
    if sum(map(len, kinds)) != len(bags.X):
        raise InvalidInputError(
            f"Scene {scene.name!r} has other sources than um() draws without noise.", code="letters-sources"
        )
    starts = bags.offsets
    has_u, has_background, has_m = (np.diff(np.searchsorted(kind, starts)) > 0 for kind in kinds)
    if (~bags.labels & (has_u | has_m)).any():
        raise InvalidInputError(
            f"Scene {scene.name!r} has a negative bag that holds a letter; label it positive.", code="letters-bag"
        )
    n = int((~bags.labels).sum())
    k = int((bags.labels & has_background & ~has_u).sum())
    f = int((bags.labels & ~has_background & ~has_u).sum())
    x = (k - n) / (k + n)
    return UMOptimum(n, k, f, x, 1.0, n * (x + 1) ** 2 + k * (x - 1) ** 2 + 4 * f)
