"""The studio without its page: from labels to the model and its map, as after every edit."""

import tempfile
import time
from pathlib import Path
from statistics import median

from bench.marks import Mark, at_most
from bimichi.datasets import street
from bimichi.io import write_image
from bimichi.studio.learning import Learner
from bimichi.studio.open import Options, open_workspace
from bimichi.studio.workspace import Settings, Task

RECIPES = ("gamma_correction", "adaptive_threshold", "equalize", "local_contrast", "edge_strength", "edge_strength")
FOLDERS = ("thermal", "colour", "colour", "thermal", "colour", "thermal")
EDITS = 7


def _labelled(folder: Path, n_sources: int, n_scenes: int) -> tuple[Learner, list[list[object]]]:
    """Return a learner of drawn streets, and the boxes of their people as the page draws them."""
    drawn: list[list[object]] = []
    for seed in range(n_scenes):
        scene = street(480, 640, random_state=seed, n_segments=50)
        for kind, image in (("thermal", scene.thermal), ("colour", scene.rgb)):
            assert image is not None  # drawn scenes have both
            (folder / kind).mkdir(exist_ok=True)
            write_image(folder / kind / f"{seed}.png", image)
        boxes = enumerate(scene.boxes.tolist())
        drawn.append([_shape(f"{seed}-{k}", *box) for k, box in boxes])
    paths = [str(folder / name) for name in FOLDERS[:n_sources]]
    names = [f"source {k + 1}" for k in range(n_sources)]
    work = open_workspace(paths, Options(names=names, recipes=RECIPES[:n_sources]))
    assert work.store is not None
    for k, shapes in enumerate(drawn):
        work.draw(k, 1, shapes)
    learner = Learner(work.store)
    return learner, [list(one.shapes) for one in work.labels]


def _shape(name: str, x: float, y: float, w: float, h: float) -> dict[str, object]:
    return {"id": name, "kind": "box", "label": "target", "points": [[x, y], [x + w, y + h]]}


def _edit_seconds(n_sources: int, n_scenes: int) -> float:
    """Median time of the fit and the map of the edited scene after one label was added or removed."""
    with tempfile.TemporaryDirectory() as folder:
        learner, drawn = _labelled(Path(folder), n_sources, n_scenes)
        taken = []
        for edit in range(EDITS + 1):
            shapes = [drawn[0][: len(drawn[0]) - edit % 2], *drawn[1:]]
            task = Task(Settings(), tuple((k, edit, tuple(one)) for k, one in enumerate(shapes)))  # type: ignore[arg-type]
            start = time.perf_counter()
            learner.fused(learner.fit(task), 0)
            taken.append(time.perf_counter() - start)
    return median(taken[1:])


def studio_fits() -> list[Mark]:
    cases = ((3, 1, 0.25), (6, 1, 0.6), (3, 10, 1.2))
    return [
        at_most(f"studio: edit to map, {m} sources, {n} labelled scene{'s' * (n > 1)}", _edit_seconds(m, n), limit, "s")
        for m, n, limit in cases
    ]


BENCHES = [studio_fits]
