"""Marks over time: a file for each commit that was measured; those of clean commits stay, in bench/history."""

import json
import platform
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.marks import Mark
from bimichi import __version__
from bimichi._files import atomic_write
from bimichi.integral.planes import check_n_jobs

ROOT = Path(__file__).parent.parent
OUTPUT = ROOT / "output" / "bench"
HISTORY = ROOT / "bench" / "history"


@dataclass(frozen=True)
class Run:
    """What one commit measured, by name of the mark."""

    version: str
    commit: str
    date: str
    machine: str
    marks: Mapping[str, Mark]

    @property
    def label(self) -> str:
        return f"{self.version} ({self.commit})"

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "marks": {name: vars(mark) for name, mark in self.marks.items()}}

    @classmethod
    def from_json(cls, text: str) -> "Run":
        data = json.loads(text)
        return cls(**{**data, "marks": {name: Mark(**mark) for name, mark in data["marks"].items()}})


def named(marks: Iterable[Mark]) -> dict[str, Mark]:
    """Marks by whole names: one that begins with spaces belongs to the last one that does not."""
    found: dict[str, Mark] = {}
    head = ""
    for mark in marks:
        sub = mark.name.startswith(" ")
        head = head if sub else mark.name
        found[f"{head}: {mark.name.strip()}" if sub else head] = mark
    return found


def keep(marks: Iterable[Mark]) -> list[Path]:
    """Write the marks of this commit, together with those it measured before; return the files."""
    commit, date, clean = _commit()
    name = f"{commit}.json" if clean else f"{commit}-changed.json"
    places = [OUTPUT / name, *([HISTORY / f"{__version__}-{commit}.json"] if clean else [])]
    before = Run.from_json(places[0].read_text()).marks if places[0].exists() else {}
    run = Run(__version__, commit, date, _machine(), {**before, **named(marks)})
    text = json.dumps(run.to_json(), indent=1) + "\n"
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(place, lambda file: file.write(text.encode()))
    return places


def history() -> list[Run]:
    """The runs in bench/history, the oldest commit first."""
    return sorted((Run.from_json(path.read_text()) for path in HISTORY.glob("*.json")), key=lambda run: run.date)


def _commit() -> tuple[str, str, bool]:
    """The commit, its date, and whether what is measured is just that; history and the page may differ."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    commit, date = git("show", "-s", "--format=%h %cI").split()
    return commit, date, not git("status", "--porcelain", "--", "src", "bench/*.py", "pyproject.toml")


def _machine() -> str:
    cpu = platform.processor() or platform.machine()
    listed = Path("/proc/cpuinfo")
    if listed.exists():
        names = [line.split(":", 1)[1].strip() for line in listed.read_text().splitlines() if "model name" in line]
        cpu = names[0] if names else cpu
    return f"{check_n_jobs(None)} cores of {cpu}, {platform.system()}, Python {platform.python_version()}"
