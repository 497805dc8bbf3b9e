"""The measure on the page: by its elements, or by its terms. This is the one place that knows the two apart."""

from typing import Any

from bimichi.report import elements, terms
from bimichi.report.inputs import Material
from bimichi.report.markup import Markup

__all__ = ["contents", "panel", "title"]

FAMILIES: dict[str, Any] = {"elements": elements, "terms": terms}
"""Modules with a `panel` and the `contents` of the page's data, by what a measure is made of."""


def panel(material: Material) -> Markup:
    """Return the section that shows the measure beside the maps."""
    shown: Markup = FAMILIES[material.rule.measure.parts].panel(material)
    return shown


def contents(material: Material) -> dict[str, Any]:
    """Return the measure as a part of the page's data."""
    parts = material.rule.measure.parts
    document: dict[str, Any] = {"parts": parts} | FAMILIES[parts].contents(material)
    return document


def title(material: Material) -> str:
    """Return what the measure is, in words."""
    name: str = FAMILIES[material.rule.measure.parts].title(material)
    return f"{'an' if name.startswith('a') else 'a'} {name}" if material.rule.training is None else f"a learned {name}"
