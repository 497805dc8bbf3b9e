"""Sums of squared distances of the integral to targets, as a quadratic form in the values of the measure."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bimichi._jit import jit
from bimichi._types import Codes, Floats
from bimichi.errors import InvalidInputError
from bimichi.integral.planes import in_threads
from bimichi.measures.lattice import Lattice, pair_lattice

CHUNK = 1 << 17

DENSE_LIMIT = 3**7  # up to so many elements, sums are taken in a full matrix (38 MB at most)
MAX_USED = 3**8  # how many elements least squares may use: all are variables of one QP, which takes minutes even then


class Gram(NamedTuple):
    """A weighted sum of squared distances to targets, as ``v @ matrix @ v - 2 * linear @ v + constant``."""

    matrix: sp.csc_array
    linear: Floats
    constant: float

    def __add__(self, other: "Gram") -> "Gram":  # type: ignore[override]  # no tuples are joined here
        """Return the sum over the instances of both."""
        return Gram(self.matrix + other.matrix, self.linear + other.linear, self.constant + other.constant)

    def at(self, values: Floats) -> float:
        """Return the sum at these values."""
        return float(values @ (self.matrix @ values) - 2 * self.linear @ values + self.constant)

    def with_signs(self, signs: Floats) -> "Gram":
        """Return the same sum of a bi-capacity whose sources are multiplied by these signs."""
        codes = pair_lattice(len(signs)).with_signs(signs)  # an exchange of elements in pairs
        return Gram(self.matrix[codes][:, codes], self.linear[codes], self.constant)


class RowsOfSquares(NamedTuple):
    """Some instances: their linear form, how much each counts, and its target."""

    codes: Codes
    weights: NDArray[Any]
    share: Floats
    target: Floats


def gram(lattice: Lattice, n: int, rows: Callable[[slice], RowsOfSquares], n_jobs: int) -> Gram:
    """Add up ``share * (C - target)^2`` over n instances, which `rows` gives slice by slice, in order; O(n m^2).

    More than `MAX_USED` elements in use are an error as soon as they are found.
    """
    size = lattice.size
    matrix: Any = np.zeros((size, size)) if size <= DENSE_LIMIT else sp.csr_array((size, size))
    linear, constant = np.zeros(size), 0.0
    chunks = [slice(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK)]
    for part in in_threads(lambda chunk: _part(size, rows(chunk)), chunks, n_jobs):
        matrix = matrix + part[0]
        linear += part[1]
        constant += part[2]
        if size > MAX_USED:
            check_used(lattice, matrix.diagonal())
    return Gram(sp.csc_array(matrix), linear, float(constant))


def check_used(lattice: Lattice, use: Floats) -> None:
    """Refuse a quadratic form, of which `use` is the diagonal, that is too large to be minimised."""
    used = int(np.count_nonzero(use))
    if used > MAX_USED:
        raise InvalidInputError(
            f"The instances use {used:,} elements or more of {lattice.n_sources} sources, which least squares would "
            f"all fit at once; at most {MAX_USED:,} are supported. Use fewer sources, or BiMIChI with "
            "additivity=2, or with objective='bipolar' or 'magnitude'."
        )


def squares_of_rows(size: int, rows: RowsOfSquares) -> Gram:
    """Return the sum of some instances; O(n m^2) for rows of m codes."""
    matrix, linear, constant = _part(size, rows)
    return Gram(sp.csc_array(matrix), linear, constant)


def _part(size: int, rows: RowsOfSquares) -> tuple[Any, Floats, float]:
    constant = float((rows.share * rows.target**2).sum())
    if size <= DENSE_LIMIT:
        matrix, linear = np.zeros((size, size)), np.zeros(size)
        _add_squares(rows, matrix, linear)
        matrix += np.tril(matrix, -1).T + np.triu(matrix, 1).T  # pairs of codes were added once, in either order
        return matrix, linear, constant
    pull = (rows.weights * (rows.share * rows.target)[:, None]).ravel()
    linear = np.bincount(rows.codes.ravel(), pull, size).astype(np.float64)
    pointers = np.arange(0, rows.codes.size + 1, rows.codes.shape[1])
    table = sp.csr_array((rows.weights.ravel(), rows.codes.ravel(), pointers), shape=(len(rows.codes), size))
    return table.T @ (sp.diags_array(rows.share) @ table), linear, constant


@jit
def _add_squares(rows, matrix, linear):
    n, m = rows.codes.shape
    for i in range(n):
        target = rows.target[i]
        for j in range(m):
            weight = rows.share[i] * rows.weights[i, j]
            if weight != 0:
                a = np.uint32(rows.codes[i, j])
                linear[a] += weight * target
                for k in range(j + 1):
                    b = np.uint32(rows.codes[i, k])
                    matrix[a, b] += weight * rows.weights[i, k]
