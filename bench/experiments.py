"""The experiments on drawn streets: all methods on one scene, and a study over 24."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.marks import Mark, at_most
from bimichi.paper import run_pedestrian, run_study, split_scenes, street_scenes


def pedestrian() -> Iterator[Mark]:
    """From the drawing of the street to the last file."""
    run_pedestrian(street_scenes([0], height=96, width=128)[0])  # compiles
    start = time.perf_counter()
    result = run_pedestrian(street_scenes([0])[0])
    with tempfile.TemporaryDirectory() as folder:
        result.write(Path(folder))
    taken = time.perf_counter() - start
    ran = [one for one in result.comparison.results if one.scores]
    slow = sorted(ran, key=lambda one: -one.fit_seconds - one.fuse_seconds)
    detail = ", ".join(f"{one.name} {one.fit_seconds + one.fuse_seconds:.0f} s" for one in slow[:4])
    yield at_most("pedestrian experiment, all methods, 640 x 480", taken, 60, "s", detail)


def study() -> Iterator[Mark]:
    """From the drawing of the streets to the last row: six rows of Bi-MIChI, six sources."""
    small = list(street_scenes(range(2), 6, 96, 128))
    run_study(small[:1], small[1:], rows="bi-michi")  # compiles
    start = time.perf_counter()
    train, test = split_scenes(street_scenes(range(24), 6), 16, 8)
    drawn = time.perf_counter() - start
    result = run_study(train, test, rows="bi-michi")
    taken = time.perf_counter() - start
    rows = ", ".join(f"{row.name.removeprefix('Bi-MIChI ')} {row.fit_seconds:.0f} s" for row in result.rows)
    yield at_most("study, Bi-MIChI rows, 16 + 8 streets, m=6", taken, 180, "s", f"drawing {drawn:.0f} s, {rows}")


BENCHES = [pedestrian, study]
