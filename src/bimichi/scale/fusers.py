"""A model or a measure as a function of planes, and which of the sources found is which of its own."""

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple

from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bimichi.errors import InvalidInputError
from bimichi.estimators.base import Fusion
from bimichi.integral.integrals import choquet
from bimichi.measures.additive import TwoAdditive
from bimichi.measures.base import check_names
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.capacity import Capacity

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
    """Return what fuses planes by a fitted model, or by the Choquet integral over a measure.

    Parameters
    ----------
    model : fitted Fusion, BiCapacity, Capacity, TwoAdditive, or Fuser
        What decides.
    n_jobs : int, optional
        Number of threads, instead of the model's own.
    method : str, default="fuse"
        Of a model: which of its methods.
    **options
        Of a measure: options of `choquet`.
    """
    if isinstance(model, Fuser):
        return model
    if isinstance(model, BiCapacity | Capacity | TwoAdditive):
        plain = model.source_names == check_names(None, model.n_sources)
        function = partial(choquet, g=model, n_jobs=n_jobs, **options)
        return Fuser(function, model.n_sources, None if plain else model.source_names)
    if not isinstance(model, Fusion) or model.needs == "image":
        raise InvalidInputError(
            f"model must be a fitted method that fuses sources, a BiCapacity or a Capacity, got {type(model).__name__}."
        )
    check_is_fitted(model)
    names = model._names()
    if n_jobs is not None and hasattr(model, "n_jobs"):
        model = copy(model)
        model.n_jobs = n_jobs
    return Fuser(getattr(model, method), model.n_features_in_, None if names is None else tuple(names))


def _listed(names: Sequence[str] | None, n: int) -> str:
    count = "1 source" if n == 1 else f"{n} sources"
    return count if names is None else f"{count} ({', '.join(names)})"
