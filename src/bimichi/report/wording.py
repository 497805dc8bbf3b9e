"""Numbers, sets and headings as all sections write them."""

from collections.abc import Sequence

from bimichi.measures.lattice import set_label
from bimichi.report.markup import Markup, element

__all__ = ["listed", "percent", "section", "short_names", "shown", "signed_bar"]

LABEL_LIMIT = 14


def shown(value: float, digits: int = 2) -> str:
    """Write a number with a true minus, and without a negative zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def percent(share: float) -> str:
    """Write a share in per cent."""
    return f"{100 * share:.0f} %"


def listed(names: Sequence[str]) -> str:
    """Write names as in a sentence: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def short_names(names: Sequence[str]) -> tuple[list[str], bool]:
    """Return names whose sets can be labels of a table: numbers, if the names are long; and whether they are."""
    if len(set_label(range(len(names)), names)) <= LABEL_LIMIT:
        return list(names), False
    return [str(k + 1) for k in range(len(names))], True


def section(key: str, heading: str, *content: str, lead: str = "", class_: str | None = None) -> Markup:
    """Return a section of the page with its heading and a sentence or two on how to read it."""
    return element(
        "section",
        element("h2", heading, id=f"{key}-heading"),
        element("p", lead, class_="lead") if lead else "",
        *content,
        id=key,
        class_=class_,
        aria_labelledby=f"{key}-heading",
    )


def signed_bar(below: float, above: float) -> Markup:
    """Return a bar from the middle: left by `below` (at most 0), right by `above`, as shares of a half."""
    left = element("i", class_="down", style=f"left:{50 + 50 * below:.2f}%;width:{-50 * below:.2f}%") if below else ""
    right = element("i", class_="up", style=f"left:50%;width:{50 * above:.2f}%") if above else ""
    return element("span", left, right, class_="signed", aria_hidden="true")
