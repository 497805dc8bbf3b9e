"""Both Choquet integrals: the function that checks, and the kernels.

The integral over a bi-capacity is Eq. (1) of the paper: sort sources by ``|x|``, ascending, and add up
``(|x_(k)| - |x_(k-1)|) * g(A_k with x >= 0, A_k with x < 0)``, where A_k holds the k-th source and all larger. Over a
capacity, sort by x and take ``g(A_k)``. Either way it is linear in the values of g.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._checks import check_choice
from bimichi._jit import jit
from bimichi._types import Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.integral.linear import digit_steps
from bimichi.integral.planes import Planes, check_n_jobs, run_chunks
from bimichi.integral.terms import integrate_terms, largest, sign_table
from bimichi.measures.base import Measure

# "contract" lets a multiplication and an addition be one instruction. No flag here changes what NaN does.
_fast = jit(error_model="numpy", fastmath={"contract", "nsz"})

LANES = 256
"""Instances that the general kernel sorts side by side, one vector register after another."""

BLOCK = 2048
"""Instances that a small kernel takes at a time, so that its running peak stays in the fastest cache."""


def integrate(
    X: Any, g: Measure, *, nan: str = "propagate", check_range: bool = True, out: Any = None, n_jobs: int | None = None
) -> NDArray[Any]:
    """Fuse every instance of plain arrays; `bimichi.choquet` is the same, and takes arrays of xarray besides."""
    check_arguments(g, nan)
    jobs = check_n_jobs(n_jobs)
    planes = Planes(X, g.n_sources, g.source_names, out)
    small = g.kind == "bicapacity" and g.n_sources in _SMALL
    kernel: Any = _SMALL[g.n_sources] if small else _general
    arguments: tuple[Any, ...]  # between the sources and the result
    if g.parts == "terms":
        kernel, arguments = integrate_terms, (sign_table(g.space, g.values).astype(planes.dtype),)
    elif small:
        arguments = (tuple(_sign_terms(g).astype(planes.dtype)),)
    else:
        arguments = (g.values.astype(planes.dtype), digit_steps(g.space), _sorting_network(g.n_sources))

    def run(chunk: slice) -> float:
        with planes.writing(chunk) as result:
            sources = planes.contiguous(chunk) if small else (planes.stacked(chunk),)
            return float(kernel(*sources, *arguments, result))

    peaks = run_chunks(run, planes.chunks(stacked=not small), jobs)
    if check_range and max(peaks, default=0.0) > 1:
        planes.check_range(g.low)
    if nan == "raise" and np.isnan(planes.out).any():
        planes.check_nan()
    return planes.out if planes.out.ndim else planes.out[()]


def check_arguments(g: Any, nan: str) -> None:
    """Check the measure and what is to be done about NaN."""
    if not isinstance(g, Measure):
        raise InvalidInputError(
            f"g must be a BiCapacity, a Capacity or an AdditiveBiCapacity, got {type(g).__name__}.",
            code="measure-kind",
            argument="g",
            value=g,
        )
    check_choice(nan, "nan", ("propagate", "raise"))


def _sorting_network(n: int) -> Ints:
    """Return Batcher's odd-even merge sort for n keys: pairs (i, j), i < j, to be put in order one after another."""
    pairs = []
    p = 1
    while p < n:
        k = p
        while k >= 1:
            for j in range(k % p, n - k, 2 * k):
                for i in range(j, min(j + k, n - k)):
                    if i // (2 * p) == (i + k) // (2 * p):
                        pairs.append((i, i + k))
            k //= 2
        p *= 2
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


