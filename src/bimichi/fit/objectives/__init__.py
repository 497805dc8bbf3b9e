"""What learning minimises. One file each; the loop below registers them."""

from collections.abc import Mapping
from typing import Any

from bimichi._checks import check_choice
from bimichi.errors import InvalidInputError
from bimichi.fit.objectives.base import ConvexForm, Objective, Parameter, to_common_scale
from bimichi.fit.objectives.convex import LOGISTIC, MEAN, NORMALISED_MEAN
from bimichi.fit.objectives.mici import GENERALIZED_MEAN, MIN_MAX, NOISY_OR, REGRESSION
from bimichi.fit.objectives.paper import BIPOLAR, MAGNITUDE

__all__ = [
    "ADDITIVE_OBJECTIVES",
    "CAPACITY_OBJECTIVES",
    "OBJECTIVES",
    "REGISTRY",
    "REGRESSION",
    "ConvexForm",
    "Objective",
    "Parameter",
    "get_objective",
    "register_objective",
    "to_common_scale",
]

REGISTRY: list[Objective] = []  # all objectives; the tables hold those of one kind by name

OBJECTIVES: dict[str, Objective] = {}  # for bi-capacities

CAPACITY_OBJECTIVES: dict[str, Objective] = {}  # for normalised measures

ADDITIVE_OBJECTIVES: dict[str, Objective] = {}  # for additive bi-capacities, which have the zero bound


def register_objective(objective: Objective) -> Objective:
    """Add an objective, so that users can choose it by name; returns it.

    Raises
    ------
    InvalidInputError
        If it is no `Objective`, or its name is taken for this kind of measure.
    """
    if not isinstance(objective, Objective):
        raise InvalidInputError(
            f"objective must be an Objective, got {type(objective).__name__}.",
            code="objective-kind",
            argument="objective",
            value=objective,
        )
    if any((known.name, known.measure) == (objective.name, objective.measure) for known in REGISTRY):
        raise InvalidInputError(
            f"An objective named {objective.name!r} is registered for a {objective.measure} already; choose another.",
            code="objective-taken",
        )
    REGISTRY.append(objective)
    if objective.labels == "binary":
        table = OBJECTIVES if objective.measure == "bicapacity" else CAPACITY_OBJECTIVES
        table[objective.name] = objective
    if objective.additive:
        ADDITIVE_OBJECTIVES[objective.name] = objective.with_additivity(2)
    return objective


for _objective in (
    BIPOLAR,
    MAGNITUDE,
    MEAN,
    LOGISTIC,
    NOISY_OR,
    MIN_MAX,
    GENERALIZED_MEAN,
    NORMALISED_MEAN,
    REGRESSION,
):
    register_objective(_objective)


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
    known, settings = [setting for objective in among.values() for setting in objective.settings], settings or {}
    given = {setting.name: setting.check(settings[setting.name]) for setting in known if setting.name in settings}
    own = [setting.name for setting in among[name].settings]
    return among[name].with_parameters(**{name: value for name, value in given.items() if name in own})
