"""`BankFusion`: from raw images and boxes to one additive rule over sources that it makes of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier

from bimichi._checks import check_integer
from bimichi._progress import one_blas_thread
from bimichi._types import Floats, Ints
from bimichi.errors import InvalidInputError, warn
from bimichi.fit.average import Average, Member, Rows, column_aucs, learn_average, members_of
from bimichi.fit.calibrate import platt
from bimichi.fit.choose import Contender, Selection
from bimichi.fit.direction import make_folds
from bimichi.integral.planes import check_n_jobs, in_threads
from bimichi.link import Link
from bimichi.measures.additive import AdditiveBiCapacity
from bimichi.record import Status, TrainingRecord
from bimichi.rule import FusionRule
from bimichi.scenes.dataset import Dataset
from bimichi.scenes.labels import PixelLabels, scene_labels, scored_pixels
from bimichi.scenes.sample import Ranking, rank, strips
from bimichi.scenes.scene import Scene
from bimichi.sources.bands import Image
from bimichi.sources.source_bank import Bank, RangeLook, Raw, learn_bank

TARGETS, OTHERS = 120_000, 100_000  # pixels of all scenes together that are learned from
FEWEST = 2_000  # of each scene, at least
SLIGHT = 1e-4  # of the largest weight; a source with less is left out
NOTHING = (
    "None of the sources made of these images separates the boxes from the rest: no weight is above zero. Check that "
    "boxes and images belong together (bimichi check), label more scenes, or add another sensor."
)


@dataclass(eq=False)
class BankFusion(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Fusion of raw images, in any unit, by sources that are made of them; see `bimichi.sources.bank`.

    Three additive rules are learned, from values and how rare they are, from differences and sums of images, and from
    the whole bank, and their log-odds are averaged. Each source counts in the direction that the data show, or not at
    all if they show none. Nothing is chosen by cross-validation, so that scores on left-out scenes are honest.

    Parameters
    ----------
    raws : sequence of (str, bool), optional
        Names of the raw images, and whether each is in colour and takes three of the planes of a scene; by default
        each plane is an image.
    n_folds : int, default=5
        In how many turns scenes are left out for scores and calibration; of a single scene, strips.
    boosting : bool, default=False
        Whether gradient boosting, learned from the same pixels of the raw images, is scored beside the fusion.
    n_jobs : int, optional
        Number of threads; results do not depend on it.

    Attributes
    ----------
    rule_ : FusionRule
        What was learned; its `bank` makes the sources.
    selection_ : Selection
        Scores on left-out scenes: of the fusion, of each raw image, and of boosting if asked for.
    bank_ : Bank
        All sources that took part.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> image = rng.normal(280, 1, (60, 80))
    >>> image[20:30, 20:30] += 4
    >>> image[40:50, 60:70] += 4
    >>> scene = Scene(image[..., None], "a", ("thermal",), boxes=np.array([[18.0, 18, 14, 14], [58, 38, 14, 14]]))
    >>> model = BankFusion().fit([scene])
    >>> bool(model.fuse(scene.sources)[25, 25] > 0.5 > model.fuse(scene.sources)[5, 5])
    True
    """

    raws: Sequence[tuple[str, bool]] | None = None
    n_folds: int = 5
    boosting: bool = False
    n_jobs: int | None = None

    def fit(self, X: Any) -> Self:
        """Learn from scenes of raw images, whose `sources` are in any unit, with boxes or other labels of pixels."""
        check_integer(self.n_folds, "n_folds", 2)
        data, jobs = Dataset.of([X] if isinstance(X, Scene) else X), check_n_jobs(self.n_jobs)
        names = data.names
        first = data[0]
        raws = [Raw(name) for name in first.source_names] if self.raws is None else [Raw(*raw) for raw in self.raws]
        with one_blas_thread():
            looks = list(in_threads(lambda name: _look(data.read(name), raws), names, jobs))
            self.bank_ = learn_bank(raws, [look for look, _ in looks], np.concatenate([sizes for _, sizes in looks]))
            parts = self.n_folds if sum(len(sizes) > 0 for _, sizes in looks) < 2 else 1
            room = [max(FEWEST, total // len(names)) for total in (TARGETS, OTHERS)]

            def sample(name: str) -> list[Rows]:
                return _sampled(data.read(name), raws, self.bank_, room, parts)

            units = [unit for own in in_threads(sample, names, jobs) for unit in own]
            self._learn(units, jobs)
        return self

    def _learn(self, units: list[Rows], jobs: int) -> None:
        for what, sign in (("target", 1), ("pixel that is no target", -1)):
            if not any((np.sign(unit.labels) == sign).any() for unit in units):
                raise InvalidInputError(
                    f"No scene has a labelled {what}. Learning needs at least one of each class.", code="one-class"
                )
        members, folds = members_of(self.bank_), make_folds(units, self.n_folds)
        folds = folds if len(folds) > 1 else []
        tasks: list[Ints | None] = [None, *folds]

        def learn(block: Ints | None) -> tuple[Average, list[Floats]]:
            left = set() if block is None else set(block.tolist())
            rest = [unit for k, unit in enumerate(units) if k not in left]
            average = learn_average(rest, members)
            return average, [] if block is None else self._values(rest, [units[k] for k in block], average)

        (average, _), *rest = in_threads(learn, tasks, jobs)
        if not average.up.sum() > 0:
            raise InvalidInputError(NOTHING, code="nothing-separates")
        scored = [units[k] for block in folds for k in block]
        outputs = [values for _, own in rest for values in own]
        self.selection_ = self._selection(scored, outputs, len(folds))
        self.rule_ = self._rule(average, members, scored, [values[:, 0] for values in outputs])

    def _values(self, rest: Sequence[Rows], left_out: Sequence[Rows], average: Average) -> list[Floats]:
        """Return what the fusion, each channel and boosting, learned from the rest, say of the pixels of other units.

        A channel counts in the direction in which it ranks the targets of the rest better.
        """
        values = self.bank_.positions("value")
        known = [unit.known() for unit in rest]
        X = np.concatenate([unit.X[:, values] for unit in known])
        y = np.concatenate([unit.labels > 0 for unit in known])
        signs = np.where(column_aucs(X[y], X[~y]) < 0.5, np.float32(-1), np.float32(1))
        boosted = []
        if self.boosting:
            least = min(500, max(20, len(X) // 100))
            trees = HistGradientBoostingClassifier(
                max_leaf_nodes=8, learning_rate=0.05, min_samples_leaf=least, random_state=0
            ).fit(X, y, sample_weight=np.concatenate([unit.weight for unit in known]))
            boosted = [trees.decision_function]
        found = []
        for unit in left_out:
            own = unit.X[:, values]
            columns = [average.log_odds(unit.X), *(own * signs).T, *(values_of(own) for values_of in boosted)]
            found.append(np.stack(columns, axis=1).astype(np.float64))
        return found

    def _selection(self, units: Sequence[Rows], outputs: Sequence[Floats], n_folds: int) -> Selection:
        values = (self.bank_.sources[k].channels[0] for k in self.bank_.positions("value"))
        channels = [f"source {self.bank_.channels[k].name}" for k in values]
        names = ["fusion", *channels, *["boosting on the same pixels"] * self.boosting]
        scores = np.array(
            [[_score(unit, own[:, k]) for k in range(own.shape[1])] for unit, own in zip(units, outputs, strict=True)]
        )  # units, contenders, scores
        found = []
        for k, name in enumerate(names):
            ap, auc = (scores[:, k, s].tolist() if len(units) else [] for s in (0, 1))
            found.append(Contender(name, name in channels, tuple(ap), tuple(auc)))
        base = float(np.mean([_base_rate(unit) for unit in units])) if units else float("nan")
        return Selection(tuple(found), 0, tuple(unit.name for unit in units), n_folds, base_rate=base)

    def _rule(
        self, average: Average, members: Sequence[Member], units: Sequence[Rows], log_odds: Sequence[Floats]
    ) -> FusionRule:
        """Return the average as one rule over the sources that have weight."""
        weight = average.up + average.down
        kept = np.flatnonzero(weight > SLIGHT * weight.max()).tolist()
        bank, m = self.bank_.chosen(kept), len(kept)
        up, down = average.up[kept], average.down[kept]
        slope = float(up.sum())
        terms = np.zeros(2 * m * m)
        terms[:m], terms[m : 2 * m] = up / slope, -down / (float(down.sum()) or 1.0)
        own = Link(slope, average.offset)
        link = self._calibrated(units, [own.output(f) for f in log_odds])
        if link is None:
            link = own
            warn(
                "There are too few targets to leave some out: the fusion was not checked on scenes that it has not "
                "learned from. Label targets in at least two scenes, or at least two in one.",
                code="targets-few",
                stacklevel=4,
            )
        record = TrainingRecord(
            method=type(self).__name__,
            parameters={"n_folds": self.n_folds, "members": [member.name for member in members]},
            objective="logistic",
            solver="newton",
            status=Status.CONVERGED,
            selection=self.selection_.to_dict(),
        )
        measure = AdditiveBiCapacity(terms, bank.source_names, order=1)
        return FusionRule(measure, polarity=average.signs[kept], link=link, bank=bank, training=record)

    def _calibrated(self, units: Sequence[Rows], outputs: Sequence[Floats]) -> Link | None:
        if not units:
            return None
        scored = []
        for unit, values in zip(units, outputs, strict=True):
            inside, outside = unit.labels > 0, unit.labels < 0
            shares = float(unit.weight[inside].mean()), float(unit.weight[outside].mean())
            scored.append((np.clip(values[inside], -1, 1), np.clip(values[outside], -1, 1), shares))
        return platt(scored, keep_outputs=True)

    def fuse(self, X: Any) -> NDArray[Any]:
        """Return the probability of a target in each pixel of an image of shape (height, width, n_planes)."""
        raws = self.bank_.raws
        return np.asarray(self.rule_.fuse(self.rule_.bank.planes(images_of(np.asarray(X), raws)), self.n_jobs))  # type: ignore[union-attr]


def images_of(planes: NDArray[Any], raws: Sequence[Raw]) -> list[Image]:
    """Return the raw images of which an array has the planes: three of one in colour, one of others."""
    widths = [3 if raw.colour else 1 for raw in raws]
    if planes.ndim != 3 or planes.shape[2] != sum(widths):
        raise InvalidInputError(
            f"An image of shape (height, width, {sum(widths)}) is needed, got {planes.shape}.", code="planes-shape"
        )
    starts = np.cumsum([0, *widths])
    return [
        planes[..., start : start + 3] if raw.colour else planes[..., start]
        for raw, start in zip(raws, starts, strict=False)
    ]


def _labels(scene: Scene) -> PixelLabels:
    labels = scene_labels(scene)
    if labels is None:
        raise InvalidInputError(
            f"Scene {scene.name!r} has labels of bags alone. Sources of a bank are learned from boxes, outlines or "
            "masks; give these, or learn from the sources as they are (--sources raw).",
            code="pixels-unlabelled",
        )
    return labels


def _look(scene: Scene, raws: Sequence[Raw]) -> tuple[RangeLook, Floats]:
    """Return values of the images of a scene, and the sizes of its targets."""
    if len(scene.boxes):
        sizes = np.sqrt(np.prod(scene.boxes[:, 2:], axis=1))
    else:
        found = ndimage.find_objects(ndimage.label(_labels(scene) > 0)[0])
        sizes = np.array([np.sqrt((rows.stop - rows.start) * (cols.stop - cols.start)) for rows, cols in found])
    return RangeLook.of(raws, images_of(scene.sources, raws)), np.asarray(sizes, np.float64)


def _sampled(scene: Scene, raws: Sequence[Raw], bank: Bank, room: Sequence[int], parts: int) -> list[Rows]:
    """Draw pixels of a scene, always the same ones; of each of its strips, if it is divided."""
    labels = _labels(scene)
    planes = bank.planes(images_of(scene.sources, raws))
    objects = ndimage.label(labels > 0)[0].ravel() - 1
    flat, rng = labels.ravel(), np.random.default_rng(0)
    region = strips(_with_boxes(scene, labels), parts).ravel() if parts > 1 else np.zeros(flat.size, np.int8)
    units = []
    for part in np.unique(region):
        kept, weights = [], []
        for wanted, most in ((flat > 0, room[0]), (flat < 0, room[1])):
            which = rng.permutation(np.flatnonzero(wanted & (region == part)))
            kept.append(which[:most])
            weights.append(np.full(len(kept[-1]), len(which) / max(1, len(kept[-1]))))
        at = np.concatenate(kept)
        rows = np.stack([plane.ravel()[at] for plane in planes], axis=1)
        name = f"{scene.name}, part {part + 1}" if parts > 1 else scene.name
        units.append(Rows(name, scene.name, rows, flat[at], np.concatenate(weights), objects[at]))
    return units


def _with_boxes(scene: Scene, labels: PixelLabels) -> Scene:
    """Return a scene that knows where its targets are, by which it is divided into strips."""
    if len(scene.boxes):
        return scene
    found = ndimage.find_objects(ndimage.label(labels > 0)[0])
    boxes = [(x.start, y.start, x.stop - x.start, y.stop - y.start) for y, x in found]
    return replace(scene, boxes=np.array(boxes, np.float64).reshape(-1, 4))


def _score(unit: Rows, values: Floats) -> Ranking:
    """Return how well values of the pixels of a unit rank its targets; which pixels count, `scored_pixels` says."""
    inside, outside = scored_pixels(unit.labels)
    shares = [float(unit.weight[side].mean()) for side in (inside, outside)]
    return rank(values[inside], values[outside].copy(), shares[1] / shares[0])


def _base_rate(unit: Rows) -> float:
    """Return the share of targets among the pixels that scores count."""
    inside, outside = (float(unit.weight[side].sum()) for side in scored_pixels(unit.labels))
    return inside / (inside + outside)
