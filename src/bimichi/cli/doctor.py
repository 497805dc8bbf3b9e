"""`bimichi doctor`: what is installed, and whether it works."""

import os
import platform
import shutil
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import Any

import typer
from rich.markup import escape

import bimichi
from bimichi._clock import COMPILING, Stopwatch
from bimichi._extras import EXTRAS, is_installed
from bimichi.cli.console import Output

CORE = ("numpy", "scipy", "numba", "scikit-learn", "clarabel")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge", "firefox")
MEGABYTE = 1e6


def doctor(*, say: Output) -> None:
    """Print versions, extras and the state of the kernel cache, and run a self-test of some ten seconds.

    The self-test draws a street, learns from its boxes, fuses another street, saves and loads the model, and writes and
    reads images; the results are compared with what is known. If a check fails, the exit code is 1.

    ```
    bimichi doctor
    bimichi doctor --json > doctor.json    # to attach to a bug report
    ```
    """
    from bimichi.cli.self_test import self_test

    data: dict[str, Any] = {
        "bimichi": bimichi.__version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in CORE},
        "extras": _extras(),
        "gdal": _gdal(),
        "browser": os.environ.get("BIMICHI_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None),
    }
    say.note("Self-test: draws, learns, fuses, saves and reads; some ten seconds on first use ...")
    compiled, watch = COMPILING.seconds, Stopwatch()
    data["checks"] = self_test()
    data["cache"] = _cache()
    data["seconds"] = {"self-test": watch.seconds, "compile": COMPILING.seconds - compiled}
    data["passed"] = all(check["passed"] is not False for check in data["checks"])
    say.result(data, "\n".join(_lines(data)))
    if not data["passed"]:
        raise typer.Exit(1)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _extras() -> dict[str, dict[str, Any]]:
    """Return for each extra the versions of its packages, and the pip command if one is missing."""
    homes = packages_distributions()
    found: dict[str, dict[str, Any]] = {
        extra: {"packages": {}, "install": None} for extra in sorted({*EXTRAS.values()})
    }
    for module, extra in EXTRAS.items():
        installed = is_installed(module)
        found[extra]["packages"][module] = _version(homes.get(module, [module])[0]) if installed else None
        if not installed:
            found[extra]["install"] = f"pip install 'bimichi[{extra}]'"
    return found


def _gdal() -> str | None:
    try:
        import rasterio
    except ImportError:  # not installed, or a library that it needs is missing
        return None
    return str(rasterio.__gdal_version__)


def _cache() -> dict[str, Any]:
    from bimichi._jit import cache_folder

    folder = cache_folder()
    files = list(folder.glob("*.bin")) if folder else []
    return {"folder": folder, "kernels": len(files), "bytes": sum(file.stat().st_size for file in files)}


def _lines(data: dict[str, Any]) -> list[str]:
    cache, times, marks = data["cache"], data["seconds"], {True: "ok", False: "FAILED", None: "--"}
    held = f"{cache['kernels']} kernels, {cache['bytes'] / MEGABYTE:.1f} MB" if cache["kernels"] else "no kernels yet"
    extras = []
    for extra, found in data["extras"].items():
        has = ", ".join(f"{module} {known}" for module, known in found["packages"].items() if known)
        extras.append(f"extra {extra}: " + (f"missing; {found['install']}" if found["install"] else has))
    lines = [
        f"bimichi {data['bimichi']}, Python {data['python']}, {data['platform']}",
        ", ".join(f"{name} {found or 'MISSING'}" for name, found in data["packages"].items()),
        *extras,
        f"GDAL: {data['gdal'] or 'missing; GeoTIFFs cannot be read'}",
        f"browser: {data['browser'] or 'none was found; a report is one HTML file, for any browser'}",
        f"compiled kernels: {cache['folder'] or 'NOWHERE to keep them; each run compiles again'}, {held}",
        *(f"{marks[check['passed']]:>6}  {check['check']}: {check['found']}" for check in data["checks"]),
        f"Self-test in {times['self-test']:.1f} s, besides {times['compile']:.1f} s to compile or load kernels.",
        "All is well." if data["passed"] else "Something is broken; please report it with: bimichi doctor --json",
    ]
    return [escape(line) for line in lines]
