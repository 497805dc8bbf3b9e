"""Solvers: how an objective is minimised. One file each, one line each in `SOLVERS`."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any, NoReturn

from bimichi.errors import InvalidInputError
from bimichi.fit.objectives import Objective
from bimichi.fit.problem import Problem
from bimichi.fit.solvers.binary import BinarySolver
from bimichi.fit.solvers.convex import ConvexSolver
from bimichi.fit.solvers.evolutionary import EvolutionarySolver
from bimichi.registry import Registry

__all__ = [
    "SOLVERS",
    "SOLVER_PRESETS",
    "BinarySolver",
    "ConvexSolver",
    "EvolutionarySolver",
    "SavedSolver",
    "get_solver",
    "register_solver",
    "solver_from_record",
    "solver_record",
]


def _check(_: str, solver: Any) -> type:
    if not isinstance(solver, type) or not callable(getattr(solver, "solve", None)):
        raise InvalidInputError(
            f"solver must be a class with a method solve, got {solver!r}.",
            code="solver-kind",
            argument="solver",
            value=solver,
        )
    return solver


SOLVERS = Registry(
    "bimichi.solvers",
    {
        "convex": "bimichi.fit.solvers.convex:ConvexSolver",
        "evolutionary": "bimichi.fit.solvers.evolutionary:EvolutionarySolver",
        "binary": "bimichi.fit.solvers.binary:BinarySolver",
    },
    _check,
)
"""Solver classes by name. Whether one suits an objective follows from its `needs`; see `bimichi.fit.problem`."""

SOLVER_PRESETS: dict[str, Callable[[], Any]] = {
    "paper": lambda: EvolutionarySolver.preset("paper"),
    "literal": lambda: EvolutionarySolver.preset("literal"),
}
"""Solvers with settings that have a name of their own; model files keep the settings."""

UNRECORDED = ("callback", "checkpoint")
"""Options that model files do not keep; in a file from elsewhere they would make `fit` write where its author likes."""


def register_solver(name: str, solver: type) -> None:
    """Let users choose a solver class by name; it must work without arguments.

    Raises
    ------
    InvalidInputError
        If it has no method `solve`, or another has this name.
    """
    if name not in SOLVERS:
        SOLVERS.register(name, solver)
    elif SOLVERS[name] is not solver:
        raise InvalidInputError(
            f"A solver named {name!r} is registered already; choose another name.", code="solver-taken"
        )


def get_solver(solver: Any, objective: Objective | None = None) -> Any:
    """Return the solver of this name with its defaults, or the solver object itself.

    Parameters
    ----------
    solver : str or object
        A name, that of a preset ("paper" or "literal", the settings of the paper), or any object with a method
        ``solve(problem, rng, n_jobs, verbose)``.
    objective : Objective, optional
        If given, "auto" is convex where it has a convex form, else evolutionary.

    Raises
    ------
    InvalidInputError
        If it is neither.
    """
    if objective is not None and isinstance(solver, str) and solver == "auto":
        solver = "convex" if objective.convex else "evolutionary"
    if isinstance(solver, str) and (make := SOLVER_PRESETS.get(solver) or SOLVERS.get(solver)):
        return make()
    if callable(getattr(solver, "solve", None)) and not isinstance(solver, type):
        return solver
    names = ", ".join([*SOLVERS, *SOLVER_PRESETS])
    raise InvalidInputError(
        f"solver must be one of {names} or a solver object, got {solver!r}.",
        code="solver-unknown",
        argument="solver",
        value=solver,
    )


@dataclass(frozen=True)
class SavedSolver:
    """The class name and the options of a solver in a model file that is not registered here; it cannot solve."""

    name: str
    options: dict[str, Any]

    def solve(self, problem: Problem, rng: Any, n_jobs: int | None = None, verbose: int = 0) -> NoReturn:
        """Raise an error that says how to fit."""
        raise InvalidInputError(
            f"The model was fitted by {self.name}, which a model file can name but not contain. To refit it, set "
            "solver to a solver object, or call register_solver before loading the model.",
            code="solver-foreign",
        )


def solver_record(solver: Any) -> tuple[str, dict[str, Any]]:
    """Return the name of a solver (registered, or the path of its class) and its options, for a model file.

    Options are the arguments of its constructor that are also public attributes which JSON can hold.
    """
    if isinstance(solver, SavedSolver):
        return solver.name, solver.options
    kind = type(solver)
    name = next((name for name in SOLVERS if SOLVERS[name] is kind), None)
    arguments = [name for name in signature(kind).parameters if name not in UNRECORDED]
    options = {name: getattr(solver, name) for name in arguments if _is_plain(getattr(solver, name, ...))}
    return name or f"{kind.__module__}.{kind.__qualname__}", options


def solver_from_record(name: str, options: dict[str, Any]) -> Any:
    """Return the solver that `solver_record` described; nothing is imported for it."""
    if not isinstance(name, str) or not isinstance(options, dict):
        raise InvalidInputError("its solver must have a name and options.", code="model-solver")
    if name not in SOLVERS:
        return SavedSolver(name, options)
    options = {key: value for key, value in options.items() if key not in UNRECORDED}
    try:
        return SOLVERS[name](**options)
    except TypeError as error:
        raise InvalidInputError(f"its options do not fit the solver {name!r}: {error}.", code="model-solver") from error


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)
