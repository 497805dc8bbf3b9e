"""Learning from bags: both solvers, on the UM picture and on a scene of 640 x 480 pixels."""

import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

from bench.marks import Mark, at_least, at_most, in_process, seconds
from bimichi import Bags, BiCapacity, ConvexSolver, EvolutionarySolver
from bimichi.fit.objectives import OBJECTIVES, get_objective
from bimichi.fit.problem import InMemory, Solution

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import naive
import um

FULL = EvolutionarySolver(patience=None)
PAPER = ("bipolar", "magnitude")


@cache
def scene(seed: int = 0) -> Bags:
    """Three continuous sources, 270 blocks as bags, some of them with a person-sized target in the corner."""
    rng = np.random.default_rng(seed)
    height, width = 480, 640
    row, column = np.mgrid[:height, :width]
    segments = (row * 15 // height) * 18 + column * 18 // width
    fields = [gaussian_filter(rng.normal(size=(height, width)), s) for s in (20, 8, 3)]
    planes = [0.45 * f / f.std() + rng.normal(0, 0.1, f.shape) for f in fields]
    target = np.zeros((height, width), dtype=bool)
    for x, y in zip(rng.integers(0, width - 16, 14), rng.integers(0, height - 40, 14), strict=True):
        target[y : y + 40, x : x + 16] = True
    planes = [p - 0.3 + target * lift for p, lift in zip(planes, (0.9, -0.4, 0.5), strict=True)]
    labels = {int(s): bool(target[segments == s].any()) for s in np.unique(segments)}
    return Bags.from_image([np.clip(p, -1, 1) for p in planes], segments, labels)


def timed(
    solver: ConvexSolver | EvolutionarySolver, bags: Bags, objective: str, reduce: bool = True
) -> tuple[Solution, float]:
    """A solution and the seconds it took, with the preparation of the problem."""
    start = time.perf_counter()
    problem = InMemory(bags, get_objective(objective), reduce=reduce)
    found = solver.solve(problem, np.random.default_rng(0))
    return found, time.perf_counter() - start


def evolution() -> Iterator[Mark]:
    bags, *_ = um.um()
    for name in PAPER:
        problem = InMemory(bags, OBJECTIVES[name])
        FULL.solve(problem, np.random.default_rng(0))
        taken = seconds(lambda p=problem: FULL.solve(p, np.random.default_rng(0)), 2)  # type: ignore[misc]
        g = BiCapacity.random(3, OBJECTIVES[name].zero_bound, 0)
        table = {pair: g[pair] for pair in naive.pairs(3)}
        parts = [part.tolist() for part in np.split(bags.X, bags.offsets[1:-1])]
        slow = seconds(lambda t=table, n=name, p=parts: naive.objective(n, p, bags.labels.tolist(), t), 1)  # type: ignore[misc]
        rate = FULL.population_size * FULL.max_iter / taken
        yield at_most(f"evolutionary {name}, UM, 36 x 5,000", taken, 2, "s", f"{rate:,.0f} evaluations/s")
        yield at_least(f"  one evaluation, against plain Python ({name})", slow * rate, 10_000)


def both_solvers() -> Iterator[Mark]:
    um_bags, *_ = um.um()
    for where, bags in (("UM", um_bags), ("scene", scene())):
        for name in PAPER:
            timed(ConvexSolver(n_starts=1), bags, name)
            timed(EvolutionarySolver(max_iter=2), bags, name)
            one, start_time = timed(ConvexSolver(n_starts=1), bags, name)
            convex, convex_time = timed(ConvexSolver(), bags, name)
            evolved, evolved_time = timed(FULL, bags, name)
            if where == "scene":
                rate = FULL.population_size * FULL.max_iter / evolved_time
                yield at_most(
                    f"evolutionary {name}, scene, 36 x 5,000", evolved_time, 60, "s", f"{rate:,.0f} evaluations/s"
                )
                yield at_most(
                    f"convex {name}, scene, one start", start_time, 0.5, "s", f"J = {one.objective_value:.4f}"
                )
                _, plain_time = timed(FULL, bags, name, reduce=False)
                yield at_least(
                    f"  eight starts, sooner than the search over all instances ({name})",
                    plain_time / convex_time,
                    20,
                    detail=f"{evolved_time / convex_time:.0f} x sooner than over those that can decide a bag",
                )
            yield at_most(
                f"J convex - J evolutionary, {where}, {name}",
                convex.objective_value - evolved.objective_value,
                1e-9,
                "",
                f"{convex.objective_value:.4f} against {evolved.objective_value:.4f}",
            )


GROWTH = """
import time
import numpy as np
from bench.marks import peak_memory
from bimichi import BiMIChI
n = {n}
rng = np.random.default_rng(0)
small = rng.uniform(-1, 1, (1000, 3))
BiMIChI({objective!r}, random_state=0).fit(small, np.arange(1000) % 2, np.arange(1000) % 20)
before = peak_memory()
bags = np.repeat(np.arange(n // 1000), 1000)
y = (bags % 10 == 0).astype(np.int64)
X = rng.uniform(-1, 1, (n, 3))
X *= np.where(y == 1, 1.0, 0.7)[:, None]
start = time.perf_counter()
model = BiMIChI({objective!r}, solver=__import__("bimichi").ConvexSolver(n_starts=1), random_state=0).fit(X, y, bags)
print(time.perf_counter() - start, (peak_memory() - before) / 2**30)
"""


def growth() -> Iterator[Mark]:
    """Time and memory of fit as the number of instances grows; bags of 1,000, so bags grow with it."""
    for objective in ("bipolar", "mean"):
        per_instance = {}
        for n in (10**5, 10**6, 10**7):
            taken, memory = map(float, in_process(GROWTH.format(n=n, objective=objective)).split())
            per_instance[n] = taken / n
            detail = f"{taken:.2f} s, data included"
            yield at_most(f"fit {objective}, n = {n:,}: memory", memory, 4, "GiB", detail)
        yield at_most(
            f"fit {objective}, time per instance, 10^7 against 10^6", per_instance[10**7] / per_instance[10**6], 2, "x"
        )


def six_sources() -> Iterator[Mark]:
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(2000), 300)
    y = (ids % 10 == 0).astype(int)
    X = np.clip(rng.normal(-0.2, 0.4, (len(ids), 6)) + rng.normal(0, 0.2, (2000, 6))[ids], -1, 1)
    hits = (y == 1) & (rng.random(len(ids)) < 0.2)
    X[hits] = np.clip(rng.normal([0.7, 0.5, -0.2, 0.3, 0.0, -0.5], 0.2, (int(hits.sum()), 6)), -1, 1)
    bags = Bags.from_instances(X, y, ids)
    for name in OBJECTIVES:
        found, taken = timed(ConvexSolver(), bags, name)
        detail = f"J = {found.objective_value:.4f}, {found.n_iter} rounds, {found.status}"
        yield at_most(f"convex {name}, m=6, 600,000 rows, 2,000 bags", taken, 20, "s", detail)


