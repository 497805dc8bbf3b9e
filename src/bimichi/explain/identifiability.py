"""What the data says about each element of a measure, and what it leaves open."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._tables import Cell, Table, number
from bimichi.errors import InvalidInputError
from bimichi.explain.inputs import Explained, check_elements, lowest, measure_of, ready
from bimichi.integral.linear import linear_form
from bimichi.integral.planes import Planes, check_n_jobs, run_chunks
from bimichi.measures.base import TOLERANCE, LatticeMeasure
from bimichi.rule import as_rule

__all__ = ["Identifiability", "Use", "identifiability", "use_of"]

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

TABLE_LIMIT = 3**5


class Use(NamedTuple):
    """For every element: how many instances touch it, how many give it weight, and how much weight in all."""

    touched: Counts
    weighted: Counts
    weight: Floats
    n_instances: int


@dataclass(frozen=True, eq=False, repr=False)
class Identifiability:
    """How far the data determines each element. Arrays have one entry per element, in code order.

    Attributes
    ----------
    measure : BiCapacity or Capacity
        What is explained.
    lower, upper : ndarray
        The interval in which an element can lie without changing the fused value of any instance, if the other
        open elements may move with it. It has no width at used elements and at the boundary. `lower` itself is
        a monotone measure, and so is `upper`.
    used : ndarray of bool
        Whether some instance gives the element weight.
    counts : ndarray of int64
        How many instances give it weight.
    touched : ndarray of int64
        How many instances touch it at all, as the paper counts.
    weight : ndarray of float64 or None
        How much weight they give it in all; None where only the counts of a model's training are known.
    """

    measure: LatticeMeasure
    lower: Floats
    upper: Floats
    used: NDArray[np.bool_]
    counts: Counts
    touched: Counts
    weight: Floats | None

    @property
    def open(self) -> NDArray[np.bool_]:
        """Whether an element is left open: its interval has a width."""
        return self.upper - self.lower > TOLERANCE

    @property
    def n_free(self) -> int:
        """The number of elements that the boundary does not fix."""
        return self.measure.lattice.size - len(self.measure.lattice.fixed)

    def to_table(self) -> Table:
        """Return the elements as a table, open ones as intervals."""
        lattice = self.measure.lattice
        if lattice.size > TABLE_LIMIT:
            raise InvalidInputError(
                f"The table of {lattice.n_sources} sources has {lattice.size:,} rows; tables are offered up to "
                f"{TABLE_LIMIT} rows. Read .lower, .upper and .counts by code instead."
            )
        rows = []
        for code in range(0 if lattice.zero_bound else 1, lattice.size):
            cells = [lattice.label(code, self.measure.source_names), self._shown(code)]
            cells += [str(self.touched[code]), str(self.counts[code])]
            if self.weight is not None:
                cells.append(f"{self.weight[code]:.1f}")
            rows.append([Cell(text) for text in cells])
        header = ["element", "value", "touched", "weighted"]
        return Table(header if self.weight is None else [*header, "weight"], rows)

    def _shown(self, code: int) -> str:
        if self.open[code]:
            return f"{number(float(self.lower[code]))} .. {number(float(self.upper[code]))}"
        return number(float(self.measure.values[code]))

    def __repr__(self) -> str:
        head = f"Identifiability: {int(self.open.sum()):,} of {self.n_free:,} free elements are open"
        return head if self.measure.lattice.size > TABLE_LIMIT else f"{head}\n{self.to_table().to_text()}"

    def _repr_html_(self) -> str:
        small = self.measure.lattice.size <= TABLE_LIMIT
        return (self.to_table() if small else Table(["Identifiability"], [[Cell(repr(self))]])).to_html()


def identifiability(
    measure_or_model: Explained, X: ArrayLike | Sequence[ArrayLike] | None = None, *, n_jobs: int | None = None
) -> Identifiability:
    """Tell which elements data has used, and in which interval each of the others may lie.

    Parameters
    ----------
    measure_or_model : BiCapacity, Capacity or fitted BiMIChI
        What to explain.
    X : array-like of shape (..., n_sources), or list of planes, optional
        The data; instances with NaN are left out. A model may do without: it has counted its training data.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.

    Notes
    -----
    O(n m^2 + m 3^m). An open element lies between the largest used (or boundary) element below it and the smallest
    one above it; any value there can be had together with a monotone choice of the other open ones. A used element
    may still differ in another solution, with other fused values and an equal objective: that is for `bootstrap`.

    Examples
    --------
    >>> from bimichi import BiCapacity
    >>> identifiability(BiCapacity.additive([0.7, 0.3]), [[0.5, 1.0], [0.5, -0.5]])
    Identifiability: 4 of 6 free elements are open
    element           value  touched  weighted  weight
    g_{∅,∅}            0.00        0         0     0.0
    g_{1,∅}    0.40 .. 1.00        0         0     0.0
    g_{∅,1}   -1.00 .. 0.00        0         0     0.0
    g_{2,∅}            0.30        1         1     0.5
    g_{12,∅}           1.00        1         1     0.5
    g_{2,1}   -1.00 .. 0.30        0         0     0.0
    g_{∅,2}   -1.00 .. 0.00        1         0     0.0
    g_{1,2}            0.40        1         1     0.5
    g_{∅,12}          -1.00        0         0     0.0
    """
    measure = measure_of(measure_or_model)
    check_elements(measure_or_model, "identifiability")
    weight: Floats | None = None
    if X is not None:
        measure, sources = ready(measure_or_model, X)
        touched, counts, weight, _ = use_of(measure, Planes(sources, measure.n_sources, measure.source_names), n_jobs)
    elif as_rule(measure_or_model).usage:
        usage = as_rule(measure_or_model).usage
        touched, counts = usage["touched"], usage["weighted"]
    else:
        raise InvalidInputError("X must be given with a measure; only a fitted model knows its training data.")
    used = counts > 0
    low, high = measure.lattice.bounds(np.where(used, measure.values, np.nan))
    # A measure may break the order by the tolerance, so bounds may cross by as much, or pass a used value.
    lower = np.where(used, measure.values, np.minimum(low, high))
    upper = np.where(used, measure.values, np.maximum(low, high))
    return Identifiability(measure, lower, upper, used, counts, touched, weight)


def use_of(measure: LatticeMeasure, planes: Planes, n_jobs: int | None = None) -> Use:
    """Count how the instances without NaN use each element; O(n m^2)."""
    size = measure.lattice.size
    planes.check_range(lowest(measure), remedy="Rescale it.")

    def run(chunk: slice) -> tuple[NDArray[np.int64], Use]:
        rows = planes.stacked(chunk).T
        rows = rows[~np.isnan(rows).any(axis=1)]
        codes, weights = (part.ravel() for part in linear_form(rows, measure.kind, check_range=False, n_jobs=1))
        touched = np.bincount(codes, minlength=size)
        met = np.flatnonzero(touched)  # few, mostly: what waits for the other chunks stays small
        weighted = np.bincount(codes[weights > 0], minlength=size)
        weight = np.bincount(codes, weights, minlength=size).astype(np.float64)
        return met, Use(touched[met], weighted[met], weight[met], len(rows))

    total = Use(np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size), 0)
    for met, part in run_chunks(run, planes.chunks(stacked=True), check_n_jobs(n_jobs)):
        total.touched[met] += part.touched
        total.weighted[met] += part.weighted
        total.weight[met] += part.weight
        total = total._replace(n_instances=total.n_instances + part.n_instances)
    return total
