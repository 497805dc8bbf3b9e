"""The methods it is measured against: noisy-or by evolution, binary measures, least squares."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.learning import FULL
from bench.marks import Mark, at_least, at_most, in_process, seconds
from bimichi import Bags, BinaryMICI, Capacity
from bimichi.fit.objectives import CAPACITY_OBJECTIVES
from bimichi.fit.problem import InMemory

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import naive
from demo import demo


def noisy_or() -> Iterator[Mark]:
    X, y, ids, _ = demo()
    for name in ("noisy-or", "generalized-mean"):
        problem = InMemory(Bags.from_instances(X, y, ids), CAPACITY_OBJECTIVES[name])
        taken = seconds(lambda p=problem: FULL.solve(p, np.random.default_rng(0)), 2)  # type: ignore[misc]
        g = Capacity.random(3, 0)
        table = {frozenset(k for k in range(3) if code >> k & 1): float(v) for code, v in enumerate(g.values)}
        parts = [X[ids == b].clip(0, 0.99).tolist() for b in range(50)]
        labels = [float(y[ids == b][0]) for b in range(50)]
        slow = seconds(
            lambda n=name, p=parts, t=table, y=labels: [naive.capacity_objective(n, p, y, t) for _ in range(100)],  # type: ignore[misc]
            2,
        )
        slow /= 100  # about as long as ours takes, so that both see the same machine
        rate = FULL.population_size * FULL.max_iter / taken
        yield at_most(f"evolutionary {name}, 50 bags of 20, 36 x 5,000", taken, 2, "s", f"{rate:,.0f} evaluations/s")
        yield at_least(f"  one evaluation, against plain Python ({name})", slow * rate, 1_000)


def binary() -> Iterator[Mark]:
    rng = np.random.default_rng(0)
    row, column = np.mgrid[:480, :640]
    segments = (row * 15 // 480) * 18 + column * 18 // 640
    X = rng.random((480, 640, 5))
    bags = Bags.from_image(X, segments, {int(s): bool(s % 9 == 0) for s in np.unique(segments)})
    taken = seconds(lambda: BinaryMICI().fit(bags), 1)
    yield at_most("binary, exact, m=5, 640 x 480, 270 bags", taken, 5, "s", BinaryMICI().fit(bags).solution_.status)


LEAST_SQUARES = """
import time
import numpy as np
from bench.marks import peak_memory
from bimichi import ChoquetQP
rng = np.random.default_rng(0)
X = rng.random(({n}, 3))
y = (X[:, 0] + X[:, 1] > 1.2).astype(np.int8)
ChoquetQP().fit(X[:1000], y[:1000])
before = peak_memory()
start = time.perf_counter()
ChoquetQP().fit(X, y)
print(time.perf_counter() - start, (peak_memory() - before) / 2**30)
"""


def least_squares() -> Iterator[Mark]:
    for n, limit in ((300_000, 1), (10**7, 15)):
        taken, memory = map(float, in_process(LEAST_SQUARES.format(n=n)).split())
        yield at_most(f"CI-QP, {n:,} instances", taken, limit, "s")
        yield at_most("  memory beyond the input", memory, 1, "GiB")


BENCHES = [noisy_or, binary, least_squares]
