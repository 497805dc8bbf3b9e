"""`bimichi doctor`: the versions of what is installed, and a self-test."""

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.markup import escape

import bimichi
from bimichi._extras import EXTRAS, import_optional, is_installed
from bimichi._progress import COMPILING, Stopwatch
from bimichi.cli.console import Output
from bimichi.errors import BimichiError
from bimichi.io.dataset import open_scenes
from bimichi.io.images import read_image
from bimichi.io.raster import open_dataset
from bimichi.io.write import write_image

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
    say.result(data, "\n".join(_report_lines(data)))
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
    extras: dict[str, dict[str, Any]] = {
        extra: {"packages": {}, "install": None} for extra in sorted({*EXTRAS.values()})
    }
    for module, extra in EXTRAS.items():
        installed = is_installed(module)
        extras[extra]["packages"][module] = _version(homes.get(module, [module])[0]) if installed else None
        if not installed:
            extras[extra]["install"] = f"pip install 'bimichi[{extra}]'"
    return extras


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


def _report_lines(data: dict[str, Any]) -> list[str]:
    cache, times, marks = data["cache"], data["seconds"], {True: "ok", False: "FAILED", None: "--"}
    held = f"{cache['kernels']} kernels, {cache['bytes'] / MEGABYTE:.1f} MB" if cache["kernels"] else "no kernels yet"
    extras = []
    for extra, state in data["extras"].items():
        installed = ", ".join(f"{module} {number}" for module, number in state["packages"].items() if number)
        extras.append(f"extra {extra}: " + (f"missing; {state['install']}" if state["install"] else installed))
    lines = [
        f"bimichi {data['bimichi']}, Python {data['python']}, {data['platform']}",
        ", ".join(f"{name} {number or 'MISSING'}" for name, number in data["packages"].items()),
        *extras,
        f"GDAL: {data['gdal'] or 'missing; GeoTIFFs cannot be read'}",
        f"browser: {data['browser'] or 'none was found; a report is one HTML file, for any browser'}",
        f"compiled kernels: {cache['folder'] or 'NOWHERE to keep them; each run compiles again'}, {held}",
        *(f"{marks[check['passed']]:>6}  {check['check']}: {check['found']}" for check in data["checks"]),
        f"Self-test in {times['self-test']:.1f} s, besides {times['compile']:.1f} s to compile or load kernels.",
        "All is well." if data["passed"] else "Something is broken; please report it with: bimichi doctor --json",
    ]
    return [escape(line) for line in lines]


SIZE = (96, 128)  # of the streets; all in all, the tests take a second besides compiling
SEED = 0


class SelfTestError(BimichiError):
    """A check of the self-test that did not hold."""


def _ensure(holds: bool, problem: str) -> None:
    if not holds:
        raise SelfTestError(problem, code="self-test")


def check_integral() -> str:
    """Compare the compiled integral with Eq. (1) of the paper in plain Python."""
    g, rng = bimichi.BiCapacity.random(3, random_state=SEED), np.random.default_rng(SEED)
    X = rng.uniform(-1, 1, (200, 3)).astype(np.float32)
    fused = bimichi.choquet(X, g)
    worst = max(abs(float(c) - _choquet(x, g)) for x, c in zip(X.tolist(), fused, strict=True))
    _ensure(worst < 1e-5, f"The integral departs from that in plain Python by {worst:.2g}.")
    return f"equal to plain Python within {worst:.1g}, on {len(X)} instances"


def _choquet(x: list[float], g: Any) -> float:
    total, reached = 0.0, 0.0
    for level in sorted({abs(value) for value in x}):
        up = [k for k, value in enumerate(x) if value >= level]
        down = [k for k, value in enumerate(x) if value <= -level]
        total, reached = total + (level - reached) * g[up, down], level
    return total


