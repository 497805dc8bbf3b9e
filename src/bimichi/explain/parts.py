"""The rule to explain, and the parts of its measure; the one place of the package that knows the two families apart."""

from typing import Any

from bimichi.explain.base import Parts
from bimichi.explain.elements import ElementParts
from bimichi.explain.terms import TermParts
from bimichi.integral.planes import Planes
from bimichi.measures.base import Measure
from bimichi.rule import FusionRule, as_rule

FAMILIES: dict[str, type[Parts]] = {"elements": ElementParts, "terms": TermParts}


def parts_of(measure: Measure) -> Parts:
    """Return the elements or terms of a measure."""
    return FAMILIES[measure.parts](measure.space, measure.values, measure.source_names)


def prepare(model: Any, X: Any) -> tuple[FusionRule, Parts, Planes]:
    """Return the rule of a model, the parts of its measure, and the sources as they enter the integral, checked."""
    rule = as_rule(model)
    return rule, parts_of(rule.measure), Planes(rule.enter(X), rule.n_sources, rule.source_names)
