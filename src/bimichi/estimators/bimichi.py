"""`BiMIChI`: a bi-capacity learned from labelled bags."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from bimichi.errors import InvalidInputError, ModelFileError
from bimichi.estimators.base import FusionClassifier, Needs, takes_xarray
from bimichi.integral.integrals import choquet
from bimichi.integral.planes import out_of_range
from bimichi.learning.fit import check_training, fit_measure
from bimichi.learning.learned import pack_measure, unpack_measure, version_for
from bimichi.learning.objectives import Objective, get_objective
from bimichi.learning.problem import Solution
from bimichi.learning.scaling import Scale, learn_scale
from bimichi.learning.solvers import get_solver, solver_from_record, solver_record
from bimichi.learning.training import BagsInMemory, Training, is_lazy
from bimichi.measures import files as io
from bimichi.measures.additive import TwoAdditive
from bimichi.measures.base import check_names
from bimichi.measures.compact import pack_counts, unpack_counts

__all__ = ["BiMIChI"]


class BiMIChI(FusionClassifier):
    """Sensor fusion by a Choquet integral over a bi-capacity, learned from labels of bags [1]_.

    Parameters
    ----------
    objective : {"bipolar", "magnitude", "mean"}
        What is minimised. "bipolar" is the paper's Objective Function 1: targets to +1, the rest to -1.
        "magnitude" is its Objective Function 2: targets to either pole, the rest to 0. "mean" is not in the paper:
        every instance of a bag counts; it ranks best on real scenes.
    solver : {"convex", "evolutionary"} or solver object
        "convex" finds better measures, sooner. "evolutionary" is the paper's Algorithm 1. Objects such as
        ``ConvexSolver(n_starts=20)`` set a solver's own options.
    polarity : {"given", "learn"}
        Whether to learn which sources to turn over (x to -x) before the integral. A monotone measure cannot use a
        source that is low on the target; turned over, it can. Signs are compared by the J of few starts of the convex
        solver; all of its starts then look for the best measure with the best signs.
    scale : {None, "minmax", "maxabs"}
        None requires sources in [-1, 1]. Otherwise a map per source is learned in `fit` and kept: "minmax" maps
        its range to [-1, 1], "maxabs" divides by the largest magnitude, so that zero stays zero.
    source_names : sequence of str, optional
        Names of the sources; by default the column names of a data frame, else "1", "2", ...
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Seed of the solver's starts.
    verbose : int, default=0
        Above 0, long searches show a progress bar on a terminal, and log their starts.
    nan : {"raise", "drop"}
        Whether training instances with NaN are an error, or left out with a warning.
    additivity : {None, 1, 2}
        None learns any bi-capacity, which has 3^m elements. 2 learns a 2-additive one, which has 2 m^2 terms: for many
        sources, beyond 14 the only way. 1 learns an additive one, with a weight for each source above zero and one
        below: from few scenes, what it learns is the surest to hold on others. Both have the zero bound, so that the
        objective is "magnitude" or "mean", and the solver "convex".

    Attributes
    ----------
    bicapacity_ : BiCapacity, or TwoAdditive with `additivity`
        What was learned.
    polarity_ : ndarray of shape (n_sources,)
        +1, or -1 for sources that are turned over before the integral.
    objective_value_ : float
        J, on the training bags.
    solution_ : Solution
        What the solver said besides: status, witnesses, lower bound, J of each start.
    usage_ : dict of str to ndarray
        How many training instances "touched" each element, and how many gave it weight ("weighted"). With
        `additivity`, each term, in the order of ``bicapacity_.terms``.
    history_ : ndarray
        J after each round or generation of the best start.
    n_iter_ : int
        Their number.
    classes_ : ndarray of shape (2,)
        Labels; the second one is the target.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty",
       FUZZ-IEEE 2024.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.9, 0.2], [-0.8, -0.4], [-0.7, 0.1], [-0.9, -0.2]])
    >>> model = BiMIChI(random_state=0).fit(X, [1, 1, 0, 0], bags=["a", "a", "b", "b"])
    >>> model.predict_bags(X, ["a", "a", "b", "b"])
    array([1, 0])
    """

    kind: ClassVar[str] = "BiMIChI"
    needs: ClassVar[Needs] = "bags"
    fuzzy: ClassVar[bool] = True

    bicapacity_: Any  # a BiCapacity or a TwoAdditive

    def __init__(
        self,
        objective: str = "bipolar",
        solver: Any = "convex",
        polarity: Literal["given", "learn"] = "given",
        scale: Literal["minmax", "maxabs"] | None = None,
        source_names: Sequence[str] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        nan: Literal["raise", "drop"] = "raise",
        additivity: int | None = None,
    ) -> None:
        self.objective = objective
        self.solver = solver
        self.polarity = polarity
        self.scale = scale
        self.source_names = source_names
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.nan = nan
        self.additivity = additivity

    @property
    def output_range(self) -> tuple[float, float]:
        """Where `fuse` lies: (0, 1) for "magnitude", else (-1, 1)."""
        return getattr(self, "_objective", get_objective(self.objective)).output_range

    def fit(self, X: Any, y: Any = None, bags: Any = None, sample_weight: Any = None) -> Self:
        """Learn the bi-capacity.

        Parameters
        ----------
        X : array-like of shape (n_instances, n_sources), Bags, a Dask array, or a list of scenes
            Instances of all bags. `Bags` bring their labels, so that nothing else is given; so do scenes, which may be
            `Scene` objects, Dask delayed ones, functions that return them, or paths of files of `Scene.save`. Dask
            arrays and lists are read part by part; see `bimichi.learning.streaming`.
        y : array-like of shape (n_instances,)
            Labels of the bags, repeated for each of their instances; two classes.
        bags : array-like of shape (n_instances,), optional
            To which bag each instance belongs; by default every instance is its own bag.
        sample_weight : array-like of shape (n_instances,), optional
            Weights of the bags, repeated for each of their instances.
        """
        objective, solver = get_objective(self.objective, additivity=self.additivity), get_solver(self.solver)
        check_training(objective, solver, self.polarity)
        self._objective = objective
        training: Training
        if is_lazy(X):
            from bimichi.learning.streaming import lazy_training

            self.classes_, training = lazy_training(
                X,
                y,
                bags,
                sample_weight,
                objective,
                solver,
                polarity=self.polarity,
                scaled=self.scale is not None,
                nan=self.nan,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
            self.n_features_in_ = training.n_sources
        else:
            training = BagsInMemory(self._take_bags(X, y, bags, sample_weight))
        return self._learn(training, objective, solver)

    def _learn(self, training: Training, objective: Objective, solver: Any) -> Self:
        names = self._names()
        low, high = training.ranges()
        self._scale = learn_scale(low, high, self.scale)
        if self.scale is None:
            for k in np.flatnonzero((low < -1) | (high > 1)):
                worst = float(max(low[k], high[k], key=abs))
                raise out_of_range(int(k), names, worst, -1.0, "Rescale it, or pass scale='minmax' or 'maxabs'.")
        training = training.scaled(self._scale)
        result = fit_measure(
            training,
            objective,
            solver,
            polarity=self.polarity,
            names=names,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        self.polarity_, self.bicapacity_, self.usage_ = result.polarity, result.measure, result.usage
        self.solution_ = result.solution
        self.objective_value_ = result.solution.objective_value
        self.history_ = result.solution.history
        self.n_iter_ = result.solution.n_iter
        return self

    @takes_xarray
    def integral(self, X: ArrayLike | Sequence[ArrayLike]) -> NDArray[Any]:
        """Return the integral C of every instance, in [-1, 1].

        Parameters
        ----------
        X : array-like of shape (..., n_sources), or list of n_sources planes
            Rows, an image, or planes. NaN in a source gives NaN.
        """
        planes = self._split(X)
        ready = self._scale.apply(planes, self.polarity_)
        return choquet(ready, self.bicapacity_, n_jobs=self.n_jobs)

    def fuse(self, X: ArrayLike | Sequence[ArrayLike]) -> NDArray[Any]:
        """Return the paper's fusion output: C, or |C| for "magnitude". Inputs as in `integral`."""
        integral = self.integral(X)
        return self._objective.output(integral)

    def to_markdown(self) -> str:
        """Write the learned bi-capacity as the paper's table, used elements bold, turned sources named.

        Of a 2-additive one, the terms.
        """
        check_is_fitted(self)
        if isinstance(self.bicapacity_, TwoAdditive):
            table = self.bicapacity_.to_markdown()
        else:
            table = self.bicapacity_.to_markdown(bold=self.usage_["touched"] > 0)
        turned = [name for name, s in zip(self.bicapacity_.source_names, self.polarity_, strict=True) if s < 0]
        note = f"Turned over before the integral: {', '.join(turned)}." if turned else "No source is turned over."
        return f"{table}\n\n{note}"

    def report(self, path: str | PathLike[str], sources: Any, **options: Any) -> None:
        """Write a page that shows these sources fused, and explains every pixel; see `bimichi.report.write_report`."""
        from bimichi.report import write_report  # which imports this module

        write_report(path, self, sources, **options)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file without pickle; see docs/model-format.md."""
        check_is_fitted(self)
        name, options = solver_record(get_solver(self.solver))
        header = {
            "objective": self._objective.name,
            "solver": {"name": name, "options": options},
            "polarity": self.polarity,
            "scale": self.scale,
            "nan": self.nan,
            "additivity": self._objective.additivity,
            "source_names": list(self.bicapacity_.source_names),
            "named_by_user": self.source_names is not None,
            "feature_names": list(getattr(self, "feature_names_in_", [])) or None,
            "classes": self.classes_.tolist(),
            "status": self.solution_.status,
            "objective_value": self.objective_value_,
            "lower_bound": self.solution_.lower_bound,
            "n_iter": self.n_iter_,
        }
        about, measure = pack_measure(self.bicapacity_)
        arrays = measure | {
            "polarity": self.polarity_,
            "centre": self._scale.centre,
            "factor": self._scale.factor,
            "history": self.history_,
        }
        for name, counts in self.usage_.items():
            arrays |= pack_counts(name, counts)
        io.write_model(path, self.kind, header | about, arrays, version_for(about, arrays))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a fitted model. The content is checked; nothing in it is executed."""
        header, arrays = io.read_model(path, cls.kind)
        try:
            return cls()._restore(header, arrays)
        except (InvalidInputError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ModelFileError(f"{path} is not a valid {cls.kind} file: {error}") from error

    def _restore(self, header: dict[str, Any], arrays: dict[str, NDArray[np.float64]]) -> Self:
        additivity = header.get("additivity")
        objective = get_objective(header["objective"], additivity=additivity)
        name = header["solver"]["name"]
        solver = solver_from_record(name, header["solver"]["options"])
        g = unpack_measure(objective, header, arrays)
        m = g.n_sources
        signs, scale = arrays["polarity"], Scale(arrays["centre"], arrays["factor"])
        if not np.isin(signs, (-1.0, 1.0)).all() or not signs.shape == scale.centre.shape == scale.factor.shape == (m,):
            raise InvalidInputError("polarity and scale do not fit the number of sources.")
        if not np.isfinite(scale).all() or header["scale"] not in (None, "minmax", "maxabs"):
            raise InvalidInputError("its scale is not valid.")
        classes = np.array(header["classes"])
        if classes.shape != (2,) or classes.dtype.kind not in "biufU":
            raise InvalidInputError("there must be two classes.")
        values = g.terms if isinstance(g, TwoAdditive) else g.values
        usage = {name: unpack_counts(name, arrays, len(values)) for name in ("touched", "weighted")}
        self.set_params(
            objective=objective.name,
            solver=name if solver == solver_from_record(name, {}) else solver,
            polarity=header["polarity"],
            scale=header["scale"],
            nan=header["nan"],
            additivity=additivity,
            source_names=list(g.source_names) if header["named_by_user"] else None,
        )
        self._objective = objective
        self.bicapacity_, self.polarity_, self._scale, self.classes_, self.usage_ = g, signs, scale, classes, usage
        self.objective_value_, self.history_ = float(header["objective_value"]), arrays["history"]
        self.n_iter_, self.n_features_in_ = int(header["n_iter"]), m
        if header["feature_names"] is not None:
            self.feature_names_in_ = np.array(check_names(header["feature_names"], m), dtype=object)
        bound = header["lower_bound"]
        self.solution_ = Solution(
            values,
            self.objective_value_,
            str(header["status"]),
            self.n_iter_,
            self.history_,
            lower_bound=None if bound is None else float(bound),
        )
        return self
