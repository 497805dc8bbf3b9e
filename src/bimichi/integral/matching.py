"""A rule, a model or a measure as a function of planes, and which of the sources found is which of its own."""

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple

from numpy.typing import NDArray

from bimichi.errors import InvalidInputError
from bimichi.integral.integrals import choquet
from bimichi.measures.base import Measure, check_names

__all__ = ["Fuser", "fuser_of"]


class Fuser(NamedTuple):
    """What fuses a list of planes.

    It can be pickled as far as the model can, so that workers elsewhere may run it.
    """

    fuse: Callable[[list[NDArray[Any]]], NDArray[Any]]
    n_sources: int
    names: tuple[str, ...] | None
    """None where sources have no names of their own; then they are told by their order."""

    def order(self, found: Sequence[str] | None, n_found: int, where: str, remedy: str) -> list[int]:
        """Return the place, among the sources found, of each source of the model.

        Parameters
        ----------
        found : sequence of str or None
            Their names; None if they have none.
        n_found : int
            Their number.
        where, remedy : str
            For the error: what holds them, and what to do if they are not those of the model.
        """
        if found is None or self.names is None:
            fits, order = n_found == self.n_sources, list(range(n_found))
        else:
            fits = sorted(found) == sorted(self.names)
            order = [list(found).index(name) for name in self.names] if fits else []
        if not fits:
            raise InvalidInputError(
                f"{where} has {_listed(found, n_found)}, but the model has {_listed(self.names, self.n_sources)}. "
                f"{remedy}"
            )
        return order


def fuser_of(model: Any, n_jobs: int | None = None, method: str = "fuse", **options: Any) -> Fuser:
    """Return what fuses planes by a rule or a fitted model, or by the Choquet integral over a measure.

    Parameters
    ----------
    model : FusionRule, fitted Fusion, Measure, or Fuser
        What decides.
    n_jobs : int, optional
        Number of threads, instead of the model's own.
    method : str, default="fuse"
        Of a rule or a model: which of its methods.
    **options
        Of a measure: options of `choquet`.
    """
    if isinstance(model, Fuser):
        return model
    if isinstance(model, Measure):
        return Fuser(partial(choquet, g=model, n_jobs=n_jobs, **options), model.n_sources, _own_names(model))
    rule = getattr(model, "rule_", model)
    if isinstance(getattr(rule, "measure", None), Measure):
        return Fuser(partial(getattr(rule, method), n_jobs=n_jobs), rule.n_sources, _own_names(rule))
    if not hasattr(model, "fuse") or getattr(model, "needs", None) == "image":
        raise InvalidInputError(
            f"model must be a fitted method that fuses sources, a rule or a measure, got {type(model).__name__}."
        )
    if not hasattr(model, "n_features_in_"):
        raise InvalidInputError(f"This {type(model).__name__} is not fitted; call fit first.")
    names = model._names()
    if n_jobs is not None and hasattr(model, "n_jobs"):
        model = copy(model)
        model.n_jobs = n_jobs
    return Fuser(getattr(model, method), model.n_features_in_, None if names is None else tuple(names))


def _own_names(named: Any) -> tuple[str, ...] | None:
    """Names of the sources, unless they are only numbered."""
    names: tuple[str, ...] = named.source_names
    return None if names == check_names(None, len(names)) else names


def _listed(names: Sequence[str] | None, n: int) -> str:
    count = "1 source" if n == 1 else f"{n} sources"
    return count if names is None else f"{count} ({', '.join(names)})"
