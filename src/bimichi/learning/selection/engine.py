"""Cross-validation of candidates over scenes, with single sources beside them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Floats, Ints
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.integral.integrals import integrate
from bimichi.learning.calibration import platt
from bimichi.learning.fit import FitResult, fit_measure
from bimichi.learning.folds import Spread, make_folds, spread
from bimichi.learning.objectives import Objective
from bimichi.learning.samples import FEW, Sample
from bimichi.learning.selection.candidates import Candidate
from bimichi.learning.selection.preparing import PreparedTraining, prepare
from bimichi.learning.selection.units import Unit
from bimichi.learning.solvers import ConvexSolver
from bimichi.learning.streaming import in_threads
from bimichi.link import Link

STARTS = 3  # of the convex search while candidates are compared; the chosen one is learned with all starts


@dataclass(eq=False)
class Row:
    """A contender: a candidate, or a source alone, with its scores on left-out units.

    Attributes
    ----------
    name : str
        What tables call it.
    parameters : dict
        Of the candidate; or the number of the source, and its sign.
    ap, auc : ndarray
        Of each unit with targets, learned without it.
    problem : str
        Why there are no scores.
    """

    name: str
    parameters: dict[str, Any]
    ap: Floats = field(default_factory=lambda: np.empty(0))
    auc: Floats = field(default_factory=lambda: np.empty(0))
    problem: str = ""
    learned: list[FitResult] = field(default_factory=list, repr=False)

    @property
    def is_source(self) -> bool:
        """Whether it is a source alone."""
        return "source" in self.parameters

    @property
    def score(self) -> Spread:
        """Mean average precision and its standard error; minus infinity without any."""
        return spread(self.ap) if len(self.ap) else Spread(-np.inf, np.nan)


class CrossValidation:
    """Candidates, learned without each block of units in turn and scored on it.

    Parameters
    ----------
    units : sequence of Unit
        All scenes or groups of bags.
    n_folds : int
        How many blocks are left out in turn, at most.
    seed : int
        Of solvers.
    n_jobs : int
        Number of threads; results do not depend on it.
    """

    def __init__(self, units: Sequence[Unit], n_folds: int, seed: int, n_jobs: int) -> None:
        self.units, self.seed, self.n_jobs = units, seed, n_jobs
        self.folds = make_folds([unit.sample for unit in units], n_folds)
        self.n_sources = units[0].sample.targets.shape[1]
        self.scored: Ints = np.sort(np.concatenate(self.folds)) if self.folds else np.empty(0, np.int64)

    def sources(self, names: Sequence[str], signs: Floats) -> list[Row]:
        """Score every source alone, with its sign."""
        rows = []
        for k, (name, sign) in enumerate(zip(names, signs, strict=True)):
            title = f"source {name}" + (", inverted" if sign < 0 else "")
            found = [self._sample(u, "given") for u in self.scored]
            scores = [one.score(one.targets[:, k], one.others[:, k]) for one in found]
            ap, auc = np.array(scores).reshape(-1, 2).T
            rows.append(Row(title, {"source": k, "sign": int(sign)}, ap, auc))
        return rows

    def candidates(self, candidates: Sequence[Candidate], progress: Callable[[str], None] | None) -> list[Row]:
        """Learn and score each candidate in each fold."""
        rows = [Row(candidate.name, candidate.parameters) for candidate in candidates]
        tasks = [(c, f) for c in range(len(candidates)) for f in range(len(self.folds))]

        def run(task: tuple[int, int]) -> tuple[FitResult, Floats] | str:
            candidate, block = candidates[task[0]], self.folds[task[1]]
            left_out = set(block.tolist())
            try:
                result = self.learn(candidate, [u for u in range(len(self.units)) if u not in left_out], quick=True)
            except BimichiError as error:  # of one candidate; the others go on
                return str(error)
            return result, np.array([self._score(u, candidate, result) for u in block])

        for (c, f), found in zip(tasks, in_threads(run, tasks, self.n_jobs), strict=True):
            if isinstance(found, str):
                rows[c].problem = found
            elif not rows[c].problem:
                rows[c].learned.append(found[0])
                rows[c].ap, rows[c].auc = (
                    np.append(old, new) for old, new in zip((rows[c].ap, rows[c].auc), found[1].T, strict=True)
                )
            if rows[c].problem:
                rows[c].ap = rows[c].auc = np.empty(0)
            if progress is not None and f == len(self.folds) - 1:
                row = rows[c]
                progress(f"{row.name}: {row.problem or f'AP {row.score.mean:.3f}'}")
        return rows

    def learn(self, candidate: Candidate, units: Sequence[int], quick: bool = False, **more: Any) -> FitResult:
        """Learn from some units; a quick search has fewer starts."""
        parts = [self.units[u].prepared.get(candidate) for u in units]
        filled = [part for part in parts if part is not None]
        labels = np.concatenate([part.labels for part in filled]) if filled else np.empty(0, bool)
        if labels.all() or not labels.any():
            raise InvalidInputError("What is left to learn from has bags of one class only; label more of the other.")
        solver = ConvexSolver(STARTS) if quick else ConvexSolver()
        training = PreparedTraining(filled, self.n_sources)
        more |= {"n_jobs": 1, "verbose": -1} if quick else {"n_jobs": self.n_jobs}  # the final fit warns, folds do not
        return fit_measure(training, candidate.problem, solver, random_state=self.seed, **more)

    def calibrated(self, row: Row, candidate: Candidate | None, signs: Floats) -> Link | None:
        """Fit a link to outputs for units that were not learned from, or to their log-odds; None if none fits."""
        targets, others, shares = [], [], []
        limit = max(1000, FEW // max(1, len(self.scored)))
        for f, block in enumerate(self.folds):
            for u in block:
                one = self._sample(u, row.parameters.get("sources", "given")).few(limit)
                if candidate is None:
                    k = row.parameters["source"]
                    values = one.targets[:, k], one.others[:, k]
                else:
                    values = outputs(one, candidate.problem, row.learned[f])
                    own = row.learned[f].solution.link
                    if own is not None:  # slopes of folds differ, log-odds are on one scale
                        values = own.log_odds(values[0]), own.log_odds(values[1])
                first, second = one.decisive(*values)
                targets.append(first)
                others.append(second)
                shares.append(one.shares)
        return platt(targets, others, shares)

    def calibrated_in_sample(self, candidate: Candidate, result: FitResult) -> Link | None:
        """Fit a link to outputs for the data that were learned from, where nothing can be left out."""
        samples = [self._sample(u, candidate.sources).few(FEW) for u in range(len(self.units))]
        pairs = [one.decisive(*outputs(one, candidate.problem, result)) for one in samples]
        return platt([first for first, _ in pairs], [second for _, second in pairs], [one.shares for one in samples])

    def _sample(self, u: int, sources: str) -> Sample:
        unit = self.units[u]
        if sources == "given":
            return unit.sample
        assert unit.rarity is not None  # or the candidate would not be compared
        return unit.rarity

    def _score(self, u: int, candidate: Candidate, result: FitResult) -> tuple[float, float]:
        one = self._sample(u, candidate.sources)
        return one.score(*outputs(one, candidate.problem, result))


def outputs(sample: Sample, objective: Objective, result: FitResult) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return C, or |C|, of the rows of a sample."""
    found = [integrate(rows, result.measure, n_jobs=1) for rows in (sample.targets, sample.others)]
    first, second = (abs(one) if objective.absolute else one for one in found)
    return first, second


def prepare_all(units: Sequence[Unit], candidates: Sequence[Candidate], n_scenes: int) -> None:
    """Make what each candidate learns from, and release the bags."""
    few = max(1000, FEW // max(1, n_scenes))
    for unit in units:
        for candidate in candidates:
            unit.prepared[candidate] = prepare(unit, candidate, few)
        unit.bags = None
