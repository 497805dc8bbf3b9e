"""Reports of the scenes of a collection: each is read as the rules take it, fused, scored and written."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi._progress import Stopwatch
from bimichi.evaluate.comparison import Comparison, Result
from bimichi.evaluate.metrics import scores
from bimichi.fuse.images import make_sources
from bimichi.io.dataset import SceneCollection, SceneFiles
from bimichi.io.labelled import read_scene_mask, with_truth
from bimichi.report.write import IndexEntry, thumbnail, write_report
from bimichi.rule import FusionRule
from bimichi.scenes.scene import Scene


@dataclass(frozen=True)
class SceneReports:
    """Reports of many scenes: the rules, of which the first is reported, and masks and boxes by scene."""

    rules: Mapping[Path, FusionRule]
    scenes: SceneCollection
    masks: Mapping[str, Path]
    target: str | None
    boxes: Mapping[str, Any]
    title: str | None
    n_jobs: int | None

    def attempt(self, scene: SceneFiles, page: Path) -> IndexEntry:
        """Write the report of one of many scenes; if that fails, the entry holds the reason."""
        try:
            return self.write(scene, page)
        except ImportError:
            raise  # without that package, no scene can be reported
        except Exception as error:  # whatever it is, the other scenes can still be reported
            return IndexEntry(scene.name, note=str(error) or type(error).__name__)

    def write(self, scene: SceneFiles, page: Path) -> IndexEntry:
        """Write the report of one scene; return its entry for the index."""
        read, fused, seconds = {}, {}, {}
        for file, rule in self.rules.items():
            read[file], watch = self._read(rule, scene), Stopwatch()
            fused[file], seconds[file] = rule.fuse(read[file].sources, self.n_jobs), watch.seconds
        model = next(iter(self.rules))
        note = self._no_scores(read[model], fused[model])
        results: list[Result] = []
        for file, rule in self.rules.items() if self.masks and not note else ():
            unscored = _unscored(read[file], fused[file])
            score = scores(np.asarray(read[file].truth), fused[file], rule.output_range, unscored)
            results.append(Result(_short_path(file), rule, [score], fuse_seconds=seconds[file]))
        write_report(
            page,
            self.rules[model],
            replace(read[model], truth=None) if note else read[model],
            boxes=self.boxes.get(scene.name),
            comparison=Comparison(results) if len(results) > 1 else None,
            title=self.title or (scene.name if self.scenes.many else "Fusion report"),
            notes={"Model file": _short_path(model), "Image files": ", ".join(map(_short_path, scene.files))},
            n_jobs=self.n_jobs,
        )
        height, width = fused[model].shape
        reached = results[0].scores[0] if results else None
        return IndexEntry(scene.name, page, thumbnail(fused[model]), (height, width), reached, note)

    def _read(self, rule: FusionRule, scene: SceneFiles) -> Scene:
        """Read the sources of one scene as this rule takes them, and its truth."""
        planes = make_sources(rule, self.scenes.open(scene.name))
        read = Scene(np.stack(planes, axis=-1), scene.name, rule.source_names)
        mask = self.masks.get(scene.name)
        return read if mask is None else with_truth(read, read_scene_mask(mask, read), self.target)

    def _no_scores(self, scene: Scene, fused: NDArray[Any]) -> str:
        """Return why a scene cannot be scored though truth was asked for; empty if it can."""
        if not self.masks:
            return ""
        if scene.truth is None:
            return "no file of truth."
        counted = scene.truth[~_unscored(scene, fused)]
        if counted.size and counted.all():
            return "all pixels of the truth are targets."
        return "" if counted.any() else "the truth has no targets."


def _unscored(scene: Scene, fused: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the pixels without a fused value, or whose truth is unknown."""
    missing: NDArray[np.bool_] = np.isnan(fused)
    return missing if scene.ignore is None else missing | scene.ignore


def _short_path(path: Path) -> str:
    return "/".join(path.parts[-2:])
