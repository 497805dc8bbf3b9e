"""`lesions`: a drawn slice of a brain in four contrasts of magnetic resonance, with exact truth about its lesions."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bimichi._checks import check_integer, check_number
from bimichi._types import Flags, Floats
from bimichi.datasets.anatomy import Anatomy, draw_anatomy, smooth_noise
from bimichi.datasets.drawing import LICENCE, image_files, scene_name
from bimichi.imaging import boxes_of, label_bags, superpixels, write_image
from bimichi.learning.scene import Scene
from bimichi.measures.sampling import Seed, random_generator

CONTRASTS = ("FLAIR", "T1", "T1 post", "T2")
# How bright white matter, grey matter, fluid and lesions are, from 0 to 1
BRIGHTNESS = np.array(
    [
        (0.58, 0.68, 0.13, 0.86),
        (0.78, 0.57, 0.12, 0.56),
        (0.56, 0.43, 0.10, 0.40),
        (0.27, 0.40, 0.96, 0.52),
    ]
)
SEVERE = (0.14, -0.16, -0.14, 0.12)  # by how much the most severe lesions differ from others


@dataclass(frozen=True, eq=False)
class BrainImages:
    """The images of a drawn slice, before sources are made of them.

    Attributes
    ----------
    name : str
        Of the scene.
    contrasts : dict of str to ndarray of uint8, shape (height, width)
        FLAIR, T1, T1 post (after contrast agent) and T2; 0 outside the brain.
    lesions, brain : ndarray of bool, shape (height, width)
        The truth, and where the brain is.
    """

    name: str
    contrasts: dict[str, NDArray[np.uint8]]
    lesions: Flags
    brain: Flags

    def scene(self, n_segments: int = 300) -> Scene:
        """Make sources and bags: see `lesions`."""
        planes = []
        for image in self.contrasts.values():
            low, high = np.percentile(image[self.brain], [1, 99.5])
            planes.append(np.clip(2 * (image - low) / max(high - low, 1.0) - 1, -1, 1))
        sources = np.stack(planes, axis=-1).astype(np.float32)
        sources[~self.brain] = np.nan
        segments = superpixels(sources, n_segments)
        boxes = boxes_of(self.lesions)
        return Scene(
            sources,
            self.name,
            CONTRASTS,
            segments=segments,
            labels=label_bags(segments, boxes=boxes, require_both=False),
            truth=self.lesions,
            ignore=~self.brain,
            boxes=boxes,
            rgb=np.repeat(self.contrasts["FLAIR"][..., None], 3, axis=2),
            licence=LICENCE,
            citation="A brain drawn by bimichi.datasets.lesions",
        )

    def write(self, folder: str | PathLike[str]) -> list[Path]:
        """Write PNG files into the folders flair, t1, t1post, t2 and truth of a folder; returns their paths."""
        kinds = [*(name.lower().replace(" ", "") for name in self.contrasts), "truth"]
        paths = image_files(folder, kinds, f"{self.name}.png")
        for path, image in zip(paths, [*self.contrasts.values(), self.lesions], strict=True):
            write_image(path, image)
        return paths


def lesions(
    height: int = 218,
    width: int = 182,
    n_lesions: int = 14,
    bias: float = 0.15,
    random_state: int | np.random.Generator | None = 0,
    n_segments: int = 300,
) -> Scene:
    """Draw an axial slice of a brain with lesions of the white matter, in four contrasts; the truth is exact.

    Lesions are bright on FLAIR; the cortex and the caps of ventricles are, too, but less so. On T2, lesions are bright,
    and ventricles and all other fluid are brighter still. On T1, lesions are darker than white matter, like the cortex.
    After contrast agent (T1 post), a few lesions shine, as vessels and the choroid plexus do. Each contrast has a bias
    field of its own, noise, and pixels that tissues share. No contrast alone separates lesions from all else.

    Parameters
    ----------
    height, width : int
        Size of the image, at least 64 each; in the default size a pixel is about a millimetre.
    n_lesions : int, default=14
        How many lesions; they may touch, and small ones may lie behind others.
    bias : float, default=0.15
        Relative deviation of the bias field, from 0 to 0.5.
    random_state : int, numpy.random.Generator or None, default=0
        The same seed gives the same scene.
    n_segments : int, default=300
        About how many superpixels (bags) in the brain; those that the box around a lesion touches are positive.

    Returns
    -------
    Scene
        Its sources are FLAIR, T1, T1 post and T2, each from the 1st to the 99.5th percentile of the brain; NaN outside
        the brain, where `ignore` is True. `draw_lesions` gives the images themselves, and writes them.

    Examples
    --------
    >>> scene = lesions(96, 80, n_lesions=6, random_state=1, n_segments=60)
    >>> scene.name, scene.sources.shape, scene.source_names
    ('lesions-1', (96, 80, 4), ('FLAIR', 'T1', 'T1 post', 'T2'))
    """
    return draw_lesions(height, width, n_lesions, bias, random_state).scene(n_segments)


def draw_lesions(
    height: int = 218, width: int = 182, n_lesions: int = 14, bias: float = 0.15, random_state: Seed = 0
) -> BrainImages:
    """Draw the images of a slice; see `lesions`, whose scene is made of them.

    Examples
    --------
    >>> list(draw_lesions(96, 80, n_lesions=6).contrasts)
    ['FLAIR', 'T1', 'T1 post', 'T2']
    """
    for what, value, least in (("height", height, 64), ("width", width, 64), ("n_lesions", n_lesions, 0)):
        check_integer(value, what, minimum=least)
    check_number(bias, "bias", 0, 0.5)
    rng = random_generator(random_state)
    anatomy = draw_anatomy(rng, height, width, n_lesions)
    images = {name: _scan(anatomy, k, bias, rng) for k, name in enumerate(CONTRASTS)}
    return BrainImages(scene_name("lesions", random_state), images, anatomy.lesions, anatomy.brain)


def _scan(anatomy: Anatomy, which: int, bias: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return one contrast: tissues, what disturbs it, the bias field, and the noise of a complex signal's magnitude."""
    shape, name = anatomy.brain.shape, CONTRASTS[which]
    signal: Floats = np.tensordot(BRIGHTNESS[which], anatomy.shares, 1)
    signal = signal + SEVERE[which] * (anatomy.severity - 0.6 * anatomy.shares[3])
    if name == "FLAIR":
        signal += 0.13 * anatomy.caps
    if name == "T1 post":
        signal += 0.45 * anatomy.enhancing + 0.5 * anatomy.vessels + 0.4 * anatomy.choroid
    signal = signal * (1 + 0.03 * smooth_noise(rng, shape, 4.0))
    signal = signal * np.exp(bias * smooth_noise(rng, shape, 0.3 * max(shape)))
    noise = rng.normal(0, 0.022, (2, *shape))
    seen = np.hypot(signal + noise[0], noise[1])
    return np.where(anatomy.brain, np.clip(np.round(255 * seen), 1, 255), 0).astype(np.uint8)
