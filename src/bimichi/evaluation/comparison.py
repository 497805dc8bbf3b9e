"""`compare`: many methods on the same scenes, each under the kind of label it needs, in one table."""

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bimichi._extras import import_optional
from bimichi._progress import progress_bar
from bimichi._tables import Cell, Table, number
from bimichi.errors import BimichiError, InvalidInputError, NotRunError
from bimichi.estimators.base import Fusion
from bimichi.evaluation.metrics import Scores, scores
from bimichi.integral.planes import check_n_jobs
from bimichi.learning.scene import Scene, join_bags
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.capacity import Capacity
from bimichi.measures.lattice import set_label

__all__ = ["Comparison", "Result", "compare"]

log = logging.getLogger(__name__)

COLUMNS = {"AUC": ("auc", 1), "AP": ("average_precision", 1), "F1": ("best_f1", 1), "RMSE": ("rmse", -1)}
"""Scores of the table, and whether more (1) or less (-1) is better."""

LISTED_SOURCES = 3


@dataclass
class Result:
    """What one method reached.

    Attributes
    ----------
    name : str
        What the method is called.
    model : Fusion
        The method, fitted if it ran.
    scores : list of Scores
        One for each test scene.
    fit_seconds, fuse_seconds : float
        For learning, and for all test scenes; methods that run at the same time share the cores.
    problem : str
        Why there are no scores: "not run: ..." or "failed: ..."; empty if all is well.
    maps : list of ndarray
        The fused test scenes, if they were asked for.
    """

    name: str
    model: Fusion
    scores: list[Scores] = field(default_factory=list)
    fit_seconds: float = float("nan")
    fuse_seconds: float = float("nan")
    problem: str = ""
    maps: list[NDArray[Any]] = field(default_factory=list)

    def mean(self, score: str) -> float:
        """Mean of a score over the test scenes; NaN without any."""
        return float(np.mean([getattr(s, score) for s in self.scores])) if self.scores else float("nan")

    @property
    def measure(self) -> Capacity | BiCapacity | None:
        """What was learned, if it is a measure told by its elements."""
        found = getattr(self.model, "capacity_", None) or getattr(self.model, "bicapacity_", None)
        return found if isinstance(found, Capacity | BiCapacity) else None


class Comparison:
    """The results of `compare`, as a table.

    Attributes
    ----------
    results : list of Result
        One a method, in the order given.
    """

    def __init__(self, results: Sequence[Result]) -> None:
        self.results = list(results)

    def __getitem__(self, name: str) -> Result:
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(f"no method {name!r}; there are {', '.join(result.name for result in self.results)}")

    def to_frame(self) -> Any:
        """Return a pandas data frame, one row a method."""
        pd = import_optional("pandas")
        rows = [
            {title: result.mean(score) for title, (score, _) in COLUMNS.items()}
            | {
                "worst AUC": min((s.auc for s in result.scores), default=float("nan")),
                "fit seconds": result.fit_seconds,
                "fuse seconds": result.fuse_seconds,
                "learned": _learned(result),
                "problem": result.problem,
            }
            for result in self.results
        ]
        return pd.DataFrame(rows, index=pd.Index([result.name for result in self.results], name="method"))

    def to_markdown(self) -> str:
        """Write the table, and the learned measures below it, as Markdown.

        Among the methods built on a measure, the best score is bold, the second best in italics. Bi-capacities are
        listed up to three sources.
        """
        parts = [self.table().to_markdown()]
        normalised = self.measures_table()
        if normalised.rows:
            parts.append(normalised.to_markdown())
        for name, g in self.measures().items():
            if isinstance(g, BiCapacity) and g.n_sources <= LISTED_SOURCES:
                parts += [f"{name}:", g.to_markdown()]
        return "\n\n".join(parts)

    def to_latex(self) -> str:
        """Write the table as LaTeX (booktabs); best bold, second best underlined, as in the paper."""
        return self.table().to_latex()

    def _repr_html_(self) -> str:
        return self.table().to_html()

    def __repr__(self) -> str:
        return self.table().to_text()

    def table(self) -> Table:
        """Return the scores and times of all methods."""
        marks = {score: self._ranked(score, sign) for score, sign in COLUMNS.values()}
        rows = []
        for result in self.results:
            row = [Cell(result.name)]
            for score, _ in COLUMNS.values():
                best, second = marks[score]
                value = result.mean(score)
                row.append(Cell("" if np.isnan(value) else f"{value:.3f}", value == best, value == second))
                if not result.model.fuzzy:
                    row[-1] = Cell(row[-1].text)
            times = (result.fit_seconds, result.fuse_seconds)
            row += [Cell("" if np.isnan(t) else f"{t:.2f}") for t in times] + [Cell(result.problem)]
            rows.append(row)
        return Table(["method", *COLUMNS, "fit s", "fuse s", ""], rows)

    def _ranked(self, score: str, sign: int) -> tuple[float, float]:
        """The best and the second best value among methods built on a measure."""
        found = {result.mean(score) for result in self.results if result.model.fuzzy and result.scores}
        ranked = [*sorted(found, key=lambda value: -sign * value), np.inf, np.inf]
        return ranked[0], ranked[1]

    def measures(self) -> dict[str, Capacity | BiCapacity]:
        """Return what was learned, by method."""
        return {result.name: result.measure for result in self.results if result.measure is not None}

    def measures_table(self) -> Table:
        """Return the normalised measures side by side, by size of the set; bi-capacities have tables of their own."""
        found = {name: g for name, g in self.measures().items() if isinstance(g, Capacity)}
        if not found:
            return Table(["A"], [])
        first = next(iter(found.values()))
        subsets = [subset for subset, _ in first.listing()]
        rows = [[Cell(name), *(Cell(number(g[subset])) for subset in subsets)] for name, g in found.items()]
        return Table(["measure", *(set_label(subset, first.source_names) for subset in subsets)], rows)


