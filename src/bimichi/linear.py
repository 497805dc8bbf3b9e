"""The integral as rows of (element, weight), and how often each element is used.

The Choquet integral is linear in the measure: each instance is at most m pairs of a code and a weight, and everything
that learns sees only those.
"""

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi.errors import InvalidInputError
from bimichi.lattice import Lattice, pair_lattice, subset_lattice
from bimichi.planes import Planes, check_n_jobs, run_chunks

__all__ = ["digit_steps", "linear_form", "usage_counts"]

_jit = numba.njit(cache=True, nogil=True)


def linear_form(
    X: ArrayLike | Sequence[ArrayLike],
    measure: str = "bicapacity",
    *,
    check_range: bool = True,
    n_jobs: int | None = None,
) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Write the integral of every instance as a weighted sum of elements: ``(weights * g.values[codes]).sum(1)``.

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
        Code of the element of step k; column 0 holds all sources, the last one the largest alone.
    weights : ndarray of shape (n_instances, n_sources)
        The rise of ``|x|`` (or x) at that step, at least 0. Ties keep the order of the sources.

    Notes
    -----
    O(n m^2) at worst, O(n m) memory: the result alone.
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
) -> NDArray[np.int64]:
    """Count how many instances use each element.

    Parameters
    ----------
    X : array-like of shape (..., n_sources), or list or tuple of n_sources equally shaped arrays
        The sources, as in `choquet`. Instances with NaN use no element.
    weighted : bool, default=False
        Count every element that the sum touches, as the paper does, or only where its weight is above 0,
        which is what can change a result.
    measure : {"bicapacity", "capacity"}
        Which of the two integrals.
    check_range, n_jobs
        As in `choquet`.

    Returns
    -------
    counts : ndarray of int64, shape (3^m,) or (2^m,)
        One count per element, in code order.
    """
    lattice, planes = _for_rows(X, measure, check_range)
    steps = digit_steps(lattice)
    counts = np.zeros(lattice.size, np.int64)
    lock = Lock()

    def run(chunk: slice) -> None:
        part = np.zeros(lattice.size, np.int64)
        _count(planes.stacked(chunk), steps, weighted, part)
        with lock:
            np.add(counts, part, out=counts)

    run_chunks(run, planes.chunks(stacked=True), check_n_jobs(n_jobs))
    return counts


def digit_steps(lattice: Lattice) -> NDArray[np.int32]:
    """What source k adds to the code when its value is at least zero, and when it is below."""
    steps = (lattice.base ** np.arange(lattice.n_sources)).astype(np.int32)
    return np.stack([steps, 2 * steps if lattice.base == 3 else steps])


def _for_rows(X: Any, measure: str, check_range: bool) -> tuple[Lattice, Planes]:
    lattices = {"bicapacity": pair_lattice, "capacity": subset_lattice}
    if measure not in lattices:
        raise InvalidInputError(f"measure must be one of {', '.join(lattices)}, got {measure!r}.")
    planes = Planes(X)
    if check_range:
        planes.check_range(-1.0 if measure == "bicapacity" else 0.0)
    return lattices[measure](planes.n_sources), planes


@_jit
def _sort_instance(sources, i, steps, key, step):  # type: ignore[no-untyped-def]
    """Stable insertion sort of one instance; False if it has a NaN."""
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


@_jit
def _form(sources, steps, codes, weights):  # type: ignore[no-untyped-def]
    m, n = sources.shape
    key, step = np.empty(m, sources.dtype), np.empty(m, np.int32)
    for i in range(n):
        _sort_instance(sources, i, steps, key, step)
        code = np.int32(0)
        for k in range(m - 1, -1, -1):
            code += step[k]
            codes[i, k] = code
            weights[i, k] = key[k] - key[k - 1] if k > 0 else key[0]


@_jit
def _count(sources, steps, weighted, counts):  # type: ignore[no-untyped-def]
    m, n = sources.shape
    key, step = np.empty(m, sources.dtype), np.empty(m, np.int32)
    for i in range(n):
        if _sort_instance(sources, i, steps, key, step):
            code = np.int32(0)
            for k in range(m - 1, -1, -1):
                code += step[k]
                if not weighted or (key[k] > key[k - 1] if k > 0 else key[0] > 0):
                    counts[code] += 1