@_fast
def _general(sources, values, steps, network, out):
    """Integrate sources of shape (m, n) into out; the largest |x| is returned, infinity if out of range below."""
    m, n = sources.shape
    key = np.zeros((m, LANES), sources.dtype)
    step = np.zeros((m, LANES), np.int32)
    peak = np.zeros(LANES, sources.dtype)
    signed = steps[0, 0] != steps[1, 0]
    zero = sources.dtype.type(0)
    for start in range(0, n, LANES):
        stop = min(start + LANES, n)
        for k in range(m):
            _load(sources[k, start:stop], key[k], step[k], steps[0, k], steps[1, k], signed, peak)
        for e in range(network.shape[0]):
            i, j = network[e, 0], network[e, 1]
            _order(key[i], key[j], step[i], step[j])
        for lane in range(stop - start):
            code = step[m - 1, lane]
            top = upper = key[m - 1, lane]
            least = -top if signed else key[0, lane]
            total = zero
            for k in range(m - 2, -1, -1):
                lower = key[k, lane]
                total += (upper - lower) * values[np.uint32(code)]
                code += step[k, lane]
                upper = lower
            total += upper * values[np.uint32(code)]
            total = top if total > top else total  # rounding must not carry it out of range; NaN stays
            out[start + lane] = least if total < least else total
    return largest(peak)


@_fast
def _load(x, key, step, positive, negative, signed, peak):
    """Fill one source's lanes; for a capacity (not signed), what is below zero counts as beyond the peak."""
    zero, beyond = x.dtype.type(0), x.dtype.type(np.inf)
    for lane in range(x.size):
        v = x[lane]
        size = abs(v)
        key[lane] = size if signed else v
        step[lane] = negative if v < zero else positive
        reach = beyond if v < zero and not signed else size
        peak[lane] = reach if reach > peak[lane] else peak[lane]


@_fast
def _order(key_i, key_j, step_i, step_j):
    """Swap, lane by lane, what is out of order; selections instead of branches, so that it is vectorised."""
    for lane in range(LANES):
        u, v = key_i[lane], key_j[lane]
        p, q = step_i[lane], step_j[lane]
        swap = u > v
        key_i[lane] = v if swap else u
        key_j[lane] = u if swap else v
        step_i[lane] = q if swap else p
        step_j[lane] = p if swap else q


def _sign_terms(g: Measure) -> Floats:
    """Return c with C(x) = sum over codes of c[code] * min(|x_k|: digit k > 0) * prod(sign x_k: digit k = 2).

    Per source, the three values (absent, positive, negative) become (absent, mean rise, half difference):
    the Moebius transform over subsets of the sources, and a Walsh transform over their signs.
    """
    table = g.values.reshape((3,) * g.n_sources)
    per_source = np.array([[1.0, 0.0, 0.0], [-1.0, 0.5, 0.5], [0.0, 0.5, -0.5]])
    for axis in range(g.n_sources):
        table = np.moveaxis(np.tensordot(per_source, table, axes=(1, axis)), 0, axis)
    return np.ascontiguousarray(table).ravel()


# The small kernels. Digit k of a term's code: 0 = source k plays no part, 1 = it does, 2 = with its sign.


@_fast
def _fold(plain, signed, s):
    """Return nine terms with one more source of sign s in them."""
    return (
        plain[0] + signed[0] * s,
        plain[1] + signed[1] * s,
        plain[2] + signed[2] * s,
        plain[3] + signed[3] * s,
        plain[4] + signed[4] * s,
        plain[5] + signed[5] * s,
        plain[6] + signed[6] * s,
        plain[7] + signed[7] * s,
        plain[8] + signed[8] * s,
    )


@_fast
def _sum2(c, s, t, x, y, xy):
    """Add up the terms of two sources with signs s, t; x, y, xy are the minima of |.| of their subsets."""
    both = c[4] + c[5] * s + t * (c[7] + c[8] * s)
    return (c[1] + c[2] * s) * x + (c[3] + c[6] * t) * y + both * xy


@_fast
def _sum3(c, s, t, u, x, y, z, xy, xz, yz, xyz):
    with_third = _fold(c[9:18], c[18:27], u)
    return _sum2(c[:9], s, t, x, y, xy) + with_third[0] * z + _sum2(with_third, s, t, xz, yz, xyz)


