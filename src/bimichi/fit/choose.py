"""From training data to the fusion that holds best on scenes it has not seen."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Self

import numpy as np
from scipy import stats

from bimichi._html import Cell, Table
from bimichi._progress import one_blas_thread
from bimichi.errors import InvalidInputError, warn
from bimichi.fit.candidates import Candidate, check_candidates, default_candidates, source_terms
from bimichi.fit.direction import Signs, Spread, shown_spread, spread, trusted_signs
from bimichi.fit.engine import CrossValidation, How, Row, Unit, units_of
from bimichi.fit.objectives import MEAN, Objective
from bimichi.fit.problem import Solution
from bimichi.fit.train import FitResult, Reduced, Training, summarise
from bimichi.link import Link
from bimichi.measures.additive import AdditiveBiCapacity
from bimichi.record import Status
from bimichi.scenes.dataset import Dataset, Part
from bimichi.scenes.sample import Division, Sample, Scale, learn_scale

KEPT = 1 << 30  # bytes of scenes that stay in memory
LOOK = 50_000  # rows of each kind and scene by which signs are decided

SURE = 0.975  # the quantile of Student's distribution by which a lead is clear: two standard errors of many scenes
LIMIT = 10_000  # numbers that a model file may hold of each contender
_PART = re.compile(r"(^|, )part \d+$")  # how samples name groups of bags, and strips of a scene


@dataclass(frozen=True)
class Contender:
    """A candidate, or a source alone, and its scores on scenes that it has not learned from."""

    name: str
    is_source: bool
    ap: tuple[float, ...]
    auc: tuple[float, ...]
    problem: str = ""

    @property
    def score(self) -> Spread:
        """Mean average precision, and its standard error over scenes."""
        return spread(self.ap)


@dataclass(frozen=True)
class Selection:
    """The outcome of a cross-validated choice.

    Attributes
    ----------
    contenders : tuple of Contender
        Candidates and single sources, in the order of the list.
    chosen : int
        Which of them was chosen.
    scenes : tuple of str
        What they were scored on: scenes, or parts of one.
    n_folds : int
        In how many turns these were left out.
    weak : tuple of str
        Sources that alone, with the sign they have, rank targets below the rest (AUC below 0.5).
    base_rate : float, optional
        The share of targets among the pixels that were scored, where nothing was chosen: the first contender is an
        average, and the others show what it is worth.
    """

    contenders: tuple[Contender, ...]
    chosen: int
    scenes: tuple[str, ...]
    n_folds: int
    weak: tuple[str, ...] = ()
    base_rate: float | None = None

    @property
    def winner(self) -> Contender:
        """Return the contender that was chosen."""
        return self.contenders[self.chosen]

    @property
    def best_source(self) -> Contender | None:
        """The source that ranks best alone."""
        sources = [contender for contender in self.contenders if contender.is_source and contender.ap]
        return max(sources, key=lambda contender: contender.score.mean, default=None)

    @property
    def lead(self) -> Spread | None:
        """By how much the winner's average precision exceeds that of the best source, scene by scene."""
        source = self.best_source
        if source is None or not self.winner.ap:
            return None
        return spread(np.subtract(self.winner.ap, source.ap))

    def table(self) -> Table:
        """Return all contenders, the best first."""
        lines = []
        order = sorted(self.contenders, key=lambda contender: -contender.score.mean if contender.ap else np.inf)
        for contender in order:
            cells = [shown_spread(spread(values)) if values else "" for values in (contender.ap, contender.auc)]
            note = "chosen" if contender is self.winner and self.base_rate is None else contender.problem
            lines.append([Cell(contender.name, contender is self.winner), *map(Cell, cells), Cell(note)])
        return Table(["candidate", "AP", "AUC", ""], lines)

    def sentence(self) -> str:
        """Say what was chosen, and why."""
        winner, source, lead = self.winner, self.best_source, self.lead
        if self.base_rate is not None and winner.ap and source is not None and lead is not None:
            return (
                f"The fusion has an average precision of {shown_spread(winner.score)} on {self._where()}, where "
                f"{self.base_rate:.2%} of the pixels counted are targets; the best source alone, "
                f"{source.name.removeprefix('source ')}, has {shown_spread(source.score)} (difference "
                f"{shown_spread(lead, sign=True)})."
            )
        if not winner.ap:
            return f"Nothing could be cross-validated: {winner.name} was learned unchecked."
        said = f"Chose {winner.name}: average precision {shown_spread(winner.score)} on {self._where()}"
        if winner.is_source or source is None or lead is None:
            return f"{said}, more than any fusion."
        whole = [
            contender for contender in self.contenders if len(contender.ap) == len(winner.ap)
        ]  # not only of the first folds
        top = max(whole, key=lambda contender: contender.score.mean)
        if top is not winner:
            said += f", simpler than {top.name} ({top.score.mean:.3f}) and about as good"
        return (
            f"{said}; the best source alone, {source.name.removeprefix('source ')}, has {shown_spread(source.score)}."
        )

    def _where(self) -> str:
        parts = "parts of the data" if all(_PART.search(name) for name in self.scenes) else "scenes"
        return f"{len(self.scenes)} {parts} that it had not learned from"

    def warning(self) -> str:
        """Warn if a source alone is as good, within two standard errors, or more of few scenes; empty if none is."""
        lead, source = self.lead, self.best_source
        if lead is None or source is None or lead.mean > stats.t.ppf(SURE, len(self.winner.ap) - 1) * lead.error:
            return ""
        if self.winner.is_source:
            return (
                f"No fusion is better than {source.name} alone on scenes that were left out: the model is that source."
            )
        return (
            f"{source.name[:1].upper()}{source.name[1:]} alone is about as good: the fusion gains {lead.mean:+.3f} "
            f"± {lead.error:.3f} average precision. More scenes, or other sources, would show more."
        )

    def weakness(self) -> str:
        """Say which sources alone rank targets below the rest; empty if none does."""
        if not self.weak:
            return ""
        rank, them = ("ranks", "it") if len(self.weak) == 1 else ("rank", "them")
        return (
            f"{', '.join(self.weak)} alone, with the sign used, {rank} targets below the rest (AUC below 0.5). That "
            f"inverting {them} would help the fusion could not be shown on left-out data. Consider leaving {them} out."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; `from_dict` takes them back."""
        rows = [
            {
                "name": contender.name,
                "is_source": contender.is_source,
                "ap": [*contender.ap],
                "auc": [*contender.auc],
                "problem": contender.problem,
            }
            for contender in self.contenders
        ]
        about: dict[str, Any] = {"scenes": [*self.scenes], "n_folds": self.n_folds, "weak": [*self.weak]}
        about |= {} if self.base_rate is None else {"base_rate": self.base_rate}
        return {"contenders": rows, "chosen": self.chosen} | about

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Take what `to_dict` gave, as a model file may hold it; whatever else is an `InvalidInputError`."""
        try:
            rows = tuple(
                Contender(
                    str(row["name"]),
                    bool(row["is_source"]),
                    _numbers(row["ap"]),
                    _numbers(row["auc"]),
                    str(row["problem"]),
                )
                for row in data["contenders"]
            )
            names = tuple(tuple(map(str, data[field])) for field in ("scenes", "weak"))
            rate = data.get("base_rate")
            rate = None if rate is None else float(rate)
            found = cls(rows, int(data["chosen"]), names[0], int(data["n_folds"]), names[1], rate)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInputError(
                f"its selection is not what Selection.to_dict gives: {error!r}.", code="model-selection"
            ) from error
        if not 0 <= found.chosen < len(rows):
            raise InvalidInputError(
                f"its selection has {len(rows)} contenders, but chose number {found.chosen}.", code="model-selection"
            )
        return found


def _numbers(values: Sequence[Any]) -> tuple[float, ...]:
    if not isinstance(values, list | tuple) or len(values) > LIMIT:
        raise ValueError("scores must be a list of numbers")
    return tuple(map(float, values))


def selection_of(record: Any) -> "Selection | None":
    """Return the selection that a training record holds, if any."""
    kept: Mapping[str, Any] | None = getattr(record, "selection", None)
    return None if kept is None else Selection.from_dict(kept)


@dataclass(frozen=True, eq=False)
class Chosen:
    """The winner, learned from all data.

    `result` has the signs; with `rare`, sources are to be ranked in their scene, after signs, and `result` has none.
    """

    result: FitResult
    objective: Objective
    scale: Scale
    rare: bool
    signs: Signs
    link: Link | None
    selection: Selection
    rows: list[Row]
    candidate: Candidate | None
    folds: list[Any] = field(default_factory=list)


def choose(data: Dataset, how: How, groups: Any = None) -> Chosen:
    """Compare candidates on scenes that are left out, and learn the best one from all.

    Parameters
    ----------
    data : Dataset
        Of scenes, or of one `Bags`.
    how : How
        Candidates, folds, and so on.
    groups : sequence, optional
        Of `Bags`: the group of every bag; groups are left out as a whole.

    Notes
    -----
    Scenes and folds share the cores. Threads of BLAS besides would wait for each other, and use up to three times the
    processor time in all.
    """
    with one_blas_thread():
        return _decided(_compared(data, how, groups))


def cross_validate(data: Dataset, how: How, groups: Any = None) -> Selection:
    """Score candidates, and each source alone, on scenes that are left out, without learning from all.

    Arguments as in `choose`. Without enough targets to leave some out, contenders have no scores.
    """
    with one_blas_thread():
        validation = _compared(data, how, groups)
        rows = [Row(candidate.name, candidate.parameters) for candidate in validation.candidates]
        if len(validation.folds) > 1:
            rows = validation.score_candidates() + validation.score_sources()
    return _selection(validation, rows, simplest_of_best(rows))


def _compared(data: Dataset, how: How, groups: Any) -> CrossValidation:
    """Read what candidates learn from, and decide on signs."""
    data = data.keeping(KEPT)
    division = Division(how.n_folds if len(data) == 1 else 1, groups)
    training = _looked_at(data, division, how)
    if len(data) > 1 and sum(sample.has_targets for sample in training.samples) < 2:
        division = Division(how.n_folds, groups)  # only one scene has targets: divide it
        training = _looked_at(data, division, how)
    scale, samples, used = learn_scale(training.low, training.high, how.scale), training.samples, None
    if how.scale is not None:
        used = scale
        samples = list(chain(*data.apply(lambda part: division.samples(part, LOOK, used), how.n_jobs)))
    for what, side in (("target", "targets"), ("pixel that is no target", "others")):
        if not any(len(getattr(sample, side)) for sample in samples):
            raise InvalidInputError(
                f"No scene has a labelled {what}: all bags are of one class. Learning needs at least "
                "one of each class.",
                code="one-class",
            )
    m = training.n_sources
    signs = trusted_signs(samples, how.n_folds)
    if how.polarity == "given":
        signs = replace(signs, signs=np.ones(m), auc=np.full(m, np.nan))
    candidates = _candidates(how, samples, m)

    def units(part: Part) -> list[Unit]:
        return units_of(part, division, candidates, len(data), used, signs.signs, how.rare)

    return CrossValidation(list(chain(*data.apply(units, how.n_jobs))), candidates, signs, scale, how)


def _looked_at(data: Dataset, division: Division, how: How) -> Training:
    """Read all parts for names, ranges, and samples to decide signs by."""

    def look(part: Part) -> Reduced:
        return summarise(part)._replace(samples=tuple(division.samples(part, LOOK)))

    training = Training(data.apply(look, how.n_jobs))
    if np.isinf(training.low).all():
        raise InvalidInputError(
            "None of the scenes has a labelled bag. Label some segments of each class.", code="bags-missing"
        )
    if (training.low == training.high).all():
        raise InvalidInputError(
            "All sources are constant, so that nothing can be learned from them.", code="sources-constant"
        )
    if how.scale is None:
        training.check_range(how.names or training.source_names or None)
    return training


def _candidates(how: How, samples: Sequence[Sample], n_sources: int) -> list[Candidate]:
    cores = all(sample.offsets is None for sample in samples) and how.rare is not None
    if how.candidates is None:
        listed = default_candidates(n_sources, cores, images=how.rare is not None)
        return [one for one in listed if how.additivity in (None, one.additivity)]
    candidates = check_candidates(how.candidates)
    for candidate in candidates:
        if candidate.labels == "cores" and not cores:
            raise InvalidInputError(
                f"The candidate {candidate.name!r} learns from cores of boxes, but not all data are scenes with boxes. "
                "Use labels='bags' (and sources='given'), or give scenes with boxes.",
                code="candidate-cores",
            )
    return candidates


def simplest_of_best(rows: Sequence[Row]) -> int:
    """Return the contender of the largest mean average precision, or a simpler one that is as good.

    Of all candidates whose mean difference to it, scene by scene, is within one standard error, those with sources as
    given come first (ranks within a scene hold worse on other sensors), of these those of the lowest additivity, of
    these those that learn a link (the log-loss holds better elsewhere than squares), and of these the best. A source
    alone must have the largest mean.
    """
    n = max(len(row.ap) for row in rows)  # what was clearly behind has scores of the first folds only
    best = max(range(len(rows)), key=lambda k: rows[k].score.mean if len(rows[k].ap) == n else -np.inf)  # the first
    if rows[best].is_source:
        return best
    scored = [k for k, row in enumerate(rows) if not row.is_source and len(row.ap) == len(rows[best].ap)]
    leads = {k: spread(rows[best].ap - rows[k].ap) for k in scored}
    equal = [k for k, lead in leads.items() if lead.mean <= lead.error]
    return min([best, *equal], key=lambda k: (_order(rows[k]), -rows[k].score.mean))


def _order(row: Row) -> tuple[bool, int, bool]:
    """Return if sources are ranked; how many at a time a measure is about, any number last; if it has no link."""
    candidate = Candidate(**row.parameters)
    return candidate.sources == "rarity", candidate.additivity or 3, not candidate.problem.links


def _decided(validation: CrossValidation) -> Chosen:
    """Choose, and learn the best from all data."""
    candidates, how = validation.candidates, validation.how
    if len(validation.folds) < 2:
        first = candidates[0]
        warn(
            f"There are too few targets to leave some out: {first.name} is learned without being checked. Label "
            "targets in at least two scenes, or at least two in one.",
            code="targets-few",
            stacklevel=4,
        )
        return _learned(validation, [Row(first.name, first.parameters)], 0, first, False)
    rows = validation.score_candidates()
    failed = [row for row in rows if not len(row.ap)]
    if len(failed) == len(rows):
        raise InvalidInputError(f"No candidate could be learned: {failed[0].problem}", code="candidates-failed")
    rows += validation.score_sources()
    best = simplest_of_best(rows)
    return _learned(validation, rows, best, candidates[best] if best < len(candidates) else None, how.calibrate)


def _learned(
    validation: CrossValidation, rows: list[Row], best: int, candidate: Candidate | None, calibrate: bool
) -> Chosen:
    """Learn one contender from all data, and calibrate it on what was left out."""
    names, signs = validation.names, validation.signs
    rare = candidate is not None and candidate.sources == "rarity"
    if candidate is None:
        terms, objective = source_terms(rows[best].parameters["source"], len(names)), ALONE
        solution = Solution(terms, float("nan"), Status.CHOSEN, 0, np.empty(0))
        result = FitResult(AdditiveBiCapacity(terms, names, order=1), signs.signs, solution, {})
        link = validation.calibrated(rows[best], None) if calibrate else None
    else:
        objective = candidate.problem
        result = validation.learn_all(candidate)
        result = replace(result, polarity=np.ones(len(names)) if rare else signs.signs)
        own = result.solution.link
        link = validation.calibrated(rows[best], candidate, own) if calibrate else None
        link = link or own  # nothing was left out, or the output does not rank
        if link is None and validation.how.calibrate:
            link = validation.calibrated_in_sample(candidate, result)
    selection = _selection(validation, rows, best)
    return Chosen(result, objective, validation.scale, rare, signs, link, selection, rows, candidate, validation.folds)


def _selection(validation: CrossValidation, rows: Sequence[Row], best: int) -> Selection:
    """Return the outcome, as tables show it."""
    contenders = [Contender(row.name, row.is_source, tuple(row.ap), tuple(row.auc), row.problem) for row in rows]
    scenes = tuple(validation.units[u].sample.name for u in validation.scored)
    weak = tuple(validation.names[k] for k in validation.signs.weak)
    return Selection(tuple(contenders), best, scenes, len(validation.folds), weak)


ALONE = replace(MEAN, name="single source", about="one source, as it is or inverted")
"""What the record calls a model that is one source alone."""
