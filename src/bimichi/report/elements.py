"""The bi-capacity: the paper's table up to four sources, beyond that its most used elements."""

from collections.abc import Sequence

import numpy as np

from bimichi.explain import Identifiability
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.lattice import set_label
from bimichi.report.colours import colour_of, ink_on
from bimichi.report.markup import Markup, element
from bimichi.report.wording import listed, percent, section, short_names, shown

__all__ = ["MATRIX_LIMIT", "measure_section"]

MATRIX_LIMIT = 4
MOST_USED = 16


def measure_section(measure: BiCapacity, known: Identifiability) -> Markup:
    """Show the measure; the script finds elements by their code."""
    m = measure.n_sources
    open_ = int(known.open.sum())
    state = f"Training left {open_:,} of {known.n_free:,} open." if known.n_free else "Its two values are given."
    if m > MATRIX_LIMIT:
        lead = (
            f"{measure.lattice.size:,} elements (A, B): what the sources in A, for, weigh against those in B. "
            f"These are the {MOST_USED} that most training data uses. {state}"
        )
        return section("measure", "The bi-capacity", _most_used(measure, known), lead=lead, class_="wide")
    lead = f"g(A, B): what the sources in A, for, weigh against those in B. {state}"
    size = "wide" if m == MATRIX_LIMIT else None
    return section("measure", "The bi-capacity", *_matrix(measure, known), lead=lead, class_=size)


def _matrix(measure: BiCapacity, known: Identifiability) -> list[Markup]:
    lattice = measure.lattice
    names, numbered = short_names(measure.source_names)
    subsets = range(1 << measure.n_sources)
    sets = [lattice.sets(int(code))[0] for code in lattice.from_masks(np.arange(len(subsets)))]
    labels = [set_label(members, names) for members in sets]
    titles = [set_label(members, measure.source_names) for members in sets]
    corner = element("th", element("span", "A \\ B", class_="corner"), scope="col")
    head = element("tr", corner, *(_axis(label, title, "col") for label, title in zip(labels, titles, strict=True)))
    rows = []
    for up in subsets:
        cells = [_axis(labels[up], titles[up], "row")]
        for down in subsets:
            cells.append(
                element("td", class_="blank") if up & down else _cell(measure, known, int(lattice.from_masks(up, down)))
            )
        rows.append(element("tr", *cells))
    table = element("table", element("thead", head), element("tbody", *rows), class_="matrix")
    region = element("div", table, class_="scroll", tabindex=0, role="region", aria_label="Table of the bi-capacity")
    key = [f"{k + 1} = {name}" for k, name in enumerate(measure.source_names)] if numbered else []
    return [region, element("p", ", ".join(key), class_="note") if key else Markup(""), _legend()]


def _axis(label: str, title: str, scope: str) -> Markup:
    return element("th", label, scope=scope, title=title if title != label else None)


def _cell(measure: BiCapacity, known: Identifiability, code: int) -> Markup:
    if code == 0 and not measure.zero_bound:
        return element("td", "–", class_="blank", title="g(∅, ∅) means nothing with this objective")
    value = float(measure.values[code])
    classes = ["used"] if known.touched[code] else []
    text: list[str] = [shown(value)]
    if known.open[code]:
        classes.append("open")
        ends = [shown(float(end[code])) for end in (known.lower, known.upper)]
        text = [element("span", ends[0]), element("span", ends[1])]
    colour = colour_of(value)
    return element(
        "td",
        element("span", *text),
        class_=" ".join(classes) or None,
        style=f"--value:{colour};--ink:{ink_on(colour)}",
        data_code=code,
        title=_title(measure, known, code),
    )


def _title(measure: BiCapacity, known: Identifiability, code: int) -> str:
    up, down = (_set(members, measure.source_names) for members in measure.lattice.sets(code))
    value = f"{shown(float(measure.values[code]), 3)}; {int(known.counts[code]):,} training instances give it weight"
    if known.open[code]:
        ends = [shown(float(end[code]), 3) for end in (known.lower, known.upper)]
        value = f"open from {ends[0]} to {ends[1]}; the solver chose {value}"
    return f"For: {up}. Against: {down}. {value}."


def _set(members: Sequence[int], names: Sequence[str]) -> str:
    return listed([names[k] for k in members]) if members else "none"


def _legend() -> Markup:
    return element(
        "p",
        element("i", class_="key frame"),
        "training pixels meet it ",
        element("i", class_="key hatch"),
        "open: anything between the two numbers fits the training data alike ",
        element("i", class_="key ring"),
        "used by the chosen pixel",
        class_="note legend",
    )


def _most_used(measure: BiCapacity, known: Identifiability) -> Markup:
    order = np.argsort(-known.counts, kind="stable")[:MOST_USED]
    n = round(int(known.touched.sum()) / measure.n_sources)
    rows = []
    for code in order[known.counts[order] > 0].tolist():
        up, down = (_set(members, measure.source_names) for members in measure.lattice.sets(code))
        colour = colour_of(float(measure.values[code]))
        share = int(known.counts[code]) / n
        cells = [
            element("th", up, scope="row"),
            element("td", down, class_="text"),
            element(
                "td",
                shown(float(measure.values[code]), 3),
                class_="swatch",
                style=f"--value:{colour};--ink:{ink_on(colour)}",
            ),
            element(
                "td",
                element("span", element("i", class_="plain", style=f"width:{100 * share:.2f}%"), class_="bar"),
                class_="wide",
            ),
            element("td", percent(share)),
        ]
        rows.append(element("tr", *cells, data_code=code))
    head = {"For (A)": None, "Against (B)": None, "g(A, B)": None, "Share of the training data that uses it": 2}
    titles = [element("th", title, scope="col", colspan=span) for title, span in head.items()]
    table = element("table", element("thead", element("tr", *titles)), element("tbody", *rows), class_="bars elements")
    return element("div", table, class_="scroll", tabindex=0, role="region", aria_label="Most used elements")
