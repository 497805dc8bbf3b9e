"""The sources of the paper's pedestrians at night, and three more."""

from numpy.typing import ArrayLike

from bimichi._checks import check_choice
from bimichi.errors import InvalidInputError
from bimichi.imaging import sources as make
from bimichi.imaging.bands import Plane

PRESETS: dict[str, tuple[float, float]] = {"default": (0.0, 1.5), "paper": (0.1, 0.8)}
"""Offset of the adaptive threshold, and gamma of the thermal image."""
FULL_THERMAL = (0.0, 99.9)  # percentiles, as the range in use varies from scene to scene; the hottest pixels are lamps


def pedestrian_sources(
    rgb: ArrayLike, thermal: ArrayLike, n_sources: int = 3, preset: str = "default"
) -> tuple[list[Plane], list[str]]:
    """Make sources of a night scene: those of the paper [1]_, or six.

    Parameters
    ----------
    rgb : array-like of shape (height, width, 3) or (height, width)
        The visible image.
    thermal : array-like of shape (height, width) or (height, width, 3)
        The thermal image of the same size, warm bright.
    n_sources : {3, 6}
        3: adaptive threshold of the grey image, whose bright areas (lamps and what they light) are negative; equalised
        grey; gamma corrected thermal. 6: also local contrast and edge strength of the thermal image, and thermal minus
        grey.
    preset : {"default", "paper"}
        "default" was chosen by how well learned measures rank people in night scenes. "paper" comes near the errors
        that the paper prints for single sources: an offset of the threshold by which about 5 % of a night frame count
        as bright, and a gamma that leaves the thermal image brighter.

    Returns
    -------
    planes : list of ndarray of float32, shape (height, width)
        In [-1, 1].
    names : list of str
        One per plane.

    References
    ----------
    .. [1] H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty",
       FUZZ-IEEE 2024.
    """
    check_choice(n_sources, "n_sources", (3, 6))
    offset, gamma = PRESETS[check_choice(preset, "preset", tuple(PRESETS))]
    light = make.grey(rgb)
    warm = (make.to_bipolar(thermal, percentiles=FULL_THERMAL) + 1) / 2
    if light.shape != warm.shape:
        raise InvalidInputError(
            f"rgb has height and width {light.shape}, thermal {warm.shape}; resample them to the same pixels."
        )
    sources = {
        "adaptive threshold": make.adaptive_threshold(light, offset=offset),
        "equalised grey": make.equalize(light),
        "gamma thermal": make.gamma_correction(warm, gamma),
    }
    if n_sources == 6:
        sources["thermal contrast"] = make.local_contrast(warm)
        sources["thermal minus grey"] = make.difference(warm, light)
        sources["thermal edges"] = make.edge_strength(warm, spread=8.0)
    return list(sources.values()), list(sources)
