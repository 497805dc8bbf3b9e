"""The integral as rows of (element, weight), in which it is linear, and how often each element is used."""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._checks import check_choice
from bimichi._jit import jit
from bimichi._types import Codes, Ints
from bimichi.integral.planes import Planes, check_n_jobs, run_chunks
from bimichi.measures.lattice import Lattice, pair_lattice, subset_lattice


def linear_form(
    X: ArrayLike | Sequence[ArrayLike],
    measure: str = "bicapacity",
    *,
    check_range: bool = True,
    n_jobs: int | None = None,
) -> tuple[Codes, NDArray[Any]]:
    """Write the integral of every instance as a weighted sum of elements: ``(weights * g.values[codes]).sum(1)``.

    O(n m^2) at worst, in the memory of the result.

    Parameters
    ----------
    X : array-like of shape (..., n_sources), or list or tuple of n_sources equally shaped arrays
        The sources, as in `choquet`, without NaN.
    measure : {"bicapacity", "capacity"}
        Which of the two integrals.
    check_range, n_jobs
        As in `choquet`.

    Returns
    -------
    codes : ndarray of int32, shape (n_instances, n_sources)
        Code of the element at step k; that of column 0 holds all sources, that of the last the largest alone.
    weights : ndarray of shape (n_instances, n_sources)
        The rise of ``|x|`` (or x) at that step, at least 0. Ties keep the order of the sources.

    """
    lattice, planes = _for_rows(X, measure, check_range)
    planes.check_nan()
    codes = np.empty((planes.size, planes.n_sources), np.int32)
    weights = np.empty((planes.size, planes.n_sources), planes.dtype)
    steps = digit_steps(lattice)

    def run(chunk: slice) -> None:
        rows = planes.instances(chunk)
        _form(planes.stacked(chunk), steps, codes[rows], weights[rows])

    run_chunks(run, planes.chunks(stacked=True), check_n_jobs(n_jobs))
    return codes, weights


def usage_counts(
    X: ArrayLike | Sequence[ArrayLike],
    weighted: bool = False,
    measure: str = "bicapacity",
    *,
    check_range: bool = True,
    n_jobs: int | None = None,
) -> Ints:
    """Count how many instances use each element.

    Parameters
    ----------
    X, measure, check_range, n_jobs
        As in `linear_form`, but NaN is allowed: instances with NaN use no element.
    weighted : bool, default=False
        Count every element that the sum touches, as the paper does, or only those of weight above 0, which can change
        a result.

    Returns
    -------
    counts : ndarray of int64, shape (3^m,) or (2^m,)
        One count per element, in code order.
    """
    return count_usage(X, measure, check_range=check_range, n_jobs=n_jobs).counts(weighted)


@dataclass(frozen=True, eq=False)  # arrays do not compare to one bool
class ElementUsage:
    """Counts of instances that use each element, with sources as they are or with any of them inverted.

    For the elements `codes` that are used at all: how many instances touch each at a level above zero (`touched`), how
    many give it weight (`weighted`), and how many have just these sources above and below zero and others that are zero
    (`patterns`). Zeros count as positive in what an instance touches, inverted or not.
    """

    lattice: Lattice
    codes: Codes
    touched: Ints
    weighted: Ints
    patterns: Ints

    def __add__(self, other: "ElementUsage") -> "ElementUsage":
        """Return the usage by the instances of both."""
        codes, where = np.unique(np.concatenate([self.codes, other.codes]), return_inverse=True)
        sums = np.zeros((3, len(codes)), np.int64)
        for some, places in ((self, where[: len(self.codes)]), (other, where[len(self.codes) :])):
            sums[:, places] += np.stack([some.touched, some.weighted, some.patterns])
        return ElementUsage(self.lattice, codes, *sums)

    def counts(self, weighted: bool, signs: ArrayLike | None = None) -> Ints:
        """Return how many instances touch each element, or give it weight, if sources of sign -1 are inverted."""
        lattice = self.lattice
        inverted = signs is not None and bool((np.asarray(signs) < 0).any())
        codes = lattice.with_signs(signs)[self.codes] if signs is not None and inverted else self.codes.copy()
        counts = np.zeros(lattice.size, np.int64)
        counts[codes] = self.weighted if weighted else self.touched
        if not weighted:
            for step in lattice.base ** np.arange(lattice.n_sources)[::-1]:  # the order in which ties are added
                zero = (self.codes // step % lattice.base == 0) & (self.patterns > 0)
                codes[zero] += step.astype(np.int32)
                np.add.at(counts, codes[zero], self.patterns[zero])
        return counts


def count_usage(
    X: ArrayLike | Sequence[ArrayLike],
    measure: str = "bicapacity",
    *,
    check_range: bool = True,
    n_jobs: int | None = None,
) -> ElementUsage:
    """Count in one pass what `usage_counts` returns for every choice of signs; parameters as there."""
    lattice, planes = _for_rows(X, measure, check_range)
    steps = digit_steps(lattice)
    tables = np.zeros((3, lattice.size), np.int64)
    lock = Lock()

    def run(chunk: slice) -> None:
        part = np.zeros_like(tables)
        _count(planes.stacked(chunk), steps, part)
        with lock:
            np.add(tables, part, out=tables)

    run_chunks(run, planes.chunks(stacked=True), check_n_jobs(n_jobs))
    codes = np.flatnonzero(tables.any(axis=0))
    return ElementUsage(lattice, codes.astype(np.int32), *tables[:, codes])


def digit_steps(lattice: Lattice) -> Codes:
    """Return what source k adds to the code when its value is at least zero, and when it is below."""
    steps = (lattice.base ** np.arange(lattice.n_sources)).astype(np.int32)
    return np.stack([steps, 2 * steps if lattice.base == 3 else steps])


def _for_rows(X: Any, measure: str, check_range: bool) -> tuple[Lattice, Planes]:
    lattices = {"bicapacity": pair_lattice, "capacity": subset_lattice}
    check_choice(measure, "measure", lattices)
    planes = Planes(X)
    if check_range:
        planes.check_range(-1.0 if measure == "bicapacity" else 0.0)
    return lattices[measure](planes.n_sources), planes


@jit
def _sort_instance(sources, i, steps, key, step):
    """Sort one instance by stable insertion; return False if it has a NaN."""
    signed = steps[0, 0] != steps[1, 0]
    for k in range(key.size):
        value = sources[k, i]
        if np.isnan(value):
            return False
        size = abs(value) if signed else value
        j = k
        while j > 0 and key[j - 1] > size:
            key[j], step[j] = key[j - 1], step[j - 1]
            j -= 1
        key[j] = size
        step[j] = steps[1, k] if value < 0 else steps[0, k]
    return True


@jit
def _form(sources, steps, codes, weights):
    m, n = sources.shape
    key, step = np.empty(m, sources.dtype), np.empty(m, np.int32)
    for i in range(n):
        _sort_instance(sources, i, steps, key, step)
        code = np.int32(0)
        for k in range(m - 1, -1, -1):
            code += step[k]
            codes[i, k] = code
            weights[i, k] = key[k] - key[k - 1] if k > 0 else key[0]


@jit
def _count(sources, steps, tables):
    m, n = sources.shape
    key, step = np.empty(m, sources.dtype), np.empty(m, np.int32)
    for i in range(n):
        if _sort_instance(sources, i, steps, key, step):
            code = np.int32(0)
            k = m - 1
            while k >= 0 and key[k] > 0:
                code += step[k]
                tables[0, code] += 1
                if k == 0 or key[k] > key[k - 1]:
                    tables[1, code] += 1
                k -= 1
            if k >= 0:
                tables[2, code] += 1