@_fast
def _lesser(x, y):
    return x if x < y else y


@_fast
def _greater(x, y):
    return x if x > y else y


@_fast
def _within(total, top):
    """Return the integral within the largest |x|, beyond which rounding must not carry it. NaN stays."""
    total = top if total > top else total
    return -top if total < -top else total


@_fast
def _two(a, b, terms, out):
    """Integrate two planes into out; the largest |x| is returned, as by the other small kernels."""
    zero, unit = out.dtype.type(0), out.dtype.type(1)
    peak = np.zeros(BLOCK, out.dtype)
    for start in range(0, out.size, BLOCK):
        p, q, o = a[start : start + BLOCK], b[start : start + BLOCK], out[start : start + BLOCK]
        for i in range(o.size):
            x, y = abs(p[i]), abs(q[i])
            s, t = -unit if p[i] < zero else unit, -unit if q[i] < zero else unit
            o[i] = _within(_sum2(terms, s, t, x, y, _lesser(x, y)), _greater(x, y))
            peak[i] = _greater(y, _greater(x, peak[i]))
    return largest(peak)


@_fast
def _three(a, b, c, terms, out):
    zero, unit = out.dtype.type(0), out.dtype.type(1)
    peak = np.zeros(BLOCK, out.dtype)
    for start in range(0, out.size, BLOCK):
        stop = start + BLOCK
        p, q, r, o = a[start:stop], b[start:stop], c[start:stop], out[start:stop]
        for i in range(o.size):
            x, y, z = abs(p[i]), abs(q[i]), abs(r[i])
            s, t = -unit if p[i] < zero else unit, -unit if q[i] < zero else unit
            u = -unit if r[i] < zero else unit
            xy, xz, yz = _lesser(x, y), _lesser(x, z), _lesser(y, z)
            total = _sum3(terms, s, t, u, x, y, z, xy, xz, yz, _lesser(xy, z))
            o[i] = _within(total, _greater(_greater(x, y), z))
            peak[i] = _greater(z, _greater(y, _greater(x, peak[i])))
    return largest(peak)


@_fast
def _four(a, b, c, d, terms, out):
    zero, unit = out.dtype.type(0), out.dtype.type(1)
    plain, signed = terms[27:54], terms[54:81]
    peak = np.zeros(BLOCK, out.dtype)
    for start in range(0, out.size, BLOCK):
        stop = start + BLOCK
        p, q, r, f, o = a[start:stop], b[start:stop], c[start:stop], d[start:stop], out[start:stop]
        for i in range(o.size):
            x, y, z, w = abs(p[i]), abs(q[i]), abs(r[i]), abs(f[i])
            s, t = -unit if p[i] < zero else unit, -unit if q[i] < zero else unit
            u, v = -unit if r[i] < zero else unit, -unit if f[i] < zero else unit
            xy, xz, yz = _lesser(x, y), _lesser(x, z), _lesser(y, z)
            xyz = _lesser(xy, z)
            with_fourth = (
                _fold(plain[:9], signed[:9], v)
                + _fold(plain[9:18], signed[9:18], v)
                + _fold(plain[18:], signed[18:], v)
            )
            xw, yw, zw = _lesser(x, w), _lesser(y, w), _lesser(z, w)
            total = _sum3(terms[:27], s, t, u, x, y, z, xy, xz, yz, xyz) + with_fourth[0] * w
            total += _sum3(
                with_fourth, s, t, u, xw, yw, zw, _lesser(xy, w), _lesser(xz, w), _lesser(yz, w), _lesser(xyz, w)
            )
            o[i] = _within(total, _greater(_greater(x, y), _greater(z, w)))
            peak[i] = _greater(w, _greater(z, _greater(y, _greater(x, peak[i]))))
    return largest(peak)


_SMALL: dict[int, Any] = {2: _two, 3: _three, 4: _four}
