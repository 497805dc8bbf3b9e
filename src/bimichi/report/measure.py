"""The measure as the page shows it.

A bi-capacity is a table up to four sources, as in the paper, beyond that a list of its most used elements; a capacity
is a list of its sets; an additive measure is a chart of weights above and below zero, and its pairs by strength.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bimichi._html import decimal, listed, render
from bimichi._types import Floats, Ints
from bimichi.measures.additive import AdditiveBiCapacity
from bimichi.measures.base import TOLERANCE
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.lattice import set_label, short_names
from bimichi.report.inputs import Material

if TYPE_CHECKING:
    from markupsafe import Markup

MATRIX_LIMIT = 4
"""Sources up to which a bi-capacity is shown as a table."""

MOST_USED = 16
"""Elements that are listed beyond."""

LABEL_LIMIT = 14
"""Characters of the labels of the table."""

BESIDE = 8
"""Sources up to which the weights fit beside the maps."""

MOST_PAIRS = 200
"""Pairs that are listed at most."""

FAINT = 0.0005
"""Pairs below it are 0.000."""

VALUE = "g(A, B) is the integral C where the sources in A are +1, those in B −1, and the others 0."


Row = tuple[str, str, list[int | None]]
"""Label and title of a row of the table, and the codes of its cells; None where sets overlap."""


def measure_title(material: Material) -> str:
    """Return the name of the kind of measure."""
    measure = material.rule.measure
    if isinstance(measure, AdditiveBiCapacity):
        return "additive bi-capacity" if measure.order == 1 else "2-additive bi-capacity"
    return "capacity" if measure.kind == "capacity" else "bi-capacity"


def measure_values(material: Material) -> dict[str, Floats]:
    """Return what the script computes with: values, and the intervals of open elements."""
    if material.rule.measure.parts == "terms":
        return {"values": material.rule.measure.values}
    elements = Elements.of(material)
    return {"values": elements.measure.values, "lower": elements.lower, "upper": elements.upper}


def measure_panel(material: Material) -> "Markup":
    """Return the section of the measure; the script finds elements and terms by their code."""
    measure = material.rule.measure
    if isinstance(measure, AdditiveBiCapacity):
        return _terms(material, measure)
    return _elements(material)


@dataclass(frozen=True, eq=False)
class Elements:
    """The measure as a bi-capacity, and how its elements are used; arrays in code order."""

    measure: BiCapacity
    lower: Floats
    upper: Floats
    counts: Ints
    touched: Ints
    n_instances: int
    users: str
    one_sided: bool

    @classmethod
    def of(cls, material: Material) -> "Elements":
        """Return those of a report; a capacity is the bi-capacity with the same integral where no source is below 0."""
        rule, trained = material.rule, material.training_use
        measure: BiCapacity = rule.measure.to_bicapacity()
        use = trained or material.image_use
        codes: NDArray[Any] = np.arange(measure.lattice.size)
        if rule.measure.kind == "capacity":
            codes = measure.lattice.from_masks(np.arange(len(rule.measure.values)))
        lower, upper = measure.values.copy(), measure.values.copy()
        if trained is not None:
            lower[codes], upper[codes] = trained.lower, trained.upper
        counts, touched = np.zeros((2, measure.lattice.size), np.int64)
        counts[codes], touched[codes] = use.counts, use.touched
        n = max(1, rule.measure.n_instances(use.touched))
        users = "pixels of this image" if trained is None else "training instances"
        return cls(measure, lower, upper, counts, touched, n, users, rule.low == 0)

    @property
    def n_open(self) -> int:
        """Number of elements that training did not fix."""
        return int((self.upper - self.lower > TOLERANCE).sum())

    def is_open(self, code: int) -> bool:
        """Return whether training did not fix an element."""
        return bool(self.upper[code] - self.lower[code] > TOLERANCE)

    def value(self, code: int) -> float:
        """Return the value of an element."""
        return float(self.measure.values[code])

    def share(self, code: int) -> float:
        """Return the share of instances that give an element weight."""
        return int(self.counts[code]) / self.n_instances

    def ends(self, code: int) -> tuple[float, float]:
        """Return the interval of an element."""
        return float(self.lower[code]), float(self.upper[code])

    def sets(self, code: int) -> list[str]:
        """Return the sources for, and those against."""
        return [listed(names) or "none" for names in self.measure.sets(code)]

    def title(self, code: int) -> str:
        """Return an element in a sentence or two."""
        up, down = self.sets(code)
        value = f"{decimal(self.value(code), 3)}; {int(self.counts[code]):,} {self.users} give it weight"
        if self.is_open(code):
            low, high = (decimal(end, 3) for end in self.ends(code))
            value = f"open from {low} to {high}; the solver chose {value}"
        return f"For: {up}. Against: {down}. {value}."


def _elements(material: Material) -> "Markup":
    elements, m = Elements.of(material), len(material.names)
    use, measure = material.training_use, elements.measure
    state = "" if use is None else _state(int(use.open.sum()), use.n_free)
    codes: NDArray[Any] = np.argsort(-elements.counts, kind="stable")[:MOST_USED]
    codes = codes[elements.counts[codes] > 0]
    lead, numbered = f"{VALUE} {state}", False
    matrix: list[Row] = []
    if elements.one_sided:
        lead = f"g(A) is the integral C where the sources in A are 1 and the others 0. {state}"
        if m > MATRIX_LIMIT:
            lead += f" These are the {MOST_USED} sets that most {elements.users} use."
        else:
            codes = measure.lattice.from_masks(sorted(range(1, 1 << m), key=int.bit_count))
    elif m > MATRIX_LIMIT:
        count = f"{measure.lattice.size:,}"
        lead = f"{VALUE} Of its {count} elements, these are the {MOST_USED} that most {elements.users} use. {state}"
    else:
        matrix, numbered = _matrix(measure)
    return render(
        "elements.html",
        heading=f"The {measure_title(material)}",
        lead=lead,
        elements=elements,
        measure=measure,
        codes=codes.tolist(),
        matrix=matrix,
        numbered=numbered,
        wide=m > MATRIX_LIMIT or (m == MATRIX_LIMIT and not elements.one_sided),
    )


def _state(n_open: int, n_free: int) -> str:
    if not n_free:
        return ""
    if not n_open:
        return f"Training instances use all {n_free:,} elements, or the order fixes them."
    return f"No training instance uses {n_open:,} of {n_free:,} elements: these are open between the used ones."


def _matrix(measure: BiCapacity) -> tuple[list[Row], bool]:
    """Return the rows, whose sets are those of the columns too, and whether labels are numbers."""
    lattice = measure.lattice
    names, numbered = short_names(measure.source_names, LABEL_LIMIT)
    subsets = range(1 << measure.n_sources)
    rows = []
    for up, members in zip(subsets, lattice.subsets(), strict=True):
        codes = [None if up & down else int(lattice.from_masks(up, down)) for down in subsets]
        rows.append((set_label(members, names), set_label(members, measure.source_names), codes))
    return rows, numbered


def _terms(material: Material, measure: AdditiveBiCapacity) -> "Markup":
    one_sided, use, m = material.rule.low == 0, material.training_use, measure.n_sources

    def term(code: int) -> dict[str, Any]:
        up, down = measure.sets(code)
        value = float(measure.values[code])
        count = "" if use is None else f" {int(use.counts[code]):,} training instances give it weight."
        title = f"For: {listed(up) or 'none'}. Against: {listed(down) or 'none'}. {decimal(value, 3)}.{count}"
        return {"code": code, "value": value, "up": up, "down": down, "title": title}

    lead = "Each source adds its weight times the size of its value"
    lead += "" if one_sided else "; it has one weight above zero and one below"
    lead += "." if measure.order == 1 else ". Each pair of sources adds its term times the smaller of the two sizes."
    if use is not None:
        used = "all" if use.n_used == use.n_free else f"{use.n_used:,} of"
        lead += f" Training used {used} {use.n_free:,} terms. Intervals of open elements are not applicable."
    pairs = _pairs(measure, one_sided) if measure.order == 2 else []
    return render(
        "terms.html",
        lead=lead,
        wide=m > BESIDE,
        one_sided=one_sided,
        longest=float(np.abs(measure.values[: m if one_sided else 2 * m]).max()),
        sources=[{"name": name, "up": term(k), "down": term(m + k)} for k, name in enumerate(material.names)],
        second_order=measure.order == 2,
        pairs=[term(code) for code in pairs[:MOST_PAIRS]],
        n_pairs=len(pairs),
    )


def _pairs(measure: AdditiveBiCapacity, one_sided: bool) -> list[int]:
    """Return the codes of pairs that are not 0.000, the strongest first."""
    codes = np.arange(2 * measure.n_sources, measure.n_parts)
    if one_sided:  # no source is below zero
        codes = codes[[not measure.sets(int(code))[1] for code in codes]]
    strength = np.abs(measure.values[codes])
    order: list[int] = codes[np.argsort(-strength, kind="stable")][: int((strength >= FAINT).sum())].tolist()
    return order
