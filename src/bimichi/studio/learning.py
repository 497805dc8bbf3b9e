"""From what is drawn to a model: the fit that `bimichi train` would make, quick enough to follow every edit."""

import struct
import sys
import time
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bimichi._files import plain
from bimichi.errors import InvalidInputError
from bimichi.fit.candidates import Candidate
from bimichi.fit.choose import Contender, Selection, cross_validate
from bimichi.fit.direction import spread
from bimichi.fit.engine import How
from bimichi.measures.base import TOLERANCE
from bimichi.methods.cross_validated import BiMIChICV, scene_rule
from bimichi.report.contents import MISSING_CODE, STEPS
from bimichi.rule import FusionRule
from bimichi.scenes.dataset import Dataset
from bimichi.scenes.labels import BagCounts, bag_scene
from bimichi.scenes.scene import Scene
from bimichi.studio.labels import Shape, Shapes, annotations_of, collected_warnings
from bimichi.studio.scenes import SceneStore
from bimichi.studio.workspace import Settings, Task

if TYPE_CHECKING:
    from bimichi.report.inputs import Material

FOLDS = 5


@dataclass(eq=False)
class Trained:
    """A model, and what is known about it; more is added after the map has been shown."""

    number: int
    task: Task
    rule: FusionRule
    status: str
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    sentences: list[str] | None = None
    score: dict[str, Any] | None = None
    auto: dict[str, Any] | None = None
    _fused: dict[int, NDArray[np.uint16]] = field(default_factory=dict)

    @property
    def objective_value(self) -> float | None:
        """J; None where the model is not the minimum of an objective."""
        value = None if self.rule.training is None else self.rule.training.objective_value
        return None if value is None or np.isnan(value) else value


