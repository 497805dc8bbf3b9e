"""A study over many scenes: learn from some, score on others; what the paper shows on one."""

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bimichi._tables import Cell, Table
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.estimators.base import Fusion
from bimichi.estimators.bimichi import BiMIChI
from bimichi.evaluation.candidates import Candidate, candidates
from bimichi.evaluation.files import file_name, write_json, write_text
from bimichi.evaluation.metrics import Scores, scores
from bimichi.evaluation.split import names_of, shows_both
from bimichi.learning.scene import Scene, join_bags

__all__ = ["StudyResult", "StudyRow", "check_folder", "run_study"]

log = logging.getLogger(__name__)

RESULTS = "results.json"


@dataclass
class StudyRow:
    """What one method reached.

    Attributes
    ----------
    name, kind, labels : str
        As in `Candidate`.
    scores : dict of str to Scores
        By name of the test scene.
    fit_seconds, fuse_seconds : float
        For learning, and for all test scenes.
    turned_over : list of str
        Sources that were turned over, where that is learned.
    problem : str
        Why there are no scores; empty if all is well.
    """

    name: str
    kind: str
    labels: str
    scores: dict[str, Scores] = field(default_factory=dict)
    fit_seconds: float = float("nan")
    fuse_seconds: float = float("nan")
    turned_over: list[str] = field(default_factory=list)
    problem: str = ""

    def mean(self, score: str) -> float:
        """Mean of a score over the test scenes; NaN without any."""
        return float(np.mean([getattr(one, score) for one in self.scores.values()])) if self.scores else float("nan")

    @property
    def worst_auc(self) -> float:
        """The AUC of the scene where it is least; NaN without any."""
        return min((one.auc for one in self.scores.values()), default=float("nan"))


COLUMNS: dict[str, tuple[Callable[[StudyRow], float], int]] = {
    "AUC": (lambda row: row.mean("auc"), 1),
    "worst AUC": (lambda row: row.worst_auc, 1),
    "AP": (lambda row: row.mean("average_precision"), 1),
    "RMSE": (lambda row: row.mean("rmse"), -1),
}
"""Columns of the table, and whether more (1) or less (-1) is better."""


