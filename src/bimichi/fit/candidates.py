"""Candidates: settings that are compared when a fusion is chosen, and their averages with single sources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from bimichi._checks import check_choice
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.fit.calibrate import fit_link
from bimichi.fit.direction import spread
from bimichi.fit.objectives import OBJECTIVES, Objective, get_objective
from bimichi.fit.spaces.sums import Outcomes
from bimichi.fit.train import FitResult, Keep
from bimichi.link import Link
from bimichi.scenes.bags import Bags

MANY = 8  # sources; measures of more are compared in their additive forms alone, since others take minutes
VERY_MANY = 12  # of more, only those of single sources


@dataclass(frozen=True)
class Candidate:
    """One way to learn a fusion.

    Parameters
    ----------
    objective : str
        What is minimised; see `bimichi.BiMIChI`.
    additivity : {None, 1, 2}
        None for any bi-capacity, 2 for terms of single sources and pairs, 1 for single sources alone.
    sources : {"given", "rarity"}
        Sources as they are, or by how rare their values are in the scene (`bimichi.sources.rarity`).
    labels : {"bags", "cores"}
        Learned from labelled bags, or, where boxes are known, from the pixels in their cores and outside.
    averaged : bool, default=False
        Whether the log-odds are averaged with those of the sources that rank the training scenes best alone, so that
        a few scenes cannot lead far away from them; see `bimichi.fit.candidates`. Only with the objective
        "logistic" and an additivity.

    Examples
    --------
    >>> Candidate("mean", 1).name
    'mean, 1-additive'
    """

    objective: str
    additivity: int | None = None
    sources: Literal["given", "rarity"] = "given"
    labels: Literal["bags", "cores"] = "bags"
    averaged: bool = False

    def __post_init__(self) -> None:
        check_choice(self.sources, "sources", ("given", "rarity"))
        check_choice(self.labels, "labels", ("bags", "cores"))
        if self.sources == "rarity" and self.labels == "bags":
            raise InvalidInputError(
                "sources='rarity' is learned from pixels; choose labels='cores' with it.", code="candidate-rarity"
            )
        links = self.problem.links  # raises if there is no such objective
        if self.averaged and not (links and self.additivity):
            raise InvalidInputError(
                "averaged=True is for log-odds of additive measures; choose objective='logistic' and additivity=1 or 2 "
                f"with it, got objective={self.objective!r}, additivity={self.additivity!r}.",
                code="candidate-averaged",
            )

    @property
    def problem(self) -> Objective:
        """The objective, for the measures that are searched."""
        return get_objective(self.objective, additivity=self.additivity)

    @property
    def keep(self) -> Keep:
        """Return what it needs of bags: sums of squares, the instances that may decide a bag, or all."""
        return "sums" if self.problem.convex == "mean" else "relevant" if self.problem.relevant != "all" else "all"

    @property
    def name(self) -> str:
        """The name in tables."""
        parts = [self.objective, f"{self.additivity}-additive" if self.additivity else ""]
        parts += ["rarity" if self.sources == "rarity" else "", "cores" if self.labels == "cores" else ""]
        parts += ["with best sources" if self.averaged else ""]
        return ", ".join(filter(None, parts))

    @property
    def alone(self) -> "Candidate":
        """The same without the average: what is learned before it."""
        return replace(self, averaged=False)

    @property
    def parameters(self) -> dict[str, Any]:
        """The same as a dictionary."""
        return dict(vars(self))


def default_candidates(n_sources: int, cores: bool, images: bool) -> list[Candidate]:
    """Return the candidates that are compared unless others are named.

    Parameters
    ----------
    n_sources : int
        Number of sources; full bi-capacities of many take too long.
    cores : bool
        Whether it is known which pixels are targets, beyond the labels of bags.
    images : bool
        Whether whole scenes are at hand, so that values can be ranked in them.
    """
    logistic = "logistic" in OBJECTIVES
    orders = (1, 2) if n_sources <= VERY_MANY else (1,)
    candidates = [Candidate("mean", order) for order in orders]
    for additivity in orders if logistic else ():
        learned = [Candidate("logistic", additivity, "rarity", "cores")] if cores and images else []
        learned.append(Candidate("logistic", additivity, labels="cores" if cores else "bags"))
        candidates += [replace(candidate, averaged=averaged) for averaged in (False, True) for candidate in learned]
    if n_sources <= MANY:
        candidates += [Candidate("bipolar"), Candidate("magnitude")]
    return candidates


def check_candidates(given: Sequence[Candidate | Mapping[str, Any]]) -> list[Candidate]:
    """Return candidates from themselves, or from dictionaries of their parameters."""
    if isinstance(given, str | Mapping) or not len(given):
        raise InvalidInputError(
            "candidates must be a list of dictionaries such as {'objective': 'mean', 'additivity': 1}, got "
            f"{given!r:.80}.",
            code="candidates-kind",
            argument="candidates",
            value=given,
        )
    try:
        return [candidate if isinstance(candidate, Candidate) else Candidate(**candidate) for candidate in given]
    except TypeError as error:
        raise InvalidInputError(
            f"A candidate takes objective, additivity, sources, labels and averaged: {error}.", code="candidate-keys"
        ) from error


ROWS = 50_000  # of each part, by which the log-odds of a source are fitted; two numbers need no more


def best_sources(scores: Floats) -> list[int]:
    """Return the source of the largest mean score, and those within one standard error of it, scene by scene.

    Parameters
    ----------
    scores : ndarray of shape (n_scenes, n_sources)
        Average precision of each source alone.

    Examples
    --------
    >>> best_sources(np.array([[0.9, 0.2, 0.8], [0.5, 0.1, 0.7], [0.8, 0.1, 0.6]]))
    [0, 2]
    """
    best = int(scores.mean(axis=0).argmax())
    leads = [spread(scores[:, best] - scores[:, k]) for k in range(scores.shape[1])]
    return [k for k, lead in enumerate(leads) if k == best or lead.mean <= lead.error]


def source_terms(k: int, n_sources: int) -> Floats:
    """Return the terms of the measure whose integral is one source."""
    terms = np.zeros(2 * n_sources * n_sources)
    terms[k], terms[n_sources + k] = 1.0, -1.0
    return terms


def source_links(parts: Sequence[Bags], which: Sequence[int]) -> dict[int, Link]:
    """Fit the log-odds of some sources alone to instances; those in which targets are not above the rest have none."""
    few = [slice(0, None, -(-len(bags.X) // ROWS)) for bags in parts]
    outcomes = [(Outcomes.of(bags), part) for bags, part in zip(parts, few, strict=True)]
    positive = np.concatenate([outcome.positive[part] for outcome, part in outcomes])
    weight = np.concatenate([outcome.share[part] * part.step for outcome, part in outcomes])
    X = np.concatenate([bags.X[part] for bags, part in zip(parts, few, strict=True)])
    fitted = [(k, fit_link(X[:, k].astype(np.float64), positive, weight)) for k in which]
    return {k: link for k, link in fitted if link is not None}


def with_sources(result: FitResult, objective: Objective, links: Mapping[int, Link]) -> FitResult:
    """Average the log-odds of a result, of additive measures, with those of sources, fitted to the same instances.

    The result counts as much as all sources together.
    """
    own = result.solution.link
    if own is None or not links:
        return result
    m, n = len(result.polarity), len(links)
    steep = own.slope * result.solution.values + sum(link.slope * source_terms(k, m) for k, link in links.items()) / n
    slope = own.slope + sum(link.slope for link in links.values()) / n
    offset = own.offset + sum(link.offset for link in links.values()) / n
    names = result.measure.source_names
    joined = Link(slope / 2, offset / 2, own.base_rate)
    solution = replace(result.solution, values=steep / slope, link=joined, averaged=tuple(links))
    return replace(result, measure=objective.space(m).measure(steep / slope, names), solution=solution)


def scored_anew(result: FitResult, problem: Any) -> FitResult:
    """Return the result with the J of its values, which after `with_sources` are not those that a solver ended with."""
    solution = result.solution
    value = problem.value(solution.values, solution.link)
    return replace(result, solution=replace(solution, objective_value=value, history=np.array([value])))
