"""The paper's experiment on pedestrians at night: three sources, and all methods of its table."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bimichi._html import Cell, Table
from bimichi._progress import Stopwatch
from bimichi.errors import InvalidInputError
from bimichi.evaluate.comparison import Comparison
from bimichi.evaluate.engine import compare
from bimichi.evaluate.study import file_name, shows_both, write_figure, write_json, write_text
from bimichi.fit.solvers import ConvexSolver
from bimichi.measures.bicapacity import BiCapacity
from bimichi.methods.bimichi import BiMIChI
from bimichi.methods.detector import DetectorMask
from bimichi.methods.registry import paper_methods
from bimichi.paper.figures import PEDESTRIAN, bicapacity_figure, bicapacity_markdown, scene_panels
from bimichi.plot import plot_maps
from bimichi.plot.style import POSITIVE
from bimichi.scenes.scene import Scene

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class PedestrianResult:
    """The result of `run_pedestrian`: the scene, all methods with their maps, and the seconds they took together."""

    scene: Scene
    comparison: Comparison
    seconds: float
    proven: Mapping[str, str] = field(default_factory=dict)

    def proofs(self) -> list[str]:
        """Return, for each objective of Bi-MIChI, how far J can be above the least possible, if that was asked for."""
        return [f"{self.scene.name}, {name}: {says}" for name, says in self.proven.items()]

    def table(self) -> Table:
        """Return the scores of all methods, with AUC and RMSE of the paper beside them."""
        return _beside_paper(self.comparison, self.published())

    def published(self) -> dict[str, tuple[float, float] | None]:
        """Return AUC and RMSE of the paper, by method; None for methods that it does not have."""
        sources = {f"source {name}": f"source {k + 1}" for k, name in enumerate(self.scene.source_names)}
        names = [result.name for result in self.comparison.results]
        return {name: PEDESTRIAN.get(sources.get(name, name)) for name in names}

    def maps(self) -> dict[str, NDArray[Any]]:
        """Return the map of every method that ran, all on [-1, 1]."""
        return self.comparison.maps()

    def models(self) -> dict[str, Any]:
        """Return the fitted models that learned a measure: each has a `rule_`, and can be saved and reported."""
        return {result.name: result.model for result in self.comparison.results if result.rule is not None}

    def _bicapacities(self) -> dict[str, Any]:
        return {name: model for name, model in self.models().items() if isinstance(model.rule_.measure, BiCapacity)}

    def figure(self) -> "Figure":
        """Draw the map of every method."""
        return plot_maps({name.replace("objective", "obj."): plane for name, plane in self.maps().items()})

    def scene_figure(self) -> "Figure":
        """Draw the images with their boxes, the truth, and the labelled bags."""
        from matplotlib.patches import Rectangle

        scene = self.scene
        images: dict[str, Any] = {} if scene.rgb is None else {"RGB, brightened": (scene.rgb / 255.0) ** 0.5}
        images |= {} if scene.thermal is None else {"Thermal": scene.thermal}
        shown = images | {f"Truth, from {scene.truth_from}": scene.truth}
        height = (3.6 * scene.shape[0] / scene.shape[1] + 0.6) * -(-(len(shown) + 1) // 2)
        figure, axes = scene_panels(scene, shown, images.get("Thermal"), 2, (7.6, height))
        for ax in axes[: len(images)]:
            for x, y, width, tall in scene.boxes:
                ax.add_patch(Rectangle((x, y), width, tall, fill=False, edgecolor=POSITIVE, linewidth=1.2))
        return figure

    def to_markdown(self) -> str:
        """Write all tables as Markdown, with notes on how to read them."""
        scene = self.scene
        truth = f"Scored on {TRUTHS.get(scene.truth_from, TRUTHS['pixels'])}."
        parts = [f"# Pedestrians at night: {scene.name}", self.table().to_markdown(), f"{truth} {LEARNED}"]
        parts += self.proofs()
        for name, model in self._bicapacities().items():
            parts += [f"## {name}: its bi-capacity, used elements bold", bicapacity_markdown(model)]
        others = self.comparison.measures_table(numbered=True)
        if others.rows:
            parts += ["## Measures of the other methods", others.to_markdown()]
        provenance = [("Data", scene.citation), ("Licence", scene.licence)]
        return "\n\n".join(parts + [f"{title}: {text}" for title, text in provenance if text])

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data."""
        methods = {}
        for result, paper in zip(self.comparison.results, self.published().values(), strict=True):
            methods[result.name] = {
                "scores": result.scores[0]._asdict() if result.scores else None,
                "paper": None if paper is None else {"auc": paper[0], "rmse": paper[1]},
                **{name: getattr(result, name) for name in ("fit_seconds", "fuse_seconds", "problem")},
                "measure": None if result.measure is None else result.measure.values.tolist(),
            }
        about = {"scene": self.scene.name, "truth_from": self.scene.truth_from, "sources": self.scene.source_names}
        return {"experiment": "pedestrian", **about, "seconds": self.seconds, "methods": methods, "proven": self.proven}

    def write(self, folder: Path) -> list[Path]:
        """Write figures, tables, a report and, last, results.json into an existing folder; returns their paths."""
        return [
            write_figure(folder / "scene.png", self.scene_figure()),
            write_figure(folder / "maps.png", self.figure()),
            write_figure(folder / "bicapacities.png", bicapacity_figure(self._bicapacities())),
            *self._reports(folder),
            write_text(folder / "table.tex", self.table().to_latex()),
            write_text(folder / "results.md", self.to_markdown()),
            write_json(folder / "results.json", self.to_dict()),
        ]

    def _reports(self, folder: Path) -> list[Path]:
        """Write the report of the best model, by average precision, that learned a measure from labels of bags."""
        ran = [result for result in self.comparison.results if result.rule is not None and result.model.needs == "bags"]
        if not ran:
            return []
        best = max(ran, key=lambda result: result.mean("average_precision"))
        best.model.report(folder / "report.html", self.scene, comparison=self.comparison)
        return [folder / "report.html"]


