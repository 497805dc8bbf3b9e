"""The registry of methods: which there are, how each is made, and in which tables it appears.

A new method is a subclass of `Fusion` and one line, ``register_method("its name", ItsClass)``. `paper_methods`, the
rows of the study, the command line, the table of `docs/methods.md` and the contract tests all follow from the registry.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from itertools import groupby
from typing import Any, Literal, NamedTuple

from bimichi import estimators
from bimichi.errors import InvalidInputError
from bimichi.estimators.base import Fusion
from bimichi.learning.objectives import OBJECTIVES

__all__ = [
    "Candidate",
    "Method",
    "candidates",
    "labels_needed",
    "paper_methods",
    "register_method",
    "registered_methods",
]

Labels = Literal["none", "bags", "pixels"]
Table = Literal["comparison", "study"]
SOURCE = "{source}"


class Candidate(NamedTuple):
    """A row of a table, before it is run.

    Attributes
    ----------
    name : str
        Name of the row.
    kind : str
        The group that it belongs to, such as "source" or "bi-michi".
    labels : {"none", "bags", "pixels"}
        Labels to learn from. A method that needs a label for every pixel gives each the label of its bag if it learns
        from bags.
    method : Fusion
        Not fitted yet.
    """

    name: str
    kind: str
    labels: Labels
    method: Fusion


@dataclass(frozen=True)
class Method:
    """An entry of the registry; see `register_method` for its fields."""

    name: str
    estimator: type[Fusion]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "other"
    tables: tuple[Table, ...] = ("comparison",)
    labels: Labels = "none"
    paper: bool = False
    citation: str = ""

    def make(
        self,
        source_names: Sequence[str] | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        **parameters: Any,
    ) -> Fusion:
        """Return the method, not fitted, for sources in [-1, 1].

        Parameters
        ----------
        source_names, random_state, n_jobs
            Passed on if the class has such parameters.
        **parameters
            Parameters of the class that replace those of the entry.
        """
        names = None if source_names is None else list(source_names)
        common = {"source_names": names, "random_state": random_state, "n_jobs": n_jobs, "bipolar_input": True}
        known = signature(self.estimator).parameters
        shared = {name: value for name, value in common.items() if name in known}
        return self.estimator(**(shared | dict(self.parameters) | parameters))


_REGISTRY: list[Method] = []


def register_method(
    name: str,
    estimator: type[Fusion],
    parameters: Mapping[str, Any] | None = None,
    *,
    kind: str = "other",
    tables: Sequence[Table] = ("comparison",),
    labels: Labels | None = None,
    paper: bool = False,
    citation: str = "",
) -> Method:
    """Add a method to the registry.

    Parameters
    ----------
    name : str
        Name of its row. ``"{source}"`` in it makes one row for each source, whose index is the parameter `source`.
    estimator : subclass of Fusion
        The class.
    parameters : mapping of str to value, optional
        Parameters of the class, as far as they are not its defaults. `source_names`, `random_state`, `n_jobs` and
        ``bipolar_input=True`` are passed by themselves to classes that have them.
    kind : str, default="other"
        The group that it belongs to; the study compares the best of each group.
    tables : sequence of {"comparison", "study"}, default=("comparison",)
        Where it is a row: in `paper_methods`, in the study, or nowhere.
    labels : {"none", "bags", "pixels"}, optional
        Labels to learn from; by default those that the class needs.
    paper : bool, default=False
        Whether it is a row of the paper's own table.
    citation : str, optional
        Where the method was published.

    Raises
    ------
    InvalidInputError
        If the class is no `Fusion`, or if a row of the same table has this name.
    """
    if not (isinstance(estimator, type) and issubclass(estimator, Fusion)):
        raise InvalidInputError(f"estimator must be a subclass of Fusion, got {estimator!r}.")
    for other in _REGISTRY:
        if other.name == name and (set(other.tables) & set(tables) or not (other.tables or tables)):
            raise InvalidInputError(f"name is {name!r}, which {other.estimator.__name__} has; choose another name.")
    labels = labels or labels_needed(estimator)
    entry = Method(name, estimator, parameters or {}, kind, tuple(tables), labels, paper, citation)
    _REGISTRY.append(entry)
    return entry


def labels_needed(estimator: type[Fusion]) -> Labels:
    """Return the labels that a class of methods learns from."""
    return "bags" if estimator.needs == "bags" else "pixels" if estimator.needs == "instances" else "none"


def registered_methods(table: Table | None = None) -> list[Method]:
    """Return the entries of the registry in order: all, or those of one table."""
    return [entry for entry in _REGISTRY if table is None or table in entry.tables]


def paper_methods(
    source_names: Sequence[str], detector: estimators.DetectorMask | None = None, random_state: Any = 0
) -> dict[str, Fusion]:
    """Return the methods of the paper's table, for sources in [-1, 1], and those registered to stand beside them.

    Beyond the paper: the empty map, MICI's other objectives, the `mean` objective, and a bi-capacity fitted to the
    label of every instance, which shows what labels of bags cost.

    Parameters
    ----------
    source_names : sequence of str
        Names of the sources.
    detector : DetectorMask, optional
        A detector with weights or ready-made masks; without, its row says that it was not run.
    random_state : int, optional
        Seed of all methods that draw random numbers.
    """
    rows = {row.name: row.method for row in _rows("comparison", source_names, random_state, None)}
    return rows if detector is None else rows | {DETECTOR: detector}


def candidates(
    source_names: Sequence[str],
    which: Literal["all", "bi-michi"] = "all",
    random_state: int = 0,
    n_jobs: int | None = None,
) -> list[Candidate]:
    """Return the rows of the study, for sources of these names in [-1, 1].

    Parameters
    ----------
    source_names : sequence of str
        Names of the sources.
    which : {"all", "bi-michi"}
        All rows, or those of Bi-MIChI alone.
    random_state, n_jobs
        As in `BiMIChI`.
    """
    if which not in ("all", "bi-michi"):
        raise InvalidInputError(f"which must be 'all' or 'bi-michi', got {which!r}.")
    rows = _rows("study", source_names, random_state, n_jobs)
    return [row for row in rows if which in ("all", row.kind)]


def _rows(table: Table, source_names: Sequence[str], random_state: Any, n_jobs: int | None) -> list[Candidate]:
    """Make the rows of a table. Neighbouring entries that have a row for each source take turns, source by source."""
    rows = []
    for each_source, group in groupby(registered_methods(table), key=lambda entry: SOURCE in entry.name):
        entries = list(group)
        for k, source in enumerate(source_names if each_source else [""]):
            for entry in entries:
                method = entry.make(source_names, random_state, n_jobs, **({"source": k} if each_source else {}))
                rows.append(Candidate(entry.name.replace(SOURCE, source), entry.kind, entry.labels, method))
    return rows


BOTH: tuple[Table, ...] = ("comparison", "study")
STUDY: tuple[Table, ...] = ("study",)
DETECTOR = "Mask R-CNN"
TITLES = {"bipolar": "objective 1", "magnitude": "objective 2"}
"""What the paper calls its objectives."""

BI_MICHI = (
    'H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty", FUZZ-IEEE 2024'
)
MICI = (
    'X. Du and A. Zare, "Multiple Instance Choquet Integral Classifier Fusion and Regression for Remote Sensing '
    'Applications", IEEE TGRS 57(5), 2019'
)
BINARY = (
    'X. Du, A. Zare and D. T. Anderson, "Multiple Instance Choquet Integral with Binary Fuzzy Measures for Remote '
    'Sensing Classifier Fusion with Imprecise Labels", IEEE SSCI 2019'
)
CI_QP = (
    'M. Grabisch and J.-M. Nicolas, "Classification by fuzzy integral: performance and tests", Fuzzy Sets and Systems '
    "65, 1994"
)
MASK_RCNN = 'K. He, G. Gkioxari, P. Dollár and R. Girshick, "Mask R-CNN", ICCV 2017'


def _register_all() -> None:
    """One line for each method, in the order of the tables."""
    add = register_method
    add("empty map", estimators.ConstantFusion, kind="empty", tables=BOTH)
    add("source {source}", estimators.SingleSource, kind="source", paper=True)
    add("source {source}", estimators.SignedSource, kind="source", tables=STUDY)
    add("source {source}, inverted", estimators.SignedSource, {"sign": -1}, kind="source", tables=STUDY)
    add("min", estimators.MinFusion, kind="average", paper=True)
    add("max", estimators.MaxFusion, kind="average", paper=True)
    add("mean", estimators.MeanFusion, kind="average", paper=True)
    add("weighted mean", estimators.WeightedMeanFusion, kind="average", paper=True)
    add("KNN", estimators.KNNFusion, kind="classifier", paper=True)
    add("SVM", estimators.SVMFusion, kind="classifier", paper=True)
    add("gradient boosting, pixel labels", estimators.GradientBoosting, kind="boosting", tables=STUDY)
    add("gradient boosting, bag labels", estimators.GradientBoosting, kind="boosting", tables=STUDY, labels="bags")
    add(DETECTOR, estimators.DetectorMask, kind="detector", paper=True, citation=MASK_RCNN)
    for suffix, tables in (("", ("comparison",)), (", pixel labels", STUDY)):
        add(f"CI-QP{suffix}", estimators.ChoquetQP, kind="pixels", tables=tables, paper=not suffix, citation=CI_QP)
        add(f"bi-capacity QP{suffix}", estimators.BiCapacityQP, kind="pixels", tables=tables)
    add("MICI noisy-or", estimators.MICI, {"objective": "noisy-or"}, kind="mici", paper=True, citation=MICI)
    add("MICI min-max", estimators.MICI, {"objective": "min-max"}, kind="mici", citation=MICI)
    add("MICI generalised mean", estimators.MICI, {"objective": "generalized-mean"}, kind="mici", citation=MICI)
    add("MICI mean", estimators.MICI, {"objective": "mean"}, kind="mici", tables=(), citation=MICI)
    add("MICI regression", estimators.MICIRegressor, kind="mici", tables=(), citation=MICI)
    add("MICI-BFM", estimators.BinaryMICI, kind="mici", paper=True, citation=BINARY)
    given: dict[str, Any] = {"kind": "bi-michi", "citation": BI_MICHI}
    for objective in OBJECTIVES:
        name, paper = f"Bi-MIChI ({TITLES.get(objective, objective)})", objective in TITLES
        add(name, estimators.BiMIChI, {"objective": objective}, paper=paper, **given)
    for objective, additivity in (*((objective, None) for objective in OBJECTIVES), ("mean", 2), ("mean", 1)):
        name = f"Bi-MIChI {objective}" + (f", {additivity}-additive" if additivity else "")
        parameters = {"objective": objective, "additivity": additivity}
        add(f"{name}, polarity given", estimators.BiMIChI, parameters, tables=STUDY, **given)
        learned = parameters | {"polarity": "learn"}
        add(f"{name}, polarity learned", estimators.BiMIChI, learned, tables=STUDY, **given)


_register_all()
