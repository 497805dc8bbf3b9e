"""The convex search over the terms of 2-additive bi-capacities: the same search, another QP."""

import warnings
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bimichi.learning.objectives import ConvexForm
from bimichi.learning.problem import Problem, Solution
from bimichi.learning.solvers.completion import Traced
from bimichi.learning.solvers.quadratic import POLISH, PRECISION
from bimichi.learning.solvers.term_program import SquaredLines, SumOfSquares, Tied, minimise
from bimichi.learning.solvers.working_set import Deciding, Witnesses, WorkingSet
from bimichi.learning.term_problem import TermProblem

__all__ = ["TermWorkingSet", "solve_least_squares_terms"]

Floats = NDArray[np.float64]

POLISH_LIMIT = 3**6
"""With more terms, it would cost seconds."""


class _WholeOrder:
    """What `bimichi.learning.solvers.order.Order` is for elements: the programs of terms have all of theirs at once."""

    def with_violated(self, partial: Floats, tolerance: float) -> "_WholeOrder":
        """Nothing is missing."""
        return self

    def joined(self, other: "_WholeOrder") -> "_WholeOrder":
        """Both have all."""
        return self


class TermWorkingSet(WorkingSet):
    """The rows that decide bags, for a measure told by terms."""

    def __init__(self, problem: TermProblem, form: ConvexForm) -> None:
        self.terms, self._asked = problem.terms, problem
        super().__init__(cast(Problem, problem), form)  # all that it asks besides the lattice

    @property
    def size(self) -> int:
        """How many numbers the measure is made of."""
        return self.terms.size

    @property
    def polishes(self) -> bool:
        """Whether a QP of the last precision is not too long."""
        return self.size <= POLISH_LIMIT

    def middle(self) -> Floats:
        """The mean of all sources."""
        return self.terms.neutral()

    def fitted(self) -> Floats:
        """The measure that fits all instances to the labels of their bags best."""
        return _least_squares(self._asked, (-self.form.negative[0][1], 1.0), (PRECISION,))[0]

    def sample(self, rng: np.random.Generator) -> Floats:
        """A random measure."""
        return self.terms.sample(rng)

    def completed(self, partial: Floats, witnesses: Witnesses) -> Traced:
        """A valid measure of what the QP gave; every term is known."""
        known = np.arange(self.size, dtype=np.int32)
        return Traced(self.terms.repaired(partial), known, known)

    def spoken(self, values: Floats, witnesses: Witnesses) -> Floats:
        """All values: no term follows from others."""
        return values

    def _no_order(self) -> Any:
        return _WholeOrder()

    def _minimise(
        self, rows: Deciding, order: Any, precision: float, near: Floats
    ) -> tuple[Floats, Floats, Floats, float] | None:
        n, length = rows.codes.shape
        places = (rows.weights.ravel(), rows.codes.ravel(), np.arange(0, n * length + 1, length))
        lines = sp.csr_array(places, shape=(n, self.terms.size))
        squares = SquaredLines(lines[rows.alone], rows.constant[rows.alone], rows.share)
        tied = Tied(lines[rows.tied], rows.constant[rows.tied], rows.slack, rows.slack_weight)
        found = minimise(self.terms, squares, tied, precision, near)
        if found is None:
            return None
        constant = float(rows.share @ rows.constant[rows.alone] ** 2)
        return found.values, lines @ found.values + rows.constant, found.slack, found.bound + constant


def solve_least_squares_terms(problem: TermProblem) -> Solution:
    """Minimise an objective that is a sum of squares over all 2-additive bi-capacities."""
    values, status, bound = _least_squares(problem, problem.objective.parameters, (POLISH, PRECISION))
    if status != "converged":
        warnings.warn(f"The convex solver failed: {status}; a neutral measure is returned.", stacklevel=3)
    value = problem.value(values)
    return Solution(values, value, status, 1, np.array([value]), lower_bound=min(bound, value))


def _least_squares(
    problem: TermProblem, targets: tuple[float, float], precisions: tuple[float, ...]
) -> tuple[Floats, str, float]:
    squares = SumOfSquares(problem, targets)
    for precision in precisions:
        found = minimise(problem.terms, squares, None, precision)
        if found is not None:
            bound = squares.scale * found.bound + squares.constant
            return problem.terms.repaired(found.values), "converged", bound
    return problem.terms.neutral(), "the QP could not be solved", -np.inf