class Learner:
    """Learns from scenes of a store; what labels do not change is kept, and what those of one scene do, by scene.

    One thread at a time may call it.
    """

    def __init__(self, store: SceneStore, n_jobs: int | None = None) -> None:
        self.store, self._n_jobs, self.number = store, n_jobs, 0
        self._data = Dataset().keeping(sys.maxsize)
        self._labelled: dict[int, tuple[Any, BagCounts]] = {}  # how each scene was labelled when it was read

    def fit(self, task: Task) -> Trained:
        """Learn the model of a task."""
        start = time.perf_counter()
        data = self._selected(task)
        read = time.perf_counter()
        model = task.settings.model(self.store.source_names).set_params(n_jobs=self._n_jobs)
        notes = self._fitted(model, data)
        end = time.perf_counter()
        rule = self._rule(model, task)
        self.number += 1
        seconds = {"labels": read - start, "fit": end - read}
        return Trained(self.number, task, rule, model.solution_.status, seconds, notes)

    def auto(self, task: Task) -> Trained:
        """Compare settings by cross-validation, as `bimichi train` does by default, and learn the best."""
        start = time.perf_counter()
        kept = {"rest": task.settings.rest, "core": task.settings.core, "seed": task.settings.seed}
        task = replace(task, settings=Settings().changed(kept))  # the others are compared
        model = BiMIChICV(source_names=self.store.source_names, n_jobs=self._n_jobs, random_state=task.settings.seed)
        notes = self._fitted(model, self._selected(task))
        self.number += 1
        made = Trained(self.number, task, self._rule(model, task), model.solution_.status, notes=notes)
        made.seconds["fit"] = time.perf_counter() - start
        made.auto = _winner(model)
        made.score = score_of(model.selection_, model.selection_.winner)
        return made

    def score(self, task: Task) -> dict[str, Any]:
        """Return the average precision on what is left out in turn, of these settings and of the best source."""
        settings, names = task.settings, self.store.source_names
        candidate = Candidate(settings.objective, settings.additivity)
        how = How(
            [candidate], FOLDS, settings.polarity, False, names=names, seed=settings.seed, n_jobs=self._n_jobs or 1
        )
        try:
            with collected_warnings():  # which the fit has already reported
                found = cross_validate(self._selected(task), how)
                return score_of(found, next(one for one in found.contenders if not one.is_source))
        except InvalidInputError as error:
            return {"ap": None, "sentence": str(error)}

    def fused(self, trained: Trained, k: int) -> NDArray[np.uint16] | None:
        """Return the map of a scene in steps over the range of the output; None if the scene cannot be used."""
        if k not in trained._fused:
            rule = trained.rule
            scene = self.store.load(k, rule.recipes)
            if scene is None:
                return None
            values = rule.fuse(list(np.moveaxis(scene.sources, -1, 0)), self._n_jobs)
            low, high = rule.output_range
            steps = np.rint((values - low) * (STEPS / (high - low)))
            trained._fused[k] = np.where(np.isnan(values), MISSING_CODE, steps).astype("<u2")
        return trained._fused[k]

    def scenes(self, task: Task) -> list[Scene]:
        """Return the labelled scenes with their bags."""
        return [self._bagged(task, *one)[0] for one in task.labels]

    def _selected(self, task: Task) -> Dataset:
        """Return what is learned from; what was read and reduced of unchanged scenes is kept."""
        names, counts = [], []
        for k, _, shapes in task.labels:
            name, key = self.store.scenes[k].name, (shapes, task.settings.labelling, self._recipes(task))
            if k not in self._labelled or self._labelled[k][0] != key:
                scene, count = self._bagged(task, k, 0, shapes)
                self._data.put(name, scene)
                self._labelled[k] = (key, count)
            names.append(name)
            counts.append(self._labelled[k][1])
        positive, negative = sum(one.positive for one in counts), sum(one.negative for one in counts)
        if not positive or not negative:
            missing, more = "a target", "Draw a box around one."
            if positive:
                missing = "anything that is no target"
                more = "Mark something as not target, or count the rest as not target."
            raise InvalidInputError(f"Nothing is labelled as {missing} yet. {more}", code="labels-missing")
        return self._data.select(names)

    def _bagged(self, task: Task, k: int, _: int, shapes: Shapes) -> tuple[Scene, BagCounts]:
        scene = self.store.load(k, self._recipes(task))
        if scene is None:
            raise InvalidInputError(self.store.scenes[k].problems[0], code="scene-unreadable")
        size = (scene.shape[0], scene.shape[1])
        return bag_scene(scene, annotations_of(shapes, size), task.settings.labelling)

    def _fitted(self, model: Any, data: Dataset) -> list[str]:
        """Fit, and return what the fit warned of."""
        with collected_warnings() as texts:
            model.fit(data)
        return texts

    def _rule(self, model: Any, task: Task) -> FusionRule:
        recipes, names = self._recipes(task), [self.store.scenes[k].name for k, _, _ in task.labels]
        return scene_rule(model, recipes, self.store.inputs(names, recipes))

    def _recipes(self, task: Task) -> tuple[str, ...]:
        return task.settings.recipes(self.store.recipes)


def _winner(model: BiMIChICV) -> dict[str, Any]:
    """Return the settings with which learning goes on after a choice, and why."""
    best, said = model.best_params_, model.selection_.sentence()
    if "source" in best:
        return {"sentence": said}
    recipes = model.rule_.recipes or ()
    inverted = [k for k, recipe in enumerate(recipes) if "inverted" in recipe]
    signs = "learn" if (model.polarity_ < 0).any() else "given"
    kept = {name: best[name] for name in ("objective", "additivity", "sources")}
    return kept | {"inverted": inverted, "polarity": signs, "sentence": said}


