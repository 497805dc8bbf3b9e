"""Choosing by cross-validation: 16 scenes of 640 x 480 pixels and six sources; learning by the log-loss, and rarity.

Seconds are those of the clock; those of all cores together stand beside them, since they depend less on what else runs.
One fit, to which choosing is compared, is the mean over the candidates of learning one of them from all scenes.
"""

from collections.abc import Iterator

from bench.marks import Mark, at_most, in_process

SCENES = """
import time
from bench.marks import peak_memory
from bimichi import BiMIChI, BiMIChICV
from bimichi.evaluate.study import street_scenes
scenes = [scene for scene in street_scenes(range(16), 6)]
few = [scene for scene in street_scenes(range(3), 6, 120, 160, 80)]

def timed(model):
    start, used = time.perf_counter(), time.process_time()
    model.fit(scenes)
    return time.perf_counter() - start, time.process_time() - used
"""

CHOOSING = f"""{SCENES}
model = BiMIChICV(random_state=0).fit(few)
params = [one for one in model.cv_results_["params"] if "objective" in one]
kinds = dict.fromkeys((one["objective"], one["additivity"]) for one in params)
for objective, additivity in kinds:
    BiMIChI(objective, additivity=additivity, random_state=0).fit(few)
print(*timed(BiMIChICV(random_state=0)), peak_memory() / 2**30)
cost = {{kind: timed(BiMIChI(kind[0], additivity=kind[1], random_state=0)) for kind in kinds}}
each = [cost[one["objective"], one["additivity"]] for one in params]
print(*(sum(column) / len(each) for column in zip(*each)))
"""

LOGISTIC = f"""{SCENES}
for additivity in (1, 2):
    BiMIChI("logistic", additivity=additivity).fit(few)
    print(*timed(BiMIChI("logistic", additivity=additivity)))
"""

RARITY = """
import numpy as np
from bench.marks import seconds
from bimichi.sources import rarity
image = np.random.default_rng(0).normal(size=(480, 640)).astype(np.float32)
print(seconds(lambda: rarity(image)))
"""


def choosing() -> Iterator[Mark]:
    first, second = in_process(CHOOSING).splitlines()
    (taken, used, memory), (once, once_used) = (map(float, line.split()) for line in (first, second))
    yield at_most("auto, 16 scenes of 640 x 480 x 6", taken, 90, "s", f"{used:.1f} s of all cores")
    yield at_most("  memory, with the scenes", memory, 2, "GiB")
    yield at_most(
        "  against one fit, all cores", used / once_used, 6, "x", f"{once:.1f} s, {once_used:.1f} of all cores"
    )


def log_loss() -> Iterator[Mark]:
    for additivity, line in enumerate(in_process(LOGISTIC).splitlines(), 1):
        taken, used = map(float, line.split())
        yield at_most(f"logistic, {additivity}-additive, these scenes", taken, 3, "s", f"{used:.1f} s of all cores")
    yield at_most("rarity, one band of 640 x 480", float(in_process(RARITY)), 0.1, "s")


BENCHES = [choosing, log_loss]
