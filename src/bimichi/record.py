"""`TrainingRecord`: how a rule was learned, as a model file keeps it; and headers of earlier formats."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np

from bimichi._types import Floats, Ints
from bimichi._version import __version__
from bimichi.errors import InvalidInputError
from bimichi.measures.base import check_names
from bimichi.measures.compact import pack_counts, unpack_counts
from bimichi.measures.files import Arrays

TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("method", "objective", "solver", "status", "version"), (str,)),
    **dict.fromkeys(("parameters", "solver_options"), (dict,)),
    "objective_value": (float, int, type(None)),
    "lower_bound": (float, int, type(None)),
    "n_iter": (int,),
    "classes": (list,),
    "feature_names": (list, type(None)),
    "selection": (dict, type(None)),
}
LABELS = (int, float, str, bool)

OLD_KIND = "BiMIChI"
"""What versions 1 and 2 of the format called a fitted model."""

OLD_OBJECTIVES = {"bipolar": False, "magnitude": True, "mean": False}
"""Objectives of versions 1 and 2, and whether their bi-capacities have the zero bound."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingRecord:
    """How a rule was learned.

    Attributes
    ----------
    method, parameters : str, mapping
        The estimator, for example "BiMIChI", and its parameters without seeds, threads and the like.
    objective, solver, solver_options : str, str, mapping
        What was minimised, and how.
    objective_value, lower_bound : float
        J, on the training data; no measure has a smaller J than the bound, if there is one, with the same witnesses.
    status : str
        "converged", or why the search ended otherwise.
    n_iter, history : int, ndarray
        Rounds of witnesses (or generations), and J after each of them.
    usage : dict of str to ndarray
        How many training instances "touched" each value of the measure, and how many gave it weight ("weighted"); empty
        if they were not counted.
    classes : list
        The two labels, the target second; empty if there are none.
    feature_names : list of str, optional
        Columns of the data frame that the model was fitted to.
    selection : mapping, optional
        What the rule was chosen from, and the scores of each candidate on left-out scenes; see
        `bimichi.learning.selection.Selection`.
    version : str
        The version of bimichi.
    """

    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    objective: str = ""
    solver: str = ""
    solver_options: Mapping[str, Any] = field(default_factory=dict)
    objective_value: float = float("nan")
    lower_bound: float | None = None
    status: str = ""
    n_iter: int = 0
    history: Floats = field(default_factory=lambda: np.empty(0))
    usage: Mapping[str, Ints] = field(default_factory=dict)
    classes: Sequence[Any] = ()
    feature_names: Sequence[str] | None = None
    selection: Mapping[str, Any] | None = None
    version: str = __version__

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Return the header field and the arrays of a model file."""
        header = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("history", "usage")}
        if self.selection is None:
            del header["selection"]
        header["objective_value"] = self.objective_value if math.isfinite(self.objective_value) else None
        arrays = {"history": self.history}
        for name, counts in self.usage.items():
            arrays |= pack_counts(name, counts)
        return header | {"usage": list(self.usage)}, arrays

    @classmethod
    def unpack(cls, header: Any, arrays: Arrays, size: int) -> Self:
        """Return the record in a file, checked, for a measure of `size` values; the inverse of `pack`."""
        kept = {f.name: header[f.name] for f in fields(cls) if f.name not in ("history", "usage", "selection")}
        kept["selection"] = header.get("selection")  # since version 4
        for what, kinds in TYPES.items():
            if type(kept[what]) not in kinds:
                raise InvalidInputError(f"{what} of its training must be {kinds[0].__name__}, got {kept[what]!r}.")
        if len(kept["classes"]) not in (0, 2) or not all(type(label) in LABELS for label in kept["classes"]):
            raise InvalidInputError(f"its classes must be two labels, got {kept['classes']!r}.")
        if kept["feature_names"] is not None:
            check_names(kept["feature_names"], len(kept["feature_names"]))
        value, bound = kept["objective_value"], kept["lower_bound"]
        kept["objective_value"] = math.nan if value is None else float(value)
        kept["lower_bound"] = None if bound is None else float(bound)
        usage = {name: unpack_counts(name, arrays, size) for name in header["usage"]}
        return cls(**kept, history=arrays["history"], usage=usage)


def updated_header(header: dict[str, Any]) -> dict[str, Any]:
    """Return the header of a model of version 1 or 2 as version 3 would have it."""
    objective, additivity, solver = header["objective"], header.get("additivity"), header["solver"]
    if objective not in OLD_OBJECTIVES or additivity not in (None, 1, 2):
        raise InvalidInputError(f"its objective and additivity must be known, got {objective!r} and {additivity!r}.")
    shared = ("objective", "polarity", "scale", "nan")
    parameters = {name: header[name] for name in shared} | {"additivity": additivity}
    parameters["source_names"] = header["source_names"] if header["named_by_user"] else None
    copied = ("objective", "objective_value", "lower_bound", "status", "n_iter", "classes", "feature_names")
    record = {name: header[name] for name in copied} | {
        "method": OLD_KIND,
        "parameters": parameters,
        "solver": solver["name"],
        "solver_options": solver["options"],
        "usage": ["touched", "weighted"],
        "version": str(header.get("bimichi", "")),
    }
    measure: dict[str, Any] = {"measure": "bicapacity", "zero_bound": OLD_OBJECTIVES[objective]}
    if additivity:
        measure = {"measure": "2-additive", "order": additivity}
    output = "magnitude" if objective == "magnitude" else "integral"
    return header | measure | {"output": output, "low": -1.0, "training": record}
