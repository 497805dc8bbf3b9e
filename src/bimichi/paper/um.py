"""The paper's synthetic experiment: a "U" above an "M", both objectives, both solvers, and the optimum beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bimichi._html import Cell, Table
from bimichi._progress import Stopwatch
from bimichi.datasets import UMOptimum, um, um_optimum
from bimichi.evaluate.metrics import Scores, scores
from bimichi.evaluate.study import write_figure, write_json, write_text
from bimichi.fit.solvers import ConvexSolver
from bimichi.methods.bimichi import BiMIChI
from bimichi.paper.figures import UM, bicapacity_figure, bicapacity_markdown
from bimichi.plot import plot_bags, plot_map
from bimichi.plot.style import color_bar, panels
from bimichi.scenes.scene import Scene

if TYPE_CHECKING:
    from matplotlib.figure import Figure


OBJECTIVES = {"bipolar": "Objective 1 (bipolar)", "magnitude": "Objective 2 (magnitude)"}
SOLVERS = ("convex", "evolutionary", "literal")
"""The last is the evolutionary search that stops as the paper says, word by word."""
LITERAL = "evolutionary, literal stop"
U, BACKGROUND = ((0, 1), (2,)), ((1, 2), (0,))
"""The two elements that matter: the integrals on the U and on the background. On the M it is -1."""


@dataclass(frozen=True)
class UMRun:
    """One objective, minimised by one solver: the fitted model, and what it makes of the picture.

    `integral` is C, and `fused` the output, which is C or its magnitude; `seconds` is the time for learning.
    """

    objective: str
    solver: str
    model: BiMIChI
    integral: NDArray[Any]
    fused: NDArray[Any]
    scores: Scores
    seconds: float

    @property
    def proof(self) -> str:
        """The proof about J in words; empty for the evolutionary search."""
        record = self.model.rule_.training
        return record.proof if record else ""


@dataclass(frozen=True)
class UMResult:
    """The result of `run_um`: the picture, the optimum of the bipolar objective, and a run per objective and solver."""

    scene: Scene
    optimum: UMOptimum
    runs: list[UMRun]

    def run(self, objective: str, solver: str = "convex") -> UMRun:
        """Return one of the runs."""
        return next(run for run in self.runs if (run.objective, run.solver) == (objective, solver))

    def proofs(self) -> list[str]:
        """Return, for each objective, how far J can be above the least possible."""
        return [f"{OBJECTIVES[run.objective]}: {run.proof}" for run in self.runs if run.proof]

    def table(self) -> Table:
        """Return J, the two elements that matter, and the scores, beside the optimum and the paper's values."""
        best = self.optimum
        exact: dict[str, list[float | str]] = {
            "bipolar": [best.objective_value, best.letter, best.background],
            "magnitude": [0.0, "±1", 0.0],
        }
        rows = []
        for objective, title in OBJECTIVES.items():
            rows.append(_row(f"{title}: closed form", exact[objective]))
            for run in self.runs:
                if run.objective == objective:
                    g, score = run.model.bicapacity_, run.scores
                    numbers = [run.model.objective_value_, g[U], g[BACKGROUND], score.auc, score.rmse, run.seconds]
                    name = LITERAL if run.solver == "literal" else run.solver
                    rows.append(_row(f"{title}: {name}", numbers))
            paper = UM[objective]
            rows.append(_row(f"{title}: paper, its own picture", ["", paper["U"], paper["background"]]))
        return Table(["", "J", "g(12, 3), the U", "g(23, 1), background", "AUC", "RMSE", "seconds"], rows)

    def figure(self, solver: str = "convex") -> "Figure":
        """Draw the paper's figure: sources, bags, truths and fusions, all on one scale."""
        first, second = self.run("bipolar", solver), self.run("magnitude", solver)
        truth = self.scene.truth
        both, upper = (-1.0, 1.0), (0.0, 1.0)
        shown: list[tuple[str, Any, tuple[float, float]]] = [
            *((f"Source {k + 1}", self.scene.sources[..., k], both) for k in range(3)),
            ("Labelled bags", None, both),
            ("Truth", truth, both),
            ("Fusion 1", first.fused, both),
            ("Truth 2", truth, upper),
            ("Fusion 2 without absolute value", second.integral, both),
            ("Fusion 2", second.fused, upper),
        ]
        figure, axes = panels(9, 3, (7.6, 9.2))
        for ax, (title, plane, output_range) in zip(axes, shown, strict=True):
            if plane is None:
                plot_bags(np.asarray(self.scene.segments), self.scene.labels or {}, ax=ax).set_title(title, fontsize=10)
            else:
                plot_map(plane, ax, title, colorbar=False, output_range=output_range)
        color_bar(axes, shrink=0.6)
        return figure

    def to_markdown(self) -> str:
        """Write all tables as Markdown, with notes on how to read them."""
        best = self.optimum
        parts = [
            "# UM",
            self.table().to_markdown(),
            f"The picture has n = {best.negative} negative bags, k = {best.mixed} positive bags with background and no "
            f"U, and f = {best.missed} positive bags of M alone; so the optimum of objective 1 is g(23, 1) = "
            f"(k - n)/(k + n) = {best.background:.4f}, J = {best.objective_value:.4f}.",
            "All sources are -1 on the M, and so is every integral: objective 1 must miss it, and its AUC says "
            "little, as the M lies below the background. Objective 2 finds it as the other pole.",
        ]
        parts += self.proofs()
        for run in self.runs:
            if run.solver != "literal":
                parts += [f"## {OBJECTIVES[run.objective]}, {run.solver} solver", bicapacity_markdown(run.model)]
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data."""
        runs = []
        for run in self.runs:
            model, g = run.model, run.model.bicapacity_
            outcome = {
                "objective_value": model.objective_value_,
                "global_bound": model.solution_.global_bound,
                "status": model.solution_.status,
            }
            elements = {"U": g[U], "background": g[BACKGROUND], "values": g.values.tolist()}
            reached = {"scores": run.scores._asdict(), "seconds": run.seconds}
            runs.append({"objective": run.objective, "solver": run.solver} | outcome | elements | reached)
        return {"experiment": "um", "optimum": self.optimum._asdict(), "runs": runs, "paper": UM}

    def write(self, folder: Path) -> list[Path]:
        """Write figures, tables, reports and, last, results.json into an existing folder; returns their paths."""
        reports = {folder / f"report-{objective}.html": self.run(objective).model for objective in OBJECTIVES}
        for path, model in reports.items():
            model.report(path, self.scene)
        models = dict(zip(OBJECTIVES.values(), reports.values(), strict=True))
        return [
            *reports,
            write_figure(folder / "um.png", self.figure()),
            write_figure(folder / "um-evolutionary.png", self.figure("evolutionary")),
            write_figure(folder / "um-bicapacities.png", bicapacity_figure(models)),
            write_text(folder / "results.md", self.to_markdown()),
            write_json(folder / "results.json", self.to_dict()),
        ]


def run_um(scene: Scene | None = None, random_state: int = 0, n_jobs: int | None = None) -> UMResult:
    """Run the synthetic experiment of the paper, Section V-A.

    Parameters
    ----------
    scene : Scene, optional
        A picture that `bimichi.datasets.um` drew without noise; by default, one of the paper's size.
    random_state, n_jobs
        As in `BiMIChI`.

    Examples
    --------
    >>> result = run_um()
    >>> best = result.run("bipolar").model
    >>> round(best.objective_value_ - result.optimum.objective_value, 6)
    0.0
    >>> result.run("magnitude").scores.auc
    1.0
    """
    picture = um() if scene is None else scene
    optimum, bags, runs = um_optimum(picture), picture.bags(), []
    for objective in OBJECTIVES:
        for solver in SOLVERS:
            watch = Stopwatch()
            how = ConvexSolver(certify=True) if solver == "convex" else solver
            model = BiMIChI(objective, how, source_names=picture.source_names, n_jobs=n_jobs)
            model.set_params(random_state=random_state).fit(bags)
            seconds = watch.seconds
            fused = model.fuse(picture.sources)
            reached = scores(np.asarray(picture.truth), fused, model.output_range)
            runs.append(UMRun(objective, solver, model, model.integral(picture.sources), fused, reached, seconds))
    return UMResult(picture, optimum, runs)


def _row(title: str, entries: Sequence[float | str]) -> list[Cell]:
    shown = [entry if isinstance(entry, str) else f"{round(entry, 4) + 0.0:.4f}" for entry in entries]
    return [Cell(text) for text in [title, *shown, *[""] * (6 - len(shown))]]
