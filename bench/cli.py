"""The command line: what `bimichi fuse` takes beyond reading and writing, on 20 megapixels of three bands."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.marks import Mark, at_most, in_process
from bimichi import BiMIChI
from bimichi.io import write_image

FUSE = """
import sys
from bench.marks import peak_memory
from bimichi.cli.app import app
app(["fuse", *{files!r}, "-o", {output!r}, "--quiet"], standalone_mode=False)
print(peak_memory())
"""

READ_AND_WRITE = """
import numpy as np
from bimichi.io import read_image, write_image
images = [read_image(file) for file in {files!r}]
write_image({output!r}, np.zeros(images[0].shape, np.float32))
"""


def timed(script: str, **names: object) -> tuple[float, str]:
    start = time.perf_counter()
    printed = in_process(script.format(**names))
    return time.perf_counter() - start, printed


def fuse() -> Iterator[Mark]:
    """Whole processes in turns, so that both see the same machine; the memory of one on tiny images is taken off."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(50), 20)
    model = BiMIChI(source_names=["a", "b", "c"], random_state=0).fit(rng.uniform(-1, 1, (1000, 3)), ids % 2, ids)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save(folder / "model.json")
        for kind in (np.uint8, np.float32):
            sources = {}
            for size, shape in (("tiny", (16, 16)), ("large", (4000, 5000))):
                (folder / size).mkdir(exist_ok=True)
                sources[size] = [str(folder / size / f"{source}.tif") for source in "abc"]
                for file in sources[size]:
                    write_image(file, rng.integers(0, 2, shape).astype(kind))
            output, command = str(folder / "fused.tif"), [str(folder / "model.json")]
            floor = int(timed(FUSE, files=command + sources["tiny"], output=output)[1])
            rounds = [
                (
                    timed(READ_AND_WRITE, files=sources["large"], output=output)[0],
                    *timed(FUSE, files=command + sources["large"], output=output),
                )
                for _ in range(4)
            ]
            plain, ours = min(taken for taken, _, _ in rounds), min(taken for _, taken, _ in rounds)
            what = f"bimichi fuse, 3 x 20 megapixels of {np.dtype(kind)}"
            yield at_most(f"{what}, beyond reading and writing", ours - plain, 1, "s", f"{ours:.2f} s in all")
            peak, given = max(int(memory) for _, _, memory in rounds), 3 * 20_000_000 * np.dtype(kind).itemsize
            yield at_most(
                f"{what}, peak memory", (peak - floor) / given, 3, "x input", f"{peak / 2**20:.0f} MiB in all"
            )


BENCHES = [fuse]
