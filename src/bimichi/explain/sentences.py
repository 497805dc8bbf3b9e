"""A learned model in plain English; every sentence comes with the numbers that it was made from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._types import Floats
from bimichi.explain.identifiability import Identifiability, identifiability
from bimichi.explain.indices import DataIndices, averages
from bimichi.explain.parts import Explanation, Parts, percent, prepare
from bimichi.integral.planes import Planes
from bimichi.record import TrainingRecord, describe_average, describe_ending
from bimichi.rule import FusionRule

DECIDES = 0.5  # a source with at least this share of the fused confidence decides
HARDLY = 0.05  # one with at most this share hardly matters
STRONG = 0.05  # an interaction with at least this share is reported
MOST = 3  # how many interactions are reported at most, the strongest first
SHIFTS = 0.05  # open elements matter if they can move the share of the first source by at least this much
AGAINST = 0.02  # a high source counts against a target (or a low one for it) if it does by this much on average
OFTEN = 0.01  # what happens in a smaller share of the instances is not reported


@dataclass(frozen=True)
class Fact:
    """One sentence, its kind, the sources that it is about, and the numbers that it was made from."""

    kind: str
    sources: tuple[str, ...]
    numbers: Mapping[str, float]
    sentence: str


@dataclass(frozen=True, repr=False)
class Summary(Explanation):
    """Facts about a model, the most important first."""

    facts: tuple[Fact, ...]

    @property
    def sentences(self) -> list[str]:
        """The sentences, one for each fact."""
        return [fact.sentence for fact in self.facts]

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        return {
            "kind": [fact.kind for fact in self.facts],
            "sources": [", ".join(fact.sources) for fact in self.facts],
            "sentence": self.sentences,
        }

    def __repr__(self) -> str:
        return "\n".join(self.sentences)


def summary(model: Any, X: ArrayLike | Sequence[ArrayLike], *, n_jobs: int | None = None) -> Summary:
    """Describe in plain words how a model decides on data.

    Parameters
    ----------
    model, n_jobs
        As in `contributions`.
    X : array-like of shape (..., n_sources), or list of planes
        The data that the sentences are about: the training data, or a scene. Instances with NaN are left out.

    Notes
    -----
    The "fused confidence" is the mean over instances of the sum of |contribution|; see `data_indices`. A source is
    "high" where it enters the integral above 0, scaled; one that is inverted is then called "low", as it was given.
    Both ends of a "magnitude" model are targets, so there sources count towards +1 or -1.
    """
    rule, parts, planes = prepare(model, X)
    words = words_of(rule)
    means = averages(parts, planes, n_jobs, 1.0 if rule.link is None else rule.link.slope)
    identified = identifiability(rule) if rule.usage else None
    facts = [
        *_shares(means, words),
        *_other_completions(identified, parts, planes, means, words, n_jobs),
        *_inverted(parts, planes, words, n_jobs),
        *_against(parts, planes, words, n_jobs),
        *sorted(_pairs(means, words), key=lambda fact: -fact.numbers["share"])[:MOST],
        *_log_odds(rule, words),
        *_training(identified, rule.training),
    ]
    return Summary(tuple(facts))


@dataclass(frozen=True)
class Words:
    """Names of sources, and the words for contributions above and below zero."""

    names: tuple[str, ...]
    inverted: tuple[bool, ...]
    ways: tuple[str, str]

    def name(self, k: int) -> str:
        """Return the name of a source; of one that is a number, with a word before it."""
        return f"source {self.names[k]}" if self.names[k].isdigit() else self.names[k]

    def level(self, k: int, up: bool) -> str:
        """Return the user's word, "high" or "low", for a source that enters the integral up or down."""
        return "high" if up != self.inverted[k] else "low"

    def at(self, k: int, up: bool) -> str:
        """Return such a source by its name, as in "high thermal"."""
        return f"{self.level(k, up)} {self.name(k)}"

    def way(self, up: bool) -> str:
        """Return the words for a contribution above zero, or below."""
        return self.ways[0 if up else 1]

    def fact(self, kind: str, sources: Sequence[int], numbers: Mapping[str, float], sentence: str) -> Fact:
        """Return a fact whose sentence begins with a capital."""
        names = tuple(self.names[k] for k in sources)
        return Fact(kind, names, numbers, sentence[0].upper() + sentence[1:])


