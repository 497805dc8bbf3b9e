"""`compare`: many methods on the same scenes, each under the kind of label it needs, in one table."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from bimichi import _html
from bimichi._extras import import_optional
from bimichi._progress import progress_bar
from bimichi._tables import Cell, Table, number
from bimichi.errors import InvalidInputError
from bimichi.evaluate.engine import COLUMNS, Result, TrainingData, evaluate, named_row, score_cells
from bimichi.fit.objectives import to_common_scale
from bimichi.integral.planes import check_n_jobs
from bimichi.measures.base import Measure
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.capacity import Capacity
from bimichi.measures.lattice import set_label
from bimichi.methods.base import Fusion
from bimichi.methods.registry import Candidate, labels_needed
from bimichi.scenes.scene import Scene, Scenes

TITLES = ("AUC", "AP", "F1", "RMSE", "ECE")
LISTED_SOURCES = 3
BEST = "Among methods built on a measure, the best score is bold, the second best underlined."


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
            rows.append(reached | times | {"learned": _learned(result), "problem": result.problem})
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
        named = [ranked is None or result.name in ranked for result in self.results]
        marked = [one and result.fuzzy and bool(result.scores) for one, result in zip(named, self.results, strict=True)]
        cells = score_cells(self.results, TITLES, marked, digits=2, second=True)
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
        found = {name: g for name, g in self.measures().items() if isinstance(g, Capacity)}
        if not found:
            return Table(["A"], [])
        first = next(iter(found.values()))
        names = Capacity(first.values).source_names if numbered else first.source_names
        subsets = [subset for subset, _ in first.listing()]
        rows = [[Cell(name), *(Cell(number(g[subset])) for subset in subsets)] for name, g in found.items()]
        return Table(["measure", *(set_label(subset, names) for subset in subsets)], rows)


def _learned(result: Result) -> str:
    """Return what a method learned if it fits on one line: a normalised measure by size of the set, or weights."""
    if isinstance(result.measure, Capacity):
        return " ".join(number(value) for _, value in result.measure.listing())
    if result.measure is not None:
        return f"{len(result.measure.values)} {result.measure.parts}"
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
        The methods, which are cloned. See `paper_methods` for those of the paper.
    train : Scene or sequence of Scene
        Methods that need bags learn from labels of bags, methods that need instances from the truth. From `Scenes`,
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
    learned = _checked(train, "train")
    scenes = learned if test is None else _checked(test, "test")
    for scene in scenes:
        if scene.truth is None:
            raise InvalidInputError(f"Test scene {scene.name!r} has no truth to score against.", code="truth-missing")
    rows = [Candidate(name, "", labels_needed(type(method)), method) for name, method in named.items()]
    data = TrainingData(learned, rows, pixels="all", in_parts=isinstance(learned, Scenes))
    done: dict[str, Result] = {}
    with progress_bar("comparing", len(rows), verbose) as advance:
        for result in evaluate(rows, data, scenes, jobs=check_n_jobs(n_jobs), keep_maps=keep_maps):
            done[result.name] = result
            advance(1, None)
    return Comparison([done[name] for name in named])


def _checked(scenes: Scene | Sequence[Scene], what: str) -> Sequence[Scene]:
    """Return a list of scenes, or `Scenes`, which stay unread."""
    listed = scenes if isinstance(scenes, Scenes) else [scenes] if isinstance(scenes, Scene) else list(scenes)
    if not listed or not (isinstance(listed, Scenes) or all(isinstance(scene, Scene) for scene in listed)):
        raise InvalidInputError(
            f"{what} must be a Scene or a sequence of at least one Scene.", code="scenes-kind", argument=what
        )
    return listed
