"""Who made one instance's fused value: the steps of its integral, and the contribution of each source.

The contribution of a source is its Shapley value in the game ``v(S) = C(x with the sources outside S set to 0)``. Since
C is the integral over levels t of g(sources at or above t, sources at or below -t), so is v, and on each step of the
integral it is the game S -> g(S and A, S and B) of one element (A, B). The Shapley values of all these games come from
one potential P [1]_, ``P(A, B) = (g(A, B) + sum of P without one source) / size``: the value of source i in the game of
an element is P(element) - P(element without i). So a table as large as the measure serves all instances.

References
----------
.. [1] S. Hart and A. Mas-Colell, "Potential, value, and consistency", Econometrica 57, 1989.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._jit import jit
from bimichi._tables import Cell, Table, number
from bimichi.errors import InvalidInputError
from bimichi.explain.inputs import Explained, lowest, ready
from bimichi.integral.linear import digit_steps, linear_form
from bimichi.integral.planes import Planes, check_n_jobs, run_chunks
from bimichi.measures.base import LatticeMeasure
from bimichi.rule import as_rule

__all__ = ["Chain", "Contributing", "Step", "chain", "contributions"]


class Step(NamedTuple):
    """One step of the integral: the element, its code, how much |x| rises, g there, and their product."""

    element: str
    code: int
    weight: float
    value: float
    product: float


@dataclass(frozen=True, repr=False)
class Chain:
    """The integral of one instance, step by step.

    Attributes
    ----------
    steps : tuple of Step
        Those of weight above 0, at most m, from all sources to the largest alone.
    turned : tuple of str
        Sources that a model has turned over before the integral; the elements have them so.
    """

    steps: tuple[Step, ...]
    turned: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """The integral C: the sum of the products."""
        return float(sum(step.product for step in self.steps))

    def to_table(self) -> Table:
        """Return the steps and their sum as a table."""
        rows = [
            [Cell(step.element), *(Cell(number(part)) for part in (step.weight, step.value, step.product))]
            for step in self.steps
        ]
        return Table(
            ["element", "weight", "value", "product"],
            [*rows, [Cell("C"), Cell(""), Cell(""), Cell(number(self.total), bold=True)]],
        )

    def __repr__(self) -> str:
        note = f"\nTurned over before the integral: {', '.join(self.turned)}." if self.turned else ""
        return self.to_table().to_text() + note

    def _repr_html_(self) -> str:
        return self.to_table().to_html()


def chain(measure_or_model: Explained, x: ArrayLike) -> Chain:
    """Return the steps that add up to the integral of one instance.

    Parameters
    ----------
    measure_or_model : BiCapacity, Capacity or fitted BiMIChI
        What to explain. A model scales and turns `x` as it does when fusing.
    x : array-like of shape (n_sources,)
        The instance, without NaN.

    Examples
    --------
    >>> from bimichi import BiCapacity
    >>> chain(BiCapacity.additive([0.7, 0.3], ["thermal", "rgb"]), [0.5, -0.2])
    element          weight  value  product
    g_{thermal,rgb}    0.20   0.40     0.08
    g_{thermal,∅}      0.30   0.70     0.21
    C                                  0.29
    """
    given = np.asarray(x)
    if given.ndim != 1:
        raise InvalidInputError(f"x must be one instance, 1-D with one value a source, got shape {given.shape}.")
    measure, sources = ready(measure_or_model, given)
    planes = Planes(np.array(sources, dtype=np.float64), measure.n_sources, measure.source_names)
    planes.check_nan()
    planes.check_range(lowest(measure), remedy="Rescale it.")
    codes, weights = linear_form(planes.stacked(slice(0, 1)).T, measure.kind, check_range=False)
    steps = [
        Step(measure.lattice.label(code, measure.source_names), code, weight, value, weight * value)
        for code, weight, value in zip(
            codes[0].tolist(), weights[0].tolist(), measure.values[codes[0]].tolist(), strict=True
        )
        if weight > 0
    ]
    return Chain(tuple(steps), as_rule(measure_or_model).inverted)


def contributions(
    measure_or_model: Explained, X: ArrayLike | Sequence[ArrayLike], *, n_jobs: int | None = None
) -> NDArray[Any]:
    """Split the integral of every instance among the sources.

    Parameters
    ----------
    measure_or_model : BiCapacity, Capacity or fitted BiMIChI
        What to explain. A model scales and turns the sources as it does when fusing; what a turned source
        contributes belongs to the source as given.
    X : array-like of shape (..., n_sources), or list or tuple of n_sources equally shaped arrays
        Rows, an image or planes, as in `choquet`. An instance with NaN in any source gives NaN.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.

    Returns
    -------
    contributions : ndarray of shape (..., n_sources)
        The Shapley value of each source in the game v(S) = C(x with the sources outside S set to 0); they add up
        to C, also for a "magnitude" model, whose output is |C|. float32 if all sources are, else float64.

    Notes
    -----
    O(n m^2), and O(m 3^m) once. What would be without a source is told by elements that the instance itself
    does not use, perhaps none of the training data: see `identifiability`.

    Examples
    --------
    >>> from bimichi import BiCapacity
    >>> contributions(BiCapacity.additive([0.75, 0.25]), [[1.0, -1.0], [0.0, 0.5]])
    array([[ 0.75 , -0.25 ],
           [ 0.   ,  0.125]])
    """
    measure, sources = ready(measure_or_model, X)
    planes = Planes(sources, measure.n_sources, measure.source_names)
    contributing = Contributing(measure, planes)
    out = np.empty((planes.size, planes.n_sources), planes.dtype)

    def run(chunk: slice) -> float:
        return contributing(planes.stacked(chunk), out[planes.instances(chunk)])

    contributing.check_peaks(run_chunks(run, planes.chunks(stacked=True), check_n_jobs(n_jobs)))
    return out.reshape(*planes.shape, planes.n_sources)


class Contributing:
    """The kernel of `contributions` with the tables it needs for one measure and some sources."""

    def __init__(self, measure: LatticeMeasure, planes: Planes) -> None:
        self._planes = planes
        self._steps = digit_steps(measure.lattice)
        self._low = lowest(measure)
        self._potential = np.zeros(measure.lattice.size)
        _fill_potential(measure.values, measure.lattice.base, self._potential)

    def __call__(self, sources: NDArray[Any], out: NDArray[Any]) -> float:
        """Write the contributions of sources (m, n) to out (n, m); return how far the sources reach."""
        return float(_contribute(sources, self._steps, self._potential, out))

    def check_peaks(self, peaks: list[float]) -> None:
        """Raise if some sources reached out of range."""
        if max(peaks, default=0.0) > 1:
            self._planes.check_range(self._low, remedy="Rescale it.")


@jit
def _fill_potential(values, base, potential):  # type: ignore[no-untyped-def]
    """Fill in order of codes: an element without one of its sources has a smaller code."""
    for code in range(1, values.size):
        total, size, rest, place = values[code], 0, code, 1
        while rest > 0:
            digit = rest % base
            if digit > 0:
                total += potential[code - digit * place]
                size += 1
            rest //= base
            place *= base
        potential[code] = total / size


@jit
def _sort(sources, i, order, key):  # type: ignore[no-untyped-def]
    """Sort sources of one instance by |x|; return the largest, NaN if there is any."""
    for k in range(key.size):
        size = abs(sources[k, i])
        if np.isnan(size):
            return size
        j = k
        while j > 0 and key[j - 1] > size:
            key[j], order[j] = key[j - 1], order[j - 1]
            j -= 1
        key[j], order[j] = size, k
    return key[-1]


@jit
def _contribute(sources, steps, potential, out):  # type: ignore[no-untyped-def]
    """Return the largest |x|; infinity if a source of a capacity is below zero."""
    m, n = sources.shape
    signed = steps[0, 0] != steps[1, 0]
    order, key = np.empty(m, np.int64), np.empty(m)
    step, total = np.empty(m, np.int64), np.empty(m)
    peak = 0.0
    for i in range(n):
        largest = _sort(sources, i, order, key)
        if np.isnan(largest):
            out[i] = np.nan
            continue
        peak = max(peak, largest)
        total[:] = 0.0
        code = 0
        for k in range(m - 1, -1, -1):
            below = sources[order[k], i] < 0
            if below and not signed:
                peak = np.inf
            step[k] = steps[1 if below else 0, order[k]]
            code += step[k]
            weight = key[k] - key[k - 1] if k > 0 else key[0]
            if weight > 0:
                for j in range(k, m):
                    total[order[j]] += weight * (potential[code] - potential[code - step[j]])
        for k in range(m):
            out[i, k] = total[k]
    return peak
