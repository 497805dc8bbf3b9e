"""Many sources: time and memory of the convex fit as the number of elements, 3^m, grows."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.marks import Mark, at_most, in_process

OBJECTIVES = ("bipolar", "magnitude")

FIT = """
import time
from bench.many import correlated
from bench.marks import peak_memory
from bimichi import BiMIChI, ConvexSolver
BiMIChI({objective!r}, random_state=0).fit(*correlated(5, 400, 20))  # compiles
X, y, bags = correlated({m}, {n}, {n_bags})
start = time.perf_counter()
model = BiMIChI({objective!r}, ConvexSolver(n_starts={n_starts}), random_state=0).fit(X, y, bags)
taken = time.perf_counter() - start
touched = (model.usage_["weighted"] > 0).sum()
print(taken, peak_memory() / 1e9, touched, model.objective_value_, model.solution_.lower_bound, len(model.history_))
"""


class Fit(NamedTuple):
    """Seconds, gigabytes (with the data), elements that an instance gives weight, J, its bound, rounds."""

    seconds: float
    memory: float
    touched: float
    value: float
    bound: float
    rounds: float

    def detail(self) -> str:
        touched = f"{self.memory:.2f} GB, {self.touched:,.0f} touched elements"
        return f"{touched}, J = {self.value:.4f}, {self.rounds:.0f} rounds"


def correlated(m: int, n: int, n_bags: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Instances, labels and bags: m noisy views of three fields, which vary between and within bags.

    One bag in ten is positive; a fifth of its instances are targets, high in some sources and low in others.
    """
    rng = np.random.default_rng(0)
    bags = np.repeat(np.arange(n_bags), n // n_bags)
    y = (bags % 10 == 0).astype(np.int64)
    views = rng.normal(0, 1, (3, m)) / np.sqrt(3)
    fields = rng.normal(0, 0.25, (n_bags, 3))[bags] + rng.normal(0, 0.25, (len(bags), 3))
    X = fields @ views - 0.2 + rng.normal(0, 0.15, (len(bags), m))
    targets = (y == 1) & (rng.random(len(bags)) < 0.2)
    X[targets] = 0.5 * X[targets] + np.resize([0.7, 0.5, -0.2, 0.3, 0.0, -0.5], m)
    return np.clip(X, -1, 1, out=X), y, bags


def fit(m: int, n: int, n_bags: int, objective: str, n_starts: int = 8) -> Fit:
    """Measure one fit in a process of its own."""
    script = FIT.format(m=m, n=n, n_bags=n_bags, objective=objective, n_starts=n_starts)
    return Fit(*map(float, in_process(script).split()))


def many_sources() -> Iterator[Mark]:
    """The mark, and how time grows with the number of sources."""
    for objective, n_starts in (("bipolar", 8), ("magnitude", 2)):
        found = fit(10, 1_000_000, 2_000, objective, n_starts)
        name = f"convex {objective}, m=10, 1,000,000 rows, 2,000 bags, {n_starts} starts"
        yield at_most(name, found.seconds, 120, "s", found.detail())
        yield at_most("  memory, data included", found.memory, 3, "GB")
    for objective in OBJECTIVES:
        for m in (4, 6, 8, 10, 12):
            found = fit(m, 100_000, 400, objective, 2)
            name = f"convex {objective}, m={m} ({3**m:,} elements), 100,000 rows, 400 bags, 2 starts"
            yield at_most(name, found.seconds, 120, "s", found.detail())
            yield at_most("  J - its lower bound", found.value - found.bound, 1e-6 * found.value, "")


BENCHES = [many_sources]
