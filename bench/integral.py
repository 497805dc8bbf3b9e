"""The Choquet integral and the lattice."""

import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numba
import numpy as np
from numpy.typing import NDArray

from bench.marks import Mark, at_least, at_most, in_process, ratio, seconds
from bimichi import BiCapacity, choquet

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import naive  # the oracle lives beside the tests

Floats = NDArray[np.float64]


@numba.njit(parallel=True, cache=True)
def memory_limit(a, b, c, out):  # type: ignore[no-untyped-def]
    for i in numba.prange(a.size):
        out[i] = a[i] + b[i] + c[i]


def vectorised(X: Floats, values: Floats) -> Floats:
    """What one would write with NumPy: argsort, take_along_axis, cumulative codes."""
    size = np.abs(X)
    order = np.argsort(size, axis=1)
    weights = np.diff(np.take_along_axis(size, order, 1), axis=1, prepend=0)
    steps = np.take_along_axis(np.where(X < 0, 2, 1) * 3 ** np.arange(X.shape[1]), order, 1)
    codes = steps[:, ::-1].cumsum(axis=1)[:, ::-1]
    return np.asarray((weights * values[codes]).sum(axis=1))


def planes() -> Iterator[Mark]:
    rng = np.random.default_rng(0)
    n = 20_000_000
    sources = [rng.uniform(-1, 1, n).astype(np.float32) for _ in range(3)]
    out = np.empty(n, np.float32)
    g = BiCapacity.random(3, random_state=0)
    times, ours = ratio(
        lambda: memory_limit(sources[0], sources[1], sources[2], out), lambda: choquet(sources, g, out=out), rounds=6
    )
    detail = f"{n / ours / 1e6:,.0f} million instances/s"
    yield at_least("m=3 float32 planes, of the memory limit", times, 0.35, detail=detail)


def rows() -> Iterator[Mark]:
    rng = np.random.default_rng(0)
    for m, limit in ((5, 20), (8, 14), (10, 10)):
        X = rng.uniform(-1, 1, (1_000_000, m))
        g = BiCapacity.random(m, random_state=0)
        times, ours = ratio(partial(vectorised, X, g.values), partial(choquet, X, g))
        detail = f"{len(X) / ours / 1e6:,.0f} million instances/s"
        yield at_least(f"m={m} float64 rows, against NumPy", times, limit, detail=detail)


def plain_python() -> Iterator[Mark]:
    rng = np.random.default_rng(0)
    g = BiCapacity.random(3, random_state=0)
    table = {pair: g[pair] for pair in naive.pairs(3)}
    few = rng.uniform(-1, 1, (3_000, 3))
    many = rng.uniform(-1, 1, (3_000_000, 3))
    slow = seconds(lambda: [naive.choquet(x, table) for x in few.tolist()], repeat=2) / len(few)
    fast = seconds(lambda: choquet(many, g)) / len(many)
    yield at_least("m=3 float64 rows, against plain Python", slow / fast, 1000)


def memory() -> Iterator[Mark]:
    script = """
import numpy as np
from bench.marks import peak_memory
from bimichi import BiCapacity, choquet
g = BiCapacity.random(3, random_state=0)
choquet([np.zeros(10_000_000, np.float32)[:10]] * 3, g)
n = 50_000_000
before = peak_memory()
sources = [np.full(n, 0.3 * k, np.float32) for k in range(3)]
choquet(sources, g)
print((peak_memory() - before) / (4 * 4 * n))
"""
    yield at_most("choquet on planes, peak memory", float(in_process(script)), 1.1, "x input + output")


def lattice() -> Iterator[Mark]:
    BiCapacity.random(4, random_state=0)
    start = time.perf_counter()
    g = BiCapacity.random(12, random_state=0)
    yield at_most("BiCapacity.random(12)", time.perf_counter() - start, 3, "s", f"{g.values.size:,} elements")
    yield at_most("is_monotone, m=12", seconds(g.is_monotone), 0.2, "s")


def start_up() -> Iterator[Mark]:
    cold = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
    bare = [float(in_process(cold.format("import bimichi"))) for _ in range(3)]
    yield at_most("import bimichi", min(bare), 0.3, "s")
    call = "from bimichi import BiCapacity, choquet; choquet([[0.1, -0.2, 0.3]], BiCapacity.additive([0.5, 0.3, 0.2]))"
    first = [float(in_process(cold.format(call))) for _ in range(4)]
    yield at_most("first choquet of a process, warm cache", min(first[1:]), 1.5, "s")


BENCHES = [planes, rows, plain_python, memory, lattice, start_up]
