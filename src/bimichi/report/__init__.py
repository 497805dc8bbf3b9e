"""The report: one HTML file that shows what a model fused, says how it decides, and explains any pixel."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bimichi._pictures import thumbnail
    from bimichi.report.index import IndexEntry, write_index
    from bimichi.report.inline import Report
    from bimichi.report.writing import write_report

__all__ = ["IndexEntry", "Report", "thumbnail", "write_index", "write_report"]

_MODULES = {
    "IndexEntry": "report.index",
    "Report": "report.inline",
    "thumbnail": "_pictures",
    "write_index": "report.index",
    "write_report": "report.writing",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'bimichi.report' has no attribute {name!r}")
    return getattr(import_module(f"bimichi.{_MODULES[name]}"), name)  # colours alone need none of them
