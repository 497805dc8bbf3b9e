"""A bi-capacity: the paper's table up to four sources, beyond that its most used elements; of a capacity, its sets."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._types import Floats, Ints
from bimichi.explain.results import percent
from bimichi.measures.base import TOLERANCE
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.lattice import set_label, short_names
from bimichi.report.inputs import Material
from bimichi.report.page import LABEL_LIMIT, Markup, element, embed_numbers, listed, section, shown, swatch, table

MATRIX_LIMIT = 4
MOST_USED = 16

VALUE = "g(A, B) is the integral C where the sources in A are +1, those in B −1, and the others 0."


@dataclass(frozen=True, eq=False)
class _Elements:
    """The measure as a bi-capacity, and what is known of its elements; arrays in code order."""

    measure: BiCapacity
    lower: Floats
    upper: Floats
    counts: Ints
    touched: Ints
    n_instances: int
    users: str
    one_sided: bool

    @classmethod
    def of(cls, material: Material) -> "_Elements":
        """A capacity is the bi-capacity with the same integral where no source is below zero."""
        rule, trained = material.rule, material.training_use
        measure: BiCapacity = rule.measure.to_bicapacity()
        use = trained or material.image_use
        where: NDArray[Any] = np.arange(measure.lattice.size)
        if rule.measure.kind == "capacity":
            where = measure.lattice.from_masks(np.arange(len(rule.measure.values)))
        lower, upper = measure.values.copy(), measure.values.copy()
        if trained is not None:
            lower[where], upper[where] = trained.lower, trained.upper
        counts, touched = np.zeros((2, measure.lattice.size), np.int64)
        counts[where], touched[where] = use.counts, use.touched
        n = max(1, rule.measure.n_instances(use.touched))
        users = "pixels of this image" if trained is None else "training instances"
        return cls(measure, lower, upper, counts, touched, n, users, rule.low == 0)

    def is_open(self, code: int) -> bool:
        return bool(self.upper[code] - self.lower[code] > TOLERANCE)

    def ends(self, code: int, digits: int = 2) -> list[str]:
        return [shown(float(end[code]), digits) for end in (self.lower, self.upper)]

    def sets(self, code: int) -> list[str]:
        return [listed(names) or "none" for names in self.measure.sets(code)]

    def title(self, code: int) -> str:
        up, down = self.sets(code)
        value = f"{shown(float(self.measure.values[code]), 3)}; {int(self.counts[code]):,} {self.users} give it weight"
        if self.is_open(code):
            value = f"open from {' to '.join(self.ends(code, 3))}; the solver chose {value}"
        return f"For: {up}. Against: {down}. {value}."


def title(material: Material) -> str:
    """Return the name of the kind of measure."""
    return "capacity" if material.rule.measure.kind == "capacity" else "bi-capacity"


def contents(material: Material) -> dict[str, Any]:
    """Return values, and the intervals of open elements."""
    found = _Elements.of(material)
    arrays = {"values": found.measure.values, "lower": found.lower, "upper": found.upper}
    return {name: embed_numbers(array) for name, array in arrays.items()}


def panel(material: Material) -> Markup:
    """Show the measure; the script finds elements by their code."""
    found, m = _Elements.of(material), len(material.names)
    known, heading = material.training_use, f"The {title(material)}"
    state = "" if known is None else _state(int(known.open.sum()), known.n_free)
    codes: NDArray[Any] = np.argsort(-found.counts, kind="stable")[:MOST_USED]
    codes = codes[found.counts[codes] > 0]
    if found.one_sided:
        lead = f"g(A) is the integral C where the sources in A are 1 and the others 0. {state}"
        if m > MATRIX_LIMIT:
            lead += f" These are the {MOST_USED} sets that most {found.users} use."
        else:
            codes = found.measure.lattice.from_masks(sorted(range(1, 1 << m), key=int.bit_count))
        return section("measure", heading, _list(found, codes), lead=lead, class_="wide" if m > MATRIX_LIMIT else None)
    if m > MATRIX_LIMIT:
        count = f"{found.measure.lattice.size:,}"
        lead = f"{VALUE} Of its {count} elements, these are the {MOST_USED} that most {found.users} use. {state}"
        return section("measure", heading, _list(found, codes), lead=lead, class_="wide")
    size = "wide" if m == MATRIX_LIMIT else None
    return section("measure", heading, *_matrix(found), lead=f"{VALUE} {state}", class_=size)


def _state(n_open: int, n_free: int) -> str:
    if not n_free:
        return ""
    if not n_open:
        return f"Training instances use all {n_free:,} elements, or the order fixes them."
    return f"No training instance uses {n_open:,} of {n_free:,} elements: these are open between the used ones."


def _matrix(found: _Elements) -> list[Markup]:
    lattice, own = found.measure.lattice, found.measure.source_names
    names, numbered = short_names(own, LABEL_LIMIT)
    subsets = range(1 << len(own))
    labels, titles = ([set_label(members, part) for members in lattice.subsets()] for part in (names, own))
    corner = element("th", element("span", "A \\ B", class_="corner"), scope="col")
    head = [corner, *(_axis(label, title, "col") for label, title in zip(labels, titles, strict=True))]
    rows = []
    for up in subsets:
        codes = [None if up & down else int(lattice.from_masks(up, down)) for down in subsets]
        cells = [element("td", class_="blank") if code is None else _cell(found, code) for code in codes]
        rows.append(element("tr", _axis(labels[up], titles[up], "row"), *cells))
    key = ", ".join(f"{k + 1} = {name}" for k, name in enumerate(own))
    note = element("p", key, class_="note") if numbered else Markup("")
    legend = [element("i", class_="key frame"), f"touched by {found.users} "]
    if (found.upper - found.lower > TOLERANCE).any():
        legend.append(element("i", class_="key hatch"))
        legend.append("open: every value between the two numbers gives all training instances the same output ")
    legend += [element("i", class_="key ring"), "used by the chosen pixel"]
    whole = table(head, rows, "matrix", "Table of the bi-capacity")
    return [whole, note, element("p", *legend, class_="note legend")]


def _axis(label: str, title: str, scope: str) -> Markup:
    return element("th", label, scope=scope, title=title if title != label else None)


def _cell(found: _Elements, code: int) -> Markup:
    if code == 0 and not found.measure.zero_bound:
        return element("td", "–", class_="blank", title="g(∅, ∅) has no meaning with this objective")
    value = float(found.measure.values[code])
    classes = ["used"] if found.touched[code] else []
    text: list[str] = [shown(value)]
    if found.is_open(code):
        classes.append("open")
        text = [element("span", end) for end in found.ends(code)]
    marks = {"class_": " ".join(classes) or None, "style": swatch(value), "data_code": code, "title": found.title(code)}
    return element("td", element("span", *text), **marks)


def _list(found: _Elements, codes: NDArray[Any]) -> Markup:
    rows = []
    for code in codes.tolist():
        up, down = found.sets(code)
        value, share = float(found.measure.values[code]), int(found.counts[code]) / found.n_instances
        text = " to ".join(found.ends(code)) if found.is_open(code) else shown(value, 3)
        bar = element("span", element("i", class_="plain", style=f"width:{100 * share:.2f}%"), class_="bar")
        cells = [
            element("th", up, scope="row"),
            *([] if found.one_sided else [element("td", down, class_="text")]),
            element("td", text, class_="swatch", style=swatch(value)),
            element("td", bar, class_="wide"),
            element("td", percent(share)),
        ]
        rows.append(element("tr", *cells, data_code=code, title=found.title(code)))
    sets = ["A", "g(A)"] if found.one_sided else ["For (A)", "Against (B)", "g(A, B)"]
    kind = "bars elements one-sided" if found.one_sided else "bars elements"
    return table([*sets, (f"Share of the {found.users} that use it", 2)], rows, kind, "Elements of the measure")
