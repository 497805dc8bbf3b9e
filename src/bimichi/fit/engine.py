"""Cross-validation of candidates over scenes, with single sources beside them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Floats, Ints
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.fit.calibrate import platt
from bimichi.fit.candidates import Candidate, best_sources, scored_anew, source_links, with_sources
from bimichi.fit.direction import Spread, make_folds, spread
from bimichi.fit.objectives import Objective
from bimichi.fit.parts import Part
from bimichi.fit.prepare import Material, Prepared, PreparedTraining, Signed, Unit, prepare, samples_of
from bimichi.fit.solvers import ConvexSolver
from bimichi.fit.streaming import in_threads
from bimichi.fit.train import FitResult, fit_measure
from bimichi.integral.integrals import integrate
from bimichi.link import Link
from bimichi.rule import FusionRule
from bimichi.scenes.bags import Bags
from bimichi.scenes.sample import FEW, Sample, bag_groups, grouped_bags, select_bags

QUICK = ConvexSolver(n_starts=1, moves=False, tolerance=1e-3)
"""How candidates are compared: scores differ by less than their errors over scenes. The chosen one is learned fully."""

EARLY = 2  # folds after which candidates that are clearly behind are not learned any more
BEHIND = 3.0  # standard errors of the mean difference to the leader, scene by scene
LEAST = 4  # scenes that it takes to call a candidate clearly behind


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
        Of each unit with targets, learned without it; of those of the first folds, if it was clearly behind in these.
    problem : str
        Why there are no scores, or only those of the first folds.
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

    @property
    def summary(self) -> str:
        """One line for the log."""
        return f"{self.name}: {self.problem or f'AP {self.score.mean:.3f}'}"


class _Scored(NamedTuple):
    """Which candidate was scored on a block, what was learned without it, or why nothing, and (AP, AUC) by unit."""

    which: int
    result: FitResult | str
    scores: Floats


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

    Attributes
    ----------
    alone : ndarray of shape (2, n_units, n_sources)
        Average precision and AUC of every source alone in every unit, NaN in those without targets.
    """

    def __init__(self, units: Sequence[Unit], n_folds: int, seed: int, n_jobs: int) -> None:
        self.units, self.seed, self.n_jobs = units, seed, n_jobs
        self.folds = make_folds([unit.sample for unit in units], n_folds)
        self.n_sources = units[0].sample.targets.shape[1]
        self.scored: Ints = np.sort(np.concatenate(self.folds)) if self.folds else np.empty(0, np.int64)
        self.alone = self._scores_alone()
        self._links: dict[Any, dict[int, Link]] = {}  # of sources alone, by what they were fitted to

    def _scores_alone(self) -> Floats:
        found = np.full((2, len(self.units), self.n_sources), np.nan)
        for u in self.scored:
            one = self._sample(u, "given")
            found[:, u] = np.array([one.score(one.targets[:, k], one.others[:, k]) for k in range(self.n_sources)]).T
        return found

    def sources(self, names: Sequence[str], signs: Floats) -> list[Row]:
        """Score every source alone, with its sign."""
        rows = []
        for k, (name, sign) in enumerate(zip(names, signs, strict=True)):
            title = f"source {name}" + (", inverted" if sign < 0 else "")
            ap, auc = self.alone[:, self.scored, k]
            rows.append(Row(title, {"source": k, "sign": int(sign)}, ap, auc))
        return rows

    def candidates(self, candidates: Sequence[Candidate], progress: Callable[[str], None] | None) -> list[Row]:
        """Learn and score each candidate in each fold, unless it is clearly behind in the first ones."""
        rows = [Row(candidate.name, candidate.parameters) for candidate in candidates]
        folds = range(len(self.folds))
        for stage in (folds[:EARLY], folds[EARLY:]):
            wanted: dict[Candidate, list[int]] = {}  # averages share what is learned
            for c, candidate in enumerate(candidates):
                if not rows[c].problem:
                    wanted.setdefault(candidate.alone, []).append(c)
            tasks = [(one, f) for one in wanted for f in stage]

            def run(task: tuple[Candidate, int], wanted: dict[Candidate, list[int]] = wanted) -> list[_Scored]:
                return self._scored(task[0], [(c, candidates[c]) for c in wanted[task[0]]], self.folds[task[1]])

            for (_, f), found in zip(tasks, in_threads(run, tasks, self.n_jobs), strict=True):
                for one in found:
                    _add(rows[one.which], one)
                    if progress is not None and f == folds[-1]:
                        progress(rows[one.which].summary)
            if stage and stage[-1] < folds[-1]:
                behind = _leave_behind(rows, len(stage), len(folds))
                if progress is not None:
                    for row in behind:
                        progress(row.summary)
        return rows

    def _scored(self, alone: Candidate, wanted: Sequence[tuple[int, Candidate]], block: Ints) -> list[_Scored]:
        """Learn without a block, and score on it: a candidate, and what it is averaged to."""
        units = [u for u in range(len(self.units)) if u not in set(block.tolist())]
        try:
            learned = self.learn(alone, units, quick=True)
        except BimichiError as error:  # of one candidate; the others go on
            return [_Scored(c, str(error), np.empty((0, 2))) for c, _ in wanted]
        samples = [self._sample(u, alone.sources) for u in block]
        found = []
        for c, candidate in wanted:
            made = self.averaged(candidate, units, learned)
            scores = [one.score(*outputs(one, alone.problem, made)) for one in samples]
            found.append(_Scored(c, made, np.array(scores)))
        return found

    def learn(self, candidate: Candidate, units: Sequence[int], quick: bool = False, **more: Any) -> FitResult:
        """Learn from some units; a quick search has one start."""
        filled = self._filled(candidate, units)
        labels = np.concatenate([part.labels for part in filled]) if filled else np.empty(0, bool)
        if labels.all() or not labels.any():
            raise InvalidInputError(
                "What is left to learn from has bags of one class only; label more of the other.", code="one-class"
            )
        solver = QUICK if quick else ConvexSolver()
        training = PreparedTraining(filled, self.n_sources)
        more |= {"n_jobs": 1, "verbose": -1} if quick else {"n_jobs": self.n_jobs}  # the final fit warns, folds do not
        return fit_measure(training, candidate.problem, solver, random_state=self.seed, **more)

    def learn_all(self, candidate: Candidate, names: Sequence[str] | None) -> FitResult:
        """Learn from all units, and average with the best sources if the candidate says so."""
        every = range(len(self.units))
        result = self.learn(candidate, every, names=names)
        if not candidate.averaged:
            return result
        problem = PreparedTraining(self._filled(candidate, every), self.n_sources).problem(candidate.problem)
        return scored_anew(self.averaged(candidate, every, result), problem)

    def averaged(self, candidate: Candidate, units: Sequence[int], result: FitResult) -> FitResult:
        """Return what was learned from some units, averaged with their best sources if the candidate says so."""
        scores = self.alone[0, list(units)]
        known = ~np.isnan(scores[:, 0])
        if not candidate.averaged or not known.any():
            return result
        key = (candidate.sources, candidate.labels, *units)  # not the additivity: all learn from the same rows
        if key not in self._links:
            parts = [part.content for part in self._filled(candidate, units)]
            self._links[key] = source_links(parts, best_sources(scores[known]))
        return with_sources(result, candidate.problem, self._links[key])

    def _filled(self, candidate: Candidate, units: Sequence[int]) -> list[Prepared]:
        parts = [self.units[u].prepared.get(candidate.alone) for u in units]
        return [part for part in parts if part is not None]

    def calibrated(self, row: Row, candidate: Candidate | None, own: Link | None = None) -> Link | None:
        """Fit a link to outputs for units that were not learned from; None if none fits.

        Slopes of folds differ, but their log-odds are on one scale: with the link of what was learned from all units,
        if it has one, these become the outputs that it would have such log-odds for.
        """
        found = []
        limit = max(1000, FEW // max(1, len(self.scored)))
        for f, block in enumerate(self.folds):
            for u in block:
                one = self._sample(u, row.parameters.get("sources", "given")).few(limit)
                if candidate is None:
                    k = row.parameters["source"]
                    values = one.targets[:, k], one.others[:, k]
                else:
                    values = outputs(one, candidate.problem, row.learned[f])
                    fold = row.learned[f].solution.link
                    if own is not None and fold is not None:
                        values = own.output(fold.log_odds(values[0])), own.output(fold.log_odds(values[1]))
                found.append((*one.decisive(*values), one.shares))
        return platt(found, all(unit.sample.offsets is None for unit in self.units))

    def calibrated_in_sample(self, candidate: Candidate, result: FitResult) -> Link | None:
        """Fit a link to outputs for the data that were learned from, where nothing can be left out."""
        samples = [self._sample(u, candidate.sources).few(FEW) for u in range(len(self.units))]
        found = [(*one.decisive(*outputs(one, candidate.problem, result)), one.shares) for one in samples]
        return platt(found, all(one.offsets is None for one in samples))

    def _sample(self, u: int, sources: str) -> Sample:
        unit = self.units[u]
        if sources == "given":
            return unit.sample
        assert unit.rarity is not None  # or the candidate would not be compared
        return unit.rarity


def _add(row: Row, found: _Scored) -> None:
    """Add what was learned without one block, or why nothing was."""
    if isinstance(found.result, str):
        row.problem = found.result
    if row.problem:
        row.ap = row.auc = np.empty(0)
    else:
        row.learned.append(found.result)  # type: ignore[arg-type]
        row.ap, row.auc = (np.append(old, new) for old, new in zip((row.ap, row.auc), found.scores.T, strict=True))


def _leave_behind(rows: Sequence[Row], done: int, n_folds: int) -> list[Row]:
    """Mark and return those so far behind the leader that the other folds would not make them the choice."""
    scored = [row for row in rows if not row.problem]
    best = max(scored, key=lambda row: row.score.mean, default=None)
    if best is None or len(best.ap) < LEAST:
        return []
    leads = [spread(best.ap - row.ap) for row in scored]
    behind = [row for row, lead in zip(scored, leads, strict=True) if lead.mean > BEHIND * lead.error]
    for row in behind:
        row.problem = f"clearly behind after {done} of {n_folds} folds"
    return behind


def outputs(sample: Sample, objective: Objective, result: FitResult) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return C, or |C|, of the rows of a sample."""
    found = [integrate(rows, result.measure, n_jobs=1) for rows in (sample.targets, sample.others)]
    first, second = (abs(one) if objective.absolute else one for one in found)
    return first, second


def prepare_all(units: Sequence[Unit], candidates: Sequence[Candidate], n_scenes: int) -> None:
    """Make what each candidate learns from, and release the bags."""
    few = max(1000, FEW // max(1, n_scenes))
    for unit in units:
        shared: dict[Any, Any] = {}
        for candidate in dict.fromkeys(one.alone for one in candidates):
            unit.prepared[candidate] = prepare(unit, candidate, few, shared)
        unit.bags = None


Fit = Callable[[Any], FusionRule]


def link_of_bags(bags: Bags, fit: Fit, n_folds: int) -> Link | None:
    """Return the link of a method that `fit` applies to bags; None if nothing can be left out, or no line fits."""
    group = bag_groups(bags, None, n_folds)
    samples = grouped_bags("", bags, group)
    numbers = np.unique(group)
    return _link(samples, n_folds, lambda block: fit(select_bags(bags, ~np.isin(group, numbers[block]))))


def link_of_scenes(items: Sequence[Any], fit: Fit, n_folds: int, nan: Any, n_jobs: int) -> Link | None:
    """Return the same of scenes, in any form that `bimichi.fit.parts.read_part` takes."""
    material = Material(items, 1, None, nan, n_jobs)
    room = max(1000, FEW // max(1, len(items)))

    def sampled(part: Part) -> Sample:
        return samples_of(part, material, Signed(None, np.ones(part.n_sources)), room)[0]

    samples = list(material.parts(sampled))
    return _link(samples, n_folds, lambda block: fit([item for k, item in enumerate(items) if k not in set(block)]))


def _link(samples: Sequence[Sample], n_folds: int, fit: Callable[[Any], FusionRule]) -> Link | None:
    folds = make_folds(samples, n_folds)
    if len(folds) < 2:
        return None
    found = []
    for block in folds:
        rule = fit(block)
        for one in (samples[k] for k in block):
            sides = (rule.integral(rows) for rows in (one.targets, one.others))
            values = (abs(side) if rule.output == "magnitude" else side for side in sides)
            found.append((*one.decisive(*values), one.shares))
    return platt(found, all(one.offsets is None for one in samples))
