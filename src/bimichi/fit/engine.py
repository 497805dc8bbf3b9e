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
from bimichi.fit.direction import Signs, Spread, make_folds, spread
from bimichi.fit.objectives import Objective
from bimichi.fit.solvers import ConvexSolver
from bimichi.fit.train import FitResult, Reduced, Training, fit_measure, reduce_bags
from bimichi.integral.integrals import integrate
from bimichi.integral.planes import in_threads
from bimichi.link import Link
from bimichi.rule import FusionRule
from bimichi.scenes.bags import Bags
from bimichi.scenes.dataset import Dataset, Part
from bimichi.scenes.sample import FEW, ROOM, Division, PlaneScale, Sample, Scale, bag_groups, grouped_bags, select_bags

QUICK = ConvexSolver(n_starts=1, moves=False, tolerance=1e-3)
"""Compares candidates: scores differ by less than their errors over scenes. The chosen one is learned fully."""

EARLY = 2  # folds after which candidates that are clearly behind are not learned any more
BEHIND = 3.0  # standard errors of the mean difference to the leader, scene by scene
LEAST = 4  # scenes that it takes to call a candidate clearly behind


@dataclass(frozen=True)
class How:
    """Options of a choice: the parameters of `bimichi.BiMIChICV`."""

    candidates: Sequence[Any] | None = None
    n_folds: int = 5
    polarity: str = "learn"
    calibrate: bool = True
    scale: str | None = None
    names: Sequence[str] | None = None
    seed: int = 0
    n_jobs: int = 1
    rare: PlaneScale | None = None
    progress: Callable[[str], None] | None = None
    additivity: int | None = None


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
        """Return whether it is a source alone."""
        return "source" in self.parameters

    @property
    def score(self) -> Spread:
        """Mean average precision and its standard error; minus infinity without any."""
        return spread(self.ap) if len(self.ap) else Spread(-np.inf, np.nan)

    @property
    def summary(self) -> str:
        """One line for the log."""
        return f"{self.name}: {self.problem or f'AP {self.score.mean:.3f}'}"


@dataclass(eq=False)
class Unit:
    """A scene, or a group of bags, that is left out as a whole.

    Attributes
    ----------
    sample : Sample
        Rows to score by, with sources as given.
    rarity : Sample, optional
        The same rows, each value by how rare it is.
    reduced : dict
        What each candidate learns from; None if there is nothing.
    """

    sample: Sample
    rarity: Sample | None = None
    reduced: dict[Candidate, Reduced | None] = field(default_factory=dict)

    def rows(self, sources: str) -> Sample:
        """Return the rows that candidates of these sources are scored by."""
        if sources == "given":
            return self.sample
        assert self.rarity is not None  # or the candidate would not be compared
        return self.rarity


