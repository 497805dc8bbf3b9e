"""`TrainingRecord`: how a rule was learned, as a model file keeps it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Self

import numpy as np

from bimichi._checks import check_choice
from bimichi._types import Floats, Ints
from bimichi._version import __version__
from bimichi.errors import InvalidInputError
from bimichi.measures.base import Measure, check_names
from bimichi.measures.files import Arrays, pack_counts, unpack_counts


class Status(StrEnum):
    """The ways in which a search ends; model files hold these values."""

    CONVERGED = "converged"
    EXACT = "exact"  # every measure was compared
    CHOSEN = "chosen"  # by cross-validation, not by a search
    LOCAL = "local"  # every restart ended where no neighbour is better
    MAX_ROUNDS = "max_rounds"
    MAX_ITER = "max_iter"
    STOPPED = "stopped"  # by a callback
    UNSOLVED = "unsolved"  # a quadratic program was

    @property
    def complete(self) -> bool:
        """Return whether the search came to an end of its own."""
        return self in (Status.CONVERGED, Status.EXACT)


class Certificate(StrEnum):
    """The ways in which a proof ends; model files hold these values."""

    OPTIMAL = "optimal"
    MAX_NODES = "max_nodes"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"
    UNSOLVED = "unsolved"  # a relaxation was


ENDINGS = {
    Status.CONVERGED: "converged",
    Status.EXACT: "exact: all {:,} binary measures",
    Status.CHOSEN: "chosen by cross-validation",
    Status.LOCAL: "local search, {:,} restarts",
    Status.MAX_ROUNDS: "reached the largest number of rounds",
    Status.MAX_ITER: "reached max_iter",
    Status.STOPPED: "stopped by the callback",
    Status.UNSOLVED: "a quadratic program could not be solved",
}
PROOF_ENDINGS = {
    Certificate.OPTIMAL: "optimal within the gap",
    Certificate.MAX_NODES: "stopped at max_nodes",
    Certificate.TIME_LIMIT: "stopped at time_limit",
    Certificate.INTERRUPTED: "interrupted",
    Certificate.UNSOLVED: "stopped: a relaxation could not be solved",
}


def describe_ending(status: Status | None, n_iter: int, averaged: Sequence[int] = ()) -> str:
    """Return how a search ended after so many rounds, in words, and the sources its result was averaged with, from 1.

    Examples
    --------
    >>> describe_ending(Status.CONVERGED, 3, averaged=[0, 2])
    'converged, averaged with sources 1, 3'
    """
    ending = "" if status is None else ENDINGS[status].format(n_iter)
    return f"{ending}, {describe_average(averaged)}" if averaged else ending


def describe_average(averaged: Sequence[int]) -> str:
    """Return which sources, numbered from 1, a result was averaged with, in words."""
    return f"averaged with sources {', '.join(str(k + 1) for k in averaged)}"


TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("method", "objective", "solver", "version"), (str,)),
    **dict.fromkeys(("status", "certificate"), (str, type(None))),
    **dict.fromkeys(("parameters", "solver_options"), (dict,)),
    **dict.fromkeys(("objective_value", "lower_bound", "global_bound"), (float, int, type(None))),
    **dict.fromkeys(("n_iter", "n_nodes"), (int,)),
    **dict.fromkeys(("classes", "averaged"), (list,)),
    "feature_names": (list, type(None)),
    "selection": (dict, type(None)),
}
LABELS = (int, float, str, bool)
DTYPES = ("bool", "int8", "uint8", *(f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (16, 32, 64)))


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingRecord:
    """A record of how a rule was learned.

    Attributes
    ----------
    method, parameters : str, mapping
        The estimator, for example "BiMIChI", and its parameters without seeds, threads and the like.
    objective, solver, solver_options : str, str, mapping
        What was minimised, and how.
    objective_value, lower_bound : float
        J, on the training data; no measure has a smaller J than the bound, if there is one, with the same witnesses.
    global_bound, n_nodes, certificate : float, int, Certificate
        If a proof was asked for: no measure at all has a smaller J than the bound; see `Solution`.
    status : Status, optional
        How the search ended; None if there was none.
    n_iter, history : int, ndarray
        Rounds of witnesses (or generations, or measures compared), and J after each of them.
    averaged : sequence of int
        The sources, from 0, whose own log-odds the result was averaged with.
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
    certificate: Certificate | None = None
    status: Status | None = None
    n_iter: int = 0
    averaged: Sequence[int] = ()
    history: Floats = field(default_factory=lambda: np.empty(0))
    usage: Mapping[str, Ints] = field(default_factory=dict)
    classes: Sequence[Any] = ()
    feature_names: Sequence[str] | None = None
    selection: Mapping[str, Any] | None = None
    version: str = __version__
    label_line: tuple[float, float] | None = None

    @property
    def ending(self) -> str:
        """The end of the search in words; empty if there was none."""
        return describe_ending(self.status, self.n_iter, self.averaged)

    @property
    def proof(self) -> str:
        """The proof in a sentence; empty if none was asked for. The bound is rounded down."""
        if self.global_bound is None or self.certificate is None:
            return ""
        value, bound = self.objective_value, self.global_bound
        digits = 5 - math.floor(math.log10(bound)) if bound > 0 else 0
        shown = math.floor(bound * 10.0**digits) / 10.0**digits
        above = f", {(value - bound) / bound:.2%} above" if bound > 0 else ""
        says = f"no measure of this kind has J below {shown:.6g}; this one has {value:.6g}{above}"
        if self.certificate is Certificate.OPTIMAL:
            return f"Proven: {says}."
        return f"Proven so far: {says} ({PROOF_ENDINGS[self.certificate]} after {self.n_nodes:,} nodes)."

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Return the header field and the arrays of a model file."""
        header = {name: getattr(self, name) for name in HEADER_FIELDS}
        header["objective_value"] = self.objective_value if math.isfinite(self.objective_value) else None
        arrays = {"history": self.history}
        for name, counts in self.usage.items():
            arrays |= pack_counts(name, counts)
        return header | {"usage": list(self.usage)}, arrays

    @classmethod
    def unpack(cls, header: Any, arrays: Arrays, measure: Measure) -> Self:
        """Return the record in a file of this measure, checked; the inverse of `pack`."""
        kept = {name: header[name] for name in HEADER_FIELDS}
        for name, kinds in TYPES.items():
            if type(kept[name]) not in kinds:
                raise InvalidInputError(
                    f"{name} of its training must be {kinds[0].__name__}, got {kept[name]!r}.", code="model-record"
                )
        for name, states in (("status", Status), ("certificate", Certificate)):
            if kept[name] is not None:
                kept[name] = check_choice(kept[name], f"{name} of its training", tuple(states))
        if len(kept["classes"]) not in (0, 2) or not all(type(label) in LABELS for label in kept["classes"]):
            raise InvalidInputError(f"its classes must be two labels, got {kept['classes']!r}.", code="model-classes")
        if kept["feature_names"] is not None:
            check_names(kept["feature_names"], len(kept["feature_names"]))
        for name in ("n_iter", "n_nodes"):
            if not 0 <= kept[name] < 2**53:
                raise InvalidInputError(
                    f"{name} of its training must be a count, got {str(kept[name])[:20]}.", code="model-record"
                )
        if not all(type(k) is int and 0 <= k < measure.n_sources for k in kept["averaged"]):
            raise InvalidInputError(
                f"averaged of its training must be numbers of sources, got {kept['averaged']!r}.",
                code="model-record",
                argument="averaged",
            )
        kept["averaged"] = tuple(kept["averaged"])
        value = kept["objective_value"]
        kept["objective_value"] = math.nan if value is None else float(value)
        for name in ("lower_bound", "global_bound"):
            kept[name] = None if kept[name] is None else float(kept[name])
        if kept["global_bound"] is not None and not 0 <= kept["global_bound"] < math.inf:
            raise InvalidInputError(
                f"global_bound of its training must be finite, got {kept['global_bound']}.",
                code="model-record",
                argument="global_bound",
            )
        history, counted = arrays["history"], header["usage"]
        if np.isnan(history).any():
            raise InvalidInputError("its array history must hold numbers.", code="model-record")
        if not isinstance(counted, list) or not all(isinstance(name, str) for name in counted):
            raise InvalidInputError(
                "usage of its training must be a list of names.", code="model-record", argument="usage"
            )
        line = kept["label_line"]
        numbers = isinstance(line, list) and len(line) == 2 and all(type(part) in (int, float) for part in line)
        if line is not None and (not numbers or not all(map(math.isfinite, line)) or line[0] < 0):
            rule = "label_line of its training must be a slope, not negative, and an offset"
            raise InvalidInputError(f"{rule}, got {line!r}.", code="model-record", value=line)
        kept["label_line"] = None if line is None else (float(line[0]), float(line[1]))
        usage = {name: unpack_counts(name, arrays, len(measure.values)) for name in counted}
        return cls(**kept, history=history, usage=usage)


HEADER_FIELDS = tuple(entry.name for entry in fields(TrainingRecord) if entry.name not in ("history", "usage"))
"""Fields that are part of the header of a model file; the others are arrays."""


@dataclass(frozen=True)
class SourceInput:
    """Type and range of the images of one source in training, by which unlike images are noticed.

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