LOGISTIC = """
import time
import numpy as np
from bench.marks import peak_memory
from bimichi import Bags, BiMIChI
rng = np.random.default_rng(0)
n, n_bags = 16 * 640 * 480, 16 * 270
ids = np.sort(rng.integers(0, n_bags, n))
y = (rng.random(n_bags) < 0.05)[ids]
X = rng.normal(-0.2, 0.4, (n, 6)).astype(np.float32)
hits = y & (rng.random(n) < 0.3)
X[hits] += rng.normal(0.4, 0.2, (int(hits.sum()), 6)).astype(np.float32)
bags = Bags.from_instances(np.clip(X, -1, 1), y, ids)
model = BiMIChI("logistic", additivity={additivity})
model.fit(X[::300].clip(-1, 1), y[::300])
before, start = peak_memory(), time.perf_counter()
solution = model.fit(bags).solution_
taken = time.perf_counter() - start
print(taken, (peak_memory() - before) / 2**30, 1 - solution.lower_bound / solution.objective_value)
"""


def logistic() -> Iterator[Mark]:
    """16 scenes of 640 x 480 pixels and six sources."""
    for additivity in (1, 2, None):
        taken, memory, gap = map(float, in_process(LOGISTIC.format(additivity=additivity)).split())
        what = f"logistic, {additivity or 'not '}{'-' if additivity else ''}additive, 16 scenes of six sources"
        yield at_most(what, taken, 3 if additivity else 10, "s", f"{memory:.2f} GiB, J within {gap:.1e} of its bound")


BENCHES = [evolution, both_solvers, growth, six_sources, logistic]
