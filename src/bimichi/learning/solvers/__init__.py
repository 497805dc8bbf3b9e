"""How an objective is minimised. One file each; a new one adds a line to `SOLVERS`."""

from typing import Any

from bimichi.errors import InvalidInputError
from bimichi.learning.solvers.binary import BinarySolver
from bimichi.learning.solvers.convex import ConvexSolver
from bimichi.learning.solvers.evolutionary import EvolutionarySolver

__all__ = ["SOLVERS", "BinarySolver", "ConvexSolver", "EvolutionarySolver", "get_solver"]

SOLVERS: dict[str, Any] = {"convex": ConvexSolver, "evolutionary": EvolutionarySolver}


def get_solver(solver: Any) -> Any:
    """Return the solver of this name with its defaults, or the solver object itself."""
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    if isinstance(solver, tuple(SOLVERS.values())):
        return solver
    raise InvalidInputError(f"solver must be one of {', '.join(SOLVERS)} or a solver object, got {solver!r}.")
