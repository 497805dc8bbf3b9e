"""What to label next in a studio, and how uncertain its maps are: computed when asked for, for the model of the moment.

Measures of elements leave values open, so that their uncertainty is the width of the interval over all measures that
fit alike. Additive measures, whose terms are soon all used, leave none; theirs is the spread of models that are
refitted to resampled bags.
"""

from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._progress import Stopped, checkpoint, stopping
from bimichi._types import Flags, Ints
from bimichi.errors import InvalidInputError
from bimichi.explain import Stability, Uncertainty, bootstrap, suggest, uncertainty
from bimichi.report.contents import MISSING_CODE, STEPS
from bimichi.scenes.bags import Bags
from bimichi.scenes.labels import rasterise
from bimichi.scenes.scene import Scene, join_bags
from bimichi.scenes.superpixels import superpixels
from bimichi.studio.labels import Shapes, annotations_of
from bimichi.studio.learning import Learner, Trained, map_bytes
from bimichi.studio.session import Session
from bimichi.studio.windows import WindowLearner

LIMIT = 20
"""How many suggestions there are at most."""

MOST_PIXELS = 2_000_000
"""Regions are suggested of scenes of so many pixels together: those that are drawn on first."""

RESAMPLES = 16
SAMPLE = 20_000
"""Instances that refits learn from; each stands for as many as were left out."""

SUPERPIXEL = 1000
"""Pixels of a region, about."""


