"""The sections of the page, in their order. A new one is a file, and a line here."""

from collections.abc import Callable

from bimichi.report.accuracy import accuracy_section, comparison_section
from bimichi.report.explorer import explorer_section
from bimichi.report.inputs import Material
from bimichi.report.markup import Markup
from bimichi.report.overview import fine_print, opening
from bimichi.report.strengths import strengths_section

SECTIONS: list[Callable[[Material], Markup | None]] = [
    opening,
    explorer_section,
    strengths_section,
    accuracy_section,
    comparison_section,
    fine_print,
]
"""Each is given all that the report is made from, and returns its markup, or None if it has nothing to show."""
