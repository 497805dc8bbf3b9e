"""A study over many scenes: methods learn from some, and are scored on others."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bimichi._checks import check_integer
from bimichi._files import atomic_write, plain
from bimichi._html import Cell, Table
from bimichi._types import Floats
from bimichi.datasets import Dataset, street
from bimichi.errors import InvalidInputError
from bimichi.evaluate.comparison import Result, Scored, named_row, score_cells
from bimichi.evaluate.engine import TrainingData, evaluate
from bimichi.evaluate.metrics import Scores
from bimichi.fit.direction import Spread, shown_spread, spread
from bimichi.methods.registry import Candidate, candidates
from bimichi.scenes.scene import Scene

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEPT = 1 << 30  # bytes of scenes that stay in memory; the others are read again whenever they are needed


def street_scenes(
    seeds: Iterable[int],
    n_sources: Literal[3, 6] = 3,
    height: int = 480,
    width: int = 640,
    n_segments: int = 300,
    preset: str = "default",
) -> Dataset:
    """List streets of these seeds, each drawn when needed; see `bimichi.datasets.street`.

    Examples
    --------
    >>> street_scenes(range(7, 9))
    Dataset(2: street-7, street-8)
    """
    numbers = {f"street-{seed}": seed for seed in seeds}

    def draw(name: str) -> Scene:
        seed = numbers[name]
        return street(height, width, random_state=seed, n_segments=n_segments, n_sources=n_sources, preset=preset)

    return Dataset(list(numbers), draw)


def shows_both(scene: Scene) -> bool:
    """Return whether the pixels that count show both targets and others, so that AUC is defined."""
    if scene.truth is None:
        return False
    counted = scene.truth if scene.ignore is None else scene.truth[~scene.ignore]
    return bool(counted.any() and not counted.all())


def names_of(scenes: Sequence[Scene]) -> list[str]:
    """Return the names of scenes, without reading lazy ones."""
    return list(scenes.names) if isinstance(scenes, Dataset) else [scene.name for scene in scenes]


def split_scenes(
    scenes: Sequence[Scene],
    n_train: int,
    n_test: int,
    seed: int = 0,
    progress: Callable[[str], None] = lambda line: None,
) -> tuple[Sequence[Scene], Sequence[Scene]]:
    """Draw scenes at random: the first ones that show targets are for the test, the next ones for training.

    A scene without targets has no AUC and is never tested on; it may be trained on, after the others.

    Parameters
    ----------
    scenes : sequence of Scene
        The scenes to draw from; each is read once, and no more of them than needed.
    n_train, n_test, seed : int
        How many, and the seed of the draw.
    progress : callable, optional
        Receives one line for each scene that is read.

    Returns
    -------
    train, test : sequences of Scene
        Lists; of `Dataset`, `Dataset` again, of which up to 1 GiB stays in memory, without the images for display.
    """
    for name, number in (("n_train", n_train), ("n_test", n_test)):
        check_integer(number, name)
    if n_train + n_test > len(scenes):
        wanted = f"n_train + n_test = {n_train + n_test} scenes"
        raise InvalidInputError(f"{wanted}, but there are {len(scenes)}; choose smaller numbers.", code="study-split")
    read = _cached_reader(scenes, KEPT)
    train, test, passed = list[int](), list[int](), list[int]()
    for count, which in enumerate(np.random.default_rng(seed).permutation(len(scenes)).tolist(), 1):
        scene = read(which)
        shown = shows_both(scene)
        note = "" if shown else ", which shows no target"
        progress(f"read {count}/{max(n_train + n_test, count)}: {scene.name}{note}")
        (train if len(test) == n_test else test if shown else passed).append(which)
        if len(test) == n_test and len(train) == n_train:
            break
    if len(test) < n_test:
        shortage = f"only {len(test)} of {len(scenes)} scenes show targets and others"
        raise InvalidInputError(
            f"n_test is {n_test}, but {shortage}; choose a smaller one.", code="study-split", argument="n_test"
        )
    train += passed[: n_train - len(train)]
    return _subset(scenes, train, read), _subset(scenes, test, read)


def _cached_reader(scenes: Sequence[Scene], room: int) -> Callable[[int], Scene]:
    """Return a function that reads a scene by number, once; of lazy scenes, no more stay in memory than fit `room`."""
    if not isinstance(scenes, Dataset):
        return cache(scenes.__getitem__)
    kept: dict[int, Scene] = {}

    def read(which: int) -> Scene:
        nonlocal room
        if which not in kept:
            scene = replace(scenes[which], rgb=None, thermal=None)
            size = sum(array.nbytes for array in vars(scene).values() if isinstance(array, np.ndarray))
            if size > room:
                return scene
            kept[which] = scene
            room -= size
        return kept[which]

    return read


def _subset(scenes: Sequence[Scene], which: Sequence[int], read: Callable[[int], Scene]) -> Sequence[Scene]:
    if not isinstance(scenes, Dataset):
        return [read(k) for k in which]
    numbers = {scenes.names[k]: k for k in which}
    return Dataset(list(numbers), lambda name: read(numbers[name]))


DOTS_PER_INCH = 130


def write_text(path: Path, text: str) -> Path:
    """Write text and a final newline; returns the path. What names of files hold that is no valid text is escaped."""
    atomic_write(path, lambda file: file.write(f"{text}\n".encode(errors="backslashreplace")))
    return path


def write_json(path: Path, data: Mapping[str, Any]) -> Path:
    """Write data as JSON, with null for NaN; returns the path."""
    return write_text(path, json.dumps(plain(data), indent=1, allow_nan=False, ensure_ascii=False))


def write_figure(path: Path, figure: "Figure") -> Path:
    """Write a figure as PNG and close it; returns the path."""
    import matplotlib.pyplot as plt

    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
    plt.close(figure)
    atomic_write(path, lambda file: file.write(buffer.getvalue()))
    return path


def file_name(title: str) -> str:
    """Turn a title into a name that every file system accepts.

    Examples
    --------
    >>> file_name("set09/V000/I01139"), file_name("Bi-MIChI mean, polarity learned")
    ('set09-V000-I01139', 'Bi-MIChI-mean-polarity-learned')
    """
    kept = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._-") else " " for sign in title)
    return "-".join(kept.split()).lstrip(".-") or "unnamed"


RESULTS = "results.json"
MEANS = {"AUC": "auc", "AP": "average_precision", "RMSE": "rmse", "ECE": "calibration_error"}  # over several draws
TITLES = ("AUC", "worst AUC", "AP", "RMSE", "ECE")
LEAD = "AP − source"
"""The column of differences to the best source alone."""


@dataclass
class StudyRow(Scored):
    """The result of one method: as `Result`, with scores by name of the test scene, and names of inverted sources.

    `kind` and `labels` are those of `bimichi.methods.registry.Candidate`.
    """

    name: str
    kind: str
    labels: str
    scores: dict[str, Scores] = field(default_factory=dict)
    fit_seconds: float = float("nan")
    fuse_seconds: float = float("nan")
    inverted: list[str] = field(default_factory=list)
    problem: str = ""

    @classmethod
    def of(cls, candidate: Candidate, result: Result, scenes: Sequence[str], sources: Sequence[str]) -> "StudyRow":
        """Make a row of a result on scenes of these names, made of sources of these names."""
        name, kind, labels, _ = candidate
        reached = dict(zip(scenes, result.scores, strict=True)) if result.scores else {}
        signs = () if result.rule is None else result.rule.polarity
        inverted = [source for source, sign in zip(sources, signs, strict=False) if sign < 0]
        return cls(name, kind, labels, reached, result.fit_seconds, result.fuse_seconds, inverted, result.problem)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "StudyRow":
        """Return the row that a results file holds, which writes NaN as null."""
        scores = {name: Scores(**_with_nan(numbers)) for name, numbers in data["scores"].items()}
        return cls(**_with_nan(data) | {"scores": scores})


def _with_nan(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: np.nan if value is None else value for key, value in data.items()}


@dataclass
class StudyResult:
    """The finished rows of a study, and its setting: names of scenes and sources, and the seed; see `run_study`."""

    setting: dict[str, Any]
    rows: list[StudyRow] = field(default_factory=list)

    def __getitem__(self, name: str) -> StudyRow:
        return named_row(self.rows, name, "row")

    def best(self, kind: str, labels: str | None = None, score: str = "auc") -> StudyRow | None:
        """Return the row of largest mean AUC, or other score, of a kind (and of these labels), if there is any."""
        rows = [row for row in self.rows if row.kind == kind and labels in (None, row.labels) and row.scores]
        return max(rows, key=lambda row: row.mean(score), default=None)

    def best_source(self) -> StudyRow | None:
        """Return the single source of largest mean average precision, if there is any."""
        return self.best("source", score="average_precision")

    def lead(self, row: StudyRow) -> Spread | None:
        """Return by how much the average precision exceeds that of the best single source, scene by scene."""
        source = self.best_source()
        if source is None or not row.scores:
            return None
        shared = [name for name in row.scores if name in source.scores]
        pairs = [(row.scores[name], source.scores[name]) for name in shared]
        return spread([own.average_precision - other.average_precision for own, other in pairs])

    def table(self) -> Table:
        """Return all rows; of those that learn from bag labels, the best of each column is bold."""
        fair = [row.labels == "bags" and bool(row.scores) for row in self.rows]
        lines = []
        for row, cells in zip(self.rows, score_cells(self.rows, TITLES, fair, digits=1), strict=True):
            note = row.problem or (f"inverted: {', '.join(row.inverted)}" if row.inverted else "")
            lead = self.lead(row)
            cells.insert(len(TITLES), Cell("" if lead is None else shown_spread(lead, sign=True)))
            lines.append([Cell(row.name), Cell(row.labels), *cells, Cell(note)])
        return Table(["method", "labels", *TITLES, LEAD, "fit s", "fuse s", ""], lines)

    def verdict(self) -> str:
        """Return a sentence on how the best row of Bi-MIChI compares; empty if it was not run."""
        own = self.best("bi-michi")
        if own is None:
            return ""
        rows = {"The best row of Bi-MIChI by mean AUC is ": own, "the best single source is ": self.best("source")}
        parts = [
            f"{start}{row.name}: AUC {row.mean('auc'):.3f}, AP {row.mean('average_precision'):.3f}"
            for start, row in (rows | {"": self.best("boosting", "bags")}).items()
            if row is not None
        ]
        return f"{'; '.join(parts)}."

    def to_markdown(self) -> str:
        """Write the table as Markdown, with notes on how to read it."""
        train, test = self.setting["train"], self.setting["test"]
        scenes = [
            f"Learned from {len(train)} scenes: {', '.join(train)}.",
            f"Scored on {len(test)} others: {', '.join(test)}. Seed {self.setting['seed']}.",
        ]
        return "\n\n".join(["# Study", self.table().to_markdown(), self.verdict(), NOTES, *scenes])

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data; `from_dict` takes them back."""
        rows = [asdict(row) | {"scores": {name: s._asdict() for name, s in row.scores.items()}} for row in self.rows]
        return {"experiment": "study", "setting": self.setting, "rows": rows}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "StudyResult":
        """Return the result that `to_dict` was called on, also from what a JSON file kept of it."""
        return cls(data["setting"], [StudyRow.from_dict(row) for row in data["rows"]])

    def write(self, folder: Path) -> list[Path]:
        """Write the table and results.json into an existing folder; returns their paths."""
        return [write_text(folder / "results.md", self.to_markdown()), write_json(folder / RESULTS, self.to_dict())]


