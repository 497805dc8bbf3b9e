"""`compare`, and the engine that it shares with `run_study`: fit methods under the labels they need, fuse and score."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from threading import Event, Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bimichi._progress import Stopwatch, progress_bar
from bimichi.errors import BimichiError, InvalidInputError, NotRunError
from bimichi.evaluate.comparison import Comparison, Result
from bimichi.evaluate.metrics import scores
from bimichi.integral.planes import check_n_jobs
from bimichi.methods.base import Fusion
from bimichi.methods.bimichi import BiMIChI
from bimichi.methods.cross_validated import BiMIChICV
from bimichi.methods.registry import (
    Candidate,
    Method as Method,
    labels_needed,
    paper_methods as paper_methods,
    register_method as register_method,
    registered_methods as registered_methods,
)
from bimichi.scenes.dataset import Dataset
from bimichi.scenes.scene import Scene, join_bags

log = logging.getLogger(__name__)

NO_TRUTH = "no instance labels given"


def compare(
    methods: Mapping[str, Fusion] | Sequence[Fusion],
    train: Scene | Sequence[Scene],
    test: Scene | Sequence[Scene] | None = None,
    *,
    n_jobs: int | None = None,
    keep_maps: bool = False,
    verbose: int = 0,
) -> Comparison:
    """Fit every method under its own kind of label, and score it on scenes with truth.

    Parameters
    ----------
    methods : mapping of name to method, or sequence of methods
        The methods, which are cloned. See `paper_methods` for those of the paper.
    train : Scene or sequence of Scene
        Methods that need bags learn from labels of bags, methods that need instances from the truth. From a `Dataset`,
        which are read when needed, Bi-MIChI learns one scene at a time.
    test : Scene or sequence of Scene, optional
        Scenes to score on, one at a time; by default the training scenes.
    n_jobs : int, optional
        How many methods run at a time; all cores by default. Use 1 if the times are to be compared.
    keep_maps : bool, default=False
        Whether to keep the fused maps.
    verbose : int, default=0
        Above 0, a progress bar on a terminal.

    Returns
    -------
    Comparison
        A failure of one method is noted in its row, and does not stop the others.
    """
    named = dict(methods) if isinstance(methods, Mapping) else {type(m).__name__: m for m in methods}
    if len(named) < len(methods) or not named:
        raise InvalidInputError(
            "methods must be distinct; give a mapping of name to method to compare several of one class.",
            code="methods-distinct",
            argument="methods",
        )
    learned = _scene_list(train, "train")
    scenes = learned if test is None else _scene_list(test, "test")
    for scene in scenes:
        if scene.truth is None:
            raise InvalidInputError(f"Test scene {scene.name!r} has no truth to score against.", code="truth-missing")
    rows = [Candidate(name, "", labels_needed(type(method)), method) for name, method in named.items()]
    data = TrainingData(learned, rows, pixels="all", in_parts=isinstance(learned, Dataset))
    done: dict[str, Result] = {}
    with progress_bar("comparing", len(rows), verbose) as advance:
        for result in evaluate(rows, data, scenes, jobs=check_n_jobs(n_jobs), keep_maps=keep_maps):
            done[result.name] = result
            advance(1, None)
    return Comparison([done[name] for name in named])


def _scene_list(scenes: Scene | Sequence[Scene], argument: str) -> Sequence[Scene]:
    """Return a list of scenes, or a `Dataset`, which stay unread."""
    listed = scenes if isinstance(scenes, Dataset) else [scenes] if isinstance(scenes, Scene) else list(scenes)
    if not listed or not (isinstance(listed, Dataset) or all(isinstance(scene, Scene) for scene in listed)):
        raise InvalidInputError(
            f"{argument} must be a Scene or a sequence of at least one Scene.", code="scenes-kind", argument=argument
        )
    return listed


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
            yield gathered if gather != self._pixels_of_bags else _fit_arguments(candidate, *gathered)
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
        return (first.sources[_scored_pixels(first)],)

    def _unread(self) -> tuple[Any, ...]:
        return (self._scenes if isinstance(self._scenes, Dataset) else list(self._scenes),)

    def _all_pixels(self) -> tuple[Any, ...]:
        X, y = [], []
        for scene in self._scenes:
            if scene.truth is None:
                raise NotRunError(NO_TRUTH, code="truth-missing")
            counted = _scored_pixels(scene)
            X.append(scene.sources[counted])
            y.append(scene.truth[counted])
        return np.concatenate(X), np.concatenate(y).astype(int)

    def _pixels_of_bags(self) -> tuple[Any, ...]:
        """Return the pixels in labelled bags; of each, the label and number of its bag, and its truth, or None."""
        truths: list[NDArray[np.bool_] | None] = []

        def read() -> Iterator[Scene]:  # reads each scene once, for its bags and for its truth
            for scene in self._scenes:
                if scene.segments is None or scene.labels is None:
                    raise NotRunError("no labelled bags given", code="bags-missing")
                truths.append(scene.truth)
                yield scene

        bags = join_bags(read(), one_class=True)
        sizes = np.diff(bags.offsets)
        flat = [np.ravel(truth) for truth in truths if truth is not None]
        truth = np.concatenate(flat)[bags.instance].astype(int) if len(flat) == len(truths) else None
        return bags.X, np.repeat(bags.labels, sizes).astype(int), np.repeat(np.arange(len(bags)), sizes), truth


def _scored_pixels(scene: Scene) -> NDArray[np.bool_]:
    """Return the pixels where a scene has data and is not to be ignored."""
    valid: NDArray[np.bool_] = ~np.isnan(scene.sources).any(axis=-1)
    return valid if scene.ignore is None else valid & ~scene.ignore


def _fit_arguments(candidate: Candidate, X: Any, of_bags: Any, bags: Any, truth: Any) -> tuple[Any, ...]:
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
            score = scores(np.asarray(scene.truth), fused, result.model.output_range, ~_scored_pixels(scene))
            result.scores.append(score)
            if keep_maps:
                result.maps.append(fused)
            reached = f"AUC {score.auc:.3f}, AP {score.average_precision:.3f}, RMSE {score.rmse:.3f}"
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
