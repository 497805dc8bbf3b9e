"""Marks: what was measured, and what it has to be."""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SIZES = ("GB", "GiB", "MB")


@dataclass(frozen=True)
class Mark:
    name: str
    value: float
    limit: float
    at_least: bool
    unit: str
    detail: str = ""

    @property
    def kind(self) -> str:
        """What it is about: speed, size or accuracy."""
        if self.unit in ("AP", "AUC", ""):
            return "accuracy"
        return "size" if self.unit in SIZES or "input" in self.unit or "bytes" in self.name else "speed"

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def row(self) -> list[str]:
        sign = ">=" if self.at_least else "<="
        return [
            self.name,
            f"{self.value:,.3g} {self.unit}",
            f"{sign} {self.limit:g}",
            "met" if self.met else "MISSED",
            self.detail,
        ]


def at_least(name: str, value: float, limit: float, unit: str = "x", detail: str = "") -> Mark:
    return Mark(name, value, limit, True, unit, detail)


def at_most(name: str, value: float, limit: float, unit: str, detail: str = "") -> Mark:
    return Mark(name, value, limit, False, unit, detail)


def seconds(work: Callable[[], object], repeat: int = 5) -> float:
    """The best of several runs, after one that compiles and touches the memory."""
    work()
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def ratio(slow: Callable[[], object], fast: Callable[[], object], rounds: int = 3) -> tuple[float, float]:
    """Seconds of `slow` over those of `fast`, and the latter; taken in turns, so that both see the same machine."""
    both = [(seconds(slow, 2), seconds(fast)) for _ in range(rounds)]
    return min(s for s, _ in both) / min(f for _, f in both), min(f for _, f in both)


def peak_memory() -> int:
    """Bytes this process has taken at most, so far (Linux; getrusage would count the parent's, too)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def in_process(script: str) -> str:
    """What a fresh process prints that runs the script."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip()
