"""Objectives: what learning minimises. One file for each kind, one line each in the table below."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bimichi._checks import check_choice
from bimichi.errors import InvalidInputError
from bimichi.fit.objectives.base import ConvexForm, Objective, Parameter, to_common_scale
from bimichi.registry import Registry

__all__ = [
    "ADDITIVE_OBJECTIVES",
    "CAPACITY_OBJECTIVES",
    "OBJECTIVES",
    "REGISTRY",
    "ConvexForm",
    "Objective",
    "Parameter",
    "get_objective",
    "register_objective",
    "to_common_scale",
]

HERE = "bimichi.fit.objectives"


def _key(objective: Objective) -> str:
    """Return its key in the registry, since a capacity may have an objective of the same name."""
    return objective.name if objective.measure == "bicapacity" else f"{objective.measure}.{objective.name}"


def _check(key: str, objective: Any) -> Objective:
    if not isinstance(objective, Objective):
        raise InvalidInputError(
            f"objective must be an Objective, got {type(objective).__name__}.",
            code="objective-kind",
            argument="objective",
            value=objective,
        )
    if _key(objective) != key:
        raise InvalidInputError(
            f"An objective must be declared by its name, {_key(objective)!r}, got {key!r}.",
            code="objective-kind",
            value=key,
        )
    return objective


REGISTRY = Registry(
    "bimichi.objectives",
    {
        "bipolar": f"{HERE}.paper:BIPOLAR",
        "magnitude": f"{HERE}.paper:MAGNITUDE",
        "mean": f"{HERE}.convex:MEAN",
        "logistic": f"{HERE}.convex:LOGISTIC",
        "capacity.noisy-or": f"{HERE}.mici:NOISY_OR",
        "capacity.min-max": f"{HERE}.mici:MIN_MAX",
        "capacity.generalized-mean": f"{HERE}.mici:GENERALIZED_MEAN",
        "capacity.mean": f"{HERE}.convex:NORMALISED_MEAN",
        "capacity.regression": f"{HERE}.mici:REGRESSION",
    },
    _check,
)
"""All objectives; keys of those for capacities begin with "capacity."."""


class _Table(Mapping[str, Objective]):
    """Objectives of one kind by name, as they are in the registry when asked for."""

    def __init__(self, prefix: str, belongs: Callable[[Objective], bool], additive: bool = False) -> None:
        self._prefix, self._belongs, self._additive = prefix, belongs, additive

    def __getitem__(self, name: str) -> Objective:
        objective = REGISTRY[f"{self._prefix}{name}"]
        if not self._belongs(objective):
            raise KeyError(name)
        return objective.with_additivity(2) if self._additive else objective

    def __iter__(self) -> Iterator[str]:
        return (objective.name for objective in REGISTRY.values() if self._belongs(objective))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _of_bags(measure: str) -> Callable[[Objective], bool]:
    return lambda objective: objective.measure == measure and objective.labels == "binary"


OBJECTIVES = _Table("", _of_bags("bicapacity"))
"""Those for bi-capacities, by name."""

CAPACITY_OBJECTIVES = _Table("capacity.", _of_bags("capacity"))
"""Those for capacities, by name."""

ADDITIVE_OBJECTIVES = _Table("", lambda objective: objective.additive, additive=True)
"""Those that are also offered for additive bi-capacities, by name."""


def register_objective(objective: Objective) -> Objective:
    """Add an objective, so that users can choose it by name; returns it.

    Raises
    ------
    InvalidInputError
        If it is no `Objective`, or its name is taken for this kind of measure.
    """
    if isinstance(objective, Objective) and _key(objective) in REGISTRY:
        raise InvalidInputError(
            f"An objective named {objective.name!r} is registered for a {objective.measure} already; choose another.",
            code="objective-taken",
        )
    return REGISTRY.register(_key(objective) if isinstance(objective, Objective) else "", objective)


def get_objective(
    name: str,
    among: Mapping[str, Objective] = OBJECTIVES,
    additivity: Any = None,
    settings: Mapping[str, Any] | None = None,
    free_scale: bool = False,
) -> Objective:
    """Return the objective of this name.

    Parameters
    ----------
    name : str
        As users choose it.
    among : mapping, default=OBJECTIVES
        The table to look in.
    additivity : {None, 1, 2}
        Whether it is for additive bi-capacities: 1 for single sources alone, 2 with pairs.
    settings : mapping of str to number, optional
        Parameters of objectives of the table (others are ignored); all are checked, and the objective's own are set.
    free_scale : bool, default=False
        Whether a slope and an offset are learned with the measure; for "mean" (and always for "logistic").

    Raises
    ------
    InvalidInputError
        If the table has no such objective, or not for this additivity or a free scale, or a setting is not valid.
    """
    if free_scale:
        return get_objective(name, among, additivity, settings).with_free_scale()
    if additivity is not None:
        check_choice(additivity, "additivity", (None, 1, 2))
        if isinstance(name, str) and name in among and name not in ADDITIVE_OBJECTIVES:
            why = "is not declared to be" if among[name].zero_bound else "has no zero bound, which it would need to be"
            raise InvalidInputError(
                f"objective={name!r} {why} offered for additive bi-capacities. With additivity={additivity}, choose "
                f"one of {', '.join(ADDITIVE_OBJECTIVES)}.",
                code="objective-additive",
            )
        return get_objective(name, ADDITIVE_OBJECTIVES).with_additivity(1 if additivity == 1 else 2)
    if not isinstance(name, str) or name not in among:
        raise InvalidInputError(
            f"objective must be one of {', '.join(among)}, got {name!r}.",
            code="choice",
            argument="objective",
            value=name,
        )
    objective, settings = among[name], settings or {}
    offered = [setting for other in among.values() for setting in other.settings] if settings else []
    numbers = {setting.name: setting.check(settings[setting.name]) for setting in offered if setting.name in settings}
    own = [setting.name for setting in objective.settings]
    return objective.with_parameters(**{name: value for name, value in numbers.items() if name in own})