@dataclass
class StudyResult:
    """The study's outcome; see `run_study`.

    Attributes
    ----------
    setting : dict
        Names of the training and the test scenes, of the sources, and the seed.
    rows : list of StudyRow
        Those that are done.
    """

    setting: dict[str, Any]
    rows: list[StudyRow] = field(default_factory=list)

    def __getitem__(self, name: str) -> StudyRow:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"no row {name!r}; there are {', '.join(row.name for row in self.rows)}")

    def best(self, kind: str, labels: str | None = None) -> StudyRow | None:
        """Return the row of largest mean AUC among those of a kind (and of these labels), if there is any."""
        found = [row for row in self.rows if row.kind == kind and labels in (None, row.labels) and row.scores]
        return max(found, key=lambda row: row.mean("auc"), default=None)

    def table(self) -> Table:
        """Return all rows; of those that learn from bag labels, the best of each column is bold."""
        fair = [row for row in self.rows if row.labels == "bags" and row.scores]
        best = {title: max((sign * of(row) for row in fair), default=np.nan) for title, (of, sign) in COLUMNS.items()}
        lines = []
        for row in self.rows:
            line = [Cell(row.name), Cell(row.labels)]
            for title, (of, sign) in COLUMNS.items():
                line.append(Cell(_shown(of(row), 3), row in fair and sign * of(row) == best[title]))
            times = [Cell(_shown(row.fit_seconds, 1)), Cell(_shown(row.fuse_seconds, 1))]
            turned = f"turned over: {', '.join(row.turned_over)}" if row.turned_over else ""
            lines.append([*line, *times, Cell(row.problem or turned)])
        return Table(["method", "labels", *COLUMNS, "fit s", "fuse s", ""], lines)

    def verdict(self) -> str:
        """Say in a sentence how the best row of Bi-MIChI compares; empty if it was not run."""
        own = self.best("bi-michi")
        if own is None:
            return ""
        parts = [f"The best row of Bi-MIChI by mean AUC is {_told(own)}"]
        for who, row in (("the best single source", self.best("source")), ("", self.best("boosting", "bags"))):
            if row is not None:
                parts.append(f"{who} is {_told(row)}" if who else _told(row))
        return f"{'; '.join(parts)}."

    def to_markdown(self) -> str:
        """Write the table as Markdown, with what to know when reading it."""
        said = self.setting
        return "\n\n".join(
            [
                "# Study",
                self.table().to_markdown(),
                self.verdict(),
                NOTES,
                f"Learned from {len(said['train'])} scenes: {', '.join(said['train'])}.",
                f"Scored on {len(said['test'])} others: {', '.join(said['test'])}. Seed {said['seed']}.",
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data; `from_dict` takes them back."""
        rows = [asdict(row) | {"scores": {name: s._asdict() for name, s in row.scores.items()}} for row in self.rows]
        return {"experiment": "study", "setting": self.setting, "rows": rows}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "StudyResult":
        """Take what `to_dict` gave and a JSON file may have held meanwhile."""
        rows = []
        for given in data["rows"]:
            kept: dict[str, Any] = {key: np.nan if value is None else value for key, value in given.items()}
            row = StudyRow(**kept)
            row.scores = {name: Scores(**one) for name, one in given["scores"].items()}
            rows.append(row)
        return cls(data["setting"], rows)

    def write(self, folder: Path) -> list[Path]:
        """Write the table and results.json into an existing folder; returns their paths."""
        return [write_text(folder / "results.md", self.to_markdown()), write_json(folder / RESULTS, self.to_dict())]


NOTES = (
    "AUC, average precision (AP) and RMSE are means over the test scenes, and the worst AUC is that of one of them. "
    "Rows with labels of bags never see a pixel's truth. Targets cover few pixels, so that the empty map has a small "
    "RMSE already. Scenes without targets have no AUC, and are only trained on. Of the rows that learn from bag "
    "labels, the best of each column is bold."
)


def run_study(
    train: Sequence[Scene],
    test: Sequence[Scene],
    *,
    seed: int = 0,
    rows: Literal["all", "bi-michi"] = "all",
    folder: Path | None = None,
    resume: bool = False,
    made_by: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> StudyResult:
    """Learn from some scenes, and score on others, with every method of `candidates`.

    Parameters
    ----------
    train : sequence of Scene
        With labelled bags and truth. Some may show no targets.
    test : sequence of Scene
        With truth, which shows targets and others, so that AUC is defined; see `split_scenes`.
    seed : int, default=0
        Of all methods.
    rows : {"all", "bi-michi"}
        All rows, or those of Bi-MIChI alone.
    folder : Path, optional
        An existing folder. Results are written there after each row, and the models of Bi-MIChI besides.
    resume : bool, default=False
        Whether to go on with what `folder` holds: rows that are done there are not run again.
    made_by : mapping of str to what JSON can hold, optional
        How the scenes were made: a study is resumed only with scenes that were made alike.
    n_jobs : int, optional
        Number of threads; all cores by default.
    progress : callable, optional
        Is told one line for each method that has learned, and for each scene that it is scored on.

    Notes
    -----
    Bi-MIChI learns from one scene after another, and test scenes are taken one at a time, so that `Scenes` need not fit
    in memory. Methods that learn from instances hold all of them: 640 x 480 pixels of six sources are 7 MB a scene.
    """
    check_folder(folder, resume)
    for scene in test:
        if not shows_both(scene):
            raise InvalidInputError(f"Test scene {scene.name!r} needs a truth with targets and others; leave it out.")
    names = test[0].source_names
    setting = {"train": names_of(train), "test": names_of(test), "sources": list(names), "seed": seed}
    setting["way of making scenes"] = dict(made_by or {})
    result = StudyResult(setting, _done(folder, setting) if resume and folder is not None else [])
    data = _Training(train)
    for candidate in candidates(names, rows, seed, n_jobs):
        if any(row.name == candidate.name for row in result.rows):
            progress(f"{candidate.name}: done before")
            continue
        row, model = _run(candidate, data, test, names, progress)
        result.rows.append(row)
        if folder is not None:
            if isinstance(model, BiMIChI) and not row.problem:
                model.save(folder / f"{file_name(candidate.name)}.json")
            result.write(folder)
    return result


def check_folder(folder: Path | None, resume: bool) -> None:
    """Raise if a study cannot go to this folder; `run_study` asks, and who reads scenes before may ask sooner."""
    if folder is None and resume:
        raise InvalidInputError("resume=True needs the folder of the study to go on with.")
    if folder is not None and not resume and (folder / RESULTS).exists():
        raise InvalidInputError(f"{folder} holds results already; resume them, or choose another folder.")


class _Instances(NamedTuple):
    """The pixels in bags of all training scenes, with both kinds of labels."""

    X: NDArray[Any]
    of_bags: NDArray[np.bool_]
    truth: NDArray[np.bool_]

    @classmethod
    def of(cls, scenes: Iterable[Scene]) -> "_Instances":
        parts = []
        for scene in scenes:
            if scene.labels:
                bags = join_bags([scene], one_class=True)
                of_bags = np.repeat(bags.labels, np.diff(bags.offsets))
                parts.append((bags.X, of_bags, np.asarray(scene.truth).ravel()[bags.instance]))
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class _Training:
    """What methods learn from: scenes, one after another, or all their pixels at once."""

    def __init__(self, scenes: Sequence[Scene]) -> None:
        self._scenes = scenes
        self._instances: _Instances | None = None

    def gather(self, candidate: Candidate) -> None:
        """Hold the pixels if a method needs them, and let go of them if it does not."""
        if candidate.method.needs == "bags":
            self._instances = None
        elif candidate.labels != "none" and self._instances is None:
            self._instances = _Instances.of(self._scenes)

    def fit(self, method: Fusion, labels: str) -> None:
        if isinstance(method, BiMIChI):
            method.fit(self._scenes)
        elif method.needs == "bags":
            method.fit(join_bags(self._scenes))
        elif self._instances is None:
            method.fit(self._scenes[0].sources.reshape(-1, self._scenes[0].n_sources)[:1])
        else:
            y = self._instances.truth if labels == "pixels" else self._instances.of_bags
            method.fit(self._instances.X, y.astype(np.int8))


def _run(
    candidate: Candidate,
    data: _Training,
    test: Sequence[Scene],
    names: Sequence[str],
    progress: Callable[[str], None],
) -> tuple[StudyRow, Fusion]:
    """Fit and score one method; whatever goes wrong is noted in its row."""
    row = StudyRow(candidate.name, candidate.kind, candidate.labels)
    model = clone(candidate.method)
    try:
        data.gather(candidate)
        start = time.perf_counter()
        data.fit(model, candidate.labels)
        row.fit_seconds, row.fuse_seconds = time.perf_counter() - start, 0.0
        signs = getattr(model, "polarity_", np.ones(0))
        row.turned_over = [name for name, sign in zip(names, signs, strict=False) if sign < 0]
        progress(f"{candidate.name}: learned in {row.fit_seconds:.1f} s")
        for count, scene in enumerate(test, 1):
            start = time.perf_counter()
            fused = model.fuse(scene.sources)
            row.fuse_seconds += time.perf_counter() - start
            found = scores(np.asarray(scene.truth), fused, model.output_range, scene.ignore)
            row.scores[scene.name] = found
            told = f"AUC {found.auc:.3f}, AP {found.average_precision:.3f}, RMSE {found.rmse:.3f}"
            progress(f"{candidate.name}: {count}/{len(test)} {scene.name}: {told}")
    except Exception as error:  # a failure of one method does not stop the others
        if not isinstance(error, BimichiError):
            log.exception("%s failed", candidate.name)
        row.scores, row.problem = {}, f"failed: {error}"
        progress(f"{candidate.name}: {row.problem}")
    return row, model


def _done(folder: Path, setting: dict[str, Any]) -> list[StudyRow]:
    """Rows of an earlier run of the same study that need not be run again."""
    path = folder / RESULTS
    if not path.exists():
        return []
    try:
        earlier = StudyResult.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"{path} does not hold the results of a study: {error!r}. Choose another folder."
        ) from error
    for what, value in setting.items():
        if earlier.setting.get(what) != value:
            raise InvalidInputError(
                f"{folder} holds a study with another {what}: {earlier.setting.get(what)}, not {value}. "
                "Resume it with the options that it was begun with, or choose another folder."
            )
    return [row for row in earlier.rows if not row.problem]


def _told(row: StudyRow) -> str:
    return f"{row.name}: AUC {row.mean('auc'):.3f}, AP {row.mean('average_precision'):.3f}"


def _shown(value: float, digits: int) -> str:
    return "" if np.isnan(value) else f"{value:.{digits}f}"
