"""The engine of `compare` and `run_study`: fit methods under the labels they need, fuse and score scene by scene."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bimichi._progress import Stopwatch
from bimichi._tables import Cell
from bimichi.errors import BimichiError, NotRunError
from bimichi.evaluate.metrics import Scores, scores
from bimichi.measures.base import Measure
from bimichi.methods.base import Fusion
from bimichi.methods.bimichi import BiMIChI
from bimichi.methods.cross_validated import BiMIChICV
from bimichi.methods.registry import Candidate
from bimichi.rule import FusionRule
from bimichi.scenes.scene import Scene, Scenes, join_bags

log = logging.getLogger(__name__)

NO_TRUTH = "no instance labels given"


class Scored:
    """A row of a table: a method with its scores on some scenes and its times in seconds."""

    name: str
    scores: Any
    fit_seconds: float
    fuse_seconds: float

    def _all(self, score: str) -> list[float]:
        scenes = self.scores.values() if isinstance(self.scores, dict) else self.scores
        return [getattr(one, score) for one in scenes]

    def mean(self, score: str) -> float:
        """Mean of a score over the test scenes; NaN without any."""
        return float(np.mean(self._all(score))) if self.scores else float("nan")

    @property
    def worst_auc(self) -> float:
        """The smallest AUC among the test scenes; NaN without any."""
        return min(self._all("auc"), default=float("nan"))


@dataclass
class Result(Scored):
    """The result of one method.

    Attributes
    ----------
    name : str
        Name of the method.
    model : Fusion or FusionRule
        The method, fitted if it ran, or a rule.
    scores : list of Scores
        One for each test scene.
    fit_seconds, fuse_seconds : float
        For learning, and for all test scenes, without the time to compile kernels; methods that run at the same time
        share the cores.
    problem : str
        Why there are no scores: "not run: ..." or "failed: ..."; empty if there are.
    maps : list of ndarray
        The fused test scenes, if they are kept.
    """

    name: str
    model: Any
    scores: list[Scores] = field(default_factory=list)
    fit_seconds: float = float("nan")
    fuse_seconds: float = float("nan")
    problem: str = ""
    maps: list[NDArray[Any]] = field(default_factory=list)

    @property
    def fuzzy(self) -> bool:
        """Whether the method is built on a measure, as all rules are."""
        return bool(getattr(self.model, "fuzzy", True))

    @property
    def rule(self) -> FusionRule | None:
        """The learned rule, if the method learns one and ran."""
        found = getattr(self.model, "rule_", self.model)
        return found if isinstance(found, FusionRule) and not self.problem else None

    @property
    def measure(self) -> Measure | None:
        """The learned measure, if the method is built on one and ran."""
        return self.rule.measure if self.fuzzy and self.rule is not None else None


COLUMNS: dict[str, tuple[Callable[[Scored], float], int]] = {
    "AUC": (lambda row: row.mean("auc"), 1),
    "worst AUC": (lambda row: row.worst_auc, 1),
    "AP": (lambda row: row.mean("average_precision"), 1),
    "F1": (lambda row: row.mean("best_f1"), 1),
    "RMSE": (lambda row: row.mean("rmse"), -1),
    "ECE": (lambda row: row.mean("calibration_error"), -1),
}
"""Scores of tables, and whether larger (1) or smaller (-1) values are better."""


Row = TypeVar("Row", bound=Scored)


def named_row(rows: Sequence[Row], name: str, what: str) -> Row:
    """Return the row of this name."""
    for row in rows:
        if row.name == name:
            return row
    raise KeyError(f"no {what} {name!r}; there are {', '.join(row.name for row in rows)}")


def score_cells(
    rows: Sequence[Scored], titles: Sequence[str], ranked: Sequence[bool], digits: int, second: bool = False
) -> list[list[Cell]]:
    """Return the cells of these columns and of both times, row by row; empty where a method did not run.

    Of the `ranked` rows, the best is bold, the second best underlined if `second`.
    """
    lines: list[list[Cell]] = [[] for _ in rows]
    for title in titles:
        of, sign = COLUMNS[title]
        values = [of(row) for row in rows]
        fair = [one and not np.isnan(value) for value, one in zip(values, ranked, strict=True)]
        ranking = sorted({sign * value for value, competes in zip(values, fair, strict=True) if competes}, reverse=True)
        for value, competes, line in zip(values, fair, lines, strict=True):
            place = ranking.index(sign * value) if competes else -1
            line.append(Cell("" if np.isnan(value) else f"{value:.3f}", place == 0, second and place == 1))
    for row, line in zip(rows, lines, strict=True):
        line += [Cell("" if np.isnan(t) else f"{t:.{digits}f}") for t in (row.fit_seconds, row.fuse_seconds)]
    return lines


class TrainingData:
    """Training scenes as arguments of `fit`, gathered when first needed and discarded after their last use.

    `users` are the methods that will be fitted, each once. Methods that need the label of every pixel learn from "all"
    `pixels` that count, or from those in labelled "bags". With `in_parts`, Bi-MIChI reads one scene after another, so
    that they need not fit in memory together.
    """

    def __init__(
        self, scenes: Sequence[Scene], users: Sequence[Candidate], pixels: Literal["all", "bags"], in_parts: bool
    ) -> None:
        self._scenes, self._pixels, self._in_parts = scenes, pixels, in_parts
        self._uses = Counter(self._gatherer(user) for user in users)
        self._gathered: dict[Callable[[], Any], tuple[Any, ...]] = {}
        self._lock = Lock()

    @contextmanager
    def arguments(self, candidate: Candidate) -> Iterator[tuple[Any, ...]]:
        """Yield the arguments of `fit`; raises `NotRunError` if the scenes lack the labels that the candidate needs."""
        gather = self._gatherer(candidate)
        try:
            with self._lock:  # of two that need the same, one gathers it and the other waits
                if gather not in self._gathered:
                    self._gathered[gather] = gather()
                gathered = self._gathered[gather]
            yield gathered if gather != self._pixels_of_bags else _columns(candidate, *gathered)
        finally:
            with self._lock:
                self._uses[gather] -= 1
                if not self._uses[gather]:
                    self._gathered.pop(gather, None)

    def _gatherer(self, candidate: Candidate) -> Callable[[], tuple[Any, ...]]:
        if candidate.labels == "none":
            return self._first_scene
        if isinstance(candidate.method, BiMIChICV) or (self._in_parts and isinstance(candidate.method, BiMIChI)):
            return self._unread
        return self._all_pixels if (candidate.labels, self._pixels) == ("pixels", "all") else self._pixels_of_bags

    def _first_scene(self) -> tuple[Any, ...]:
        first = self._scenes[0]
        return (first.sources[_counted(first)],)

    def _unread(self) -> tuple[Any, ...]:
        return (self._scenes if isinstance(self._scenes, Scenes) else list(self._scenes),)

    def _all_pixels(self) -> tuple[Any, ...]:
        X, y = [], []
        for scene in self._scenes:
            if scene.truth is None:
                raise NotRunError(NO_TRUTH, code="truth-missing")
            counted = _counted(scene)
            X.append(scene.sources[counted])
            y.append(scene.truth[counted])
        return np.concatenate(X), np.concatenate(y).astype(int)

    def _pixels_of_bags(self) -> tuple[Any, ...]:
        """Pixels in labelled bags; for each, the label and number of its bag, and its truth where that is known."""
        truths: list[NDArray[np.bool_] | None] = []

        def read() -> Iterator[Scene]:  # reads each scene once, for its bags and for its truth
            for scene in self._scenes:
                if scene.segments is None or scene.labels is None:
                    raise NotRunError("no labelled bags given", code="bags-missing")
                truths.append(scene.truth)
                yield scene

        bags = join_bags(read(), one_class=True)
        sizes = np.diff(bags.offsets)
        known = [np.ravel(truth) for truth in truths if truth is not None]
        truth = np.concatenate(known)[bags.instance].astype(int) if len(known) == len(truths) else None
        return bags.X, np.repeat(bags.labels, sizes).astype(int), np.repeat(np.arange(len(bags)), sizes), truth


def _counted(scene: Scene) -> NDArray[np.bool_]:
    """Where a scene has data and is not to be ignored."""
    known: NDArray[np.bool_] = ~np.isnan(scene.sources).any(axis=-1)
    return known if scene.ignore is None else known & ~scene.ignore


def _columns(candidate: Candidate, X: Any, of_bags: Any, bags: Any, truth: Any) -> tuple[Any, ...]:
    if candidate.method.needs == "bags":
        return X, of_bags, bags
    if candidate.labels == "pixels" and truth is None:
        raise NotRunError(NO_TRUTH, code="truth-missing")
    return X, truth if candidate.labels == "pixels" else of_bags


def evaluate(
    candidates: Sequence[Candidate],
    data: TrainingData,
    test: Sequence[Scene],
    *,
    jobs: int = 1,
    keep_maps: bool = False,
    progress: Callable[[str], None] = lambda line: None,
) -> Iterator[Result]:
    """Fit, fuse and score methods, `jobs` at a time, and yield the result of each when it is done.

    Each method fuses and scores the test scenes one at a time; `progress` receives one line after learning and one for
    each scene. A failure is noted in the result of its method, and does not stop the others.
    """
    stopped = Event()
    run = partial(_run, data=data, test=test, keep_maps=keep_maps, progress=progress, stopped=stopped)
    if jobs == 1:  # in this thread, so that an interruption stops at once
        yield from map(run, candidates)
        return
    pool = ThreadPoolExecutor(jobs)
    try:
        for done in as_completed([pool.submit(run, candidate) for candidate in candidates]):
            yield done.result()
    finally:  # when interrupted, what has not begun does not begin, and what ends says nothing more
        stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)


def _run(
    candidate: Candidate,
    data: TrainingData,
    test: Sequence[Scene],
    keep_maps: bool,
    progress: Callable[[str], None],
    stopped: Event,
) -> Result:
    name = candidate.name
    result = Result(name, clone(candidate.method))
    try:
        with data.arguments(candidate) as arguments:
            watch = Stopwatch()
            result.model.fit(*arguments)
            result.fit_seconds, result.fuse_seconds = watch.seconds, 0.0
        del arguments
        progress(f"{name}: learned in {result.fit_seconds:.1f} s")
        for count, scene in enumerate(test, 1):
            if stopped.is_set():
                return result
            watch = Stopwatch()
            fused = _fuse(result.model, scene)
            result.fuse_seconds += watch.seconds
            found = scores(np.asarray(scene.truth), fused, result.model.output_range, ~_counted(scene))
            result.scores.append(found)
            if keep_maps:
                result.maps.append(fused)
            reached = f"AUC {found.auc:.3f}, AP {found.average_precision:.3f}, RMSE {found.rmse:.3f}"
            progress(f"{name}: {count}/{len(test)} {scene.name}: {reached}")
    except Exception as error:  # a method of any origin may raise anything; the others go on
        if stopped.is_set():  # such as by threads that cannot be started any more
            return result
        problem = f"{'not run' if isinstance(error, NotRunError) else 'failed'}: {error}"
        if not isinstance(error, BimichiError):
            log.exception("%s failed", name)
            problem = f"failed: {type(error).__name__}: {error}"
        result.scores, result.maps, result.problem = [], [], problem
        progress(f"{name}: {problem}")
    return result


def _fuse(model: Fusion, scene: Scene) -> NDArray[Any]:
    if model.needs != "image":
        return model.fuse(scene.sources)
    if scene.rgb is None:
        raise NotRunError(f"scene {scene.name!r} has no RGB image", code="rgb-missing")
    return model.fuse(scene.rgb, name=scene.name)  # type: ignore[call-arg]  # as detectors take it
