"""Jinja2's environment of all pages and displays: every value is escaped, and a name that is missing is an error."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # Jinja2 is imported with the first page: models are used without it
    from jinja2 import Environment
    from markupsafe import Markup


def decimal(value: float, digits: int = 2) -> str:
    """Write a number with a true minus, and without a negative zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def listed(names: Sequence[str]) -> str:
    """Write names as in a sentence: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


@cache
def environment() -> "Environment":
    """Return the environment with the filters that templates use."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from bimichi._colours import gradient, swatch

    pages = Environment(
        loader=PackageLoader("bimichi", "report/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {"decimal": decimal, "gradient": gradient, "listed": listed, "swatch": swatch}
    pages.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return pages


def render(template: str, **values: Any) -> "Markup":
    """Return the HTML of a template; of `values`, only `Markup` is not escaped."""
    from markupsafe import Markup

    return Markup(environment().get_template(template).render(values))


def macro(template: str, name: str, *values: Any) -> "Markup":
    """Return the HTML of one macro of a template."""
    html: Markup = getattr(environment().get_template(template).module, name)(*values)
    return html
