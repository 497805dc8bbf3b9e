"""The sources of the paper's pedestrians at night, and three more."""

from numpy.typing import ArrayLike

from bimichi._checks import check_choice
from bimichi.errors import InvalidInputError
from bimichi.imaging.sources import (
    Plane,
    adaptive_threshold,
    difference,
    edge_strength,
    equalize,
    gamma_correction,
    grey,
    local_contrast,
    to_bipolar,
)

__all__ = ["pedestrian_sources"]

FULL_THERMAL = (0.0, 99.9)
"""Thermal cameras use a part of their range that differs from scene to scene; the few hottest pixels are lamps."""


def pedestrian_sources(rgb: ArrayLike, thermal: ArrayLike, n_sources: int = 3) -> tuple[list[Plane], list[str]]:
    """Make sources of a night scene: those of the paper [1]_, or six.

    Parameters
    ----------
    rgb : array-like of shape (height, width, 3) or (height, width)
        The visible image.
    thermal : array-like of shape (height, width) or (height, width, 3)
        The thermal image of the same size, warm bright.
    n_sources : {3, 6}
        3: adaptive threshold of the grey image (bright areas negative), equalised grey, gamma corrected thermal.
        6: these, local contrast of the thermal image, thermal minus grey, and edge strength of the thermal image.

    Returns
    -------
    planes : list of ndarray of float32, shape (height, width)
        In [-1, 1].
    names : list of str
        What to call them.

    References
    ----------
    .. [1] H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty",
       FUZZ-IEEE 2024.
    """
    check_choice(n_sources, "n_sources", (3, 6))
    light = grey(rgb)
    warm = (to_bipolar(thermal, percentiles=FULL_THERMAL) + 1) / 2
    if light.shape != warm.shape:
        raise InvalidInputError(
            f"rgb has height and width {light.shape}, thermal {warm.shape}; bring them to one size, pixel upon pixel."
        )
    sources = {
        "adaptive threshold": adaptive_threshold(light),
        "equalised grey": equalize(light),
        "gamma thermal": gamma_correction(warm),
    }
    if n_sources == 6:
        sources["thermal contrast"] = local_contrast(warm)
        sources["thermal minus grey"] = difference(warm, light)
        sources["thermal edges"] = edge_strength(warm, spread=8.0)
    return list(sources.values()), list(sources)