def words_of(rule: FusionRule) -> Words:
    """Return the words for the sources of a rule and for what its output means."""
    ways = ("for a target", "against a target")
    if rule.output == "magnitude":  # both poles are targets
        ways = ("towards +1", "towards -1")
    elif rule.training is not None and not rule.training.classes:  # labels are real numbers
        ways = ("for a high value", "for a low value")
    return Words(rule.source_names, tuple((rule.polarity < 0).tolist()), ways)


def _shares(means: DataIndices, words: Words) -> Iterator[Fact]:
    if means.magnitude == 0:
        yield words.fact("silent", (), {"magnitude": 0.0}, "No source moves the fused confidence on this data.")
        return
    order = np.argsort(-means.share, kind="stable").tolist()
    hardly = [k for k in order[1:] if means.share[k] <= HARDLY]
    grouped = hardly if len(hardly) > MOST else []
    for position, k in enumerate(order[: len(order) - len(grouped)]):
        share, name = float(means.share[k]), words.name(k)
        if position == 0 and share >= DECIDES:
            kind, says = "decides", f"{name} decides: it carries {percent(share)} of the fused confidence."
        elif position == 0:
            kind, says = "leads", f"no source decides alone: {name} carries {percent(share)} of the fused confidence."
        elif share <= HARDLY:
            kind, says = "hardly", f"{name} hardly matters: it carries {percent(share)}."
        else:
            kind, says = "carries", f"{name} carries {percent(share)}."
        yield words.fact(kind, [k], {"share": share}, says)
    if grouped:
        share = float(means.share[grouped].sum())
        names = [words.name(k) for k in grouped]
        says = f"{', '.join(names[:-1])} and {names[-1]} hardly matter: together they carry {percent(share)}."
        yield words.fact("hardly", grouped, {"share": share}, says)


def _other_completions(
    identified: Identifiability | None,
    parts: Parts,
    planes: Planes,
    means: DataIndices,
    words: Words,
    n_jobs: int | None,
) -> Iterator[Fact]:
    """Yield the first source's share if the elements that training left open were lowest, and highest."""
    if identified is None or means.magnitude == 0 or not identified.open.any():
        return
    k = int(np.argmax(means.share))
    share = float(means.share[k])
    lowest, highest = (
        float(averages(replace(parts, values=values), planes, n_jobs).share[k])
        for values in (identified.lower, identified.upper)
    )
    if max(abs(lowest - share), abs(highest - share)) >= SHIFTS:
        says = (
            f"this depends on elements that no training instance uses: with the lowest values they can have beside the "
            f"others, {words.name(k)} would carry {percent(lowest)}, with the highest {percent(highest)}."
        )
        yield words.fact("completion", [k], {"share": share, "lowest": lowest, "highest": highest}, says)


def _inverted(parts: Parts, planes: Planes, words: Words, n_jobs: int | None) -> Iterator[Fact]:
    """Yield what low values of inverted sources do on this data: not always what inverting a source suggests."""
    if not any(words.inverted):
        return

    def count(rows: NDArray[Any], contributed: Floats) -> tuple[Floats, Floats]:
        low = rows > 0  # as it enters; low as given
        return low.sum(axis=0).astype(np.float64), np.where(low, contributed, 0.0).sum(axis=0)

    often, sums = (np.sum(part, axis=0) for part in zip(*parts.summarise(planes, n_jobs, count), strict=True))
    for k in np.flatnonzero(words.inverted).tolist():
        numbers = {"polarity": -1.0, "instances": float(often[k])}
        if often[k]:
            mean = numbers["mean"] = float(sums[k] / often[k])
            up = mean > 0
            joined = ", and" if up else ", but"
            does = f"count {words.way(up)}: {mean:+.2f} on average" if abs(mean) >= 0.005 else "hardly count"
            says = f"{words.name(k)} enters inverted{joined} on this data its low values {does}."
        else:
            says = f"{words.name(k)} enters inverted; this data has no low values of it."
        yield words.fact("inverted", [k], numbers, says)


