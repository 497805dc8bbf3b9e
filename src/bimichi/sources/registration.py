"""Shifts of sources against each other, estimated from their edges; robust to sensors of different kinds.

Edges show in most sensors, whatever the sign of their contrast, so gradient magnitudes are correlated, half-whitened (a
compromise between plain and phase correlation), in tiles. A tile counts only if its peak stands out; an estimate needs
several tiles that agree. Tiles of unrelated images do not, so that these give no estimate rather than a wrong one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Flags, Floats
from bimichi.errors import InvalidInputError
from bimichi.sources.bands import Image

# Chosen on real pairs (infrared and visible at night, magnetic resonance, radar and optical), aligned as their authors
# left them and with shifts of 3 to 10 pixels added, so that no aligned pair is called misregistered.
TILE = 128  # pixels along the side of a tile, about
LONGEST = 640  # pixels along the longer side, to which larger images are reduced
REACH = 16  # pixels of the reduced image that a shift can have along an axis
SMOOTHING = 1.5  # pixels of the Gaussian whose gradients are taken
WHITENING = 0.5  # 0 is plain correlation, 1 phase correlation
PEAK, AHEAD = 6.0, 3.0  # standard deviations of a peak above the mean, and above the next peak
FEW, STRONG = 4, 12.0  # tiles of a small image, in which a peak of so many standard deviations is enough
NEAR = 5.0  # pixels around a peak that belong to it
AGREEING, SHARE, TOGETHER = 3, 0.6, 3.0  # tiles, and the share of them, that agree within so many pixels
Spectrum = NDArray[np.complex128]
SATURATION = 95  # percentile of gradients above which they count alike


@dataclass(frozen=True)
class Shift:
    """The move that brings an image onto another, in pixels: `rows` down, `columns` to the right.

    `tiles` of the image agree on it.
    """

    rows: float
    columns: float
    tiles: int

    @property
    def length(self) -> float:
        """In pixels."""
        return float(np.hypot(self.rows, self.columns))


class ShiftEstimator:
    """Collects tiles of one or several scenes, and estimates the shift between any two of their sources.

    A scene of 640 x 480 pixels takes about 20 ms per source and 10 ms per pair.
    """

    def __init__(self, n_sources: int) -> None:
        self._n_sources = n_sources
        self._found: dict[tuple[int, int], list[tuple[float, float, int]]] = {}

    def add(self, planes: Sequence[Image]) -> None:
        """Add a scene: one array of shape (height, width) per source, NaN where there is no data."""
        if len(planes) != self._n_sources or len({plane.shape for plane in planes}) != 1:
            shapes = ", ".join(str(plane.shape) for plane in planes)
            raise InvalidInputError(
                f"planes must be {self._n_sources} arrays of one shape, got {shapes}.",
                code="planes-shapes",
                argument="planes",
                value=shapes,
            )
        factor = max(1, -(-max(planes[0].shape) // LONGEST))
        edges = [_edges(_reduced(plane, factor)) for plane in planes]
        height, width = edges[0].shape
        if min(height, width) < 2 * REACH + 2:
            return
        tiles = list(product(_spans(height), _spans(width)))
        for rows, columns in tiles:
            spectra = [_spectrum(one[rows, columns]) for one in edges]
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            for (j, first), (k, second) in combinations(enumerate(spectra), 2):
                peak = None if first is None or second is None else _peak(_correlation(first, second, shape))
                if peak is not None:
                    weight = AGREEING if len(tiles) <= FEW and peak[2] >= STRONG else 1
                    self._found.setdefault((j, k), []).append((peak[0] * factor, peak[1] * factor, weight))

    def shift(self, first: int, second: int) -> Shift | None:
        """Return how source number `second` would have to move to lie on number `first`; None if that is unknown."""
        if first > second:
            back = self.shift(second, first)
            return None if back is None else Shift(-back.rows, -back.columns, back.tiles)
        peaks = np.array(self._found.get((first, second), []), dtype=np.float64).reshape(-1, 3)
        tiles, weights = peaks[:, :2], peaks[:, 2]
        if weights.sum() < AGREEING:
            return None
        agree = np.hypot(*(tiles - np.median(tiles, axis=0)).T) <= TOGETHER
        if weights[agree].sum() < AGREEING or weights[agree].sum() < SHARE * weights.sum():
            return None
        rows, columns = np.median(tiles[agree], axis=0)
        return Shift(float(rows), float(columns), int(agree.sum()))


def estimate_shift(first: Image, second: Image) -> Shift | None:
    """Estimate how `second` would have to move to lie on `first`, two images of one scene from any kinds of sensors.

    Parameters
    ----------
    first, second : ndarray of shape (height, width)
        NaN where there is no data.

    Returns
    -------
    Shift or None
        None if too few parts of the images agree on a shift: they may be aligned or not. Shifts of less than 16 pixels
        along an axis are found; in images larger than 640, of less than 16 pixels after reduction to that size.
    """
    estimator = ShiftEstimator(2)
    estimator.add([np.asarray(first), np.asarray(second)])
    return estimator.shift(0, 1)


def _reduced(plane: Image, factor: int) -> Floats:
    """Return block means in floats, NaN where any pixel of a block is."""
    values = np.asarray(plane, dtype=np.float64)
    if factor == 1:
        return values
    height, width = (size // factor for size in values.shape)
    blocks = values[: height * factor, : width * factor].reshape(height, factor, width, factor)
    return np.asarray(blocks.mean(axis=(1, 3)))


def _edges(plane: Floats) -> Floats:
    """Return gradient magnitudes in [0, 1]; 0 near missing pixels, whose border is no edge."""
    from scipy import ndimage  # not at the top: names of the package are known without SciPy

    missing: Flags = ~np.isfinite(plane)
    if missing.all():
        return np.zeros(plane.shape)
    filled = np.where(missing, np.median(plane[~missing]), plane) if missing.any() else plane
    edges = ndimage.gaussian_gradient_magnitude(filled, SMOOTHING)
    if missing.any():
        edges[ndimage.binary_dilation(missing, iterations=int(4 * SMOOTHING) + 1)] = 0
    most = np.percentile(edges, SATURATION) or edges.max()
    return np.asarray(np.minimum(edges / most, 1.0)) if most > 0 else np.zeros(plane.shape)


def _spans(extent: int) -> list[slice]:
    """Divide an axis into about equal parts."""
    n = max(1, round(extent / TILE))
    return [slice(k * extent // n, (k + 1) * extent // n) for k in range(n)]


def _spectrum(tile: Floats) -> Spectrum | None:
    """Return the spectrum of a tile that fades to its mean at the border; None if it is constant."""
    from scipy import fft

    if tile.std() < 1e-6:
        return None
    window = np.outer(np.hanning(tile.shape[0]), np.hanning(tile.shape[1]))
    return np.asarray(fft.rfft2((tile - (tile * window).sum() / window.sum()) * window))


def _correlation(first: Spectrum, second: Spectrum, shape: tuple[int, int]) -> Floats:
    """Return the correlation for all shifts up to `REACH` along both axes, that of none in the middle."""
    from scipy import fft

    cross = first * np.conj(second)
    size = np.abs(cross)
    whole = fft.irfft2(cross / np.maximum(size, 1e-9 * size.max()) ** WHITENING, shape)
    return np.asarray(np.roll(whole, (REACH, REACH), (0, 1))[: 2 * REACH + 1, : 2 * REACH + 1])


def _peak(correlation: Floats) -> tuple[int, int, float] | None:
    """Return the shift of the peak, and by how many standard deviations it stands out; None if by too few."""
    row, column = np.unravel_index(int(correlation.argmax()), correlation.shape)
    rows, columns = np.ogrid[: correlation.shape[0], : correlation.shape[1]]
    others = correlation[np.hypot(rows - row, columns - column) > NEAR]
    down, right = int(row) - REACH, int(column) - REACH
    spread, most = max(float(others.std()), 1e-300), correlation[row, column]
    height, ahead = (most - others.mean()) / spread, (most - others.max()) / spread
    at_border = max(abs(down), abs(right)) == REACH
    return None if height < PEAK or ahead < AHEAD or at_border else (down, right, float(height))
