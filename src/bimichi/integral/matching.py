"""Any model as one function of planes, and the matching of its sources with those of the data."""

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple

from numpy.typing import NDArray

from bimichi.errors import InvalidInputError
from bimichi.integral.integrals import integrate
from bimichi.measures.base import Measure, check_names


class Fuser(NamedTuple):
    """A function that fuses a list of planes; it can be pickled if the model can, so that workers may run it."""

    fuse: Callable[[list[NDArray[Any]]], NDArray[Any]]
    n_sources: int
    names: tuple[str, ...] | None
    """None if the sources have no names; they are then taken in their order."""


def fuser_of(model: Any, n_jobs: int | None = None, method: str = "fuse", **options: Any) -> Fuser:
    """Return a function of planes for a rule, a fitted method, or the Choquet integral over a measure.

    A fitted model has `rule_`, or at least `fuse` and `n_features_in_`. `method` is that of a model or a rule to call;
    `options` are those of `choquet` for a measure. By default, a model's own number of threads is used.
    """
    if isinstance(model, Measure):
        return Fuser(partial(integrate, g=model, n_jobs=n_jobs, **options), model.n_sources, own_names(model))
    rule = getattr(model, "rule_", model)
    if isinstance(getattr(rule, "measure", None), Measure):
        return Fuser(partial(getattr(rule, method), n_jobs=n_jobs), rule.n_sources, own_names(rule))
    if not hasattr(model, "fuse") or getattr(model, "needs", None) == "image":
        raise InvalidInputError(
            f"model must be a fitted method that fuses sources, a rule or a measure, got {type(model).__name__}."
        )
    n_sources = getattr(model, "n_features_in_", None)
    if n_sources is None:
        raise InvalidInputError(f"model is not fitted: this {type(model).__name__} has no n_features_in_. Call fit.")
    names = getattr(model, "source_names", None)
    names = getattr(model, "feature_names_in_", None) if names is None else names
    if n_jobs is not None and hasattr(model, "n_jobs"):
        model = copy(model)
        model.n_jobs = n_jobs
    return Fuser(getattr(model, method), n_sources, None if names is None else check_names(names, n_sources))


def match_sources(
    expected: Sequence[str] | None, n_expected: int, found: Sequence[str] | None, n_found: int, where: str, remedy: str
) -> list[int]:
    """Return the position, among the sources found, of each source that is expected.

    If either has no names, sources are taken in order. `where` and `remedy` are for the error if they differ: what
    holds the sources found, and what to do.
    """
    if expected is None or found is None:
        fits, positions = n_found == n_expected, list(range(n_found))
    else:
        fits = sorted(found) == sorted(expected)
        positions = [list(found).index(name) for name in expected] if fits else []
    if not fits:
        raise InvalidInputError(
            f"{where} has {_listed(found, n_found)}, but the model has {_listed(expected, n_expected)}. {remedy}"
        )
    return positions


def own_names(model: Any) -> tuple[str, ...] | None:
    """Return the names of the sources, None if they are merely numbered."""
    names = tuple(model.source_names)
    return None if names == check_names(None, model.n_sources) else names


def _listed(names: Sequence[str] | None, n: int) -> str:
    count = "1 source" if n == 1 else f"{n} sources"
    return count if names is None else f"{count} ({', '.join(names)})"
