"""`lesions`: a drawn slice of a brain in four contrasts of magnetic resonance, with exact truth about its lesions."""

from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_erosion, distance_transform_edt, gaussian_filter, zoom

from bimichi._checks import check_integer, check_number
from bimichi._types import Flags, Floats
from bimichi.datasets.drawing import LICENCE, Array, Shape, capsule, ellipse, image_files, scene_name
from bimichi.io.write import write_image
from bimichi.measures.lattice import Seed, random_generator
from bimichi.scenes.labels import label_bags
from bimichi.scenes.scene import Scene
from bimichi.scenes.shapes import boxes_of
from bimichi.scenes.superpixels import superpixels

FINE = 2  # fine pixels per pixel, so that tissues share pixels at their borders
TISSUES = ("white", "grey", "fluid", "lesion")
SIZE = 150.0  # millimetres from front to back, for which figures below are given


@dataclass(frozen=True)
class Anatomy:
    """Shares of tissues in each pixel, in the order of `TISSUES`, and what disturbs contrasts.

    `brain` is where there is any; `severity` (0 to 1) of the lesion that a pixel belongs to, `enhancing` lesions,
    `caps` of bright white matter at the horns of ventricles, `vessels`, and the `choroid` plexus.
    """

    shares: Floats
    brain: Flags
    severity: Floats
    enhancing: Floats
    caps: Floats
    vessels: Floats
    choroid: Floats

    @property
    def lesions(self) -> Flags:
        """The pixels that are mostly lesion."""
        return np.asarray((self.shares[TISSUES.index("lesion")] > 0.5) & self.brain)


