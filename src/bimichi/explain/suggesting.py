"""What to label next: regions that the training leaves open, that contradict their labels, or that are uncertain."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bimichi._checks import check_integer
from bimichi.errors import InvalidInputError
from bimichi.explain.candidates import LEAST, Candidate, Ranks, Suggestion, candidates_of, look_at
from bimichi.explain.image_regions import shared, touch
from bimichi.explain.results import Explanation
from bimichi.explain.stability import Stability
from bimichi.explain.uncertainty import uncertainty, used_parts
from bimichi.learning.scene import Scene
from bimichi.rule import as_rule

AGAIN = 0.5
"""A region that asks about the same element as an earlier one counts by so much less, each time."""


@dataclass(frozen=True, repr=False)
class Suggestions(Explanation, Sequence[Suggestion]):
    """Suggestions, the best first; a sequence that prints as a table."""

    items: tuple[Suggestion, ...]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, which: Any) -> Any:
        return self.items[which]

    def _head(self) -> str:
        return f"{len(self)} suggestions"

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        rows = [(one.name, " ".join(map(str, one.box)), one.kind, one.score, one.reason) for one in self.items]
        return {name: [row[k] for row in rows] for k, name in enumerate(("scene", "box", "kind", "score", "reason"))}


def suggest(
    model: Any,
    scenes: Scene | Sequence[Scene],
    *,
    regions: Any = None,
    assumed: Any = None,
    limit: int = 20,
    training: Any = None,
    stability: Stability | None = None,
    n_jobs: int | None = None,
) -> Suggestions:
    """Return the regions of images that are most worth labelling, the best first.

    Parameters
    ----------
    model, n_jobs
        As in `contributions`.
    scenes : Scene or sequence of Scene
        Images; labelled bags, where there are any, are those of `Scene.segments` and `Scene.labels`. Pixels of
        `Scene.ignore` are left out.
    regions : array of int, shape (height, width), or one for each scene, optional
        What may be suggested besides positive bags: superpixels, for instance; below 0 for none. By default, about 300
        square blocks of each image.
    assumed : array of bool, shape (height, width), or one for each scene, optional
        Pixels that are negative because nothing is drawn there, not because anyone has said so. They may be suggested
        as uncertain, as unlabelled ones are.
    limit : int, default=20
        How many suggestions at most.
    training, stability
        As in `uncertainty`.

    Returns
    -------
    Suggestions
        Of these kinds:

        - "open": pixels that need elements which no training instance used. The score is the width of the interval of
          the fused value over all measures that fit alike, as a share of the range.
        - "conflict": a positive bag that ranks below negative regions, whose share is the score; or a negative region
          that is nearly as high as positive bags: the score is how far it rises from the median of all negative regions
          to a positive bag, averaged over these. Either the label is wrong, or the sources do not show what
          distinguishes it.
        - "uncertain": with `stability`, the score is the spread of the fused value over refits, as a share of the
          range; without, how near the region is to the threshold (that of the rule's decision, or else the one that
          separates positive bags from negative regions best), 0.5 at most, since that says less.

        The value that counts of a region or bag is its fourth highest, so that no single pixel decides. Of regions of
        one kind that touch, and of all that cover the same place, the best is listed. Of those that ask about the same
        open element, each counts half as much as the one before. No kind takes more than half of the places while there
        are others. What scores below 0.05 is left out.
    """
    rule = as_rule(model)
    check_integer(limit, "limit")
    given = [scenes] if isinstance(scenes, Scene) else list(scenes)
    drawn, taken = _one_each(regions, given, "regions"), _one_each(assumed, given, "assumed")
    open_parts = ~used_parts(rule, training, n_jobs)
    looked = []
    for k, scene in enumerate(given):
        found = uncertainty(rule, scene.sources, training=training, stability=stability, n_jobs=n_jobs)
        looked.append(look_at(k, scene, found, drawn[k], taken[k]))
    ranks = Ranks.of(looked)
    candidates = [one for view in looked for one in candidates_of(view, ranks, rule, open_parts, limit)]
    return Suggestions(tuple(_chosen(candidates, limit)))


def _one_each(given: Any, scenes: Sequence[Scene], what: str) -> list[Any]:
    """Return one array for each scene, or None; a lone array belongs to the only scene."""
    if not scenes:
        raise InvalidInputError("scenes is empty; give at least one scene.")
    if given is None:
        return [None] * len(scenes)
    arrays = list(given) if isinstance(given, list | tuple) else [given]
    if len(arrays) != len(scenes):
        raise InvalidInputError(f"{what} must have one array for each of {len(scenes)} scenes, got {len(arrays)}.")
    return arrays


def _chosen(candidates: Sequence[Candidate], limit: int) -> list[Suggestion]:
    """Return the best, without those that touch one of the same kind, or cover the same place as one of another.

    Open elements that repeat count less.

    No kind takes more than half of the places, as long as there are others to fill them.
    """
    left = sorted(candidates, key=lambda one: (-one.suggestion.score, one.suggestion.scene, one.suggestion.box))
    chosen: list[Suggestion] = []
    spare: list[Suggestion] = []
    topics: Counter[str] = Counter()
    while left and len(chosen) < limit:
        scores = [one.suggestion.score * AGAIN ** topics[one.topic] for one in left]
        best = int(np.argmax(scores))
        if scores[best] < LEAST:
            break
        taken, topic = left.pop(best)
        alike = [one for one in [*chosen, *spare] if one.kind == taken.kind]
        near = [one for one in [*chosen, *spare] if one.scene == taken.scene]
        if any(touch(one.box, taken.box) if one.kind == taken.kind else shared(one.box, taken.box) for one in near):
            continue
        topics[topic] += bool(topic)
        (chosen if len(alike) < (limit + 1) // 2 else spare).append(taken._replace(score=scores[best]))
    return sorted([*chosen, *spare[: limit - len(chosen)]], key=lambda one: -one.score)
