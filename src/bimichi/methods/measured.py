"""`MeasureFusion`: what methods that learn a measure share; what they learned is one `FusionRule`."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from operator import attrgetter
from os import PathLike
from typing import Any, ClassVar, Generic, Literal, NoReturn, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import bimichi
from bimichi import _html
from bimichi._types import Floats, Ints
from bimichi.errors import ModelFileError
from bimichi.explain.attribution import PixelExplanation, explain_pixel
from bimichi.fit.choose import selection_of
from bimichi.fit.objectives import Objective
from bimichi.fit.problem import Solution
from bimichi.fit.solvers import solver_from_record, solver_record
from bimichi.fit.train import FitResult, fit_measure
from bimichi.measures.files import reading
from bimichi.methods.base import Fusion, Needs, takes_xarray
from bimichi.record import TrainingRecord
from bimichi.rule import FusionRule
from bimichi.scenes.sample import Sample

SOLVED = (
    *("objective_value", "lower_bound", "global_bound", "n_nodes", "certificate"),
    *("status", "n_iter", "averaged", "history"),
)
"""Fields of a `Solution` that a record keeps."""


Value = TypeVar("Value")


class View(Generic[Value]):
    """A read-only attribute of a fitted model that is a part of its rule, found there by `path`."""

    def __init__(self, path: str, about: str) -> None:
        self._part, self.__doc__ = attrgetter(f"rule_.{path}"), about

    @overload
    def __get__(self, model: None, kind: type) -> Self: ...
    @overload
    def __get__(self, model: object, kind: type) -> Value: ...
    def __get__(self, model: object | None, kind: type) -> Any:
        return self if model is None else self._part(model)

    def __set__(self, model: object, value: Any) -> NoReturn:
        raise AttributeError("This attribute is a view of rule_; set rule_ instead.")


@dataclass(eq=False, repr=False)
class MeasureFusion(Fusion):
    """A method that learns a measure: `rule_` holds what it learned; the other attributes are views of it.

    `solution_` is what the solver found besides: witnesses, J of each start. A loaded model has no witnesses.
    """

    fuzzy: ClassVar[bool] = True

    _: KW_ONLY
    source_names: Sequence[str] | None = None
    n_jobs: int | None = None
    rule_: FusionRule = field(init=False)
    solution_: Solution = field(init=False)

    measure_ = View[Any]("measure", "The learned measure.")
    polarity_ = View[Floats]("polarity", "+1, or -1 for sources that are inverted before the integral.")
    objective_value_ = View[float]("training.objective_value", "J, on the training data.")
    history_ = View[Floats]("training.history", "J after each round (or generation) of the best start.")
    n_iter_ = View[int]("training.n_iter", "Number of rounds (or generations).")

    @property
    def usage_(self) -> dict[str, Ints]:
        """Return how many training instances "touched" each value of the measure, or gave it weight ("weighted")."""
        return dict(self._record.usage)

    @property
    def _record(self) -> TrainingRecord:
        record = self.rule_.training
        assert record is not None  # every fit writes one
        return record

    @takes_xarray
    def integral(self, X: Any) -> NDArray[Any]:
        """Return the integral C of every instance; inputs as in `fuse`."""
        planes = self._split(X)  # which checks that there is a rule
        return self.rule_.integral(planes, self.n_jobs)

    def fuse(self, X: Any) -> NDArray[Any]:
        planes = self._split(X)
        return self.rule_.fuse(planes, self.n_jobs)

    def explain_pixel(self, sources: Any, row: int, column: int) -> PixelExplanation:
        """Explain one pixel of an image, in a notebook with bars; see `bimichi.explain.explain_pixel`."""
        check_is_fitted(self)
        return explain_pixel(self.rule_, sources, row, column)

    def _repr_html_inner(self) -> str:
        return f"{super()._repr_html_inner()}{self._learned_html()}"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] += self._learned_html()
        return bundle

    def _learned_html(self) -> str:
        """Return what was learned, for a notebook, below scikit-learn's view of parameters; empty before fitting."""
        if not hasattr(self, "rule_"):
            return ""
        selection = selection_of(self.rule_.training)
        chosen = [] if selection is None else [_html.paragraph(selection.sentence()), _html.table(selection.table())]
        return _html.view("Learned", *self.rule_._html_parts(), *chosen)

    def to_markdown(self) -> str:
        """Write the learned measure as a table, values used in training bold; inverted sources are named below it."""
        check_is_fitted(self)
        return self.rule_.to_markdown()

    def report(self, path: str | PathLike[str], sources: Any, **options: Any) -> Any:
        """Write a page that explains every pixel of these sources, and return it; see `bimichi.write_report`."""
        check_is_fitted(self)
        return bimichi.write_report(path, self.rule_, sources, **options)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file without pickle; see docs/model-format.md."""
        check_is_fitted(self)
        self.rule_.save(path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a fitted model; a file of another method is a `ModelFileError`. Otherwise as `FusionRule.load`."""
        rule = FusionRule.load(path)
        found = None if rule.training is None else rule.training.method
        if found != cls.__name__:
            raise ModelFileError(
                f"{path} holds a model of {found or 'no method'}, not of {cls.__name__}.", code="model-of-another"
            )
        with reading(path, cls.__name__):
            return cls()._restored(rule)

    def _restored(self, rule: FusionRule) -> Self:
        record = rule.training
        assert record is not None  # load has looked
        parameters = dict(record.parameters)
        if "solver" in self.get_params(deep=False) and "solver" not in parameters:
            parameters["solver"] = solver_from_record(record.solver, dict(record.solver_options))
        self.set_params(**parameters)
        self.rule_, self.n_features_in_ = rule, rule.n_sources
        if record.classes:
            self.classes_ = np.array(record.classes)
        if record.feature_names is not None:
            self.feature_names_in_ = np.array(record.feature_names, dtype=object)
        self.solution_ = Solution(rule.measure.values, **{name: getattr(record, name) for name in SOLVED})
        return self

    def _set_rule(self, result: FitResult, objective: Objective, solver: Any, **entering: Any) -> Self:
        """Set the rule and the solution, both at once."""
        solution, line = result.solution, result.solution.link
        name, options = solver_record(solver)
        names = getattr(self, "feature_names_in_", None)
        record = TrainingRecord(
            method=type(self).__name__,
            parameters=self._recorded_parameters(),
            objective=objective.name,
            solver=name,
            solver_options=options,
            usage=result.usage,
            classes=np.asarray(getattr(self, "classes_", [])).tolist(),
            feature_names=None if names is None else [str(name) for name in names],
            label_line=None if line is None or objective.links else (line.slope, line.offset),
            **{name: getattr(solution, name) for name in SOLVED},
        )
        entering |= {"polarity": result.polarity, "output": "magnitude" if objective.absolute else "integral"}
        self.solution_, self.rule_ = (
            solution,
            FusionRule(result.measure, training=record, link=line if objective.links else None, **entering),
        )
        return self

    def _recorded_parameters(self) -> dict[str, Any]:
        """Return the parameters that a model file keeps; a solver object is recorded separately."""
        kept = self.get_params(deep=False)
        for name in ("n_jobs", "random_state", "verbose", *([] if isinstance(kept.get("solver"), str) else ["solver"])):
            kept.pop(name, None)
        return {name: _as_json(value) for name, value in kept.items()}


@dataclass(eq=False, repr=False)
class BagFusion(MeasureFusion):
    """A method that learns a measure from labels of bags."""

    needs: ClassVar[Needs] = "bags"

    _: KW_ONLY
    random_state: Any = None
    verbose: int = 0
    nan: Literal["raise", "drop"] = "raise"

    def _fit(self, problem: Any, solver: Any, samples: Sequence[Sample] | None = None, **entering: Any) -> Self:
        options = {name: getattr(self, name) for name in ("random_state", "n_jobs", "verbose")}
        result = fit_measure(problem, solver, samples=samples, names=self._names(), **options)
        return self._set_rule(result, problem.objective, solver, **entering)


def _as_json(value: Any) -> Any:
    """Return a parameter in types of JSON."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _as_json(part) for key, part in value.items()}
    return [_as_json(part) for part in value] if isinstance(value, list | tuple) else value
