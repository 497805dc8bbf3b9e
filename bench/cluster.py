"""Learning in parts on a Dask cluster of this machine: two worker processes against one, and against memory."""

from collections.abc import Iterator

from bench.marks import Mark, at_least, at_most, in_process

SCRIPT = """
import time, warnings
import numpy as np
from bimichi import BiMIChI, ConvexSolver

N, PARTS = 10**7, 20
bags = np.repeat(np.arange(N // 1000), 1000)
y = (bags % 10 == 0).astype(np.int8)

def part(k):
    rng = np.random.default_rng(k)
    size = N // PARTS
    X = rng.uniform(-1, 1, (size, 3))
    X *= np.where((k * size + np.arange(size)) // 1000 % 10 == 0, 1.0, 0.7)[:, None]
    return X

def fit(X, y, bags, n_jobs=None):
    model = BiMIChI("bipolar", ConvexSolver(n_starts=1), n_jobs=n_jobs, random_state=0)
    start = time.perf_counter()
    model.fit(X, y, bags)
    return time.perf_counter() - start, model.objective_value_

def best_fit(X, **options):
    few = N // 10
    fit(X[:few], y[:few], bags[:few], **options)  # compiles
    return min(fit(X, y, bags, **options) for _ in range(3))

if __name__ == "__main__":
    workers = {workers}
    if workers == 0:
        print(*best_fit(np.concatenate([part(k) for k in range(PARTS)]), n_jobs=1))
    else:
        import dask.array as da
        from dask.delayed import delayed
        from distributed import Client, LocalCluster, wait
        with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
            with Client(cluster) as client:
                places = list(client.scheduler_info()["workers"])
                held = [client.submit(part, k, workers=[places[k % workers]]) for k in range(PARTS)]
                wait(held)
                shape = (N // PARTS, 3)
                print(*best_fit(da.concatenate([da.from_delayed(delayed(one), shape, float) for one in held])))
"""


def cluster() -> Iterator[Mark]:
    memory, one, two = (list(map(float, in_process(SCRIPT.format(workers=k)).split())) for k in (0, 1, 2))
    detail = f"{memory[0]:.1f} s in memory (one thread), {one[0]:.1f} s on one worker, {two[0]:.1f} s on two"
    yield at_least("cluster, 10^7 instances: two workers against one", one[0] / two[0], 1.5, "x", detail)
    yield at_most("  one worker against memory", one[0] / memory[0], 1.5, "x")
    yield at_most("  difference of J", max(abs(j - memory[1]) for _, j in (one, two)), 1e-6, "")


BENCHES = [cluster]
