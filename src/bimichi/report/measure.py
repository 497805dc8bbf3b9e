"""How the page shows a measure: by its elements, or by its terms. This is the one place that knows the two apart."""

from types import ModuleType

from bimichi.report import elements, terms
from bimichi.report.inputs import Material

VIEWS = {"elements": elements, "terms": terms}


def view_of(material: Material) -> ModuleType:
    """Return a module with the `title` of the measure, its `panel`, and its `contents` in the data of the page."""
    return VIEWS[material.rule.measure.parts]
