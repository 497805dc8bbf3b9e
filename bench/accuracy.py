"""Accuracy on drawn streets that no method learned from, whose people are known to the pixel."""

from collections.abc import Iterator

import numpy as np

from bench.marks import Mark, at_least
from bimichi import BiMIChICV
from bimichi.evaluate.metrics import scores
from bimichi.evaluate.study import street_scenes
from bimichi.methods import MeanFusion, SVMFusion

TRAIN, TEST = range(8), range(100, 108)


def accuracy() -> Iterator[Mark]:
    """Mean average precision (AP) over eight streets, learned from the boxes of eight others."""
    learned_from, unseen = ([*street_scenes(seeds, 3, 240, 320)] for seeds in (TRAIN, TEST))
    model = BiMIChICV(random_state=0).fit(learned_from)
    truths = [np.asarray(scene.truth) for scene in unseen]

    def mean(maps: list[np.ndarray], output_range: tuple[float, float]) -> tuple[float, float]:
        found = [scores(truth, fused, output_range) for truth, fused in zip(truths, maps, strict=True)]
        return float(np.mean([one.average_precision for one in found])), float(np.mean([one.auc for one in found]))

    ap, auc = mean([model.fuse(scene.sources) for scene in unseen], model.output_range)
    sources = [mean([scene.sources[..., k] for scene in unseen], (-1.0, 1.0))[0] for k in range(3)]
    plain = MeanFusion(bipolar_input=True).fit(learned_from[0].sources.reshape(-1, 3))
    average = mean([plain.fuse(scene.sources) for scene in unseen], plain.output_range)[0]
    rows = np.concatenate([scene.sources[::8, ::8].reshape(-1, 3) for scene in learned_from])
    pixels = np.concatenate([np.asarray(scene.truth)[::8, ::8].ravel() for scene in learned_from])
    machine = SVMFusion().fit(rows, pixels)
    vectors = mean([machine.fuse(scene.sources) for scene in unseen], machine.output_range)[0]
    yield at_least("auto, 8 unseen streets", ap, 0.5, "AP", f"AUC {auc:.3f}")
    yield at_least("  more than the best source alone", ap - max(sources), 0.0, "AP", f"that has {max(sources):.3f}")
    yield at_least("  more than the mean of the sources", ap - average, 0.0, "AP", f"that has {average:.3f}")
    yield at_least("  beside support vectors, from true pixels", ap - vectors, -0.2, "AP", f"those have {vectors:.3f}")


BENCHES = [accuracy]
