"""`BiMIChI`: a bi-capacity learned from labelled bags."""

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bimichi.errors import InvalidInputError, warn
from bimichi.fit.cluster import array_dataset, get_executor
from bimichi.fit.engine import link_of_bags, link_of_scenes
from bimichi.fit.objectives import Objective, get_objective
from bimichi.fit.solvers import get_solver
from bimichi.fit.train import Executor, Plan, check_training
from bimichi.integral.planes import check_n_jobs
from bimichi.methods.base import FusionClassifier
from bimichi.methods.measured import BagFusion, View
from bimichi.rule import FusionRule
from bimichi.scenes.bags import Bags
from bimichi.scenes.dataset import Dataset, is_lazy
from bimichi.scenes.sample import learn_scale

CALIBRATION_FOLDS = 5


@dataclass(eq=False, repr=False)
class BiMIChI(FusionClassifier, BagFusion):
    """Sensor fusion by a Choquet integral over a bi-capacity, learned from labels of bags [1]_.

    This is the paper's method, with the settings that you name. `BiMIChICV` chooses them by cross-validation over
    scenes, and gives probabilities: start there, unless you want the paper's objectives as they are.

    Parameters
    ----------
    objective : {"bipolar", "magnitude", "mean", "logistic"}
        What is minimised. "bipolar" is the paper's Objective Function 1: targets to +1, the rest to -1.
        "magnitude" is its Objective Function 2: targets to either pole, the rest to 0. "mean" is not in the paper:
        every instance of a bag counts. Nor is "logistic": the log-loss of every instance, with a slope and an offset
        that are learned as well; its output is the probability of a target.
    solver : {"convex", "evolutionary"} or solver object
        "convex" is quick, and can prove how good its minimum is; "evolutionary" is the paper's Algorithm 1. Objects
        such as ``ConvexSolver(certify=True)`` set a solver's own options.
    polarity : {"given", "learn"}
        Whether to learn which sources to invert (x to -x) before the integral. A monotone measure cannot use a source
        that is low on the target; inverted, it can. A source is inverted only if that clearly helps on scenes (or
        groups of bags) that are left out; see `bimichi.fit.direction`. With fewer than three of them, none is.
    calibrate : bool, default=False
        Whether the output is made a probability of a target, whatever the objective, by Platt's method: the model is
        fitted five more times, each time without a fifth of the scenes (or bags), and log-odds are a line over its
        output for cores of boxes and outside, or for the maxima of bags, that were left out.
    scale : {None, "minmax", "maxabs"}
        None requires sources in [-1, 1]. Otherwise a map per source is learned in `fit` and kept: "minmax" maps
        its range to [-1, 1], "maxabs" divides by the largest magnitude, so that zero stays zero.
    source_names : sequence of str, optional
        By default the column names of a data frame, else "1", "2", ...
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
        sources, and the only way beyond 14. 1 learns an additive one, with a weight for each source above zero and one
        below: from few scenes, it generalises best. Both have the zero bound, so that the objective is "magnitude",
        "mean" or "logistic", and the solver "convex".
    free_scale : bool, default=False
        For "mean": let a C + b come near to the labels, with a slope a >= 0 and an offset b that are also learned, so
        that the measure is free to rank. `fuse` still gives C; `decision_function` gives a C + b.

    Attributes
    ----------
    rule_ : FusionRule
        All that was learned: measure, scale, polarity, output, and the record of the training.
    bicapacity_, measure_ : BiCapacity, or AdditiveBiCapacity with `additivity`
        The measure of the rule.
    polarity_, objective_value_ : ndarray of shape (n_sources,), float
        +1, or -1 for sources that are inverted before the integral; and J, on the training bags.
    solution_ : Solution
        What the solver reports besides: status, witnesses, lower bound, J of each start.
    usage_ : dict of str to ndarray
        How many training instances "touched" each element (each term, with `additivity`), and how many gave it weight
        ("weighted").
    history_, n_iter_ : ndarray, int
        J after each round (or generation) of the best start, and their number.
    classes_ : ndarray of shape (2,)
        Labels; the second one is the target.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty", FUZZ-IEEE
       2024.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.9, 0.2], [-0.8, -0.4], [-0.7, 0.1], [-0.9, -0.2]])
    >>> model = BiMIChI(random_state=0).fit(X, [1, 1, 0, 0], bags=["a", "a", "b", "b"])
    >>> model.predict_bags(X, ["a", "a", "b", "b"])
    array([1, 0])
    """

    objective: str = "bipolar"
    solver: Any = "convex"
    polarity: Literal["given", "learn"] = "given"
    scale: Literal["minmax", "maxabs"] | None = None
    additivity: int | None = None
    free_scale: bool = False
    calibrate: bool = False

    bicapacity_ = View[Any]("measure", "The learned bi-capacity; an `AdditiveBiCapacity` with `additivity`.")

    @property
    def output_range(self) -> tuple[float, float]:
        """Range of `fuse`: (0, 1) for "magnitude" and "logistic", else (-1, 1)."""
        return self.rule_.output_range if hasattr(self, "rule_") else get_objective(self.objective).output_range

    def _has_link(self) -> bool:
        if hasattr(self, "rule_"):
            return super()._has_link()
        return bool(self.calibrate) or get_objective(self.objective).links

    def fit(self, X: Any, y: Any = None, bags: Any = None, sample_weight: Any = None) -> Self:
        """Learn the bi-capacity.

        Parameters
        ----------
        X : array-like of shape (n_instances, n_sources), Bags, a Dask array, or a list of scenes
            Instances of all bags. `Bags` bring their labels, so that nothing else is given; so do scenes, which may be
            `Scene` objects, Dask delayed ones, functions that return them, or paths of files of `Scene.save`. Dask
            arrays and lists are read part by part; see `bimichi.fit.train`. An array or a dataset of xarray
            brings the names of its sources; `y`, `bags` and `sample_weight` then have its shape, too.
        y : array-like of shape (n_instances,)
            Labels of the bags, repeated for each of their instances; two classes.
        bags : array-like of shape (n_instances,), optional
            To which bag each instance belongs; by default every instance is its own bag.
        sample_weight : array-like of shape (n_instances,), optional
            Weights of the bags, repeated for each of their instances.
        """
        objective, solver = self._objective(), get_solver(self.solver)
        check_training(objective, solver, self.polarity)
        lazy = is_lazy(X)
        executor = get_executor(self.n_jobs) if lazy else Executor(self.n_jobs)
        check_training(objective, solver, self.polarity, executor.offers)
        if hasattr(X, "__dask_graph__"):
            if self.calibrate:
                raise InvalidInputError(
                    "calibrate=True takes no Dask arrays; pass X.compute(), or a list of scenes.",
                    code="dask-unsupported",
                )
            self.classes_, data = array_dataset(X, y, bags, sample_weight, self.nan)
        elif lazy:
            data = self._take_scenes(X, y, bags, sample_weight)
        else:
            rows = self._take_bags(X, y, bags, sample_weight)
            data = Dataset.of([rows])
        self._learn(data, executor, Plan.of(objective, solver, self.polarity, len(data), whole=not lazy), solver)
        return self._calibrated(data if lazy else rows) if self.calibrate else self

    def _learn(self, data: Dataset, executor: Executor, plan: Plan, solver: Any) -> Self:
        scale = None
        if self.scale is not None:
            scale = learn_scale(*executor.ranges(data, self.verbose), self.scale)
        training = executor.train(data, plan, scale, self.verbose)
        self.n_features_in_ = m = training.n_sources
        if scale is None:
            training.check_range(self._names())
        centre, factor = learn_scale(np.zeros(m), np.zeros(m), None) if scale is None else scale
        problem = executor.problem(training, plan, self.n_jobs)
        samples = training.samples if self.polarity == "learn" else None
        return self._fit(problem, solver, samples, centre=centre, factor=factor, scale=self.scale)

    def _calibrated(self, data: Dataset | Bags) -> Self:
        """Add a link to the rule, from outputs of models that have not learned from what they are given."""

        def fit(some: Any) -> FusionRule:
            rule: FusionRule = clone(self).set_params(calibrate=False, source_names=None).fit(some).rule_
            return rule

        if isinstance(data, Bags):
            link = link_of_bags(data, fit, CALIBRATION_FOLDS)
        else:
            link = link_of_scenes(data, fit, CALIBRATION_FOLDS, check_n_jobs(self.n_jobs))
        if link is None:
            warn(
                "There are too few targets, or they rank too low, to calibrate the output.",
                code="calibration-failed",
                stacklevel=3,
            )
            return self
        self.rule_ = replace(self.rule_, link=link)
        return self

    def _objective(self) -> Objective:
        return get_objective(self.objective, additivity=self.additivity, free_scale=self.free_scale)

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return C (2|C| - 1 for "magnitude"), a C + b with a free scale, or the log-odds; above 0 for targets."""
        output = super().decision_function(X)
        line = None if self.rule_.link else self._record.label_line
        return output if line is None else line[0] * output + line[1]