def score_of(selection: Selection, model: Contender) -> dict[str, Any]:
    """Return the score of a model, even if a source is better, beside that of the best source; and both in words."""
    source = selection.best_source
    if not model.ap:  # as all labels can be learned from, only leaving some out has failed
        few = "Too few labels to say how good this is: label targets in two scenes, or two in this one."
        return {"ap": None, "sentence": f"{few} {model.problem}".rstrip()}
    own = model.score
    found: dict[str, Any] = {
        "ap": own.mean,
        "ap_error": own.error,
        "auc": spread(model.auc).mean,
        "folds": selection.n_folds,
        "scenes": list(selection.scenes),
        "by_scene": list(model.ap),
        "best_source": None,
    }
    where = f"{len(selection.scenes)} scenes or parts that were left out in turn (innermost parts of targets)"
    sentence = f"Average precision {own.mean:.3f} ± {own.error:.3f} on {where}"
    if source is not None:
        alone, name = source.score, source.name.removeprefix("source ")
        found["best_source"] = {"name": name, "ap": alone.mean, "ap_error": alone.error}
        sentence += f"; the best source alone, {name}, has {alone.mean:.3f} ± {alone.error:.3f}"
    return found | {"sentence": f"{sentence}."}


SHOWN = 64
"""Values of a measure that are listed at most, those that training uses most first."""


def map_bytes(number: int, last: int, values: NDArray[np.uint16]) -> bytes:
    """Return a map with its header: the number of the model, width, height, and one more number."""
    height, width = values.shape
    return struct.pack("<4I", number, width, height, last) + np.ascontiguousarray(values, "<u2").tobytes()


def material_of(trained: Trained, scene: Any) -> "Material":
    """Return what the report would show of this model on a scene."""
    from bimichi.report.inputs import gather

    return gather(trained.rule, scene.sources)


def model_json(trained: Trained, material: "Material") -> dict[str, Any]:
    """Return a model as the page shows it."""
    from bimichi.report.contents import rule_contents

    rule = trained.rule
    model = {
        "number": trained.number,
        "revision": trained.task.revisions,
        "setting": trained.task.settings.to_json(),
        "J": trained.objective_value,
        "status": trained.status,
        "rule": rule_contents(material)
        | {"output_range": list(rule.output_range), "recipes": list(rule.recipes or ())},
        "inverted": list(rule.inverted),
        "sentences": trained.sentences,
        "notes": trained.notes,
        rule.measure.parts: _listed(material),
        "auto": trained.auto,
        "seconds": trained.seconds,
        "score": trained.score,
    }
    message: dict[str, Any] = plain(model)
    return message


def _listed(material: "Material") -> list[dict[str, Any]]:
    """Return the values of the measure that are shown: sets of sources for and against, value, use, interval."""
    measure, use = material.rule.measure, material.training_use
    codes = np.arange(len(measure.values))
    if use is not None:
        codes = np.argsort(-use.counts, kind="stable")
    listed = []
    for code in codes[:SHOWN].tolist():
        up, down = measure.sets(code)
        entry: dict[str, Any] = {
            "code": code,
            "for": list(up),
            "against": list(down),
            "value": float(measure.values[code]),
        }
        if use is not None:
            entry |= {"count": int(use.counts[code]), "touched": int(use.touched[code])}
            if measure.parts == "elements":
                low, high = float(use.lower[code]), float(use.upper[code])
                entry |= {"lower": low, "upper": high, "open": high - low > TOLERANCE}
        listed.append(entry)
    return listed


def warm_up() -> None:
    """Import what is not needed before; learn and fuse once what takes no time, but runs the code of real scenes."""
    for name in ("suggestions", "windows"):
        import_module(f"bimichi.studio.{name}")
    for name in ("contents", "inputs"):
        import_module(f"bimichi.report.{name}")
    rng, settings = np.random.default_rng(0), Settings()
    drawn = annotations_of((Shape("warm", "box", "target", ((4.0, 4.0), (12.0, 12.0))),), (32, 32))
    for m in (2, 6):
        planes = rng.uniform(-1, 1, (32, 32, m)).astype(np.float32)
        scene, _ = bag_scene(Scene(planes, "warm"), drawn, settings.labelling)
        model = settings.model([str(k) for k in range(m)]).fit([scene])
        model.fuse(list(np.moveaxis(planes, -1, 0)))
