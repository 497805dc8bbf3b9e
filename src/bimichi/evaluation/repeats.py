"""A study over several draws of scenes: what of a result is the method, and what is the draw."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bimichi._tables import Cell, Table
from bimichi._types import Floats
from bimichi.evaluation.files import write_json, write_text
from bimichi.evaluation.study import LEAD, StudyResult
from bimichi.learning.folds import shown_spread, spread

SCORES = {"AUC": "auc", "AP": "average_precision", "RMSE": "rmse", "ECE": "calibration_error"}


@dataclass
class RepeatedStudy:
    """The results of several draws; each is a `StudyResult` of the same methods."""

    draws: list[StudyResult] = field(default_factory=list)

    def names(self) -> list[str]:
        """Names of the methods that ran in every draw, in order."""
        ran = [{row.name for row in draw.rows if row.scores} for draw in self.draws]
        return [row.name for row in self.draws[0].rows if all(row.name in some for some in ran)]

    def means(self, name: str, score: str) -> Floats:
        """Return the mean of a score over the test scenes of each draw."""
        return np.array([draw[name].mean(score) for draw in self.draws])

    def leads(self, name: str) -> Floats:
        """Return the lead in average precision over the best source alone of each draw."""
        found = [draw.lead(draw[name]) for draw in self.draws]
        return np.array([np.nan if one is None else one.mean for one in found])

    def table(self) -> Table:
        """Return means over draws with their standard errors, and the worst draw."""
        lines = []
        for name in self.names():
            cells = [shown_spread(spread(self.means(name, score))) for score in SCORES.values()]
            worst = f"{self.means(name, 'average_precision').min():.3f}"
            lead = self.leads(name)
            led = "" if np.isnan(lead).any() else shown_spread(spread(lead), sign=True)
            lines.append([Cell(name), *map(Cell, cells), Cell(worst), Cell(led)])
        return Table(["method", *SCORES, "worst AP", LEAD], lines)

    def to_markdown(self) -> str:
        """Write the table as Markdown, with notes on how to read it."""
        return "\n\n".join([f"# Study of {len(self.draws)} draws", self.table().to_markdown(), NOTES])

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of all draws as plain data."""
        return {"experiment": "repeated study", "draws": [draw.to_dict() for draw in self.draws]}

    def write(self, folder: Path) -> list[Path]:
        """Write the table and repeats.json into an existing folder; returns their paths."""
        return [
            write_text(folder / "repeats.md", self.to_markdown()),
            write_json(folder / "repeats.json", self.to_dict()),
        ]


NOTES = (
    "Each draw learns from other scenes and is scored on others. Numbers are means over draws, with the standard error "
    f"of the mean; the worst AP is that of the worst draw. “{LEAD}” is the difference in AP to the best source alone, "
    "draw by draw."
)


def run_repeats(draw: Callable[[int], StudyResult], seeds: Sequence[int]) -> RepeatedStudy:
    """Run a study once for each seed: `draw` splits the scenes by it, learns and scores.

    Parameters
    ----------
    draw : callable
        Takes a seed, returns the result of `run_study` on the scenes that it draws.
    seeds : sequence of int
        One for each draw.
    """
    return RepeatedStudy([draw(seed) for seed in seeds])
