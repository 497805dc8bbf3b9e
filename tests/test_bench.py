"""How marks are kept and shown; what they measure is run by `make bench`."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench import keeping, page
from bench.marks import at_least, at_most

MARKS = [
    at_least("planes, of the memory limit", 0.7, 0.35, detail="300 million/s"),
    at_most("fit, m=10", 5.0, 10, "s"),
    at_most("  memory", 0.5, 3, "GB"),
    at_most("fit, m=12", 50.0, 10, "s", "a | b <c>"),
    at_most("  memory", 2.0, 3, "GB"),
    at_least("auto: average precision", 0.8, 0.5, "AP"),
]


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setattr(keeping, "OUTPUT", tmp_path / "output")
    monkeypatch.setattr(keeping, "HISTORY", tmp_path / "history")
    return tmp_path


def at(monkeypatch, commit, date, clean=True):
    monkeypatch.setattr(keeping, "_commit", lambda: (commit, date, clean))


def test_marks_have_whole_names_and_kinds():
    found = keeping.named(MARKS)
    assert list(found) == [
        "planes, of the memory limit",
        "fit, m=10",
        "fit, m=10: memory",
        "fit, m=12",
        "fit, m=12: memory",
        "auto: average precision",
    ]
    assert [mark.kind for mark in found.values()] == ["speed", "speed", "size", "speed", "size", "accuracy"]


def test_a_commit_keeps_what_it_measured(places, monkeypatch):
    at(monkeypatch, "abc1234", "2026-01-02T00:00:00+00:00")
    written = keeping.keep(MARKS[:3])
    assert [path.parent.name for path in written] == ["output", "history"]
    keeping.keep(MARKS[3:])  # the rest, later
    (run,) = keeping.history()
    assert run.commit == "abc1234"
    assert len(run.marks) == len(MARKS)
    assert keeping.Run.from_json(json.dumps(run.to_json())) == run


def test_changed_sources_are_not_part_of_the_history(places, monkeypatch):
    at(monkeypatch, "abc1234", "2026-01-02T00:00:00+00:00", clean=False)
    (written,) = keeping.keep(MARKS)
    assert written.name == "abc1234-changed.json"
    assert keeping.history() == []


def test_the_page_shows_the_newest_and_the_picture_all(places, monkeypatch):
    for commit, date in (("new0000", "2026-03-01T00:00:00+00:00"), ("old0000", "2026-01-01T00:00:00+00:00")):
        at(monkeypatch, commit, date)
        keeping.keep(MARKS)
    runs = keeping.history()
    text = page.page(runs)
    assert "commit new0000" in text
    assert text.index("## How fast") < text.index("## How big") < text.index("## How accurate")
    assert "| fit, m=12 | 50 s | <= 10 | **MISSED** a \\| b &lt;c> |" in text
    for _ in range(2):
        page.picture(runs, places / "marks.svg")
        drawn = (places / "marks.svg").read_text()
        assert "old0000" in drawn
        assert "fit, m=10: memory" in drawn
        (places / "first.svg").exists() or (places / "marks.svg").rename(places / "first.svg")
    assert (places / "first.svg").read_text() == drawn


def test_the_committed_page_is_that_of_the_history():
    assert page.PAGE.read_text(encoding="utf-8") == page.page(keeping.history()), "run python -m bench.page"