def _learned(result: Result) -> str:
    """What a method learned, as far as it fits a line: a normalised measure by size of the set, or weights."""
    if isinstance(result.measure, Capacity):
        return " ".join(number(value) for _, value in result.measure.listing())
    if result.measure is not None:
        return f"{result.measure.lattice.size} elements"
    return " ".join(number(weight) for weight in getattr(result.model, "weights_", []))


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
        What to compare; they are cloned. See `paper_methods` for those of the paper.
    train : Scene or sequence of Scene
        Methods that need bags learn from the labels of their bags, methods that need instances from their truth.
    test : Scene or sequence of Scene, optional
        Where to score; by default the training scenes.
    n_jobs : int, optional
        How many methods run at a time; all cores by default. For times that compare, use 1.
    keep_maps : bool, default=False
        Whether to keep the fused maps.
    verbose : int, default=0
        Above 0, a progress bar on a terminal.

    Returns
    -------
    Comparison
        A failure of one method is told in its row, and does not stop the others.
    """
    named = dict(methods) if isinstance(methods, Mapping) else {type(m).__name__: m for m in methods}
    if len(named) < len(methods) or not named:
        raise InvalidInputError("methods must be distinct; give a mapping of name to method to compare several alike.")
    learned = _as_list(train, "train")
    scenes = learned if test is None else _as_list(test, "test")
    for scene in scenes:
        if scene.truth is None:
            raise InvalidInputError(f"Test scene {scene.name!r} has no truth to score against.")
    results = [Result(name, clone(method)) for name, method in named.items()]
    data = {needs: _training_data(needs, learned) for needs in {result.model.needs for result in results}}
    pool = ThreadPoolExecutor(check_n_jobs(n_jobs))
    try:
        with progress_bar("comparing", len(results), verbose) as advance:
            tasks = [pool.submit(_run, result, data[result.model.needs], scenes, keep_maps) for result in results]
            for done in as_completed(tasks):
                done.result()
                advance(1, None)
    finally:  # when interrupted, what has not begun does not begin
        pool.shutdown(wait=False, cancel_futures=True)
    return Comparison(results)


def _as_list(scenes: Scene | Sequence[Scene], what: str) -> list[Scene]:
    listed = [scenes] if isinstance(scenes, Scene) else list(scenes)
    if not listed or not all(isinstance(scene, Scene) for scene in listed):
        raise InvalidInputError(f"{what} must be a Scene or a sequence of at least one Scene.")
    return listed


def _training_data(needs: str | None, scenes: list[Scene]) -> tuple[Any, ...] | BimichiError:
    """Return the arguments of fit for methods with these needs, or why there are none."""
    try:
        return {"bags": _bags, "instances": _instances}.get(str(needs), _sources)(scenes)
    except BimichiError as error:
        return error


def _bags(scenes: list[Scene]) -> tuple[Any, ...]:
    if any(scene.segments is None or scene.labels is None for scene in scenes):
        raise NotRunError("no labelled bags given")
    bags = join_bags(scenes)
    sizes = np.diff(bags.offsets)
    return bags.X, np.repeat(bags.labels, sizes).astype(int), np.repeat(np.arange(len(bags)), sizes)


def _instances(scenes: list[Scene]) -> tuple[Any, ...]:
    X, y = [], []
    for scene in scenes:
        if scene.truth is None:
            raise NotRunError("no instance labels given")
        counted = np.ones(scene.shape, dtype=bool) if scene.ignore is None else ~scene.ignore
        X.append(scene.sources[counted])
        y.append(scene.truth[counted])
    return np.concatenate(X), np.concatenate(y).astype(int)


def _sources(scenes: list[Scene]) -> tuple[Any, ...]:
    return (scenes[0].sources.reshape(-1, scenes[0].n_sources),)


def _run(result: Result, data: tuple[Any, ...] | BimichiError, scenes: list[Scene], keep_maps: bool) -> None:
    """Fit, fuse and score one method; whatever goes wrong is noted in its result."""
    try:
        if isinstance(data, BimichiError):
            raise data
        start = time.perf_counter()
        result.model.fit(*data)
        result.fit_seconds = time.perf_counter() - start
        start = time.perf_counter()
        maps = [_fuse(result.model, scene) for scene in scenes]
        result.fuse_seconds = time.perf_counter() - start
        for scene, fused in zip(scenes, maps, strict=True):
            truth = np.asarray(scene.truth)  # checked before: all test scenes have it
            result.scores.append(scores(truth, fused, result.model.output_range, scene.ignore))
        result.maps = maps if keep_maps else []
    except NotRunError as error:
        result.problem = f"not run: {error}"
    except BimichiError as error:
        result.problem = f"failed: {error}"
    except Exception as error:  # a method of any origin may raise anything; the others go on
        log.exception("%s failed", result.name)
        result.problem = f"failed: {type(error).__name__}: {error}"


def _fuse(model: Fusion, scene: Scene) -> NDArray[Any]:
    if model.needs != "image":
        return model.fuse(scene.sources)
    if scene.rgb is None:
        raise NotRunError(f"scene {scene.name!r} has no RGB image")
    named: Any = model
    fused: NDArray[Any] = named.fuse(scene.rgb, name=scene.name)
    return fused
