"""`Objective`: a term per bag, and whether and how it can be minimised as convex problems."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from numba import types
from numpy.typing import NDArray

from bimichi._checks import check_number
from bimichi._jit import function_pointer, jit
from bimichi.errors import InvalidInputError
from bimichi.scenes.bags import Relevant

if TYPE_CHECKING:
    from bimichi.fit.spaces import Space

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
