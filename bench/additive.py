"""2-additive bi-capacities: kernel and learning at 10, 20 and 30 sources; and how small files of large lattices are."""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from bench.marks import Mark, at_least, at_most, in_process, ratio
from bimichi import AdditiveBiCapacity, BiCapacity, choquet
from bimichi.fit.spaces.base import completion_of
from bimichi.measures.lattice import pair_lattice


def additive_integral() -> Iterator[Mark]:
    rng = np.random.default_rng(0)
    for m in (10, 20, 30):
        g = AdditiveBiCapacity.random(m, 0)
        planes = [rng.uniform(-1, 1, 300_000).astype(np.float32) for _ in range(m)]
        times, ours = ratio(partial(vectorised, planes, g), partial(choquet, planes, g))
        detail = f"{len(planes[0]) / ours / 1e6:,.1f} million instances/s"
        yield at_least(f"2-additive, m={m} float32 planes, against NumPy", times, 10, detail=detail)


def vectorised(planes: list[np.ndarray], g: AdditiveBiCapacity) -> np.ndarray:
    """What one would write with NumPy: a minimum for each pair of sides."""
    sides = [np.maximum(p, 0) for p in planes] + [np.maximum(-p, 0) for p in planes]
    fused = np.zeros_like(planes[0])
    for term, first, second in zip(g.terms.astype(np.float32), *g.space.both_sides, strict=True):
        fused += term * np.minimum(sides[first], sides[second])
    return fused


LEARNING = """
import time
import numpy as np
from bench.marks import peak_memory
from bimichi import BiMIChI, ConvexSolver
m, n, n_bags = {m}, 200_000, 500
rng = np.random.default_rng(0)
bags = np.repeat(np.arange(n_bags), n // n_bags)
y = (bags % 5 == 0).astype(int)
X = rng.normal(-0.1, 0.4, (n, m)) + rng.normal(0, 0.2, (n_bags, m))[bags]
X[(y == 1) & (rng.random(n) < 0.2)] += rng.normal(0.3, 0.3, m)
X = np.clip(X, -1, 1)
model = BiMIChI({objective!r}, ConvexSolver(n_starts={starts}), additivity=2, random_state=0)
model.fit(X[:2000], y[:2000], bags[:2000])
before, start = peak_memory(), time.perf_counter()
model.fit(X, y, bags)
taken = time.perf_counter() - start
print(taken, (peak_memory() - before) / 2**30, model.objective_value_, model.solution_.lower_bound)
"""


def additive_learning() -> Iterator[Mark]:
    """200,000 instances in 500 bags."""
    for m in (10, 20, 30):
        for objective, starts, limit in (("mean", 1, 10), ("magnitude", 1, 40)):
            script = LEARNING.format(m=m, objective=objective, starts=starts)
            taken, memory, value, bound = map(float, in_process(script).split())
            what = f"2-additive {objective}, m={m}, 200,000 rows" + (", one start" if objective == "magnitude" else "")
            yield at_most(what, taken, limit, "s", f"J = {value:.4f}, lower bound {bound:.4f}")
            yield at_most(f"  memory ({objective}, m={m})", memory, 1, "GiB")


def compact_files() -> Iterator[Mark]:
    """A measure that 2,000 touched elements tell, as a solver leaves it."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        for m in (8, 10, 12):
            lattice = pair_lattice(m, zero_bound=False)
            partial_values = np.full(lattice.size, np.nan)
            codes = rng.integers(1, lattice.size, 2000)
            partial_values[codes] = BiCapacity.additive(rng.dirichlet(np.ones(m))).values[codes]
            g = BiCapacity(completion_of(lattice, partial_values, "lowest").values, None, False)
            path = Path(folder) / "g"
            g.save(path)
            size = path.stat().st_size
            yield at_least(
                f"values of {m} sources, bytes against the file", g.values.nbytes / size, 1, detail=f"{size:,} bytes"
            )


BENCHES = [additive_integral, additive_learning, compact_files]
