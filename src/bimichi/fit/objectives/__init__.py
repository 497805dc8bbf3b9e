"""Objectives: what learning minimises, a term per bag, and whether and how that can be minimised as convex problems.

Each has one line in the table `REGISTRY`; those of MICI lie in a file of their own.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import exp, log1p
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from numba import types
from numpy.typing import NDArray

from bimichi._checks import check_choice, check_number
from bimichi._jit import function_pointer, jit
from bimichi.errors import InvalidInputError
from bimichi.registry import Registry
from bimichi.scenes.bags import Relevant

if TYPE_CHECKING:
    from bimichi.fit.spaces import Space

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

_Pointer = types.CPointer(types.float64)  # an array would take longer to pass than a short bag to evaluate
_SIGNATURE = types.float64(_Pointer, _Pointer, types.intp, types.float64, types.float64, types.float64)


class Term(NamedTuple):
    """An objective as kernels take it; see `term_of_bag`."""

    of_bag: Any  # compiled
    first: float
    second: float


@jit
def term_of_bag(term, fused, counts, label):
    """Return the term of a bag, from the integrals of its instances; `label` is above 0 for a positive one, or real."""
    return term.of_bag(fused.ctypes, counts.ctypes, fused.size, label, term.first, term.second)


@cache
def _compiled(bag_term: Callable[..., float], fastmath: bool) -> Any:
    """Compile a kernel once, to a function pointer, so that kernels that call it need not be compiled for each."""
    return function_pointer(getattr(bag_term, "py_func", bag_term), _SIGNATURE, fastmath=fastmath)


@dataclass(frozen=True)
class Parameter:
    """A number that users may set, by name; it must lie between `above` and `below`."""

    name: str
    default: float
    above: float | None = None
    below: float | None = None

    def check(self, value: Any) -> float:
        """Return a value as a float, or raise an `InvalidInputError`."""
        return check_number(value, self.name, self.above, self.below, exclusive=True)


@dataclass(frozen=True)
class ConvexForm:
    """The form in which the convex solver writes an objective whose bags are decided by one instance each.

    With C the integral, a negative bag costs the square of ``max(sign * C + offset)`` over its instances and
    over `negative`; a positive bag costs ``(1 - sign * C)^2`` of its best instance and sign among `positive`.

    Attributes
    ----------
    negative : tuple of (sign, offset)
        What bounds a negative bag's slack from below.
    positive : tuple of int
        Signs with which an instance may be the witness of a positive bag.
    completion : {"lowest", "nearest-zero"}
        How to choose elements that no constraint or witness uses.
    """

    negative: tuple[tuple[int, float], ...]
    positive: tuple[int, ...]
    completion: Literal["lowest", "nearest-zero"]


@dataclass(frozen=True)
class Objective:
    """An objective J, the weighted sum over bags of a term of the integrals of the bag's instances.

    Attributes
    ----------
    name : str
        How users choose it.
    bag_term : callable
        ``bag_term(fused, counts, size, label, first, second)``, a function at the top level of its file that numba can
        compile. ``fused[i]`` is the integral of instance i of the bag, and ``counts[i]`` how many equal instances it
        stands for; both are pointers, of which `numba.carray` makes arrays. `label` is 1.0 or 0.0 (or real), `first`
        and `second` are `parameters`. The term must not be negative: solvers stop early because of it.
    about : str
        One line for help texts and reports.
    measure : {"bicapacity", "capacity"}
        What is learned.
    labels : {"binary", "real"}
        What labels bags have.
    zero_bound : bool
        Whether g(empty, empty) = 0 is part of the order of a bi-capacity.
    absolute : bool
        Whether the fused output is ``|C|``, in [0, 1], instead of C.
    additive : bool
        Whether it is also offered for additive bi-capacities, which have the zero bound.
    additivity : {None, 1, 2}
        None for any bi-capacity; 1 for a sum over single sources, 2 for one over these and pairs.
    convex : ConvexForm, "mean", "logistic" or None
        How the convex solver minimises it: by witnesses, as one QP (the mean over each bag of squared distances to
        `parameters`), by Newton steps (the log-loss, with a free scale), or not at all.
    free_scale : bool
        Whether a slope and an offset are learned with the measure, so that ``slope * C + offset`` is what `bag_term`
        takes; always for "logistic", offered for "mean".
    relevant : {"all", "maximal", "extreme"}
        Which instances of a bag can decide it, for any measure; see `bimichi.scenes.bags.Bags.reduced`.
    parameters : tuple of float
        Two numbers: what else `bag_term` takes; by default the defaults of `settings`, or 0.
    settings : tuple of at most two Parameter
        Names, defaults and bounds of the `parameters`, if users may set them.
    fastmath : bool
        Whether the compiler may reorder sums in `bag_term`, and assume that there is no NaN.
    """

    name: str
    bag_term: Callable[..., float]
    about: str = ""
    measure: Literal["bicapacity", "capacity"] = "bicapacity"
    labels: Literal["binary", "real"] = "binary"
    zero_bound: bool = True
    absolute: bool = False
    additive: bool = False
    additivity: Literal[1, 2] | None = None
    convex: ConvexForm | Literal["mean", "logistic"] | None = None
    free_scale: bool = False
    relevant: Relevant = "all"
    parameters: tuple[float, ...] = ()
    settings: tuple[Parameter, ...] = ()
    fastmath: bool = False

    def __post_init__(self) -> None:
        if len(self.settings) > 2:
            raise InvalidInputError(
                f"Objective {self.name!r} has {len(self.settings)} settings; it may have two.",
                code="objective-settings",
            )
        numbers = self.parameters or [setting.default for setting in self.settings]
        object.__setattr__(self, "parameters", (*numbers, 0.0, 0.0)[:2])

    @property
    def term(self) -> Term:
        """The objective as kernels take it."""
        return Term(_compiled(self.bag_term, self.fastmath), *self.parameters)

    @property
    def output_range(self) -> tuple[float, float]:
        """The range of the fused output."""
        return (0.0, 1.0) if self.absolute or self.links or self.measure == "capacity" else (-1.0, 1.0)

    @property
    def links(self) -> bool:
        """Return whether a link is learned with the measure, so that the output is a probability."""
        return self.convex == "logistic"

    @property
    def offers(self) -> frozenset[str]:
        """The abilities that a solver may count on, whatever the data: see `bimichi.fit.problem`."""
        from bimichi.fit.spaces import ElementSpace, TermSpace  # objectives are listed without SciPy

        kind = TermSpace if self.additivity else ElementSpace
        return kind.offers | {self.name} | ({"convex form"} if self.convex else frozenset())

    def space(self, n_sources: int) -> "Space":
        """Return what is searched: the elements or the terms of a measure of so many sources."""
        from bimichi.fit.spaces import ElementSpace, TermSpace

        if self.additivity:
            return TermSpace(n_sources, pairs=self.additivity == 2)
        return ElementSpace(n_sources, self.measure, self.zero_bound)

    def with_additivity(self, additivity: Literal[1, 2]) -> "Objective":
        """Return the same objective for additive bi-capacities."""
        return _additive(self, additivity)

    def with_free_scale(self) -> "Objective":
        """Return the same objective of slope * C + offset, both learned, if it is one that can have them."""
        if self.free_scale:
            return self
        if self.convex != "mean":
            raise InvalidInputError(
                f"free_scale=True is for objective='mean', got {self.name!r}. Leave free_scale out, or use 'mean'; "
                "'logistic' always has a free scale.",
                code="free-scale-objective",
                value=self.name,
            )
        return replace(self, free_scale=True)

    def with_parameters(self, **numbers: Any) -> "Objective":
        """Return the same objective with these of its `settings`; others keep their defaults."""
        names = [setting.name for setting in self.settings]
        unknown = sorted(set(numbers) - set(names))
        if unknown:
            raise InvalidInputError(
                f"{unknown[0]!r} is not a parameter of objective {self.name!r}; it has {', '.join(names) or 'none'}.",
                code="objective-parameter",
            )
        chosen = [setting.check(numbers.get(setting.name, setting.default)) for setting in self.settings]
        return replace(self, parameters=tuple(chosen)) if chosen else self


@cache
def _additive(objective: Objective, additivity: Literal[1, 2]) -> Objective:
    """Return an objective for additive bi-capacities, which candidates ask for many times."""
    return replace(objective, additivity=additivity, zero_bound=True)


def to_common_scale(fused: NDArray[Any], output_range: tuple[float, float]) -> NDArray[Any]:
    """Return the output on the common scale [-1, 1]; above 0 means target."""
    return fused if output_range == (-1.0, 1.0) else 2 * fused - 1


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
        "bipolar": f"{HERE}:BIPOLAR",
        "magnitude": f"{HERE}:MAGNITUDE",
        "mean": f"{HERE}:MEAN",
        "logistic": f"{HERE}:LOGISTIC",
        "capacity.noisy-or": f"{HERE}.mici:NOISY_OR",
        "capacity.min-max": f"{HERE}.mici:MIN_MAX",
        "capacity.generalized-mean": f"{HERE}.mici:GENERALIZED_MEAN",
        "capacity.mean": f"{HERE}:NORMALISED_MEAN",
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


def bipolar_term(fused, counts, size, label, first, second):
    """Eqs. (2) and (3): max (C + 1)^2 over a negative bag, min (C - 1)^2 over a positive one.

    Since C lies in [-1, 1], both are decided by the largest C.
    """
    top = fused[0]
    for i in range(size):
        top = max(top, fused[i])
    return (1.0 - top) ** 2 if label > 0 else (1.0 + top) ** 2


BIPOLAR = Objective(
    name="bipolar",
    bag_term=bipolar_term,
    about="targets to +1, the rest to −1; one pixel decides a bag",
    zero_bound=False,
    convex=ConvexForm(negative=((1, 1.0),), positive=(1,), completion="lowest"),
    relevant="maximal",
    fastmath=True,
)


def magnitude_term(fused, counts, size, label, first, second):
    """Eqs. (5) and (6): max C^2 over a negative bag, min (1 - |C|)^2 over a positive one: the largest |C|."""
    top = 0.0
    for i in range(size):
        top = max(top, abs(fused[i]))
    return (1.0 - top) ** 2 if label > 0 else top**2


MAGNITUDE = Objective(
    name="magnitude",
    bag_term=magnitude_term,
    about="targets to +1 or −1, the rest to 0; one pixel decides a bag",
    absolute=True,
    additive=True,
    convex=ConvexForm(negative=((1, 0.0), (-1, 0.0)), positive=(1, -1), completion="nearest-zero"),
    relevant="extreme",
    fastmath=True,
)


def mean_term(fused, counts, size, label, first, second):
    """Return the mean of (C - target)^2 over a bag; an instance that stands for several counts as often."""
    target = second if label > 0 else first
    total, number = 0.0, 0.0
    for i in range(size):
        total += counts[i] * (fused[i] - target) ** 2
        number += counts[i]
    return total / number


MEAN = Objective(
    name="mean",
    bag_term=mean_term,
    about="targets to +1, the rest to −1; every pixel of a bag counts",
    zero_bound=False,
    additive=True,
    convex="mean",
    parameters=(-1.0, 1.0),
    fastmath=True,
)

NORMALISED_MEAN = replace(
    MEAN,
    about="targets to +1, the rest to 0; every pixel of a bag counts",
    measure="capacity",
    zero_bound=True,
    additive=False,
    parameters=(0.0, 1.0),
)


def logistic_term(fused, counts, size, label, first, second):
    """Return the sum of log(1 + e^f) - y f over a bag, f the log-odds; an instance counts as often as it occurs."""
    total = 0.0
    for i in range(size):
        f = fused[i]
        total += counts[i] * (max(f, 0.0) + log1p(exp(-abs(f))) - (f if label > 0 else 0.0))
    return total


LOGISTIC = Objective(
    name="logistic",
    bag_term=logistic_term,
    about="the probability of a target, by its log-odds; every pixel counts with the label of its bag",
    zero_bound=False,
    additive=True,
    convex="logistic",
    free_scale=True,
)
