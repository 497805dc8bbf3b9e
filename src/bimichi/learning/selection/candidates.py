"""What is compared when a fusion is chosen: a readable list of settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from bimichi._checks import check_choice
from bimichi.errors import InvalidInputError
from bimichi.learning.objectives import OBJECTIVES, Objective, get_objective

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
        Sources as they are, or by how rare their values are in the scene (`bimichi.imaging.rarity`).
    labels : {"bags", "cores"}
        Learned from labelled bags, or, where boxes are known, from the pixels in their cores and outside.
    averaged : bool, default=False
        Whether the log-odds are averaged with those of the sources that rank the training scenes best alone, so that
        a few scenes cannot lead far away from them; see `bimichi.learning.selection.averaging`. Only with the objective
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
            raise InvalidInputError("sources='rarity' is learned from pixels; choose labels='cores' with it.")
        links = self.problem.links  # raises if there is no such objective
        if self.averaged and not (links and self.additivity):
            raise InvalidInputError(
                "averaged=True is for log-odds of additive measures; choose objective='logistic' and additivity=1 or 2 "
                f"with it, got objective={self.objective!r}, additivity={self.additivity!r}."
            )

    @property
    def problem(self) -> Objective:
        """What is minimised, and over which measures."""
        return get_objective(self.objective, additivity=self.additivity)

    @property
    def name(self) -> str:
        """What tables call it."""
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
    found = [Candidate("mean", order) for order in orders]
    for additivity in orders if logistic else ():
        learned = [Candidate("logistic", additivity, "rarity", "cores")] if cores and images else []
        learned.append(Candidate("logistic", additivity, labels="cores" if cores else "bags"))
        found += [replace(one, averaged=averaged) for averaged in (False, True) for one in learned]
    if n_sources <= MANY:
        found += [Candidate("bipolar"), Candidate("magnitude")]
    return found


def check_candidates(given: Sequence[Candidate | Mapping[str, Any]]) -> list[Candidate]:
    """Return candidates from themselves, or from dictionaries of their parameters."""
    if isinstance(given, str | Mapping) or not len(given):
        raise InvalidInputError(
            "candidates must be a list of dictionaries such as {'objective': 'mean', 'additivity': 1}, got "
            f"{given!r:.80}."
        )
    try:
        return [one if isinstance(one, Candidate) else Candidate(**one) for one in given]
    except TypeError as error:
        raise InvalidInputError(
            f"A candidate takes objective, additivity, sources, labels and averaged: {error}."
        ) from error
