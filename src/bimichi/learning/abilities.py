"""What solvers need, and whether an objective and its data have it.

A solver names in `needs` what it could not do without:

- "convex form": the objective has one. "mean" then needs no more than sums over all instances, others need "rows".
- "rows": the problem answers `extremes`, `rows` and `instances`; in memory, or on a cluster.
- "in memory": the problem has the attributes of `bimichi.learning.problem.InMemory`.
- "elements": values are those of a lattice, each free between those of its neighbours; not additive measures.
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
    if "convex form" in needs and not (objective.convex == "mean" and "one pass" in objective.offers):
        needs |= {"rows"}
    return needs


def check_solver(solver: Any, objective: Objective, offers: frozenset[str] = IN_MEMORY) -> None:
    """Refuse a solver that needs more than the objective and the data, of which `offers` is known, have."""
    if objective.links and "convex form" not in needs_of(solver, objective):
        raise InvalidInputError(
            f"{type(solver).__name__} cannot minimise {objective.name!r}: it finds measures, but not the slope and the "
            "offset of their log-odds. Use solver='convex'."
        )
    missing = needs_of(solver, objective) - objective.offers - offers
    if not missing:
        return
    start = f"{type(solver).__name__} cannot minimise {objective.name!r}"
    other = "Use solver='convex'." if objective.convex else "Use solver='evolutionary'."
    if "convex form" in missing:
        raise InvalidInputError(f"{start}: it has no convex form. {other}")
    if "elements" in missing:
        raise InvalidInputError(
            f"{start} with additivity={objective.additivity}: it changes single elements, and those of an additive "
            "bi-capacity are not free of each other. Use solver='convex'."
        )
    if missing & {"in memory", "rows"}:
        remedy = "Use solver='convex', or fit" if objective.convex else "Fit"
        raise InvalidInputError(f"{start} here: it needs its data in memory. {remedy} arrays without a cluster.")
    raise InvalidInputError(f"{start}: it is made for {', '.join(map(repr, sorted(missing)))} alone. {other}")
