import pytest

from bimichi.report import write_report


@pytest.fixture
def written(tmp_path):
    """Write a report, and return the page."""

    def write(*given, **options):
        write_report(tmp_path / "report.html", *given, **options)
        return (tmp_path / "report.html").read_text(encoding="utf-8")

    return write
