"""What solvers need, and whether an objective and its data have it.

A solver names in `needs` what it could not do without:

- "convex form": the objective has one. "mean" then needs no more than sums over all instances; others, and "mean" with
  a free scale, need "rows".
- "rows": the problem answers `extremes`, `rows` and `instances`; in memory, or on a cluster.
- "in memory": the problem has the attributes of `bimichi.learning.problem.InMemory`.
- "elements": values are those of a lattice, each free between those of its neighbours; not additive measures.
- "link": a slope and an offset besides the measure, which only solvers by the convex form find.
- the name of an objective: the solver can minimise no other.

A solver without `needs` needs its data in memory.
"""

from typing import Any

from bimichi.errors import InvalidInputError
from bimichi.learning.objectives import Objective

ON_CLUSTER = frozenset({"rows"})  # what data in parts on a cluster offer
IN_MEMORY = ON_CLUSTER | {"in memory"}  # what data in this process offer


def needs_of(solver: Any, objective: Objective) -> frozenset[str]:
    """Return what a solver needs to minimise an objective."""
    needs = frozenset(getattr(solver, "needs", ("in memory",)))
    one_pass = objective.convex == "mean" and not objective.free_scale and "one pass" in objective.offers
    if "convex form" in needs and not one_pass:
        needs |= {"rows"}
    if objective.free_scale and "convex form" not in needs:
        needs |= {"link"}
    return needs


def check_solver(solver: Any, objective: Objective, offers: frozenset[str] = IN_MEMORY) -> None:
    """Refuse a solver that needs more than the objective and the data, of which `offers` is known, have."""
    missing = needs_of(solver, objective) - objective.offers - offers
    if not missing:
        return
    start = f"{type(solver).__name__} cannot minimise {objective.name!r}"
    other = "Use solver='convex'." if objective.convex else "Use solver='evolutionary'."
    if "convex form" in missing:
        raise InvalidInputError(f"{start}: it has no convex form. {other}")
    if "link" in missing:
        raise InvalidInputError(
            f"{start} with a free scale: it finds measures, but no slope and offset. Use solver='convex'."
        )
    if "elements" in missing:
        raise InvalidInputError(
            f"{start} with additivity={objective.additivity}: it changes single elements, and those of an additive "
            "bi-capacity are not independent of each other. Use solver='convex'."
        )
    if missing & {"in memory", "rows"}:
        remedy = "Use solver='convex', or fit" if objective.convex else "Fit"
        raise InvalidInputError(f"{start} here: it needs its data in memory. {remedy} arrays without a cluster.")
    raise InvalidInputError(f"{start}: it is made for {', '.join(map(repr, sorted(missing)))} alone. {other}")
