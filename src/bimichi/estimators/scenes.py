"""Models of scenes: fitted to one or many, and completed by how their sources are made from images."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bimichi.decision import Decision
from bimichi.estimators.bimichi import BiMIChI
from bimichi.imaging.recipes import AS_IS
from bimichi.learning.scene import Scene
from bimichi.record import SourceInput
from bimichi.rule import FusionRule


def fit_scenes(model: Any, scenes: Sequence[Scene]) -> Any:
    """Fit to one scene, or to many, which may be read one after another."""
    alone = len(scenes) == 1 and isinstance(model, BiMIChI)
    return model.fit(scenes[0].bags() if alone else scenes)


def scene_rule(
    model: Any,
    recipes: Sequence[str],
    inputs: tuple[SourceInput, ...] | None,
    decision: Decision | None = None,
) -> FusionRule:
    """Return what a model has learned from sources that these recipes make from images, for new images."""
    rule: FusionRule = model.rule_
    made = tuple(followed(*pair) for pair in zip(recipes, rule.recipes or recipes, strict=True))
    return replace(rule, recipes=made, inputs=inputs, decision=decision)


def followed(recipe: str, own: str) -> str:
    """Return the recipe of an image, followed by what the model does to its source."""
    later = own.removeprefix(f"{AS_IS}|")
    return recipe if own in (recipe, AS_IS) else later if recipe == AS_IS else f"{recipe}|{later}"