MOST_SOURCES = 4
"""The table of a bi-capacity has 2^m rows and columns; with more sources it would be too large to read."""

SLOW = ("MICI noisy-or", "MICI generalised mean")
"""Methods that only the evolutionary search can fit, on all pixels; they take most of the time."""

TRUTHS = {
    "pixels": "the truth of every pixel",
    "boxes": "the inside of boxes, which holds background, too: there is no truth about pixels here",
}
LEARNED = (
    "As in the paper, all methods learn from the scene that they are scored on: KNN, SVM, the weighted mean and both "
    "QPs from the truth of every pixel, MICI and Bi-MIChI from the labels of bags alone. Among the paper's "
    "methods that are built on a measure, the best score is bold, the second best in italics."
)


def run_pedestrian(
    scene: Scene,
    detector: DetectorMask | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
    leave_out: Collection[str] = (),
    max_nodes: int = 0,
    preset: Literal["default", "paper"] = "default",
) -> PedestrianResult:
    """Run the paper's comparison, Section V-B, on one scene.

    Parameters
    ----------
    scene : Scene
        With up to four sources, labelled bags and truth, such as `bimichi.datasets.kaist`, `msrs` or `street` give.
    detector, random_state, preset
        As in `bimichi.paper_methods`. For the sources of the paper, make scenes with the same `preset`.
    n_jobs, verbose
        As in `bimichi.compare`.
    leave_out : collection of str, optional
        Names of methods that are not run; see `SLOW`.
    max_nodes : int, default=0
        If above 0, how far J of both objectives of Bi-MIChI is above the least possible is proven, by bounding at most
        so many parts of all bi-capacities. That is a search of its own, and not part of `seconds`.
    """
    if scene.n_sources > MOST_SOURCES:
        has = f"Scene {scene.name!r} has {scene.n_sources} sources, of at most {MOST_SOURCES}"
        raise InvalidInputError(f"{has}. Make scenes with n_sources=3, or use run_study.", code="pedestrian-sources")
    if not shows_both(scene):
        raise InvalidInputError(
            f"Scene {scene.name!r} shows no people, or nothing else. Choose another scene.", code="scene-without-people"
        )
    watch = Stopwatch()
    methods = paper_methods(scene.source_names, detector, random_state, preset)
    kept = {name: method for name, method in methods.items() if name not in leave_out}
    comparison = compare(kept, scene, n_jobs=n_jobs, keep_maps=True, verbose=verbose)
    seconds = watch.seconds
    return PedestrianResult(scene, comparison, seconds, _prove(scene, random_state, n_jobs, verbose, max_nodes))


def _prove(scene: Scene, random_state: int, n_jobs: int | None, verbose: int, max_nodes: int) -> dict[str, str]:
    if not max_nodes:
        return {}
    proofs, bags = {}, scene.bags()
    for objective in ("bipolar", "magnitude"):
        solver = ConvexSolver(certify=True, max_nodes=max_nodes)
        model = BiMIChI(objective, solver, random_state=random_state, n_jobs=n_jobs, verbose=verbose).fit(bags)
        record = model.rule_.training
        proofs[objective] = record.proof if record else ""
    return proofs


def mean_table(results: Sequence[PedestrianResult]) -> Table:
    """Return the mean scores and times over several scenes, with AUC and RMSE of the paper beside them."""
    merged = []
    for name in results[0].published():
        rows = [result.comparison[name] for result in results]
        fit, fuse = (float(np.mean([getattr(row, f"{part}_seconds") for row in rows])) for part in ("fit", "fuse"))
        reached = [score for row in rows for score in row.scores]
        merged.append(replace(rows[0], scores=reached, fit_seconds=fit, fuse_seconds=fuse))
    return _beside_paper(Comparison(merged), results[0].published())


def scene_folder(folder: Path, scene: Scene) -> Path:
    """Return the folder for the results of one of several scenes."""
    return folder / file_name(scene.name)


def _beside_paper(comparison: Comparison, published: Mapping[str, tuple[float, float] | None]) -> Table:
    table = comparison.table([name for name, paper in published.items() if paper is not None])
    header, rows = list(table.header), [list(row) for row in table.rows]
    for k, title in enumerate(("AUC", "RMSE")):
        column = header.index(title) + 1
        header.insert(column, f"paper's {title}")
        for row in rows:
            paper = published[row[0].text]
            row.insert(column, Cell("" if paper is None else f"{paper[k]:.3f}"))
    return Table(header, rows)
