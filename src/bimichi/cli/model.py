"""Model files of the command line: a fitted `BiMIChI`, and the recipes of its sources.

Read here without scikit-learn, whose import would take longer than fusing an image.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bimichi.errors import InvalidInputError, ModelFileError
from bimichi.imaging.recipes import RECIPES
from bimichi.integral.integrals import choquet
from bimichi.learning.learned import Learned, chosen_objective, unpack_measure
from bimichi.learning.objectives import Objective
from bimichi.measures.additive import TwoAdditive
from bimichi.measures.compact import unpack_counts
from bimichi.measures.files import read_model, write_model

if TYPE_CHECKING:
    from bimichi import BiMIChI

__all__ = ["FusionModel", "save_model"]

KIND = "BiMIChI"


@dataclass(frozen=True, eq=False)
class FusionModel:
    """What a model file says.

    Attributes
    ----------
    header : dict
        All that is not an array; see docs/model-format.md.
    bicapacity : BiCapacity or TwoAdditive
        What was learned.
    objective : Objective
        What for.
    polarity, centre, factor : ndarray of shape (n_sources,)
        A source x becomes ``clip((x - centre) * factor, -1, 1) * polarity``.
    touched : ndarray of shape (3^m,) or (2 m^2,)
        How many training instances used each element, or term.
    recipes : list of str, or None
        How the command line makes sources of images; None if the model was made elsewhere.
    """

    header: dict[str, Any]
    bicapacity: Learned
    objective: Objective
    polarity: NDArray[np.float64]
    centre: NDArray[np.float64]
    factor: NDArray[np.float64]
    touched: NDArray[np.int64]
    recipes: list[str] | None

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a model file. The content is checked; nothing in it is executed."""
        header, arrays = read_model(path, KIND)
        try:
            objective = chosen_objective(header["objective"], header.get("additivity"))
            g = unpack_measure(objective, header, arrays)
            polarity, centre, factor = (arrays[k] for k in ("polarity", "centre", "factor"))
            for what, array in (("polarity", polarity), ("centre", centre), ("factor", factor)):
                if array.shape != (g.n_sources,) or not np.isfinite(array).all():
                    raise InvalidInputError(f"its array {what} is not valid.")
            touched = unpack_counts("touched", arrays, len(g.terms if isinstance(g, TwoAdditive) else g.values))
            if not np.isin(polarity, (-1.0, 1.0)).all():
                raise InvalidInputError("its polarity is not valid.")
            _check_header(header)
            recipes = _check_recipes(header.get("recipes"), g.n_sources)
        except (InvalidInputError, KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"{path} is not a valid {KIND} file: {error}") from error
        return cls(header, g, objective, polarity, centre, factor, touched, recipes)

    @property
    def source_names(self) -> tuple[str, ...]:
        """Names of the sources, in their order."""
        return self.bicapacity.source_names

    @property
    def scaled(self) -> bool:
        """Whether a scale was learned, so that sources may have any values."""
        return self.header.get("scale") is not None

    def fuse(self, planes: Sequence[NDArray[Any]], n_jobs: int | None = None) -> NDArray[Any]:
        """Fuse planes as ``BiMIChI.fuse`` does: C, or |C| for "magnitude"."""
        ready = [self._ready(plane, k) for k, plane in enumerate(planes)]
        return self.objective.output(choquet(ready, self.bicapacity, n_jobs=n_jobs))

    def _ready(self, plane: NDArray[Any], k: int) -> NDArray[Any]:
        sign, centre, factor = self.polarity[k], self.centre[k], self.factor[k]
        if centre == 0 and factor == 1:
            return plane if sign > 0 else -plane.astype(np.result_type(plane, np.float32), copy=False)
        kind = plane.dtype if plane.dtype.kind == "f" else np.dtype(np.float64)
        done = (plane - kind.type(centre)) * kind.type(factor * sign)
        return np.clip(done, -1, 1, out=done)


def save_model(path: Path, model: "BiMIChI", recipes: Sequence[str]) -> None:
    """Write a fitted model and the recipes of its sources to one file; `BiMIChI.load` reads it, too."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "model"
        model.save(plain)
        header, arrays = read_model(plain, KIND)
    write_model(path, KIND, header | {"recipes": list(recipes)}, arrays)


def _check_header(header: dict[str, Any]) -> None:
    """Check what is shown of it; the rest is checked where it is used."""
    bound = header["lower_bound"]
    numbers = [header["objective_value"], header["n_iter"], 0 if bound is None else bound]
    if not all(type(number) in (int, float) for number in numbers):
        raise InvalidInputError("objective_value, n_iter and lower_bound must be numbers.")
    if not isinstance(header["solver"]["name"], str) or not isinstance(header["status"], str):
        raise InvalidInputError("solver and status must be text.")


def _check_recipes(recipes: Any, n_sources: int) -> list[str] | None:
    if recipes is None:
        return None
    if not isinstance(recipes, list) or len(recipes) != n_sources or not set(recipes) <= set(RECIPES):
        raise InvalidInputError(
            f"recipes must be {n_sources} of {', '.join(RECIPES)}, got {recipes!r}. A newer bimichi may know them."
        )
    return recipes