def units_of(
    part: Part,
    division: Division,
    candidates: Sequence[Candidate],
    n_parts: int,
    scale: Scale | None,
    signs: Floats,
    rare: PlaneScale | None,
) -> list[Unit]:
    """Return the units of a part, reduced to what each candidate learns from."""
    room = max(1000, ROOM // max(1, n_parts))
    samples = division.samples(part, room, scale, signs)
    ranked: Sequence[Sample | None] = [None] * len(samples)
    if (
        rare is not None
        and samples[0].offsets is None
        and any(contender.sources == "rarity" for contender in candidates)
    ):
        ranked = division.ranked(part, room, scale, signs, rare)
    units = [Unit(*pair) for pair in zip(samples, ranked, strict=True)]
    bags: Sequence[Bags | None] = [None] * len(units)
    if any(contender.labels == "bags" for contender in candidates):
        bags = division.bags(part, len(units), scale, signs)
    few = max(1000, FEW // max(1, n_parts, len(units)))
    for unit, own in zip(units, bags, strict=True):
        shared: dict[Any, dict[str, Any]] = {}  # what several candidates need
        for candidate in dict.fromkeys(contender.alone for contender in candidates):
            rows = own if candidate.labels == "bags" else _drawn_bags(unit.rows(candidate.sources).few(few))
            kept = None
            if rows is not None:
                same = shared.setdefault((candidate.labels, candidate.sources), {})
                kept = reduce_bags(rows, candidate.problem, candidate.keep, 1, same)
            unit.reduced[candidate] = kept
    return units


def _drawn_bags(sample: Sample) -> Bags | None:
    return sample.as_bags() if len(sample.targets) + len(sample.others) else None


class _Scored(NamedTuple):
    """The number of a candidate, what it learned without a block, or why nothing, and (AP, AUC) on its units."""

    which: int
    result: FitResult | str
    scores: Floats


class CrossValidation:
    """Candidates, learned without each block of units in turn and scored on it.

    Parameters
    ----------
    units : sequence of Unit
        All scenes or groups of bags, with sources scaled and inverted.
    candidates : sequence of Candidate
        What units were reduced for.
    signs, scale : Signs and Scale
        How sources enter.
    how : How
        Folds, seed, names, and so on; results do not depend on the number of threads.

    Attributes
    ----------
    alone : ndarray of shape (2, n_units, n_sources)
        Average precision and AUC of every source alone in every unit, NaN in those without targets.
    """

    def __init__(
        self, units: Sequence[Unit], candidates: Sequence[Candidate], signs: Signs, scale: Scale, how: How
    ) -> None:
        self.units, self.candidates, self.signs, self.scale, self.how = units, candidates, signs, scale, how
        self.folds = make_folds([unit.sample for unit in units], how.n_folds)
        self.n_sources = units[0].sample.targets.shape[1]
        self.names = [*(how.names or [str(k + 1) for k in range(self.n_sources)])]
        self.scored: Ints = np.sort(np.concatenate(self.folds)) if self.folds else np.empty(0, np.int64)
        self.alone = self._scores_alone()
        self._links: dict[Any, dict[int, Link]] = {}  # of sources alone, by what they were fitted to

    def _scores_alone(self) -> Floats:
        scores = np.full((2, len(self.units), self.n_sources), np.nan)
        for u in self.scored:
            rows = self.units[u].sample
            alone = [rows.score(rows.targets[:, k], rows.others[:, k]) for k in range(self.n_sources)]
            scores[:, u] = np.array(alone).T
        return scores

    def score_sources(self) -> list[Row]:
        """Score every source alone, with its sign."""
        rows = []
        for k, (name, sign) in enumerate(zip(self.names, self.signs.signs, strict=True)):
            title = f"source {name}" + (", inverted" if sign < 0 else "")
            ap, auc = self.alone[:, self.scored, k]
            rows.append(Row(title, {"source": k, "sign": int(sign)}, ap, auc))
        return rows

    def score_candidates(self) -> list[Row]:
        """Learn and score each candidate in each fold, unless it is clearly behind in the first ones."""
        candidates, progress = self.candidates, self.how.progress
        rows = [Row(candidate.name, candidate.parameters) for candidate in candidates]
        folds = range(len(self.folds))
        for stage in (folds[:EARLY], folds[EARLY:]):
            wanted: dict[Candidate, list[int]] = {}  # averages share what is learned
            for c, candidate in enumerate(candidates):
                if not rows[c].problem:
                    wanted.setdefault(candidate.alone, []).append(c)
            tasks = [(alone, f) for alone in wanted for f in stage]

            def run(task: tuple[Candidate, int], wanted: dict[Candidate, list[int]] = wanted) -> list[_Scored]:
                return self._scored(task[0], [(c, candidates[c]) for c in wanted[task[0]]], self.folds[task[1]])

            for (_, f), results in zip(tasks, in_threads(run, tasks, self.how.n_jobs), strict=True):
                for alone in results:
                    _add(rows[alone.which], alone)
                    if progress is not None and f == folds[-1]:
                        progress(rows[alone.which].summary)
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
        samples = [self.units[u].rows(alone.sources) for u in block]
        results = []
        for c, candidate in wanted:
            result = self.averaged(candidate, units, learned)
            scores = [sample.score(*outputs(sample, alone.problem, result)) for sample in samples]
            results.append(_Scored(c, result, np.array(scores)))
        return results

    def learn(self, candidate: Candidate, units: Sequence[int], quick: bool = False, **more: Any) -> FitResult:
        """Learn from some units; a quick search has one start."""
        parts = self._reduced(candidate, units)
        labels = np.concatenate([part.labels for part in parts]) if parts else np.empty(0, bool)
        if labels.all() or not labels.any():
            raise InvalidInputError(
                "What is left to learn from has bags of one class only; label more of the other.", code="one-class"
            )
        solver = QUICK if quick else ConvexSolver()
        more |= (
            {"n_jobs": 1, "verbose": -1} if quick else {"n_jobs": self.how.n_jobs}
        )  # the final fit warns, folds do not
        problem = Training(parts).problem(candidate.problem, candidate.keep, more["n_jobs"])
        return fit_measure(problem, solver, random_state=self.how.seed, **more)

    def learn_all(self, candidate: Candidate) -> FitResult:
        """Learn from all units, and average with the best sources if the candidate says so."""
        every = range(len(self.units))
        result = self.learn(candidate, every, names=self.how.names)
        if not candidate.averaged:
            return result
        problem = Training(self._reduced(candidate, every)).problem(candidate.problem, candidate.keep)
        return scored_anew(self.averaged(candidate, every, result), problem)

    def averaged(self, candidate: Candidate, units: Sequence[int], result: FitResult) -> FitResult:
        """Return what was learned from some units, averaged with their best sources if the candidate says so."""
        scores = self.alone[0, list(units)]
        scored = ~np.isnan(scores[:, 0])
        if not candidate.averaged or not scored.any():
            return result
        key = (candidate.sources, candidate.labels, *units)  # not the additivity: all learn from the same rows
        if key not in self._links:
            parts = [part.content for part in self._reduced(candidate, units)]
            self._links[key] = source_links(parts, best_sources(scores[scored]))
        return with_sources(result, candidate.problem, self._links[key])

    def _reduced(self, candidate: Candidate, units: Sequence[int]) -> list[Reduced]:
        parts = [self.units[u].reduced.get(candidate.alone) for u in units]
        return [part for part in parts if part is not None]

    def calibrated(self, row: Row, candidate: Candidate | None, own: Link | None = None) -> Link | None:
        """Fit a link to outputs for units that were not learned from; None if none fits.

        Slopes of folds differ, but their log-odds are on one scale: with the link of what was learned from all units,
        if it has one, these become the outputs that it would have such log-odds for.
        """
        scored = []
        limit = max(1000, FEW // max(1, len(self.scored)))
        for f, block in enumerate(self.folds):
            for u in block:
                sample = self.units[u].rows(row.parameters.get("sources", "given")).few(limit)
                if candidate is None:
                    k = row.parameters["source"]
                    values = sample.targets[:, k], sample.others[:, k]
                else:
                    values = outputs(sample, candidate.problem, row.learned[f])
                    fold = row.learned[f].solution.link
                    if own is not None and fold is not None:
                        values = own.output(fold.log_odds(values[0])), own.output(fold.log_odds(values[1]))
                scored.append((*sample.decisive(*values), sample.shares))
        return platt(scored, all(unit.sample.offsets is None for unit in self.units))

    def calibrated_in_sample(self, candidate: Candidate, result: FitResult) -> Link | None:
        """Fit a link to outputs for the data that were learned from, where nothing can be left out."""
        samples = [unit.rows(candidate.sources).few(FEW) for unit in self.units]
        scored = [(*sample.decisive(*outputs(sample, candidate.problem, result)), sample.shares) for sample in samples]
        return platt(scored, all(sample.offsets is None for sample in samples))


def _add(row: Row, scored: _Scored) -> None:
    """Add what was learned without one block, or why nothing was."""
    if isinstance(scored.result, str):
        row.problem = scored.result
    if row.problem:
        row.ap = row.auc = np.empty(0)
    else:
        row.learned.append(scored.result)  # type: ignore[arg-type]
        row.ap, row.auc = (np.append(old, new) for old, new in zip((row.ap, row.auc), scored.scores.T, strict=True))


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
    sides = [integrate(rows, result.measure, n_jobs=1) for rows in (sample.targets, sample.others)]
    targets, others = (abs(side) if objective.absolute else side for side in sides)
    return targets, others


Fit = Callable[[Any], FusionRule]


def link_of_bags(bags: Bags, fit: Fit, n_folds: int) -> Link | None:
    """Return the link of a method that `fit` applies to bags; None if nothing can be left out, or no line fits."""
    group = bag_groups(bags, None, n_folds)
    samples = grouped_bags("", bags, group)
    numbers = np.unique(group)
    return _link(samples, n_folds, lambda block: fit(select_bags(bags, ~np.isin(group, numbers[block]))))


def link_of_scenes(data: Dataset, fit: Fit, n_folds: int, n_jobs: int) -> Link | None:
    """Return the same of the scenes of a dataset."""
    room = max(1000, FEW // max(1, len(data)))
    samples = list(data.apply(lambda part: Division(1).samples(part, room)[0], n_jobs))
    return _link(samples, n_folds, lambda block: fit(data.select(k for k in range(len(data)) if k not in set(block))))


def _link(samples: Sequence[Sample], n_folds: int, fit: Callable[[Any], FusionRule]) -> Link | None:
    folds = make_folds(samples, n_folds)
    if len(folds) < 2:
        return None
    scored = []
    for block in folds:
        rule = fit(block)
        for sample in (samples[k] for k in block):
            sides = (rule.integral(rows) for rows in (sample.targets, sample.others))
            values = (abs(side) if rule.output == "magnitude" else side for side in sides)
            scored.append((*sample.decisive(*values), sample.shares))
    return platt(scored, all(sample.offsets is None for sample in samples))