class Suggester:
    """Answers about the current model of a session; from any thread, one at a time."""

    def __init__(self, session: Session) -> None:
        self._session, self._lock = session, Lock()
        self._of: Trained | None = None
        self._stability: Stability | None = None
        self._maps: dict[int, Uncertainty] = {}
        self._items: list[dict[str, Any]] | None = None
        self._regions: dict[tuple[int, int], Ints] = {}

    def uncertainty(self, k: int) -> bytes | None:
        """Return the uncertainty of each pixel of a scene, over [0, 1], as the page takes maps; None without a model.

        It is the width of an interval; see the module for which.
        """
        with self._lock:
            learner, trained = self._current()
            if learner is None or trained is None:
                return None
            with self._while_current(trained):
                interval = self._uncertainty(learner, trained, k)
            if interval is None:
                return None
            width = interval.width if interval.spread is None else interval.spread
            steps = np.where(np.isnan(width), MISSING_CODE, np.rint(np.clip(width, 0, 1) * STEPS)).astype("<u2")
            return map_bytes(trained.number, k, steps)

    def suggestions(self) -> list[dict[str, Any]]:
        """Return regions worth a label as JSON, the best first; none without a model, or once there is a newer one."""
        with self._lock:
            learner, trained = self._current()
            if learner is None or trained is None:
                return []
            if self._items is None:
                with suppress(Stopped), self._while_current(trained):
                    self._items = self._suggest(learner, trained)
            return self._items or []

    def _current(self) -> tuple[Learner | None, Trained | None]:
        learner, trained = self._session.learner, self._session.model
        if self._of is not trained:
            self._of, self._stability, self._maps, self._items = trained, None, {}, None
        if trained is None or learner is None:
            self._regions = {}
        return learner, trained

    def _while_current(self, trained: Trained) -> Any:
        """Return a context in which work ends once there is another model."""
        return stopping(lambda: self._session.model is not trained)

    def _uncertainty(self, learner: Learner, trained: Trained, k: int) -> Uncertainty | None:
        scene = learner.store.load(k, trained.rule.recipes)
        if scene is None:
            return None
        if k not in self._maps:
            planes = list(np.moveaxis(scene.sources, -1, 0))
            self._maps[k] = uncertainty(trained.rule, planes, stability=self._refits(learner, trained))
        return self._maps[k]

    def _refits(self, learner: Learner, trained: Trained) -> Stability | None:
        """Return refits of an additive measure; None for others, or if the model cannot be refitted."""
        if trained.rule.measure.parts == "elements":
            return None
        if isinstance(learner, WindowLearner):
            learner, trained, _ = learner.within(trained)
        if self._stability is None:
            bags = thinned(join_bags(_labelled(learner, trained), one_class=True, nan="drop"), SAMPLE)
            try:
                self._stability = bootstrap(trained.rule, bags, n_resamples=RESAMPLES, random_state=0)
            except InvalidInputError:  # a rule that was chosen among others, such as one source, has nothing to refit
                return None
        return self._stability

    def _suggest(self, learner: Learner, trained: Trained) -> list[dict[str, Any]]:
        if isinstance(learner, WindowLearner):  # regions of the windows that were learned from
            inner, own, windows = learner.within(trained)
            items = self._suggest(inner, own)
            places = [windows.place(item["scene"], item["box"]) for item in items]
            return [item | {"scene": k, "box": box} for item, (k, box) in zip(items, places, strict=True)]
        drawn = {k: shapes for k, _, shapes in trained.task.labels}
        labelled = dict(zip(drawn, _labelled(learner, trained), strict=True))
        others = [k for k in range(len(learner.store)) if k not in drawn]
        numbers: list[int] = []
        scenes, assumed, regions = [], [], []
        left = MOST_PIXELS
        for k in [*sorted(drawn, key=lambda k: not drawn[k]), *others]:
            checkpoint()
            if left <= 0:
                break
            scene = labelled.get(k) or learner.store.load(k, trained.rule.recipes)
            if scene is None:
                continue
            left -= scene.shape[0] * scene.shape[1]
            region = drawn_mask(drawn.get(k, ()), scene)
            numbers.append(k)
            scenes.append(_without_rims(scene, region))
            assumed.append(~region)
            regions.append(self._segments(learner, k, scene))
        regions_to_label = suggest(
            trained.rule,
            scenes,
            regions=regions,
            assumed=assumed,
            limit=LIMIT,
            stability=self._refits(learner, trained),
        )
        return [
            {"scene": numbers[item.scene], "box": list(item.box), "reason": item.reason, "kind": item.kind}
            | {"score": item.score}
            for item in regions_to_label
        ]

    def _segments(self, learner: Learner, k: int, scene: Scene) -> Ints:
        key = (id(learner.store), k)
        if key not in self._regions:
            number = max(8, scene.shape[0] * scene.shape[1] // SUPERPIXEL)
            self._regions[key] = superpixels(scene.sources, number, lab=False)
        return self._regions[key]


def _labelled(learner: Learner, trained: Trained) -> list[Scene]:
    """Return the labelled scenes, with sources as the rule takes them."""
    scenes = learner.scenes(trained.task)
    labelled = []
    for (k, _, _), scene in zip(trained.task.labels, scenes, strict=True):
        own = learner.store.load(k, trained.rule.recipes)
        labelled.append(scene if own is None else replace(scene, sources=own.sources))
    return labelled


def drawn_mask(shapes: Shapes, scene: Scene) -> Flags:
    """Return the pixels of all that is drawn on a scene."""
    size = (scene.shape[0], scene.shape[1])
    if not shapes:
        return np.zeros(size, np.bool_)
    found = rasterise(annotations_of(shapes, size), size)
    return found.targets | found.ignored


def _without_rims(scene: Scene, region: Flags) -> Scene:
    """Return the scene without the pixels that are drawn on, but in no bag: around cores, or to be ignored."""
    if scene.segments is None:
        return scene
    return replace(scene, ignore=region & (scene.segments < 0))


def thinned(bags: Bags, most: int) -> Bags:
    """Return bags with about so many instances: negative ones are thinned out, and what is left counts for more.

    Positive bags stay as they are, so that few targets are not lost among many others.
    """
    if len(bags.X) <= most:
        return bags
    sizes = np.diff(bags.offsets)
    share = most / len(bags.X)
    kept = np.where(bags.labels, sizes, np.ceil(sizes * share)).astype(np.int64)
    rng = np.random.default_rng(0)
    rows = [
        np.sort(rng.choice(size, keep, replace=False)) + start
        for start, size, keep in zip(bags.offsets[:-1], sizes, kept, strict=True)
    ]
    which: NDArray[np.int64] = np.concatenate(rows)
    counts = bags.counts[which] * np.repeat(sizes / kept, kept)
    offsets = np.concatenate([[0], np.cumsum(kept)])
    return replace(bags, X=bags.X[which], offsets=offsets, counts=counts, instance=bags.instance[which])
