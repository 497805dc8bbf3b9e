"""The report: one HTML file that shows what a model fused, says how it decides, and explains any pixel."""

from bimichi.report.writing import write_report

__all__ = ["write_report"]
