"""The reports of scenes, one after another, as `bimichi report` writes them."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bimichi.imaging.collecting import SceneCollection, SceneFiles

if TYPE_CHECKING:
    from bimichi import Comparison, Scene
    from bimichi.report import IndexEntry
    from bimichi.rule import FusionRule


@dataclass(frozen=True)
class SceneReports:
    """What the reports of all scenes share: the rules, of which the first is reported, and what is known by scene."""

    rules: "Mapping[Path, FusionRule]"
    scenes: SceneCollection
    masks: Mapping[str, Path]
    target: str | None
    boxes: Mapping[str, Any]
    title: str | None
    n_jobs: int | None

    def attempt(self, scene: SceneFiles, page: Path) -> "IndexEntry":
        """Write the report of one of many scenes; what went wrong is in the entry."""
        from bimichi.report import IndexEntry

        try:
            return self.write(scene, page)
        except ImportError:
            raise  # without that package, no scene can be reported
        except Exception as error:  # whatever it is, the other scenes can still be reported
            return IndexEntry(scene.name, note=str(error) or type(error).__name__)

    def write(self, scene: SceneFiles, page: Path) -> "IndexEntry":
        """Write the report of one scene; return what the index shows of it."""
        from bimichi.evaluation.metrics import scores
        from bimichi.report import IndexEntry, write_report
        from bimichi.report.thumbnails import thumbnail

        read = {file: self._read(rule, scene) for file, rule in self.rules.items()}
        model = next(iter(self.rules))
        fused = self.rules[model].fuse(read[model].sources, self.n_jobs)
        note = self._no_scores(read[model], fused)
        if note:
            read = {file: replace(one, truth=None) for file, one in read.items()}
        truth = read[model].truth
        write_report(
            page,
            self.rules[model],
            read[model],
            boxes=self.boxes.get(scene.name),
            comparison=_compared(self.rules, read) if len(read) > 1 and truth is not None else None,
            title=self.title or (scene.name if self.scenes.many else "Fusion report"),
            notes={"Model file": _short(model), "Image files": ", ".join(map(_short, scene.files))},
            n_jobs=self.n_jobs,
        )
        found = None
        if truth is not None:
            found = scores(truth, fused, self.rules[model].output_range, _unscored(read[model], fused))
        height, width = fused.shape
        return IndexEntry(scene.name, page, thumbnail(fused), (height, width), found, note)

    def _read(self, rule: "FusionRule", scene: SceneFiles) -> "Scene":
        """Read the sources of one scene as this rule takes them, and its truth."""
        import numpy as np

        from bimichi import Scene
        from bimichi.imaging.fusing import make_sources
        from bimichi.imaging.labelling import with_truth

        planes = make_sources(rule, self.scenes.open(scene.name))
        read = Scene(np.stack(planes, axis=-1), scene.name, rule.source_names)
        mask = self.masks.get(scene.name)
        return read if mask is None else with_truth(read, mask, self.target)

    def _no_scores(self, scene: "Scene", fused: Any) -> str:
        """Say why a scene cannot be scored though truth was asked for; empty if it can."""
        if not self.masks:
            return ""
        if scene.truth is None:
            return "no file of truth."
        counted = scene.truth[~_unscored(scene, fused)]
        if counted.size and counted.all():
            return "all pixels of the truth are targets."
        return "" if counted.any() else "the truth has no targets."


def _unscored(scene: "Scene", fused: Any) -> Any:
    """Return the pixels without a fused value, or whose truth is unknown."""
    import numpy as np

    return np.isnan(fused) if scene.ignore is None else np.isnan(fused) | scene.ignore


def _short(path: Path) -> str:
    """Return the name of a file with that of its folder."""
    return "/".join(path.parts[-2:])


def _compared(rules: "Mapping[Path, FusionRule]", scenes: "Mapping[Path, Scene]") -> "Comparison":
    """Score rules, each on the scene as it takes it."""
    import numpy as np

    from bimichi import Comparison
    from bimichi.evaluation.comparison import Result
    from bimichi.evaluation.metrics import scores

    results = []
    for file, rule in rules.items():
        start = time.perf_counter()
        fused = rule.fuse(scenes[file].sources)
        taken = time.perf_counter() - start
        truth = np.asarray(scenes[file].truth)  # which --compare asks for
        found = scores(truth, fused, rule.output_range, _unscored(scenes[file], fused))
        results.append(Result(_short(file), rule, [found], fuse_seconds=taken))
    return Comparison(results)
