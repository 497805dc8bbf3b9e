"""Proofs of optimality, and what the moves of the local search cost."""

from collections.abc import Iterator
from statistics import median

import numpy as np

from bench.learning import scene, timed
from bench.marks import Mark, at_most
from bimichi import Bags, ConvexSolver

SCENES = 10


def certified_scenes() -> Iterator[Mark]:
    """Scenes of 640 x 480 pixels, 3 sources, about 270 bags."""
    for name in ("bipolar", "magnitude"):
        timed(ConvexSolver(certify=True, max_nodes=1), scene(0), name)
        proofs = [timed(ConvexSolver(certify=True), scene(seed), name) for seed in range(SCENES)]
        times = [taken for _, taken in proofs]
        proven = sum(found.certificate == "optimal within the gap" for found, _ in proofs)
        detail = f"{proven} of {SCENES} within 0.1 %, worst {max(times):.1f} s"
        yield at_most(f"proof to 0.1 %, 3 sources, {name}, median of {SCENES} scenes", median(times), 20, "s", detail)
        plain = timed(ConvexSolver(moves=False), scene(0), name)[1]
        yield at_most(f"  search with moves, {name}", timed(ConvexSolver(), scene(0), name)[1] / plain, 2, "x")
    restarts = [timed(ConvexSolver(n_starts=200, moves=False), scene(seed), "bipolar")[0] for seed in range(2)]
    found = [timed(ConvexSolver(certify=True), scene(seed), "bipolar")[0] for seed in range(2)]
    worst = max(a.objective_value - b.objective_value for a, b in zip(found, restarts, strict=True))
    yield at_most("  J proven - J of 200 restarts", worst, 1e-6, "")


def six_source_proof() -> Iterator[Mark]:
    """Six sources, ten positive bags."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(120), 200)
    y = (ids < 10).astype(int)
    X = np.clip(rng.normal(-0.2, 0.4, (len(ids), 6)) + rng.normal(0, 0.2, (120, 6))[ids], -1, 1)
    hits = (y == 1) & (rng.random(len(ids)) < 0.2)
    X[hits] = np.clip(rng.normal([0.7, 0.5, -0.2, 0.3, 0.0, -0.5], 0.2, (int(hits.sum()), 6)), -1, 1)
    found, taken = timed(ConvexSolver(certify=True), Bags.from_instances(X, y, ids), "bipolar")
    gap = float("nan") if found.gap is None else found.gap
    detail = f"{found.certificate}, gap {gap:.3%}, {found.n_nodes} nodes"
    yield at_most("proof to 0.1 %, 6 sources, 10 positive bags", taken, 60, "s", detail)


BENCHES = (certified_scenes, six_source_proof)
