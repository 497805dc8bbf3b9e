"""The report: one HTML file that shows what a model fused, says how it decides, and explains any pixel."""

from bimichi._pictures import thumbnail
from bimichi.report.index import IndexEntry, write_index
from bimichi.report.inline import Report
from bimichi.report.writing import write_report

__all__ = ["IndexEntry", "Report", "thumbnail", "write_index", "write_report"]
