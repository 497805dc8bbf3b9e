"""Calibration of any method: it is fitted without each block of data in turn, and a link to its outputs there."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bimichi.learning.bags import Bags
from bimichi.learning.calibration import platt
from bimichi.learning.folds import make_folds
from bimichi.learning.parts import Part
from bimichi.learning.samples import FEW, Sample, bag_groups, grouped_bags, select_bags
from bimichi.learning.selection.units import Material, Signed, samples_of
from bimichi.link import Link
from bimichi.rule import FusionRule

Fit = Callable[[Any], FusionRule]


def link_of_bags(bags: Bags, fit: Fit, n_folds: int) -> Link | None:
    """Return the link of a method that `fit` applies to bags; None if nothing can be left out, or no line fits."""
    group = bag_groups(bags, None, n_folds)
    samples = grouped_bags("", bags, group)
    numbers = np.unique(group)
    return _link(samples, n_folds, lambda block: fit(select_bags(bags, ~np.isin(group, numbers[block]))))


def link_of_scenes(items: Sequence[Any], fit: Fit, n_folds: int, nan: Any, n_jobs: int) -> Link | None:
    """Return the same of scenes, in any form that `bimichi.learning.parts.read_part` takes."""
    material = Material(items, 1, None, nan, n_jobs)
    room = max(1000, FEW // max(1, len(items)))

    def sampled(part: Part) -> Sample:
        return samples_of(part, material, Signed(None, np.ones(part.n_sources)), room)[0]

    samples = list(material.parts(sampled))
    return _link(samples, n_folds, lambda block: fit([item for k, item in enumerate(items) if k not in set(block)]))


def _link(samples: Sequence[Sample], n_folds: int, fit: Callable[[Any], FusionRule]) -> Link | None:
    folds = make_folds(samples, n_folds)
    if len(folds) < 2:
        return None
    found = []
    for block in folds:
        rule = fit(block)
        for one in (samples[k] for k in block):
            sides = (rule.integral(rows) for rows in (one.targets, one.others))
            values = (abs(side) if rule.output == "magnitude" else side for side in sides)
            found.append((*one.decisive(*values), one.shares))
    return platt(found, all(one.offsets is None for one in samples))
