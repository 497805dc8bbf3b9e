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
from bimichi.measures.files import Arrays, pack_counts, unpack_counts

TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("method", "objective", "solver", "status", "version", "certificate"), (str,)),
    **dict.fromkeys(("parameters", "solver_options"), (dict,)),
    **dict.fromkeys(("objective_value", "lower_bound", "global_bound"), (float, int, type(None))),
    **dict.fromkeys(("n_iter", "n_nodes"), (int,)),
    "classes": (list,),
    "feature_names": (list, type(None)),
    "selection": (dict, type(None)),
}
LABELS = (int, float, str, bool)
OPTIONAL = ("global_bound", "n_nodes", "certificate", "selection", "label_line")
"""Fields that a file has only if they are not as by default, so that files of other models stay as they were."""
DTYPES = ("bool", "int8", "uint8", *(f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (16, 32, 64)))

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
    global_bound, n_nodes, certificate : float, int, str
        If a proof was asked for: no measure at all has a smaller J than the bound; see `Solution`.
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
        `bimichi.fit.choose.Selection`.
    version : str
        The version of bimichi.
    label_line : (float, float), optional
        With a free scale of the objective `mean`, slope and offset of the labels, -1 and +1, over the integral.
    """

    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    objective: str = ""
    solver: str = ""
    solver_options: Mapping[str, Any] = field(default_factory=dict)
    objective_value: float = float("nan")
    lower_bound: float | None = None
    global_bound: float | None = None
    n_nodes: int = 0
    certificate: str = ""
    status: str = ""
    n_iter: int = 0
    history: Floats = field(default_factory=lambda: np.empty(0))
    usage: Mapping[str, Ints] = field(default_factory=dict)
    classes: Sequence[Any] = ()
    feature_names: Sequence[str] | None = None
    selection: Mapping[str, Any] | None = None
    version: str = __version__
    label_line: tuple[float, float] | None = None

    @property
    def proof(self) -> str:
        """What was proven of J, in a sentence; empty if no proof was asked for. The bound is rounded down."""
        if self.global_bound is None:
            return ""
        value, bound = self.objective_value, self.global_bound
        digits = 5 - math.floor(math.log10(bound)) if bound > 0 else 0
        shown = math.floor(bound * 10.0**digits) / 10.0**digits
        above = f", {(value - bound) / bound:.2%} above" if bound > 0 else ""
        says = f"no measure of this kind has J below {shown:.6g}; this one has {value:.6g}{above}"
        if self.certificate.startswith("optimal"):
            return f"Proven: {says}."
        return f"Proven so far: {says} ({self.certificate} after {self.n_nodes:,} nodes)."

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Return the header field and the arrays of a model file."""
        named = {f.name: (getattr(self, f.name), f.default) for f in fields(self) if f.name not in ("history", "usage")}
        header = {name: value for name, (value, usual) in named.items() if name not in OPTIONAL or value != usual}
        header["objective_value"] = self.objective_value if math.isfinite(self.objective_value) else None
        arrays = {"history": self.history}
        for name, counts in self.usage.items():
            arrays |= pack_counts(name, counts)
        return header | {"usage": list(self.usage)}, arrays

    @classmethod
    def unpack(cls, header: Any, arrays: Arrays, size: int) -> Self:
        """Return the record in a file, checked, for a measure of `size` values; the inverse of `pack`."""
        header = {f.name: f.default for f in fields(cls) if f.name in OPTIONAL} | header
        kept = {f.name: header[f.name] for f in fields(cls) if f.name not in ("history", "usage")}
        for what, kinds in TYPES.items():
            if type(kept[what]) not in kinds:
                raise InvalidInputError(
                    f"{what} of its training must be {kinds[0].__name__}, got {kept[what]!r}.", code="model-record"
                )
        if len(kept["classes"]) not in (0, 2) or not all(type(label) in LABELS for label in kept["classes"]):
            raise InvalidInputError(f"its classes must be two labels, got {kept['classes']!r}.", code="model-classes")
        if kept["feature_names"] is not None:
            check_names(kept["feature_names"], len(kept["feature_names"]))
        for what in ("n_iter", "n_nodes"):
            if not 0 <= kept[what] < 2**53:
                raise InvalidInputError(
                    f"{what} of its training must be a count, got {str(kept[what])[:20]}.", code="model-record"
                )
        value = kept["objective_value"]
        kept["objective_value"] = math.nan if value is None else float(value)
        for what in ("lower_bound", "global_bound"):
            kept[what] = None if kept[what] is None else float(kept[what])
        if kept["global_bound"] is not None and not 0 <= kept["global_bound"] < math.inf:
            raise InvalidInputError(
                f"global_bound of its training must be finite, got {kept['global_bound']}.",
                code="model-record",
                argument="global_bound",
            )
        history, named = arrays["history"], header["usage"]
        if np.isnan(history).any():
            raise InvalidInputError("its array history must hold numbers.", code="model-record")
        if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
            raise InvalidInputError(
                "usage of its training must be a list of names.", code="model-record", argument="usage"
            )
        line = kept["label_line"]
        numbers = isinstance(line, list) and len(line) == 2 and all(type(part) in (int, float) for part in line)
        if line is not None and (not numbers or not all(map(math.isfinite, line)) or line[0] < 0):
            rule = "label_line of its training must be a slope, not negative, and an offset"
            raise InvalidInputError(f"{rule}, got {line!r}.", code="model-record", value=line)
        kept["label_line"] = None if line is None else (float(line[0]), float(line[1]))
        return cls(**kept, history=history, usage={name: unpack_counts(name, arrays, size) for name in named})


@dataclass(frozen=True)
class SourceInput:
    """What the images of one source were like in training, so that others are noticed.

    Attributes
    ----------
    dtype : str
        The type in which they are stored, such as "uint16".
    low, high : float
        Their least and greatest values, before any recipe.
    usual : (float, float)
        The 1st and the 99th percentile: the lowest and the highest of any training scene.
    units : str, optional
        As the files state them.
    expression : str, optional
        How it is computed from bands, such as "ndwi: (B3 - B8) / (B3 + B8)".
    """

    dtype: str
    low: float
    high: float
    usual: tuple[float, float]
    units: str | None = None
    expression: str | None = None

    def __post_init__(self) -> None:
        numbers = (self.low, self.high, *self.usual)
        if not all(type(number) in (int, float) and math.isfinite(number) for number in numbers) or len(numbers) != 4:
            raise InvalidInputError(
                f"inputs must give low, high and two usual values as finite numbers, got {numbers}.",
                code="model-inputs",
                argument="inputs",
                value=numbers,
            )
        if type(self.dtype) is not str or self.dtype not in DTYPES:
            raise InvalidInputError(
                f"inputs must give a type of real numbers, got {self.dtype!r}.",
                code="model-inputs",
                argument="inputs",
                value=self.dtype,
            )
        for text in (self.units, self.expression):
            if not isinstance(text, str | None):
                raise InvalidInputError(
                    f"units and expressions of inputs must be text, got {text!r}.", code="model-inputs", value=text
                )
        object.__setattr__(self, "usual", tuple(self.usual))


def updated_header(header: dict[str, Any]) -> dict[str, Any]:
    """Return the header of a model of version 1 or 2 as version 3 would have it."""
    objective, additivity, solver = header["objective"], header.get("additivity"), header["solver"]
    if objective not in OLD_OBJECTIVES or additivity not in (None, 1, 2):
        raise InvalidInputError(
            f"its objective and additivity must be known, got {objective!r} and {additivity!r}.", code="model-record"
        )
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
