"""What an objective is: a term per bag, and whether and how it can be minimised as convex problems."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["ConvexForm", "Objective"]


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
        How kernels ask for it; see `bimichi.objectives.bag_term`.
    zero_bound : bool
        Whether g(empty, empty) = 0 is part of the order.
    absolute : bool
        Whether the fused output is ``|C|``, in [0, 1], instead of C, in [-1, 1].
    convex : ConvexForm, "mean" or None
        How the convex solver minimises it: by witnesses, as one QP, or not at all.
    keeps : {"all", "maximal", "extreme"}
        Which instances of a bag can decide it, for any measure: all, only those with none above them, or those
        with none above or none below; see `bimichi.bags.Bags.reduced`.
    """

    name: str
    code: int
    zero_bound: bool
    absolute: bool
    convex: ConvexForm | Literal["mean"] | None
    keeps: Literal["all", "maximal", "extreme"]

    def output(self, integral: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the paper's fusion output."""
        return np.abs(integral) if self.absolute else integral

    def score(self, integral: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the output on the common scale [-1, 1]; above 0 means target."""
        return 2 * np.abs(integral) - 1 if self.absolute else integral
