"""Kernels compiled, and kept on disk so that only the first run after a change waits for the compiler.

numba's own ``cache=True`` notices a change in the file of a kernel, but not in the files of kernels that it calls, of
whose code it holds a copy. Here compiled code is kept in a folder named after the content of all files with kernels, so
that stale code cannot be found.
"""

import hashlib
import os
import pickle
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Any

import numba
import numpy as np
from numba.core import event
from numba.core.caching import NullCache
from numba.core.ccallback import CFunc
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from bimichi._files import atomic_write
from bimichi._progress import COMPILE_NOTICE, COMPILING
from bimichi._version import __version__
from bimichi.errors import BimichiError

PACKAGE = Path(__file__).parent
KERNELS = (b"numba", b"_jit")
"""Words of which a file with kernels has one."""


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function when it is first called, without the GIL; ``@jit``, or ``@jit(...)`` with options."""
    if function is None:
        return lambda function: jit(function, **options)
    options = {"nogil": True, "no_cfunc_wrapper": True} | options  # which callers in C would need
    kernel: Any = numba.njit(**options)(function)
    if hasattr(kernel, "py_func"):  # else NUMBA_DISABLE_JIT is set
        kernel._cache = KernelCache(function, kernel.targetoptions)
    return kernel


def function_pointer(function: Callable[..., Any], signature: Any, **options: Any) -> Any:
    """Compile a function at once to a pointer that kernels take as an argument, whichever function it is.

    Parameters
    ----------
    function : callable
        What is compiled. Only functions of this package are kept on disk.
    signature : numba signature
        Its types.
    **options : Any
        As `numba.cfunc` takes them, e.g. `fastmath`.
    """
    pointer: Any = CFunc(function, (signature.args, signature.return_type), locals={}, options=options)
    pointer._cache = KernelCache(function, {"pointer": True, **options})
    with COMPILING.running():
        pointer.compile()
    return pointer


class _CompileListener(event.Listener):
    """Times all compiling, and reports that of this package's kernels as users call them, not of those inside."""

    def on_start(self, event: Any) -> None:
        outermost, kernel = COMPILING.enter(), event.data["dispatcher"].py_func
        if outermost and kernel.__module__.partition(".")[0] == PACKAGE.name:
            COMPILE_NOTICE.begin(kernel.__name__)

    def on_end(self, event: Any) -> None:
        if COMPILING.leave():
            COMPILE_NOTICE.end()


event.register("numba:compile", _CompileListener())


class KernelCache(NullCache):
    """Compiled code of one kernel on disk, one file per signature and processor; whatever fails is a miss."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._function, self._options = function, options

    @property
    def cache_path(self) -> str | None:
        """The folder, for numba's statistics."""
        folder = cache_folder()
        return None if folder is None else str(folder)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the compiled code for a signature, None if there is none that is complete."""
        with COMPILING.running():
            return self._load(signature, target_context)

    def _load(self, signature: Any, target_context: Any) -> Any:
        target_context.refresh()
        path = self._path(signature)
        try:
            content = b"" if path is None else path.read_bytes()
        except OSError:
            return None
        digest, data = content[:32], content[32:]
        whole = hashlib.sha256(data).digest() == digest
        return CompileResult._rebuild(target_context, *pickle.loads(data)) if whole else None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep the compiled code for a signature if there is a place to keep it."""
        path = self._path(signature)
        if path is None or compiled.library.has_dynamic_globals:  # such as addresses, which are of this process
            return
        data = dumps(compiled._reduce())
        with suppress(BimichiError):  # a full disk is no reason not to go on
            atomic_write(path, lambda file: file.write(hashlib.sha256(data).digest() + data))

    def _path(self, signature: Any) -> Path | None:
        folder = cache_folder()
        code = None if folder is None else _frozen(self._function, set())
        if folder is None or code is None:
            return None
        options = [
            (name, sorted(value) if isinstance(value, set | frozenset) else value)  # the same text in every process
            for name, value in sorted(self._options.items())
        ]
        processor = cpu_target.target_context.codegen().magic_tuple()
        key = repr((str(signature), options, processor, sys.implementation.cache_tag, numba.__version__, code))
        return folder / f"{self._function.__qualname__}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.bin"


def _frozen(function: Any, seen: set[int]) -> list[str] | None:
    """Return all that the compiler copies of a kernel: its code, that of kernels it calls, and constants they read.

    Files may have changed since they were imported, and constants may come from files without kernels. None if it calls
    a kernel of another package, whose changes are not noticed.
    """
    if function.__module__.partition(".")[0] != PACKAGE.name:
        return None
    if id(function) in seen:
        return []
    seen.add(id(function))
    names: set[str] = set()
    parts = [f"{function.__module__}.{function.__qualname__}", *_code(function.__code__, names)]
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    for value in [function.__globals__[name] for name in sorted(names) if name in function.__globals__] + cells:
        if hasattr(value, "py_func"):
            called = _frozen(value.py_func, seen)
            if called is None:
                return None
            parts += called
        elif isinstance(value, np.ndarray):
            parts.append(f"{value.dtype}{value.shape}{value.tobytes()!r}")
        elif isinstance(value, bool | int | float | complex | str | bytes | tuple | np.generic | None):
            parts.append(repr(value))
    return parts


def _code(code: CodeType, names: set[str]) -> Iterator[str]:
    """Yield the instructions and constants of a function and those inside it; add the names it uses to `names`."""
    names.update(code.co_names)
    yield repr((code.co_code, code.co_names, code.co_varnames))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant, names)
        else:
            yield repr(constant)


@lru_cache(maxsize=1)
def cache_folder() -> Path | None:
    """Return the folder of compiled code for the kernels as they are now, or None; older ones beside it are removed."""
    sources = hashlib.sha256(__version__.encode())
    for path in sorted(PACKAGE.rglob("*.py")):
        content = path.read_bytes()
        if any(sign in content for sign in KERNELS):
            sources.update(f"\n{path.relative_to(PACKAGE)}\n{len(content)}\n".encode() + content)
    name = sources.hexdigest()[:16]
    for place in _places():
        folder = place / name
        with suppress(OSError):
            if not folder.is_dir():
                folder.mkdir(parents=True, mode=0o700)
                for old in place.iterdir():
                    if old != folder:
                        shutil.rmtree(old, ignore_errors=True)
            # Compiled code is run: it must be nobody else's.
            if os.access(folder, os.W_OK) and (not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()):
                return folder
    return None


def _places() -> Iterator[Path]:
    """Yield places for folders of compiled code, best first; outside the package, there is one per installation."""
    mine = f"{__version__}-{hashlib.sha256(os.fsencode(PACKAGE)).hexdigest()[:16]}"
    if os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(os.environ["NUMBA_CACHE_DIR"]) / "bimichi" / mine
    yield PACKAGE / "__pycache__" / "kernels"
    from platformdirs import user_cache_path  # not needed where the package's own folder can be written to

    caches = user_cache_path("bimichi", appauthor=False)
    if caches.is_absolute():  # else there is no home
        yield caches / mine