def _against(parts: Parts, planes: Planes, words: Words, n_jobs: int | None) -> Iterator[Fact]:
    """Yield sources that count against a target though up, or for it though down, and beside which other one most."""

    def count(rows: NDArray[Any], contributed: Floats) -> tuple[int, Floats, Floats]:
        """Count instances with sources k and j on opposite sides; row 0 has k down and j up, row 1 k up and j down."""
        down, up = (rows < 0).astype(np.float64), (rows > 0).astype(np.float64)
        sums = np.stack([(own * contributed).T @ other for own, other in ((down, up), (up, down))])
        return len(rows), sums, np.stack([down.T @ up, up.T @ down])

    total, sums, often = (np.sum(part, axis=0) for part in zip(*parts.summarise(planes, n_jobs, count), strict=True))
    for k, up in product(range(planes.n_sources), (True, False)):
        own, counts = sums[int(up), k], often[int(up), k]
        met = [
            (float(own[j] / counts[j]), float(counts[j] / total), j)
            for j in np.flatnonzero(counts >= OFTEN * total).tolist()
        ]
        mean, share, j = (min if up else max)(met, default=(0.0, 0.0, k))
        if (-mean if up else mean) >= AGAINST:
            says = (
                f"{words.at(k, up)} counts {words.way(not up)} when {words.name(j)} is {words.level(j, not up)}: "
                f"{mean:+.2f} on average."
            )
            numbers = {"mean": mean, "share of instances": share}
            yield words.fact("against" if up else "for", [k, j], numbers, says)


def _pairs(means: DataIndices, words: Words) -> Iterator[Fact]:
    """Yield the strong interactions of sources that pull their own way, up for and down against, in words."""
    pulls = {True: means.signed_up > 0, False: means.signed_down < 0}
    sources = range(len(words.names))
    for i, j, up in product(sources, sources, (True, False)):
        if i < j and pulls[up][i] and pulls[up][j]:
            value = float((means.interaction_up if up else means.interaction_down)[i, j])
            both, way = f"{words.at(i, up)} and {words.at(j, up)}", words.way(up)
            kind = "complements" if (value > 0) == up else "substitutes"
            if kind == "complements":
                says = f"{both} confirm each other: together they count more {way} than separately."
            else:
                says = f"{both} replace each other: next to one, the other counts less {way}."
        elif i != j and up and pulls[True][i] and pulls[False][j]:
            value = float(means.interaction_mixed[i, j])
            kind, change = ("dampened", "less") if value > 0 else ("heightened", "more")
            low = f"{words.name(j)} is {words.level(j, False)}"
            says = f"{words.at(i, True)} counts {change} {words.way(True)} when {low}."
        else:
            continue
        share = abs(value) / (means.magnitude or np.inf)
        if share >= STRONG:
            yield words.fact(kind, [i, j], {"interaction": value, "share": share}, says)


def _log_odds(rule: FusionRule, words: Words) -> Iterator[Fact]:
    if rule.link is None:
        return
    slope, offset = rule.link.slope, rule.link.offset
    middle = float(rule.link.probability(0.0))
    quantity = "the magnitude of the integral" if rule.output == "magnitude" else "the integral"
    yield words.fact(
        "link",
        (),
        {"slope": slope, "offset": offset, "probability": middle},
        f"The log-odds of a target are {offset:.2f} plus {slope:.2f} times {quantity}, of which each source has its "
        f"part; where that is 0, the probability is {middle:.2g}.",
    )


def _training(identified: Identifiability | None, record: TrainingRecord | None) -> Iterator[Fact]:
    """Yield what the training data determined, and how the search ended."""
    if record is None:
        yield Fact("unlearned", (), {}, "This measure was not learned here; nothing is known about training data.")
        return
    if identified is None:
        yield Fact("unknown", (), {}, "How the training data uses the measure was not counted.")
    else:
        yield _determined(identified)
    value = record.objective_value
    numbers = {"J": value, "rounds": float(record.n_iter)}
    if record.lower_bound is not None:
        numbers["lower bound"] = float(record.lower_bound)
    complete = record.status is not None and record.status.complete
    ended = "converged" if complete else f"did not converge ({describe_ending(record.status, record.n_iter)})"
    ended += f", and the result was {describe_average(record.averaged)}" if record.averaged else ""
    yield Fact("search", (), numbers, f"The search {ended}: the {record.objective} objective is {value:.4g}.")
    if record.global_bound is not None:
        numbers = {"J": value, "global bound": float(record.global_bound), "nodes": float(record.n_nodes)}
        yield Fact("proof", (), numbers, record.proof)


def _determined(identified: Identifiability) -> Fact:
    free, number, used = identified.n_free, int(identified.open.sum()), identified.n_used
    if not identified.has_intervals:
        amount, end = ("all", ".") if used == free else (f"{used:,} of", "; the solver chose the others.")
        says = f"The training data used {amount} {free:,} terms of the measure{end}"
        return Fact("terms", (), {"used": used, "terms": free}, says)
    says = (
        f"No training instance uses {number:,} of the {free:,} elements; the solver chose these within the order."
        if number
        else f"Training instances use all {free:,} elements, or the order fixes them."
    )
    return Fact("open", (), {"open": number, "free": free}, says)