def smooth_noise(rng: np.random.Generator, shape: tuple[int, ...], width: float) -> Floats:
    """Return noise of mean 0 and deviation 1 whose bumps are about `width` pixels wide, however wide that is."""
    step = max(1, int(width / 4))
    coarse = gaussian_filter(rng.standard_normal([-(-n // step) + 3 for n in shape]), width / step, mode="reflect")
    noise = coarse if step == 1 else zoom(coarse, step, order=1)
    noise = noise[: shape[0], : shape[1]]
    return np.asarray((noise - noise.mean()) / max(float(noise.std()), 1e-12))


def draw_anatomy(rng: np.random.Generator, height: int, width: int, n_lesions: int) -> Anatomy:
    """Draw a slice whose brain fills three quarters of the image's height."""
    shape = (height * FINE, width * FINE)
    scale = 0.76 * min(shape[0], 1.2 * shape[1]) / SIZE  # fine pixels per millimetre
    y = ((0.5 * shape[0] - np.arange(shape[0]) - 0.5) / scale)[:, None].astype(np.float32)
    x = ((np.arange(shape[1]) + 0.5 - 0.5 * shape[1]) / scale)[None, :].astype(np.float32)
    bent = [1.6 * smooth_noise(rng, shape, 26 * scale) + 0.5 * smooth_noise(rng, shape, 7 * scale) for _ in range(2)]
    u, v = (x + bent[0]).astype(np.float32), (y + bent[1]).astype(np.float32)  # no brain is symmetric
    outline = (np.abs(u / (57 - 0.05 * v)) ** 2.2 + np.abs(v / 72) ** 2.2) ** (1 / 2.2) - 1
    ventricles = _joined(_ventricles(rng), u, v)
    sulci = _sulci(rng, u, v, scale) & (ventricles > 8)
    brain = (outline < 0) & ~(sulci & (outline > -0.035))
    surface = distance_transform_edt(brain & ~sulci) / scale  # millimetres from fluid around the brain
    thick = 3.1 + 0.5 * smooth_noise(rng, shape, 6 * scale)
    nuclei = np.minimum(_joined(_nuclei(rng), u, v) + 0.6 * smooth_noise(rng, shape, 4 * scale), 9)
    fluid = brain & ((ventricles < 0) | sulci)
    grey = brain & ~fluid & ((surface < thick) | (nuclei < 0))
    white = brain & ~fluid & ~grey
    number, depth = _lesions(rng, n_lesions, white & (surface > thick + 0.5), ventricles, scale)
    severe, enhances = rng.uniform(0.35, 1.0, n_lesions + 1), rng.random(n_lesions + 1) < 0.15
    lesion = number > 0
    masks = np.stack([white & ~lesion, grey & ~lesion, fluid & ~lesion, lesion]).astype(np.float64)
    soft = np.stack([gaussian_filter(mask, 0.45 * FINE) for mask in masks]) * brain
    near = np.exp(-np.maximum(ventricles, 0) / 1.6) * white * (np.abs(v) > 14)
    specks = (rng.random(shape) < 0.0007) & brain & (surface < 4)
    vessels = gaussian_filter(specks.astype(np.float64), 0.6 * scale) * 9 * scale**2
    plexus = gaussian_filter(((ventricles < -1.2) & (v < 4) & (rng.random(shape) < 0.3)).astype(np.float64), 1.2)
    others = [severe[number] * lesion, (enhances[number] & (depth < 2.5)) * lesion, near, vessels, plexus]
    return Anatomy(_pixels(soft), _pixels(brain * 1.0) > 0.5, *(_pixels(plane * 1.0) for plane in others))


def _pixels(fine: Any) -> Floats:
    *first, height, width = np.shape(fine)
    return np.asarray(np.reshape(fine, (*first, height // FINE, FINE, width // FINE, FINE)).mean(axis=(-3, -1)))


def _joined(shapes: list[Shape], x: Array, y: Array) -> Floats:
    """Return the distance from the nearest of some shapes, in millimetres, with smooth joints between them."""
    total = sum(np.exp(-np.clip(shape(x, y), -40, 40)) for shape in shapes)
    return np.asarray(-np.log(total), dtype=np.float64)


def _ventricles(rng: np.random.Generator) -> list[Shape]:
    """Return two horns in front, two behind, and the slit between the thalami."""
    size, shapes = rng.uniform(0.7, 1.3), []
    for side in (-1, 1):
        wide = size * rng.uniform(0.9, 1.1)
        path = [(2.5, 3.0, 1.0), (4.0, 13.0, 2.4), (7.5, 20.0, 2.8), (12.5, 25.0, 1.6), (15.5, 27.0, 0.8)]
        back = [(4.0, -10.0, 1.2), (10.0, -16.0, 2.4), (16.5, -24.0, 4.2), (20.5, -33.0, 3.0), (21.0, -41.0, 1.2)]
        for line in (path, back):
            for (x0, y0, first), (x1, y1, last) in pairwise(line):
                shapes.append(capsule((side * x0, y0), (side * x1, y1), first * wide, last * wide))
    return [*shapes, capsule((0, 4), (0, -10), 1.0 * size, 1.3 * size)]


def _nuclei(rng: np.random.Generator) -> list[Shape]:
    """Return caudate, putamen and thalamus on both sides."""
    shapes = []
    for side in (-1, 1):
        grown = rng.uniform(0.9, 1.1)
        shapes += [
            capsule((side * 12, 22), (side * 12.5, 10), 3.8 * grown, 2.0 * grown),
            capsule((side * 22, 16), (side * 27, -4), 4.2 * grown, 3.0 * grown),
            ellipse((side * 10, -6), (7.0 * grown, 10.0 * grown)),
        ]
    return shapes


def _sulci(rng: np.random.Generator, x: Array, y: Array, scale: float) -> Flags:
    """Draw grooves from the surface inwards, the gap between the hemispheres, and those beside the temples."""
    half = max(0.5, 0.6 / scale)
    paths: list[tuple[list[tuple[float, float]], float]] = [
        ([(rng.normal(0, 0.6), end + step * (start - end)) for step in np.linspace(1, 0, 6)], 0.8)
        for start, end in ((76, 30), (-76, -32))
    ]
    for side in (-1, 1):
        bend = rng.normal(0, 2, 3)
        paths.append(([(side * 60, 8 + bend[0]), (side * 46, 10 + bend[1]), (side * 36, 6 + bend[2])], 1.0))
        paths.append(([(side * 36, 18), (side * 35, 6 + bend[2]), (side * 38, -12)], 0.6))
    angles = np.linspace(0, 2 * np.pi, 42, endpoint=False) + rng.normal(0, 0.04, 42)
    for angle in angles[(np.abs(np.cos(angles)) > 0.12) & (np.abs(np.sin(angles) - 0.1) > 0.06)]:
        paths.append((_groove(rng, angle), rng.uniform(0.8, 1.3) * half))
    sulci = np.zeros(x.shape, dtype=np.bool_)
    for path, radius in paths:
        wide = radius * np.linspace(1.9, 1.0, len(path))  # open at the surface
        for (start, end), (first, last) in zip(pairwise(path), pairwise(wide.tolist()), strict=True):
            near = _window(start, end, x.shape, scale)
            sulci[near] |= capsule(start, end, first, last)(x[near], y[near]) < 0
    return sulci


def _window(start: tuple[float, float], end: tuple[float, float], shape: tuple[int, ...], scale: float) -> Any:
    """Return the rows and columns around a stroke, with room for how far the brain is bent."""
    (left, right), (low, high) = (sorted(pair) for pair in zip(start, end, strict=True))
    top, bottom = (int(0.5 * shape[0] - y * scale) for y in (high + 9, low - 9))
    first, last = (int(0.5 * shape[1] + x * scale) for x in (left - 9, right + 9))
    return np.s_[max(top, 0) : max(bottom, 0), max(first, 0) : max(last, 0)]


def _groove(rng: np.random.Generator, angle: float) -> list[tuple[float, float]]:
    """Return a winding path from the surface inwards."""
    at = np.array([58 * np.cos(angle), 74 * np.sin(angle)])
    heading = np.arctan2(-0.8 * at[1], -at[0]) + rng.normal(0, 0.2)
    path = [(float(at[0]), float(at[1]))]
    for _ in range(int(rng.integers(4, 9))):
        at = at + 3.2 * np.array([np.cos(heading), np.sin(heading)])
        heading += rng.normal(0, 0.35)
        path.append((float(at[0]), float(at[1])))
    return path


def _lesions(rng: np.random.Generator, n: int, where: Flags, ventricles: Floats, scale: float) -> tuple[Any, Floats]:
    """Number lesions, most of them at the ventricles and pointing away from them; returns depths in mm, too."""
    number = np.zeros(where.shape, dtype=np.int64)
    rows, columns = np.nonzero(where)
    rough = smooth_noise(rng, where.shape, 2.2 * scale)
    slope = np.gradient(gaussian_filter(ventricles, 3 * scale))
    for k in range(1, n + 1):
        close = np.exp(-np.maximum(ventricles[rows, columns] - 2, 0) / (3.0 if rng.random() < 0.7 else 25.0))
        pick = rng.choice(len(rows), p=close / close.sum())
        row, column = rows[pick], columns[pick]
        turn = np.arctan2(slope[0][row, column], slope[1][row, column])
        long = float(np.clip(rng.lognormal(1.2, 0.5), 1.4, 9.0))
        short = max(1.2, long * rng.uniform(0.45, 0.9))
        down, across = np.ogrid[: where.shape[0], : where.shape[1]]
        along = ((across - column) * np.cos(turn) + (down - row) * np.sin(turn)) / scale
        off = ((down - row) * np.cos(turn) - (across - column) * np.sin(turn)) / scale
        number[(np.hypot(along / long, off / short) < 1 + 0.18 * rough) & where] = k
    inside = binary_erosion(number > 0) if n else number > 0
    return number, np.asarray(distance_transform_edt(inside)) / scale


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
    for name, value, least in (("height", height, 64), ("width", width, 64), ("n_lesions", n_lesions, 0)):
        check_integer(value, name, minimum=least)
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
