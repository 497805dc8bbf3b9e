"""Proofs of optimality, and what the moves of the local search cost."""

from collections.abc import Iterator
from statistics import median

from bench.learning import scene, timed
from bench.marks import Mark, at_most
from bimichi import Bags, ConvexSolver
from bimichi.datasets import street
from bimichi.paper import street_scenes

SCENES = 10
POSITIVE = 10
PROOF = ConvexSolver(certify=True, max_nodes=1000)


def certified_scenes() -> Iterator[Mark]:
    """Streets of 640 x 480 pixels, 3 sources, about 285 bags and 30 positive ones."""
    streets = [street(random_state=seed).bags() for seed in range(SCENES)]
    for name in ("bipolar", "magnitude"):
        timed(ConvexSolver(certify=True, max_nodes=1), streets[0], name)
        proofs = [timed(PROOF, bags, name) for bags in streets]
        times = [taken for _, taken in proofs]
        proven = sum(found.certificate == "optimal" for found, _ in proofs)
        detail = f"{proven} of {SCENES} within 0.1 %, worst {max(times):.1f} s"
        yield at_most(f"proof to 0.1 %, 3 sources, {name}, median of {SCENES} scenes", median(times), 20, "s", detail)
        plain = timed(ConvexSolver(moves=False), scene(0), name)[1]
        yield at_most(f"  search with moves, {name}", timed(ConvexSolver(), scene(0), name)[1] / plain, 2, "x")
        restarts = timed(ConvexSolver(n_starts=200, moves=False), streets[0], name)[0].objective_value
        yield at_most("  J proven - J of 200 restarts", proofs[0][0].objective_value - restarts, 1e-6, "")


def six_source_proof() -> Iterator[Mark]:
    """A street with six sources, and ten positive bags."""
    (drawn,) = street_scenes([0], 6)
    every = dict(drawn.labels or {})
    positive = [segment for segment, label in every.items() if label][:POSITIVE]
    labels = {segment: label for segment, label in every.items() if not label or segment in positive}
    bags: Bags = drawn.with_bags(drawn.segments, labels).bags()  # type: ignore[arg-type]  # streets have segments
    found, taken = timed(PROOF, bags, "bipolar")
    gap = float("nan") if found.gap is None else found.gap
    detail = f"{found.certificate}, gap {gap:.3%}, {found.n_nodes} nodes"
    yield at_most("proof to 0.1 %, 6 sources, 10 positive bags", taken, 60, "s", detail)


BENCHES = (certified_scenes, six_source_proof)
