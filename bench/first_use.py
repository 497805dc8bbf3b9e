"""The first use of an installation, when nothing is compiled; and what the package takes on disk."""

import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from bench.marks import Mark, at_most, in_process

FIRST = """
import os, time
os.environ["NUMBA_CACHE_DIR"] = {folder!r}
import numpy as np
from bimichi import BiCapacity, BiMIChI, BiMIChICV, choquet
from bimichi._progress import COMPILING
from bimichi.datasets import street
scenes = [street(120, 160, random_state=k) for k in range(3)]
cpu = time.process_time()
{work}
print(time.process_time() - cpu, COMPILING.seconds)
"""

WORKS = {
    "first fused map": ("choquet(scenes[0].sources, BiCapacity.additive([0.5, 0.3, 0.2]))", 5),
    "first fit": ("BiMIChI(random_state=0).fit(scenes[0].bags())", 10),
    "first choice among settings (auto)": ("BiMIChICV(random_state=0).fit(scenes)", 20),
}


def first_use() -> Iterator[Mark]:
    """Seconds of processor time, since compiling takes one core."""
    for what, (work, limit) in WORKS.items():
        with tempfile.TemporaryDirectory() as folder:
            taken, compiled = map(float, in_process(FIRST.format(folder=folder, work=work)).split())
        detail = f"processor time; compiling {compiled:.1f} s by the clock"
        yield at_most(f"{what}, nothing compiled", taken, limit, "s", detail)


def package() -> Iterator[Mark]:
    """The wheel holds the package as it is, compressed."""
    root = Path(__file__).parent.parent / "src"
    files = [path for path in (root / "bimichi").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "package.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in files:
                packed.write(path, path.relative_to(root))
        size = archive.stat().st_size / 1e6
    whole = sum(path.stat().st_size for path in files) / 1e6
    yield at_most("the package, compressed, without its dependencies", size, 2, "MB", f"{whole:.1f} MB installed")


BENCHES = [first_use, package]
