"""The registry of methods: which there are, how each is made, and in which tables it appears; see docs/extending.md."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from itertools import groupby
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from bimichi import methods as estimators
from bimichi._checks import check_choice
from bimichi.errors import InvalidInputError
from bimichi.fit.objectives import OBJECTIVES
from bimichi.fit.solvers import EvolutionarySolver
from bimichi.methods.base import Fusion
from bimichi.registry import Registry

Labels = Literal["none", "bags", "pixels"]
Table = Literal["comparison", "study"]
SOURCE = "{source}"


class Candidate(NamedTuple):
    """A row of a table before it is run: a method, not fitted, and the labels to learn from.

    A method that needs a label for every pixel gives each the label of its bag if `labels` is "bags".
    """

    name: str
    kind: str
    labels: Labels
    method: Fusion


@dataclass(frozen=True)
class Method:
    """An entry of the registry.

    Parameters
    ----------
    name : str
        Name of its row. ``"{source}"`` in it makes one row for each source, whose index is the parameter `source`.
    estimator : subclass of Fusion
        The class.
    parameters : mapping of str to value
        Parameters of the class that differ from its defaults, beyond those that `make` passes on by itself.
    kind : str, default="other"
        The group that it belongs to; the study compares the best of each group.
    tables : tuple of {"comparison", "study"}, default=("comparison",)
        Where it is a row: in `paper_methods`, in the study, or nowhere.
    labels : {"none", "bags", "pixels"}
        Labels to learn from; by default those that the class needs.
    paper : bool, default=False
        Whether it is a row of the paper's own table.
    citation : str, optional
        Where the method was published.
    """

    name: str
    estimator: type[Fusion]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "other"
    tables: tuple[Table, ...] = ("comparison",)
    labels: Labels | None = None
    paper: bool = False
    citation: str = ""

    def __post_init__(self) -> None:
        if self.labels is None:
            object.__setattr__(self, "labels", labels_needed(self.estimator))

    def make(
        self, source_names: Sequence[str] | None = None, random_state: Any = 0, n_jobs: int | None = None, **more: Any
    ) -> Fusion:
        """Return the method, not fitted, for sources in [-1, 1].

        Classes that have such parameters are given the names, the seed, the number of threads, and
        ``bipolar_input=True``; `more` are other parameters.
        """
        names = None if source_names is None else list(source_names)
        accepted = signature(self.estimator).parameters
        common = {"source_names": names, "random_state": random_state, "n_jobs": n_jobs, "bipolar_input": True}
        shared = {name: value for name, value in common.items() if name in accepted}
        return self.estimator(**(shared | dict(self.parameters) | more))


def _check(name: str, loaded: Any) -> tuple[Method, ...]:
    """Return the rows of an entry: a class, a `Method`, or a function that returns several of these."""
    if isinstance(loaded, type) and issubclass(loaded, Fusion):
        return (Method(name, loaded),)
    rows = loaded() if callable(loaded) and not isinstance(loaded, type) else loaded
    rows = (rows,) if isinstance(rows, Method) else tuple(rows)
    if not rows or not all(isinstance(row, Method) for row in rows):
        raise InvalidInputError(
            f"{name} must be a subclass of Fusion, a Method, or a function that returns Methods.",
            code="method-kind",
            argument=name,
        )
    return rows


METHODS = Registry(
    "bimichi.methods",
    {
        "baselines": f"{__name__}:_baselines",
        "mici": f"{__name__}:_mici",
        "bi-michi": f"{__name__}:_bi_michi",
    },
    _check,
)
"""The rows of tables, those of a family together; `registered_methods` lists them."""


def register_method(name: str, estimator: type[Fusion], parameters: Any = MappingProxyType({}), **more: Any) -> Method:
    """Add a method to the registry: `Method` documents the parameters.

    Raises
    ------
    InvalidInputError
        If the class is no `Fusion`, or if a row of the same table has this name.
    """
    if not (isinstance(estimator, type) and issubclass(estimator, Fusion)):
        raise InvalidInputError(
            f"estimator must be a subclass of Fusion, got {estimator!r}.",
            code="method-kind",
            argument="estimator",
            value=estimator,
        )
    entry = Method(name, estimator, parameters, **more)
    for other in registered_methods():
        if other.name == name and set(other.tables) & set(entry.tables):
            raise InvalidInputError(
                f"name is {name!r}, which {other.estimator.__name__} has; choose another name.",
                code="method-taken",
                argument="name",
            )
    METHODS.register(name, (*METHODS.get(name, ()), entry))
    return entry


def labels_needed(estimator: type[Fusion]) -> Labels:
    """Return the labels that a class of methods learns from."""
    return "bags" if estimator.needs == "bags" else "pixels" if estimator.needs == "instances" else "none"


def registered_methods(table: Table | None = None) -> list[Method]:
    """Return the entries of the registry in order: all, or those of one table."""
    rows: list[Method] = []
    taken: set[tuple[str, Table]] = set()
    for name, family in list(METHODS.items()):
        places = {(row.name, place) for row in family for place in row.tables}
        if places & taken:
            METHODS.leave_out(name, "a table has a row of its name already")
        else:
            rows += [row for row in family if table is None or table in row.tables]
            taken |= places
    return rows


def paper_methods(
    source_names: Sequence[str],
    detector: estimators.DetectorMask | None = None,
    random_state: Any = 0,
    preset: Literal["default", "paper"] = "default",
) -> dict[str, Fusion]:
    """Return the methods of the paper's table, for sources in [-1, 1], and those registered besides.

    Beyond the paper: the empty map, MICI's other objectives, the `mean` objective, and a bi-capacity fitted to the
    label of every instance, which shows what labels of bags cost.

    Parameters
    ----------
    source_names : sequence of str
        Names of the sources.
    detector : DetectorMask, optional
        A detector with weights or ready-made masks; without, its row says that it was not run. A network that is no
        Mask R-CNN has a row of its own, under its name.
    random_state : int, optional
        Seed of all methods that draw random numbers.
    preset : {"default", "paper"}
        "paper" returns the paper's own rows alone, with the empty map and KNN of five neighbours, of which the paper
        speaks; and its search, with its settings, for Bi-MIChI.
    """
    check_choice(preset, "preset", ("default", "paper"))
    rows = {row.name: row.method for row in _rows("comparison", source_names, random_state, None)}
    if preset == "paper":
        rows = _as_in_the_paper(rows, source_names, random_state)
    return rows if detector is None else _with_detector(rows, detector)


def _as_in_the_paper(rows: dict[str, Fusion], source_names: Sequence[str], random_state: Any) -> dict[str, Fusion]:
    """Keep the rows of the paper, and give Bi-MIChI its search."""
    printed = {entry.name for entry in registered_methods("comparison") if entry.paper}
    printed |= {EMPTY} | {entry.replace(SOURCE, source) for entry in printed for source in source_names}
    kept: dict[str, Fusion] = {}
    for name, method in rows.items():
        if name not in printed:
            continue
        if isinstance(method, estimators.BiMIChI):
            method.set_params(solver=EvolutionarySolver.preset("paper"))
        kept[name] = method
        if isinstance(method, estimators.KNNFusion):
            kept["KNN, k = 5"] = estimators.KNNFusion(n_neighbors=5, random_state=random_state)
    return kept


def _with_detector(rows: dict[str, Fusion], detector: estimators.DetectorMask) -> dict[str, Fusion]:
    """Put a detector in its row, or, if it is another network than that of the row, in one of its own below it."""
    title = detector.title
    detectors = {DETECTOR: detector} if title == DETECTOR else {DETECTOR: rows[DETECTOR], title: detector}
    listed = [detectors if name == DETECTOR else {name: method} for name, method in rows.items()]
    return {name: method for some in listed for name, method in some.items()}


def candidates(
    source_names: Sequence[str],
    which: Literal["all", "bi-michi"] = "all",
    random_state: int = 0,
    n_jobs: int | None = None,
) -> list[Candidate]:
    """Return the rows of the study, all or those of Bi-MIChI alone, for sources of these names in [-1, 1]."""
    check_choice(which, "which", ("all", "bi-michi"))
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
                rows.append(Candidate(entry.name.replace(SOURCE, source), entry.kind, entry.labels or "none", method))
    return rows


BOTH: tuple[Table, ...] = ("comparison", "study")
STUDY: tuple[Table, ...] = ("study",)
DETECTOR, EMPTY = "Mask R-CNN", "empty map"
TITLES = {"bipolar": "objective 1", "magnitude": "objective 2"}  # in the paper

BI_MICHI = "Vakharia and Du, FUZZ-IEEE 2024"
QP = "Grabisch and Nicolas, Fuzzy Sets and Systems 65, 1994"
MICI = "Du and Zare, IEEE TGRS 57(5), 2019"


def _baselines() -> Iterator[Method]:
    yield Method(EMPTY, estimators.ConstantFusion, kind="empty", tables=BOTH)
    yield Method("source {source}", estimators.SingleSource, kind="source", paper=True)
    yield Method("source {source}", estimators.SignedSource, kind="source", tables=STUDY)
    yield Method("source {source}, inverted", estimators.SignedSource, {"sign": -1}, kind="source", tables=STUDY)
    yield Method("min", estimators.MinFusion, kind="average", paper=True)
    yield Method("max", estimators.MaxFusion, kind="average", paper=True)
    yield Method("mean", estimators.MeanFusion, kind="average", paper=True)
    yield Method("weighted mean", estimators.WeightedMeanFusion, kind="average", paper=True)
    yield Method("KNN", estimators.KNNFusion, kind="classifier", paper=True)
    yield Method("SVM", estimators.SVMFusion, kind="classifier", paper=True)
    boosting: dict[str, Any] = {"kind": "boosting", "tables": STUDY}
    yield Method("gradient boosting, pixel labels", estimators.GradientBoosting, **boosting)
    yield Method("gradient boosting, bag labels", estimators.GradientBoosting, labels="bags", **boosting)
    yield Method(DETECTOR, estimators.DetectorMask, kind="detector", paper=True, citation="He et al., ICCV 2017")
    for suffix, tables in (("", ("comparison",)), (", pixel labels", STUDY)):
        about: dict[str, Any] = {"kind": "pixels", "tables": tables}
        yield Method(f"CI-QP{suffix}", estimators.ChoquetQP, paper=not suffix, citation=QP, **about)
        yield Method(f"bi-capacity QP{suffix}", estimators.BiCapacityQP, **about)


def _mici() -> Iterator[Method]:
    about: dict[str, Any] = {"kind": "mici", "citation": MICI}
    yield Method("MICI noisy-or", estimators.MICI, {"objective": "noisy-or"}, paper=True, **about)
    yield Method("MICI min-max", estimators.MICI, {"objective": "min-max"}, **about)
    yield Method("MICI generalised mean", estimators.MICI, {"objective": "generalized-mean"}, **about)
    yield Method("MICI mean", estimators.MICI, {"objective": "mean"}, tables=(), **about)
    yield Method("MICI regression", estimators.MICIRegressor, tables=(), **about)
    yield Method("MICI-BFM", estimators.BinaryMICI, kind="mici", paper=True, citation="Du et al., IEEE SSCI 2019")


def _bi_michi() -> Iterator[Method]:
    about: dict[str, Any] = {"kind": "bi-michi", "citation": BI_MICHI}
    convex = [name for name, objective in OBJECTIVES.items() if objective.convex]  # which the default solver minimises
    for objective in convex:
        name, paper = f"Bi-MIChI ({TITLES.get(objective, objective)})", objective in TITLES
        yield Method(name, estimators.BiMIChI, {"objective": objective}, paper=paper, **about)
    yield Method("Bi-MIChI auto", estimators.BiMIChICV, tables=BOTH, **about)
    for order in (1, 2):
        rare = {"objective": "logistic", "additivity": order, "sources": "rarity", "labels": "cores"}
        cores = rare | {"sources": "given"}
        for variant, candidate in (("rarity-scaled, cores of boxes", rare), ("cores of boxes", cores)):
            parameters = {"candidates": [candidate], "calibrate": False, "polarity": "given"}
            name = f"Bi-MIChI logistic, {order}-additive, {variant}"
            yield Method(name, estimators.BiMIChICV, parameters, tables=STUDY, **about)
    calibrated = {"objective": "mean", "additivity": 1, "calibrate": True}
    yield Method("Bi-MIChI mean, 1-additive, calibrated", estimators.BiMIChI, calibrated, tables=STUDY, **about)
    additive = [("mean", 2), ("mean", 1), ("logistic", 2), ("logistic", 1)]
    for objective, additivity in (*((objective, None) for objective in convex), *additive):
        name = f"Bi-MIChI {objective}" + (f", {additivity}-additive" if additivity else "")
        parameters = {"objective": objective, "additivity": additivity}
        yield Method(f"{name}, polarity given", estimators.BiMIChI, parameters, tables=STUDY, **about)
        learned = parameters | {"polarity": "learn"}
        yield Method(f"{name}, polarity learned", estimators.BiMIChI, learned, tables=STUDY, **about)
