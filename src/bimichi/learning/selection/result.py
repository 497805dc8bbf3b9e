"""What was compared, what was chosen, and why: as a table, a sentence, and plain data for the model file."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bimichi._tables import Cell, Table
from bimichi.errors import InvalidInputError
from bimichi.learning.folds import Spread, shown_spread, spread

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
    """

    contenders: tuple[Contender, ...]
    chosen: int
    scenes: tuple[str, ...]
    n_folds: int
    weak: tuple[str, ...] = ()

    @property
    def winner(self) -> Contender:
        """What was chosen."""
        return self.contenders[self.chosen]

    @property
    def best_source(self) -> Contender | None:
        """The source that ranks best alone."""
        found = [one for one in self.contenders if one.is_source and one.ap]
        return max(found, key=lambda one: one.score.mean, default=None)

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
        order = sorted(self.contenders, key=lambda one: -one.score.mean if one.ap else np.inf)
        for one in order:
            cells = [shown_spread(spread(values)) if values else "" for values in (one.ap, one.auc)]
            note = "chosen" if one is self.winner else one.problem
            lines.append([Cell(one.name, one is self.winner), *map(Cell, cells), Cell(note)])
        return Table(["candidate", "AP", "AUC", ""], lines)

    def sentence(self) -> str:
        """Say what was chosen, and why."""
        winner, source, lead = self.winner, self.best_source, self.lead
        if not winner.ap:
            return f"Nothing could be cross-validated: {winner.name} was learned unchecked."
        parts = "parts of the data" if all(_PART.search(name) for name in self.scenes) else "scenes"
        where = f"{len(self.scenes)} {parts} that it had not learned from"
        said = f"Chose {winner.name}: average precision {shown_spread(winner.score)} on {where}"
        if winner.is_source or source is None or lead is None:
            return f"{said}, more than any fusion."
        whole = [one for one in self.contenders if len(one.ap) == len(winner.ap)]  # not only of the first folds
        top = max(whole, key=lambda one: one.score.mean)
        if top is not winner:
            said += f", simpler than {top.name} ({top.score.mean:.3f}) and about as good"
        return (
            f"{said}; the best source alone, {source.name.removeprefix('source ')}, has {shown_spread(source.score)}."
        )

    def warning(self) -> str:
        """Warn if a source alone is as good; empty if none is."""
        lead, source = self.lead, self.best_source
        if lead is None or source is None or lead.clear:
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
            {"name": one.name, "is_source": one.is_source, "ap": [*one.ap], "auc": [*one.auc], "problem": one.problem}
            for one in self.contenders
        ]
        given: dict[str, Any] = {"scenes": [*self.scenes], "n_folds": self.n_folds, "weak": [*self.weak]}
        return {"contenders": rows, "chosen": self.chosen} | given

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
            names = tuple(tuple(map(str, data[what])) for what in ("scenes", "weak"))
            found = cls(rows, int(data["chosen"]), names[0], int(data["n_folds"]), names[1])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInputError(f"its selection is not what Selection.to_dict gives: {error!r}.") from error
        if not 0 <= found.chosen < len(rows):
            raise InvalidInputError(f"its selection has {len(rows)} contenders, but chose number {found.chosen}.")
        return found


def _numbers(values: Sequence[Any]) -> tuple[float, ...]:
    if not isinstance(values, list | tuple) or len(values) > LIMIT:
        raise ValueError("scores must be a list of numbers")
    return tuple(map(float, values))


def selection_of(record: Any) -> "Selection | None":
    """Return the selection that a training record holds, if any."""
    kept: Mapping[str, Any] | None = getattr(record, "selection", None)
    return None if kept is None else Selection.from_dict(kept)
