"""The elements of a lattice, as explanations see them; contributions come from one potential [1]_, see docs/design.md.

References
----------
.. [1] S. Hart and A. Mas-Colell, "Potential, value, and consistency", Econometrica 57, 1989.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._jit import jit
from bimichi._types import Codes, Flags, Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.explain.base import Parts
from bimichi.integral.linear import digit_steps, linear_form
from bimichi.measures.lattice import Lattice

MAX_SOURCES = 12
"""Beyond, hardly any of the pairs that the averages run over is met by data."""


@dataclass(frozen=True, eq=False)
class ElementParts(Parts):
    """The elements of a lattice; `steps` goes from all sources to the largest alone, by how much |x| rises on each."""

    space: Lattice
    columns = ("element", "weight", "value", "product")

    def label(self, k: int) -> str:
        return self.space.label(k, self.names)

    @property
    def listed(self) -> Ints:
        return np.arange(0 if self.space.zero_bound else 1, self.space.size)

    @property
    def n_free(self) -> int:
        return self.space.size - len(self.space.fixed)

    @property
    def _kind(self) -> str:
        return "bicapacity" if self.space.base == 3 else "capacity"

    def steps(self, x: NDArray[Any]) -> tuple[Ints, Floats]:
        codes, weights = linear_form(x[None], self._kind, check_range=False)
        kept = weights[0] > 0
        return codes[0][kept].astype(np.int64), weights[0][kept]

    def contributor(self) -> Callable[[NDArray[Any], NDArray[Any]], None]:
        """Return what writes contributions; O(m 3^m) once, then O(m^2) per instance."""
        potential = np.zeros(self.space.size)
        _fill_potential(self.values, self.space.base, potential)
        steps = digit_steps(self.space)
        return lambda sources, out: _contribute(sources, steps, potential, out)

    def rows(self, instances: NDArray[Any]) -> tuple[Codes, Floats]:
        """Return the codes and weights of instances, each of shape (n, m)."""
        codes, weights = linear_form(instances, self._kind, check_range=False, n_jobs=1)
        return codes, weights.astype(np.float64, copy=False)

    def use(self, rows: NDArray[Any]) -> tuple[Ints, Ints, Ints, Floats]:
        size = self.space.size
        codes, weights = (part.ravel() for part in linear_form(rows, self._kind, check_range=False, n_jobs=1))
        touched = np.bincount(codes, minlength=size)
        met = np.flatnonzero(touched)
        weighted = np.bincount(codes[weights > 0], minlength=size)
        weight: Floats = np.bincount(codes, weights, minlength=size).astype(np.float64)
        return met, touched[met], weighted[met], weight[met]

    def indices(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Average differences over the sets of other sources, O(m^2 2^m); down and mixed of a capacity are 0."""
        m, both_sides = self.space.n_sources, self.space.base == 3
        if m > MAX_SOURCES:
            raise InvalidInputError(
                f"The measure has {m} sources; indices are offered up to {MAX_SOURCES}, because beyond them data meets "
                "hardly any of the elements averaged over. Use data_indices(measure, X), the average over data."
            )
        up = np.array([self._difference((k,), ()) for k in range(m)])
        down = np.array([self._difference((), (k,)) if both_sides else 0.0 for k in range(m)])
        both_up, both_down, mixed = (np.where(np.eye(m, dtype=bool), np.nan, 0.0) for _ in range(3))
        for i, j in product(range(m), repeat=2):
            if i < j:
                both_up[i, j] = both_up[j, i] = self._difference((i, j), ())
            if i < j and both_sides:
                both_down[i, j] = both_down[j, i] = self._difference((), (i, j))
            if i != j and both_sides:
                mixed[i, j] = self._difference((i,), (j,))
        return up, down, both_up, both_down, mixed

    def _difference(self, up: tuple[int, ...], down: tuple[int, ...]) -> float:
        """Average the mixed difference of `up` rising from neutral to for, and `down` from against to neutral.

        Over the sets K of the n other sources, those of size k weigh (n - k)! k! / (n + 1)! each. In a capacity, what
        is not in K is absent.
        """
        base, absent = self.space.base, self.space.chain[0]
        others = [k for k in range(self.space.n_sources) if k not in up + down]
        subsets = np.arange(1 << len(others))
        codes = sum(
            (base**k * np.where(subsets >> bit & 1, 1, absent) for bit, k in enumerate(others)), np.zeros_like(subsets)
        )
        n = len(others)
        weights = np.array([1 / ((n + 1) * comb(n, k)) for k in range(n + 1)])[np.bitwise_count(subsets)]
        total = np.zeros(len(subsets))
        for raised in product((True, False), repeat=len(up) + len(down)):
            digits = [1 if high else 0 for high in raised[: len(up)]] + [0 if high else 2 for high in raised[len(up) :]]
            moved = sum(digit * base**k for digit, k in zip(digits, up + down, strict=True))
            total += (-1) ** raised.count(False) * self.values[codes + moved]
        return float(weights @ total)

    def interactions(self, weight: Floats) -> tuple[Floats, Floats, Floats]:
        """Return mean interactions.

        The index of a pair in the game of one element is the sum of Moebius(T) / (|T| - 1) over the sub-elements T that
        hold both. So T counts with the weight of all elements that it is part of.
        """
        m, base = self.space.n_sources, self.space.base
        moebius, within, size = self.values.copy(), weight.copy(), np.zeros(1)
        for k in range(m):
            part = moebius.reshape(-1, base, base**k)
            part[:, 1:] -= part[:, :1]
            part = within.reshape(-1, base, base**k)
            part[:, 0] = part.sum(axis=1)
            size = np.concatenate([size, size + 1, size + 1][:base])
        terms = np.where(size > 1, moebius * within / np.maximum(size - 1, 1), 0.0)
        up, down, mixed = (np.where(np.eye(m, dtype=bool), np.nan, 0.0) for _ in range(3))
        for i in range(m):
            for j in range(i + 1, m):
                by_digits = terms.reshape(base ** (m - 1 - j), base, base ** (j - i - 1), base, base**i).sum((0, 2, 4))
                up[i, j] = up[j, i] = by_digits[1, 1]
                if base == 3:  # rows: the digit of j; down is one step below neutral, hence the sign of mixed terms
                    down[i, j] = down[j, i] = by_digits[2, 2]
                    mixed[i, j], mixed[j, i] = -by_digits[2, 1], -by_digits[1, 2]
        return up, down, mixed

    def intervals(self, used: Flags) -> tuple[Floats, Floats]:
        low, high = self.space.bounds(np.where(used, self.values, np.nan))
        # A measure may break the order by the tolerance, so bounds may cross by as much, or pass a used value.
        return np.where(used, self.values, np.minimum(low, high)), np.where(used, self.values, np.maximum(low, high))


@jit
def _fill_potential(values, base, potential):
    """Fill ``P(A, B) = (g(A, B) + sum of P without one source) / size``, an element without one of its sources first.

    On each step of the integral, the game ``v(S) = C(x with the sources outside S set to 0)`` is that of one element;
    the value of source i in it is P(element) - P(element without i).
    """
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
def _sort(sources, i, order, key):
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
def _contribute(sources, steps, potential, out):
    m, n = sources.shape
    order, key = np.empty(m, np.int64), np.empty(m)
    step, total = np.empty(m, np.int64), np.empty(m)
    for i in range(n):
        if np.isnan(_sort(sources, i, order, key)):
            out[i] = np.nan
            continue
        total[:] = 0.0
        code = 0
        for k in range(m - 1, -1, -1):
            step[k] = steps[1 if sources[order[k], i] < 0 else 0, order[k]]
            code += step[k]
            weight = key[k] - key[k - 1] if k > 0 else key[0]
            if weight > 0:
                for j in range(k, m):
                    total[order[j]] += weight * (potential[code] - potential[code - step[j]])
        for k in range(m):
            out[i, k] = total[k]
