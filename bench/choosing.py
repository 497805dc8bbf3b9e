"""Choosing by cross-validation: 16 scenes of 640 x 480 pixels and six sources, against fitting each candidate once."""

from collections.abc import Iterator

from bench.marks import Mark, at_most, in_process

CHOOSING = """
import time
import numpy as np
from bench.marks import peak_memory
from bimichi import BiMIChI, BiMIChICV
from bimichi.evaluation.split import street_scenes
scenes = [scene for scene in street_scenes(range(16), 6)]
few = [scene for scene in street_scenes(range(3), 6, 120, 160, 80)]
BiMIChICV(random_state=0).fit(few)
for objective in ("bipolar", "logistic"):
    BiMIChI(objective, additivity=2 if objective == "logistic" else None, random_state=0).fit(few)
start = time.perf_counter()
model = BiMIChICV(random_state=0).fit(scenes)
taken = time.perf_counter() - start
memory = peak_memory()
start = time.perf_counter()
for candidate in [params for params in model.cv_results_["params"] if "objective" in params]:
    BiMIChI(candidate["objective"], additivity=candidate["additivity"], random_state=0).fit(scenes)
print(taken, memory / 2**30, time.perf_counter() - start)
"""


def choosing() -> Iterator[Mark]:
    taken, memory, once = map(float, in_process(CHOOSING).split())
    yield at_most("auto, 16 scenes of 640 x 480 x 6", taken, 90, "s")
    yield at_most("  memory, with the scenes", memory, 2, "GiB")
    yield at_most("  against fitting each candidate once", taken / once, 6, "x", f"{once:.1f} s")


BENCHES = [choosing]