NOTES = (
    "AUC, average precision (AP), RMSE and the expected calibration error (ECE: the mean distance of probabilities to "
    "shares of targets) are means over the test scenes; the worst AUC is the smallest. Rows with "
    "labels of bags never see the truth of a pixel. Targets cover few pixels, so the empty map already has a small "
    "RMSE. Scenes without targets have no AUC, and are only trained on. Of the rows that learn from bag labels, the "
    f"best of each column is bold. “{LEAD}” is the mean difference in AP to the best source alone, scene by scene, "
    "and its standard error."
)


@dataclass
class RepeatedStudy:
    """The results of several draws; each is a `StudyResult` of the same methods."""

    draws: list[StudyResult] = field(default_factory=list)

    def names(self) -> list[str]:
        """Return the names of the methods that ran in every draw, in order."""
        ran = [{row.name for row in draw.rows if row.scores} for draw in self.draws]
        return [row.name for row in self.draws[0].rows if all(row.name in some for some in ran)]

    def means(self, name: str, score: str) -> Floats:
        """Return the mean of a score over the test scenes of each draw."""
        return np.array([draw[name].mean(score) for draw in self.draws])

    def leads(self, name: str) -> Floats:
        """Return the lead in average precision over the best source alone of each draw."""
        leads = [draw.lead(draw[name]) for draw in self.draws]
        return np.array([np.nan if lead is None else lead.mean for lead in leads])

    def table(self) -> Table:
        """Return means over draws with their standard errors, and the worst draw."""
        lines = []
        for name in self.names():
            cells = [shown_spread(spread(self.means(name, score))) for score in MEANS.values()]
            worst = f"{self.means(name, 'average_precision').min():.3f}"
            lead = self.leads(name)
            led = "" if np.isnan(lead).any() else shown_spread(spread(lead), sign=True)
            lines.append([Cell(name), *map(Cell, cells), Cell(worst), Cell(led)])
        return Table(["method", *MEANS, "worst AP", LEAD], lines)

    def to_markdown(self) -> str:
        """Write the table as Markdown, with notes on how to read it."""
        return "\n\n".join([f"# Study of {len(self.draws)} draws", self.table().to_markdown(), NOTES_ON_DRAWS])

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of all draws as plain data."""
        return {"experiment": "repeated study", "draws": [draw.to_dict() for draw in self.draws]}

    def write(self, folder: Path) -> list[Path]:
        """Write the table and repeats.json into an existing folder; returns their paths."""
        return [
            write_text(folder / "repeats.md", self.to_markdown()),
            write_json(folder / "repeats.json", self.to_dict()),
        ]


NOTES_ON_DRAWS = (
    "Each draw learns from other scenes and is scored on others. Numbers are means over draws, with the standard error "
    f"of the mean; the worst AP is that of the worst draw. “{LEAD}” is the difference in AP to the best source alone, "
    "draw by draw."
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
    train, test : sequence of Scene
        With labelled bags and truth. Each test scene must show targets and others, so that AUC is defined; see
        `split_scenes`.
    seed : int, default=0
        Seed of all methods.
    rows : {"all", "bi-michi"}
        Whether to run all methods, or Bi-MIChI alone.
    folder : Path, optional
        An existing folder. Results are written there after each row, and so is the model if it learned a measure.
    resume : bool, default=False
        Whether to resume the study in `folder`: its finished rows are not run again.
    made_by : mapping of str to what JSON can hold, optional
        How the scenes were made; a study is resumed only with scenes made in the same way.
    n_jobs : int, optional
        Number of threads; all cores by default.
    progress : callable, optional
        Receives one line for each method that has learned, and for each scene that it is scored on.

    Notes
    -----
    Bi-MIChI reads training scenes one at a time, and so does scoring, so that `Dataset` need not fit in memory. Methods
    that learn from instances hold them all: 640 x 480 pixels of six sources take 7 MB per scene.
    """
    check_folder(folder, resume)
    for scene in test:
        if not shows_both(scene):
            raise InvalidInputError(
                f"Test scene {scene.name!r} needs a truth with targets and others; leave it out.",
                code="truth-one-class",
            )
    names = test[0].source_names
    setting: dict[str, Any] = {"train": names_of(train), "test": names_of(test), "sources": list(names), "seed": seed}
    setting["way of making scenes"] = dict(made_by or {})
    result = StudyResult(setting, _finished_rows(folder, setting) if resume and folder is not None else [])
    done = {row.name for row in result.rows}
    left = {row.name: row for row in candidates(names, rows, seed, n_jobs)}
    for name in [name for name in left if name in done]:
        progress(f"{name}: done before")
        del left[name]
    data = TrainingData(train, list(left.values()), pixels="bags", in_parts=True)
    for outcome in evaluate(list(left.values()), data, test, progress=progress):
        result.rows.append(StudyRow.of(left[outcome.name], outcome, setting["test"], names))
        if folder is not None:
            if outcome.rule is not None:
                outcome.rule.save(folder / f"{file_name(outcome.name)}.json")
            result.write(folder)
    return result


