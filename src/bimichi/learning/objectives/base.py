"""What an objective is: a term per bag, and whether and how it can be minimised as convex problems."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bimichi.measures.lattice import Lattice, pair_lattice, subset_lattice

__all__ = ["ConvexForm", "Objective", "Term", "to_common_scale"]


class Term(NamedTuple):
    """How kernels ask for an objective; see `bimichi.learning.objectives.bag_term`."""

    code: int
    first: float
    second: float


@dataclass(frozen=True)
class ConvexForm:
    """How the convex solver writes an objective whose bags are decided by one instance each.

    With C the integral, a negative bag costs the square of ``max(sign * C + offset)`` over its instances and
    over `negative`; a positive bag costs ``(1 - sign * C)^2`` of its best instance and sign among `positive`.

    Attributes
    ----------
    negative : tuple of (sign, offset)
        What bounds a negative bag's slack from below.
    positive : tuple of int
        Signs with which an instance may speak for a positive bag.
    completion : {"lowest", "nearest-zero"}
        How to choose elements that no deciding instance uses.
    """

    negative: tuple[tuple[int, float], ...]
    positive: tuple[int, ...]
    completion: Literal["lowest", "nearest-zero"]


@dataclass(frozen=True)
class Objective:
    """An objective J, the sum over bags of a term of the integrals of the bag's instances.

    Attributes
    ----------
    name : str
        How users ask for it.
    code : int
        How kernels ask for it.
    measure : {"bicapacity", "capacity"}
        What is learned.
    additivity : {None, 1, 2}
        Whether it is any bi-capacity, or told by terms of single sources, or of these and of pairs.
    zero_bound : bool
        Whether g(empty, empty) = 0 is part of the order of a bi-capacity.
    absolute : bool
        Whether the fused output is ``|C|``, in [0, 1], instead of C.
    convex : ConvexForm, "mean" or None
        How the convex solver minimises it: by witnesses, as one QP, or not at all.
    keeps : {"all", "maximal", "extreme"}
        Which instances of a bag can decide it, for any measure: all, only those with none above them, or those
        with none above or none below; see `bimichi.learning.bags.Bags.reduced`.
    parameters : tuple of two floats
        What else its kernel takes.
    """

    name: str
    code: int
    measure: Literal["bicapacity", "capacity"] = "bicapacity"
    additivity: Literal[1, 2] | None = None
    zero_bound: bool = True
    absolute: bool = False
    convex: ConvexForm | Literal["mean"] | None = None
    keeps: Literal["all", "maximal", "extreme"] = "all"
    parameters: tuple[float, float] = (0.0, 0.0)

    @property
    def term(self) -> Term:
        """What kernels take."""
        return Term(self.code, *self.parameters)

    @property
    def output_range(self) -> tuple[float, float]:
        """Where the fused output lies."""
        return (0.0, 1.0) if self.absolute or self.measure == "capacity" else (-1.0, 1.0)

    def lattice(self, n_sources: int) -> Lattice:
        """Return the lattice on which the measure lives."""
        return subset_lattice(n_sources) if self.measure == "capacity" else pair_lattice(n_sources, self.zero_bound)

    def output(self, integral: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the paper's fusion output."""
        return np.abs(integral) if self.absolute else integral


def to_common_scale(fused: NDArray[Any], output_range: tuple[float, float]) -> NDArray[Any]:
    """Return the output on the common scale [-1, 1]; above 0 means target."""
    return fused if output_range == (-1.0, 1.0) else 2 * fused - 1
