"""Scenes, or groups of bags, as they are left out and learned from when a fusion is chosen.

Scenes are read twice: once for samples, by which signs are decided, and again for what the candidates learn from. Up
to 1 GiB of them stays in memory in between.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Floats, Ints
from bimichi.learning.bags import Bags
from bimichi.learning.parts import Part, read_part
from bimichi.learning.samples import (
    Sample,
    bag_groups,
    grouped_bags,
    grouped_pixels,
    pixel_labels,
    scaled_sample,
    select_bags,
    strips,
)
from bimichi.learning.scaling import Scale
from bimichi.learning.streaming import in_threads

KEPT = 1 << 30  # bytes of scenes that stay in memory

PlaneScale = Callable[[NDArray[Any]], NDArray[Any]]
"""Makes a source of a plane by comparing the values of the scene, such as `bimichi.imaging.rarity`."""


@dataclass(eq=False)
class Unit:
    """A scene, or a group of bags, that is left out as a whole.

    Attributes
    ----------
    name : str
        Of the scene, and of the group in it.
    sample : Sample
        Rows to score by, with sources as given.
    rarity : Sample, optional
        The same rows, each value by how rare it is.
    bags : Bags, optional
        Labelled bags, if there are any.
    prepared : dict
        What candidates learn from, by candidate.
    """

    name: str
    sample: Sample
    rarity: Sample | None = None
    bags: Bags | None = None
    prepared: dict[Any, Any] = field(default_factory=dict)


class Signed(NamedTuple):
    """How sources enter: learned scale, if any, and signs."""

    scale: Scale | None
    signs: Floats


class Material:
    """Training data that can be read again.

    Parameters
    ----------
    items : sequence
        `Bags`, or scenes in any form that `bimichi.learning.parts.read_part` takes.
    n_groups : int
        Into how many groups of neighbouring bags single scenes are divided; 1 if there are several scenes.
    groups : sequence, optional
        Of `Bags`: the group of every bag.
    nan : {"raise", "drop"}
        Whether instances with NaN are an error.
    n_jobs : int
        Number of threads.
    """

    def __init__(self, items: Sequence[Any], n_groups: int, groups: Any, nan: Any, n_jobs: int) -> None:
        self._items, self._n_groups, self._groups, self._nan, self._n_jobs = items, n_groups, groups, nan, n_jobs
        self._kept: dict[int, Part] = {}
        self._left = KEPT

    def __len__(self) -> int:
        return len(self._items)

    def parts(self, function: Callable[[Part], Any]) -> Iterator[Any]:
        """Read all parts, in order, and yield what the function makes of each."""

        def run(k: int) -> tuple[int, Part, Any]:
            item = self._items[k]
            whole = Part(item, len(item.X), item.n_sources) if isinstance(item, Bags) else None
            part = self._kept.get(k) or whole or read_part(item, self._nan)
            return k, part, function(part)

        for k, part, made in in_threads(run, range(len(self._items)), self._n_jobs):
            size = _size(part)
            if k not in self._kept and size <= self._left:
                self._kept[k] = part
                self._left -= size
            yield made

    def regions(self, part: Part) -> tuple[Ints | None, Ints | None]:
        """Return the group of every pixel, and that of every bag, of a part; None where all are in one."""
        if part.scene is None:
            assert part.bags is not None
            found = bag_groups(part.bags, self._groups, self._n_groups)
            return None, found
        if self._n_groups < 2 or len(part.scene.shape) != 2:
            return None, None
        region = strips(part.scene, self._n_groups)
        if part.bags is None:
            return region, None
        middles = (part.bags.offsets[:-1] + part.bags.offsets[1:]) // 2
        return region, region.ravel()[part.bags.instance[middles]]


def samples_of(part: Part, material: Material, how: Signed, room: int, rare: PlaneScale | None = None) -> list[Sample]:
    """Return a sample for each group of a part, with sources as given, or by how rare their values are."""
    region, group = material.regions(part)
    labels = None if part.scene is None else pixel_labels(part.scene)
    if part.scene is None or labels is None:
        if part.bags is None:
            none = np.empty((0, part.n_sources))
            return [Sample(part.name, none, none)]
        return grouped_bags(part.name, entered(part.bags, how), group)
    if rare is None:
        found = grouped_pixels(part.scene, part.scene.sources, labels, region, room)
        scaled = found if how.scale is None else [scaled_sample(one, how.scale) for one in found]
        return [one.with_signs(how.signs) for one in scaled]
    planes = zip(np.moveaxis(part.scene.sources, -1, 0), how.signs, strict=True)
    rows = np.stack([rare(plane if sign > 0 else -plane) for plane, sign in planes], axis=-1)
    return grouped_pixels(part.scene, rows, labels, region, room)


def units_of(
    part: Part, material: Material, how: Signed, room: int, rare: PlaneScale | None, keep_bags: bool
) -> list[Unit]:
    """Return the units of a part: samples, and, if candidates learn from them, bags."""
    samples = samples_of(part, material, how, room)
    scarce = [None] * len(samples)
    if rare is not None and samples[0].offsets is None:
        scarce = list(samples_of(part, material, how, room, rare))  # type: ignore[arg-type]
    units = [Unit(one.name, one, other) for one, other in zip(samples, scarce, strict=True)]
    if keep_bags and part.bags is not None:
        bags, group = entered(part.bags, how), material.regions(part)[1]
        if group is None:
            units[0].bags = bags
        else:
            for unit, g in zip(units, np.unique(group) if part.scene is None else range(len(units)), strict=True):
                chosen = select_bags(bags, group == g)
                unit.bags = chosen if len(chosen) else None
    return units


def entered(bags: Bags, how: Signed) -> Bags:
    """Return bags as they enter the integral: scaled, and inverted."""
    return (bags if how.scale is None else how.scale.bags(bags)).with_signs(how.signs)


def _size(part: Part) -> int:
    bags, scene = part.bags, part.scene
    arrays = [] if bags is None else [bags.X, bags.counts, bags.instance]
    if scene is not None:
        arrays += [scene.sources] + ([] if scene.segments is None else [scene.segments])
    return sum(array.nbytes for array in arrays)
