"""Sources in any layout, passed to kernels chunk by chunk, without a full copy."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._checks import is_integer, is_xarray, real_array
from bimichi._progress import checkpoint
from bimichi.errors import InvalidInputError

CHUNK = 1 << 19
"""Instances per task when planes are read in place."""

SMALL_CHUNK = 1 << 16
"""Instances per task when they may be copied, or when each takes longer: copies stay small, cores busy."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Planes:
    """One array per source, all of one shape; views of what the user gave.

    `X` holds rows, of shape (..., n_sources), or a list or tuple of planes; a list without any array in it (numbers,
    lists) is read as rows. `n_sources` is what the measure expects, `names` are for errors, `out` takes the result.
    `shape` is that of one plane and of the result; `dtype`, in which kernels compute, is float32 if no source is
    wider, else float64.
    """

    def __init__(
        self,
        X: ArrayLike | Sequence[ArrayLike],
        n_sources: int | None = None,
        names: Sequence[str] | None = None,
        out: NDArray[Any] | None = None,
    ) -> None:
        whole, planes = split_planes(X, n_sources)
        self.n_sources = len(planes)
        self.shape = planes[0].shape
        self.dtype = np.dtype(np.float32 if all(p.dtype in (np.float16, np.float32) for p in planes) else np.float64)
        self._names = names
        self.out = self._check_out(out, planes)
        arrays = [*planes, self.out]
        try:
            arrays = [np.reshape(array, -1, copy=False) for array in arrays]
            self._per_index = 1
        except ValueError:  # some strided array is no 1-D view: its leading axis is cut instead
            arrays = [np.squeeze(array) for array in arrays]
            self._per_index = int(np.prod(arrays[0].shape[1:]))
            whole = None
        *self._planes, self._out = arrays
        self._rows: NDArray[Any] | None = None
        if whole is not None and whole.dtype == self.dtype:
            self._rows = whole.reshape(-1, self.n_sources)
        self._in_place = all(p.flags.c_contiguous and p.dtype == self.dtype for p in self._planes)

    @property
    def size(self) -> int:
        """The number of instances."""
        return int(np.prod(self.shape))

    def chunks(self, stacked: bool = False) -> list[slice]:
        """Return slices of the leading axis; they depend on the data alone, so results do not depend on `n_jobs`."""
        length = len(self._planes[0])
        step = max(1, (CHUNK if self._in_place and not stacked else SMALL_CHUNK) // max(1, self._per_index))
        return [slice(start, min(start + step, length)) for start in range(0, length, step)]

    def instances(self, chunk: slice) -> slice:
        """Return the flat positions of a chunk's instances."""
        return slice(chunk.start * self._per_index, chunk.stop * self._per_index)

    def contiguous(self, chunk: slice) -> tuple[NDArray[Any], ...]:
        """Return the chunk as one contiguous 1-D array per source; copied only where needed."""
        return tuple(np.ascontiguousarray(p[chunk], dtype=self.dtype).reshape(-1) for p in self._planes)

    def stacked(self, chunk: slice) -> NDArray[Any]:
        """Return the chunk as an array of shape (n_sources, n); rows are not copied."""
        if self._rows is not None:
            return self._rows[chunk].T
        return np.stack(self.contiguous(chunk))

    def rows(self) -> NDArray[Any]:
        """Return all instances as an array of shape (n, n_sources); copied only where needed."""
        if self._rows is not None:
            return self._rows
        return np.stack(self.contiguous(slice(0, None)), axis=1)

    @contextmanager
    def writing(self, chunk: slice) -> Iterator[NDArray[Any]]:
        """Yield a contiguous 1-D array for the chunk's result, which ends up in `out`."""
        part = self._out[chunk]
        if part.flags.c_contiguous:
            yield part.reshape(-1)
        else:
            lent = np.empty(part.size, self.dtype)
            yield lent
            part[...] = lent.reshape(part.shape)

    def check_range(self, low: float, remedy: str = "Rescale it, or pass check_range=False.") -> None:
        """Raise if a source leaves [low, 1]; NaN passes."""
        for k, plane in enumerate(self._planes):
            for chunk in self.chunks():
                part = plane[chunk]
                bad = part[(part < low) | (part > 1)]
                if bad.size:
                    worst = float(bad[np.argmax(np.abs(bad))])
                    raise out_of_range(k, self._names, worst, low, remedy)

    def check_nan(self) -> None:
        """Raise if a source holds NaN."""
        for k, plane in enumerate(self._planes):
            count = sum(int(np.isnan(plane[chunk]).sum()) for chunk in self.chunks())
            if count:
                raise InvalidInputError(
                    f"{source_label(k, self._names)} has NaN in {count:,} instances. Fill or drop them.", code="nan"
                )

    def _check_out(self, out: NDArray[Any] | None, planes: list[NDArray[Any]]) -> NDArray[Any]:
        if out is None:
            return np.empty(self.shape, self.dtype)
        if not isinstance(out, np.ndarray) or out.shape != self.shape or out.dtype != self.dtype:
            got = f"{out.dtype} of shape {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
            raise InvalidInputError(
                f"out must be an array of {self.dtype} of shape {self.shape}, got {got}.",
                code="out-array",
                argument="out",
                value=got,
            )
        if not out.flags.writeable:
            raise InvalidInputError("out is read-only; pass a writeable array.", code="out-read-only", argument="out")
        if any(np.shares_memory(out, plane) for plane in planes):
            raise InvalidInputError("out shares memory with X; pass another array.", code="out-shared")
        return out


def source_label(k: int, names: Sequence[str] | None) -> str:
    """Return the words for a source in an error."""
    return f"Source {names[k]!r} (index {k})" if names else f"Source index {k}"


def out_of_range(k: int, names: Sequence[str] | None, worst: float, low: float, remedy: str) -> InvalidInputError:
    """Return the error that names a source outside [low, 1]."""
    return InvalidInputError(
        f"{source_label(k, names)} reaches {worst!r}; sources must lie in [{low:g}, 1]. {remedy}", code="source-range"
    )


def split_planes(X: Any, n_sources: int | None) -> tuple[NDArray[Any] | None, list[NDArray[Any]]]:
    """Return rows (None if planes were given) and planes of `X`, checked."""
    if isinstance(X, list | tuple) and any(hasattr(p, "__array__") and np.ndim(p) > 0 for p in X):
        planes = [_number_array(plane, f"Plane {k} of X") for k, plane in enumerate(X)]
        if n_sources is not None and len(planes) != n_sources:
            raise InvalidInputError(
                f"X is a list of {len(planes)} arrays, so of {len(planes)} sources, but g has {n_sources}. "
                "If they are instances, pass np.stack(X).",
                code="sources-number",
                argument="X",
            )
        for k, plane in enumerate(planes):
            if plane.shape != planes[0].shape:
                raise InvalidInputError(
                    "All planes of X must have one shape, but "
                    f"plane 0 has {planes[0].shape} and plane {k} has {plane.shape}.",
                    code="planes-shapes",
                )
        return None, planes
    rows = _number_array(X, "X")
    if rows.ndim == 0:
        raise InvalidInputError(
            "X is a single number; it must have the sources along its last axis.", code="sources-axis", argument="X"
        )
    if rows.shape[-1] == 0 or (n_sources is not None and rows.shape[-1] != n_sources):
        expected = f"{n_sources} sources" if n_sources else "at least one source"
        remedy = " Reshape values of one source with X.reshape(-1, 1)." if n_sources == 1 else ""
        if rows.ndim > 1 and rows.shape[0] == n_sources:
            remedy = " If these are planes, pass list(X)."
        raise InvalidInputError(
            f"X has shape {rows.shape}, so {rows.shape[-1]} sources along its last axis; expected {expected}.{remedy}",
            code="sources-number",
            argument="X",
        )
    return rows, [rows[..., k] for k in range(rows.shape[-1])]


def _number_array(values: Any, label: str) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidInputError(
            f"{label} is a masked array; pass X.filled(np.nan), and masked instances become NaN.",
            code="masked-array",
            argument=label,
        )
    if is_xarray(values):  # which would be misread as a plain array
        rows = "X.transpose(..., 'source').values"
        if hasattr(values, "data_vars"):
            rows = rows.replace("X", "X.to_array('source')")
            taken = "plain rows or planes are taken here"
            raise InvalidInputError(
                f"{label} is a dataset of xarray, but {taken}; pass {rows}.", code="xarray-dataset", argument=label
            )
        if "source" in values.dims[:-1]:
            axis = values.dims.index("source")
            raise InvalidInputError(
                f"{label} has its sources along the axis {axis}; pass {rows}.", code="sources-axis", argument=label
            )
    return real_array(values, label, "sources must be real numbers. Convert it, e.g. with X.astype(float).")


def check_n_jobs(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`; None and -1 mean all cores this process may use."""
    if n_jobs is None or (is_integer(n_jobs) and n_jobs == -1):
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not is_integer(n_jobs) or n_jobs < 1:
        raise InvalidInputError(
            f"n_jobs must be None, -1 or a positive whole number, got {n_jobs!r}.",
            code="n-jobs",
            argument="n_jobs",
            value=n_jobs,
        )
    return int(n_jobs)


def run_chunks(run: Callable[[slice], Result], chunks: list[slice], n_jobs: int) -> list[Result]:
    """Return ``run(chunk)`` for every chunk, in order; threads help because kernels release the GIL."""
    if n_jobs == 1 or len(chunks) < 2:
        return [run(chunk) for chunk in chunks]
    with ThreadPoolExecutor(min(n_jobs, len(chunks))) as pool:
        return list(pool.map(run, chunks))


def in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int, under_way: int | None = None
) -> Generator[Result, None, None]:
    """Yield ``function(item)`` for every item, in order, at most `under_way` at a time; an error stops the rest."""
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(n_jobs) as pool:
        try:
            for item in items:
                checkpoint()
                waiting.append(pool.submit(copy_context().run, function, item))
                if len(waiting) >= (under_way or n_jobs + 1):
                    yield waiting.popleft().result()
            while waiting:
                checkpoint()
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
