"""How an objective is minimised. One file each; a new one adds a line to `SOLVERS`."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from bimichi.errors import InvalidInputError
from bimichi.learning.solvers.binary import BinarySolver
from bimichi.learning.solvers.convex import ConvexSolver
from bimichi.learning.solvers.evolutionary import EvolutionarySolver

__all__ = [
    "SOLVERS",
    "BinarySolver",
    "ConvexSolver",
    "EvolutionarySolver",
    "get_solver",
    "solver_from_record",
    "solver_record",
]

SOLVERS: dict[str, Any] = {"convex": ConvexSolver, "evolutionary": EvolutionarySolver}


def get_solver(solver: Any) -> Any:
    """Return the solver of this name with its defaults, or the solver object itself."""
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    if isinstance(solver, tuple(SOLVERS.values())):
        return solver
    raise InvalidInputError(f"solver must be one of {', '.join(SOLVERS)} or a solver object, got {solver!r}.")


def solver_record(solver: Any) -> tuple[str, dict[str, Any]]:
    """Return the name of a solver, and those of its options that a model file keeps."""
    kept = [f.name for f in fields(solver) if f.name not in ("callback", "checkpoint")]
    name = next((name for name, kind in SOLVERS.items() if isinstance(solver, kind)), type(solver).__name__)
    return name, {key: getattr(solver, key) for key in kept}


def solver_from_record(name: str, options: Mapping[str, Any]) -> Any:
    """Return the solver of a model file: its name if all options are the defaults, else an object."""
    if name not in SOLVERS:
        return name
    solver = SOLVERS[name](**options)
    return name if solver == SOLVERS[name]() else solver
