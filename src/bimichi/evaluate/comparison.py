"""The table of results: scores and times of methods on the same scenes, and the measures that they learned."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bimichi import _html
from bimichi._extras import import_optional
from bimichi._html import Cell, Table, number
from bimichi.evaluate.metrics import Scores
from bimichi.fit.objectives import to_common_scale
from bimichi.measures.base import Measure
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.capacity import Capacity
from bimichi.measures.lattice import set_label
from bimichi.rule import FusionRule

TITLES = ("AUC", "AP", "F1", "RMSE", "ECE")
LISTED_SOURCES = 3
BEST = "Among methods built on a measure, the best score is bold, the second best underlined."


class Scored:
    """A row of a table: a method with its scores on some scenes and its times in seconds."""

    name: str
    scores: Any
    fit_seconds: float
    fuse_seconds: float

    def _values(self, score: str) -> list[float]:
        scenes = self.scores.values() if isinstance(self.scores, dict) else self.scores
        return [getattr(scores, score) for scores in scenes]

    def mean(self, score: str) -> float:
        """Return the mean of a score over the test scenes; NaN without any."""
        return float(np.mean(self._values(score))) if self.scores else float("nan")

    @property
    def worst_auc(self) -> float:
        """The smallest AUC among the test scenes; NaN without any."""
        return min(self._values("auc"), default=float("nan"))


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
        """True if the method is built on a measure, as all rules are."""
        return bool(getattr(self.model, "fuzzy", True))

    @property
    def rule(self) -> FusionRule | None:
        """The learned rule, if the method learns one and ran."""
        rule = getattr(self.model, "rule_", self.model)
        return rule if isinstance(rule, FusionRule) and not self.problem else None

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


def named_row(rows: Sequence[Row], name: str, kind: str) -> Row:
    """Return the row of this name."""
    for row in rows:
        if row.name == name:
            return row
    raise KeyError(f"no {kind} {name!r}; there are {', '.join(row.name for row in rows)}")


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
        fair = [competes and not np.isnan(value) for value, competes in zip(values, ranked, strict=True)]
        ranking = sorted({sign * value for value, competes in zip(values, fair, strict=True) if competes}, reverse=True)
        for value, competes, line in zip(values, fair, lines, strict=True):
            place = ranking.index(sign * value) if competes else -1
            line.append(Cell("" if np.isnan(value) else f"{value:.3f}", place == 0, second and place == 1))
    for row, line in zip(rows, lines, strict=True):
        line += [Cell("" if np.isnan(t) else f"{t:.{digits}f}") for t in (row.fit_seconds, row.fuse_seconds)]
    return lines


class Comparison:
    """The `results` of `compare`, one `Result` for each method in the order given, as a table."""

    def __init__(self, results: Sequence[Result]) -> None:
        self.results = list(results)

    def __getitem__(self, name: str) -> Result:
        return named_row(self.results, name, "method")

    def to_frame(self) -> Any:
        """Return a pandas data frame, one row for each method."""
        pd = import_optional("pandas")
        rows = []
        for result in self.results:
            reached = {title: COLUMNS[title][0](result) for title in (*TITLES, "worst AUC")}
            times = {"fit seconds": result.fit_seconds, "fuse seconds": result.fuse_seconds}
            rows.append(reached | times | {"learned": _learned_text(result), "problem": result.problem})
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
        shown = self.table()
        better = {column: title != "RMSE" for column, title in enumerate(shown.header) if title in TITLES}
        parts = [_html.table(shown, _html.by_rank(shown, better))]
        if self.measures_table().rows:
            parts.append(_html.table(self.measures_table()))
        return _html.view(f"Comparison of {len(self.results)} methods", *parts, note=BEST)

    def __repr__(self) -> str:
        return self.table().to_text()

    def table(self, ranked: Collection[str] | None = None) -> Table:
        """Return the scores and times of all methods.

        Parameters
        ----------
        ranked : collection of str, optional
            Among which methods the best and the second best are marked; by default all that are built on a measure.
            Methods that are not are never marked.
        """
        competing = [result.fuzzy and bool(result.scores) for result in self.results]
        if ranked is not None:
            competing = [result.name in ranked and fits for result, fits in zip(self.results, competing, strict=True)]
        cells = score_cells(self.results, TITLES, competing, digits=2, second=True)
        pairs = zip(self.results, cells, strict=True)
        rows = [[Cell(result.name), *reached, Cell(result.problem)] for result, reached in pairs]
        return Table(["method", *TITLES, "fit s", "fuse s", ""], rows)

    def maps(self) -> dict[str, NDArray[Any]]:
        """Return the map of the first test scene by every method that ran, all on [-1, 1], if maps were kept."""
        kept = [result for result in self.results if result.maps]
        return {result.name: to_common_scale(result.maps[0], result.model.output_range) for result in kept}

    def measures(self) -> dict[str, Measure]:
        """Return the learned measures, by method."""
        return {result.name: result.measure for result in self.results if result.measure is not None}

    def measures_table(self, numbered: bool = False) -> Table:
        """Return the normalised measures side by side, by size of the set; bi-capacities have tables of their own.

        Parameters
        ----------
        numbered : bool, default=False
            Whether sources are numbers, as in the paper's tables, instead of names.
        """
        capacities = {name: g for name, g in self.measures().items() if isinstance(g, Capacity)}
        if not capacities:
            return Table(["A"], [])
        first = next(iter(capacities.values()))
        names = Capacity(first.values).source_names if numbered else first.source_names
        subsets = [subset for subset, _ in first.listing()]
        rows = [[Cell(name), *(Cell(number(g[subset])) for subset in subsets)] for name, g in capacities.items()]
        return Table(["measure", *(set_label(subset, names) for subset in subsets)], rows)


def _learned_text(result: Result) -> str:
    """Return what a method learned if it fits on one line: a normalised measure by size of the set, or weights."""
    if isinstance(result.measure, Capacity):
        return " ".join(number(value) for _, value in result.measure.listing())
    if result.measure is not None:
        return f"{len(result.measure.values)} {result.measure.parts}"
    return " ".join(number(weight) for weight in getattr(result.model, "weights_", []))
