"""The model beside other methods, if they were compared."""

from bimichi.report.inputs import Material
from bimichi.report.markup import Markup, element
from bimichi.report.wording import section

__all__ = ["comparison_section"]


def comparison_section(material: Material) -> Markup | None:
    """Show the table of a comparison."""
    if material.comparison is None:
        return None
    table = element("div", Markup(material.comparison.table().to_html()), class_="scroll")
    lead = "Of the methods built on a measure, the best is bold, the second underlined."
    return section("comparison", "Compared with other methods", table, lead=lead)