def check_folder(folder: Path | None, resume: bool) -> None:
    """Raise if a study cannot be written to this folder; call it before scenes are read, to fail early."""
    if folder is None and resume:
        raise InvalidInputError("resume=True needs the folder of the study to resume.", code="resume-folder")
    if folder is not None and not resume and (folder / RESULTS).exists():
        raise InvalidInputError(
            f"{folder} holds results already; resume them, or choose another folder.", code="study-exists"
        )


def _finished_rows(folder: Path, setting: dict[str, Any]) -> list[StudyRow]:
    """Return rows of an earlier run of the same study, which need not be run again."""
    path = folder / RESULTS
    if not path.exists():
        return []
    try:
        earlier = StudyResult.from_dict(json.loads(path.read_text(encoding="utf-8")))
        earlier.to_markdown()  # fails here, rather than after the work, if values have wrong types
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        said = f"{path} does not hold the results of a study: {error!r}. Choose another folder."
        raise InvalidInputError(said, code="study-unreadable") from error
    for key, value in setting.items():
        if earlier.setting.get(key) != value:
            difference = f"{folder} holds a study with another {key}: {earlier.setting.get(key)}, not {value}"
            raise InvalidInputError(
                f"{difference}. Resume it with its own options, or choose another folder.", code="study-differs"
            )
    return [row for row in earlier.rows if not row.problem]