def check_learning() -> str:
    """Learn from the boxes of a drawn street; fuse another one, whose people are known to the pixel."""
    from bimichi.datasets import street
    from bimichi.evaluate.metrics import scores

    model, next_one = _trained_model(), street(*SIZE, random_state=SEED + 1, n_segments=80)
    solution, truth = model.solution_, np.asarray(next_one.truth)
    gap = solution.objective_value - (solution.lower_bound or 0.0)
    _ensure(abs(gap) < 1e-6 * solution.objective_value, f"J is {gap:.2g} above its lower bound; it should be on it.")
    fused = scores(truth, model.fuse(next_one.sources), model.output_range).auc
    alone = max(scores(truth, plane, (-1.0, 1.0)).auc for plane in np.moveaxis(np.asarray(next_one.sources), -1, 0))
    _ensure(fused > max(alone, 0.97), f"AUC {fused:.3f} on an unseen street; the best source alone has {alone:.3f}.")
    return f"AUC {fused:.3f} on an unseen street, {alone:.3f} for the best source alone"


def _trained_model() -> "bimichi.BiMIChI":
    from bimichi.datasets import street

    scene = street(*SIZE, random_state=SEED, n_segments=80)
    return bimichi.BiMIChI(source_names=scene.source_names, random_state=SEED).fit(scene.bags())


def check_model_file() -> str:
    """Save a model, load it, and fuse with both."""
    from bimichi.datasets import street

    model, sources = _trained_model(), street(*SIZE, random_state=SEED + 1).sources
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save(path)
        same = np.array_equal(bimichi.FusionRule.load(path).fuse(sources), model.fuse(sources))
    _ensure(same, "A model that was saved and loaded fuses differently.")
    return "a loaded model fuses bit for bit as the one that was saved"


def check_images() -> str:
    """Write and read images in each of the usual types."""
    rng = np.random.default_rng(SEED)
    images: dict[str, NDArray[Any]] = {
        "image.png": rng.integers(0, 256, (7, 5, 3)).astype(np.uint8),
        "image16.png": rng.integers(0, 65536, (7, 5)).astype(np.uint16),
        "image.tif": rng.normal(size=(7, 5)).astype(np.float32),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, image in images.items():
            write_image(Path(folder) / name, image)
            same = np.array_equal(read_image(Path(folder) / name), image)
            _ensure(same, f"{name}, of {image.dtype}, is read differently from what was written.")
    return "PNG and TIFF are read as they were written"


def check_geotiff() -> str:
    """Write a GeoTIFF with nodata, and open it as a scene."""
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    place = import_optional("affine").Affine(10, 0, 500_000, 0, -10, 4_600_000)
    form = {"driver": "GTiff", "height": 3, "width": 4, "count": 1, "dtype": "float32", "crs": "EPSG:32617"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grid.tif"
        with open_dataset(path, "w", **form, transform=place, nodata=0.0) as file:
            file.write(values, 1)
        (opened,) = open_scenes([path])
        read = opened.read()[0]
    expected = np.where(values == 0, np.nan, values)
    _ensure(np.array_equal(np.squeeze(read), expected, equal_nan=True), "A GeoTIFF with nodata is read wrongly.")
    return "a GeoTIFF is read with its nodata"


CHECKS: dict[str, tuple[Callable[[], str], tuple[str, ...]]] = {
    "integral": (check_integral, ()),
    "learning": (check_learning, ()),
    "model files": (check_model_file, ()),
    "images": (check_images, ("skimage",)),
    "GeoTIFF": (check_geotiff, ("rasterio",)),
}
"""Each check, and the modules of extras that it needs."""


def self_test() -> list[dict[str, Any]]:
    """Run all checks; return the name of each, whether it held (None if left out), and the outcome."""
    results: list[dict[str, Any]] = []
    for name, (check, needs) in CHECKS.items():
        missing = [module for module in needs if not is_installed(module)]
        if missing:
            results.append({"check": name, "passed": None, "found": f"left out: {missing[0]} is not installed"})
            continue
        try:
            results.append({"check": name, "passed": True, "found": check()})
        except Exception as error:  # whatever is broken here, the other checks go on
            problem = str(error) if isinstance(error, SelfTestError) else f"{type(error).__name__}: {error}"
            results.append({"check": name, "passed": False, "found": problem})
    return results
