"""From a `Dataset` to a measure: parts are read, reduced to what learning needs and released; a solver follows."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

import bimichi.scenes.sample as sampling
from bimichi._checks import check_choice
from bimichi._progress import progress_bar
from bimichi._types import Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.fit.direction import LEAST, ROWS as POLARITY_ROWS, trusted_signs
from bimichi.fit.objectives import Objective
from bimichi.fit.problem import IN_MEMORY, InMemory, Problem, Solution, Summed, check_solver, needs_of
from bimichi.fit.spaces.base import Space, Usage
from bimichi.integral.planes import check_n_jobs, out_of_range
from bimichi.measures.lattice import random_generator
from bimichi.scenes.bags import Bags
from bimichi.scenes.dataset import Dataset, Part
from bimichi.scenes.labels import scene_labels
from bimichi.scenes.sample import Sample, Scale
from bimichi.scenes.scene import check_joins

NOTHING = np.empty(0)
GROUPS = 5  # of neighbouring bags, where there are no scenes to leave out

Keep = Literal["sums", "relevant", "merged", "all", "whole"]
"""Of a part: the quadratic form, the instances that may decide a bag, those that differ, or all; "whole" for all of
data in memory, of which equal bags of one instance are merged."""


class Plan(NamedTuple):
    """A plan of what to keep of each part."""

    objective: Objective
    keep: Keep
    groups: int = 0  # of neighbouring bags of which samples are drawn, to learn signs; 0 for none

    @classmethod
    def of(cls, objective: Objective, solver: Any, polarity: str, n_parts: int, whole: bool) -> "Plan":
        """Return the plan that keeps as little as a solver needs, or all of data that are in memory as a whole."""
        groups = 0 if polarity != "learn" else GROUPS if whole or n_parts < LEAST else 1
        if whole:
            return cls(objective, "whole", groups)
        needs = needs_of(solver, objective)
        keep: Keep = "merged" if groups else "relevant"
        return cls(objective, "all" if "in memory" in needs else keep if "rows" in needs else "sums", groups)


class Reduced(NamedTuple):
    """One part, reduced to what is kept of it."""

    n_sources: int
    n_given: int  # number of instances, including those that were left out
    labels: NDArray[Any]  # of its bags
    weights: Floats
    usage: Usage | None = None  # None if it has no labelled bags, or leaves [-1, 1]
    content: Any = None  # bags, or a quadratic form
    low: Floats = NOTHING  # the least and the greatest value of each source
    high: Floats = NOTHING
    name: str = ""
    source_names: tuple[str, ...] = ()
    samples: tuple[Sample, ...] = ()


def summarise(part: Part) -> Reduced:
    """Return the size of a part and the range of its sources alone."""
    low, high = np.full(part.n_sources, np.inf), np.full(part.n_sources, -np.inf)
    if part.bags is not None:
        low, high = (np.array([of(column) for column in part.bags.X.T], dtype=float) for of in (np.min, np.max))
    size = (part.n_sources, part.n_given, np.empty(0, bool), np.empty(0))
    return Reduced(*size, low=low, high=high, name=part.name, source_names=part.source_names)


def reduce_part(part: Part, plan: Plan, scale: Scale | None = None, n_jobs: int | None = 1) -> Reduced:
    """Scale a part, and keep what the plan says; only its range if that is not in [-1, 1]."""
    if part.bags is not None and scale is not None:
        part = part._replace(bags=scale.bags(part.bags))
    summary, bags = summarise(part), part.bags
    if bags is None or summary.low.min() < -1 or summary.high.max() > 1:
        return summary
    kept = reduce_bags(bags, plan.objective, plan.keep, n_jobs)
    samples = _samples(part, plan.groups, scale) if plan.groups else ()
    learned = {name: getattr(kept, name) for name in ("labels", "weights", "usage", "content")}
    return summary._replace(samples=samples, **learned)


def reduce_bags(
    bags: Bags, objective: Objective, keep: Keep, n_jobs: int | None = 1, shared: dict[str, Any] | None = None
) -> Reduced:
    """Keep of bags what learning by an objective needs; `shared` has what several objectives need of the same bags."""
    space, shared = objective.space(bags.n_sources), {} if shared is None else shared

    def once(key: str, make: Callable[[], Any]) -> Any:
        if key not in shared:
            shared[key] = make()
        return shared[key]

    usage = once(f"{type(space).__name__} {objective.measure}", lambda: space.count_usage(bags.X, n_jobs))
    content: Any = bags
    if keep == "whole":
        content = bags.singles_merged()
    elif keep != "all":
        content = once("merged", lambda: bags.merged(n_jobs))
    if keep == "sums":
        content = space.instances(content, n_jobs).gram(objective.parameters)
    elif keep == "relevant":
        content = content.relevant(objective.relevant, space.zero_bound, n_jobs)
    return Reduced(bags.n_sources, len(bags.X), bags.labels, bags.weights, usage, content)


def _samples(part: Part, n_groups: int, scale: Scale | None) -> tuple[Sample, ...]:
    """Draw samples of a part whose bags are scaled already."""
    assert part.bags is not None
    labels = None if part.scene is None else scene_labels(part.scene)
    if part.scene is None or labels is None:
        return tuple(sampling.grouped_bags(part.name, part.bags, sampling.bag_groups(part.bags, None, n_groups)))
    region = sampling.strips(part.scene, n_groups) if n_groups > 1 else None
    samples = sampling.grouped_pixels(part.scene, part.scene.sources, labels, region, POLARITY_ROWS)
    return tuple(sample if scale is None else sampling.scaled_sample(sample, scale) for sample in samples)


class Training:
    """All reduced parts, checked and added up as they come.

    Attributes
    ----------
    low, high : ndarray
        The least and the greatest value of each source.
    labels, weights : ndarray
        Of all bags.
    usage : Usage
        How many instances use each code of the space that is searched.
    samples : list of Sample
        Rows of scenes, or of groups of bags, by which signs are decided.
    starts, n_bags : list of int
        The number of instances before each part, and of its bags.
    """

    def __init__(self, parts: Iterable[Reduced]) -> None:
        self.starts: list[int] = [0]
        self.n_bags: list[int] = []
        self.usage: Usage | None = None
        self.samples: list[Sample] = []
        self.source_names: tuple[str, ...] = ()
        self._form: Any = None  # the sum of those of all parts
        self._bags: deque[tuple[int, Bags]] = deque()
        scenes: dict[str, tuple[str, ...]] = {}
        columns: list[tuple[Any, ...]] = []
        for part in parts:
            if part.source_names:  # rows of an array have none
                check_joins(part, scenes)
                self.source_names = part.source_names
            if isinstance(part.content, Bags):
                self._bags.append((self.starts[-1], part.content))
            elif part.content is not None:
                self._form = part.content if self._form is None else self._form + part.content
            if part.usage is not None:
                self.usage = part.usage if self.usage is None else self.usage + part.usage
            self.starts.append(self.starts[-1] + part.n_given)
            self.n_bags.append(len(part.labels))
            self.samples += part.samples
            self.n_sources = part.n_sources
            columns.append((part.low, part.high, part.labels, part.weights))
        if not columns:
            raise InvalidInputError("There are no scenes to learn from; give at least one.", code="scenes-empty")
        lows, highs, labels, weights = zip(*columns, strict=True)
        self.low, self.high = np.min(lows, axis=0), np.max(highs, axis=0)
        self.labels, self.weights = np.concatenate(labels), np.concatenate(weights)

    def check_range(self, names: Sequence[str] | None) -> None:
        """Raise an error if a source leaves [-1, 1]."""
        for k in np.flatnonzero((self.low < -1) | (self.high > 1)):
            worst = float(max(self.low[k], self.high[k], key=abs))
            raise out_of_range(int(k), names, worst, -1.0, "Rescale it, or pass scale='minmax' or 'maxabs'.")

    def problem(self, objective: Objective, keep: Keep, n_jobs: int | None = None) -> InMemory | Summed:
        """Return what a solver asks, which takes over the bags."""
        if self._form is not None:
            return Summed(self._form, self.labels, self.weights, objective, self.n_sources, usage=self.usage)
        return InMemory(_joined(self._bags), objective, n_jobs, reduce=keep != "relevant", usage=self.usage)


def _joined(parts: deque[tuple[int, Bags]]) -> Bags:
    """Join bags, each with the number of instances before it; a part is released when it has been copied."""
    if len(parts) == 1:
        return parts.pop()[1]
    sizes = [np.diff(bags.offsets) for _, bags in parts]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    n, m = int(offsets[-1]), parts[0][1].n_sources
    X = np.empty((n, m), np.result_type(*{bags.X.dtype for _, bags in parts}))
    counts, instance = np.empty(n), np.empty(n, np.int64)
    labels, weights = (np.concatenate([getattr(bags, name) for _, bags in parts]) for name in ("labels", "weights"))
    ids = [name for _, bags in parts for name in bags.ids]
    at = 0
    while parts:
        start, bags = parts.popleft()
        rows = slice(at, at + len(bags.X))
        X[rows], counts[rows], instance[rows] = bags.X, bags.counts, bags.instance + start
        at = rows.stop
    return Bags(X, offsets, labels, weights, counts, instance, ids)


class Executor:
    """Reads the parts of a dataset in threads of this process, and reduces them."""

    offers = IN_MEMORY  # what its problems can answer; see `bimichi.fit.problem`

    def __init__(self, n_jobs: int | None = None) -> None:
        self._jobs = check_n_jobs(n_jobs)

    def ranges(self, data: Dataset, verbose: int = 0) -> tuple[Floats, Floats]:
        """Read all parts for the least and the greatest value of each source."""
        training = _added_up(self._summarised(data), "measuring", len(data), verbose)
        return training.low, training.high

    def train(self, data: Dataset, plan: Plan, scale: Scale | None = None, verbose: int = 0) -> Training:
        """Read, scale and reduce all parts; sources out of range are for the caller to report."""
        training = _added_up(self._reduced(data, plan, scale), "reading", len(data), verbose)
        in_range = training.low.min() >= -1 and training.high.max() <= 1
        if in_range and (training.labels.all() or not training.labels.any()):
            raise InvalidInputError(
                "All bags are of one class. Learning needs at least one bag of each class.", code="one-class"
            )
        return training

    def problem(self, training: Training, plan: Plan, n_jobs: int | None = None) -> Problem | Summed:
        """Return the problem of what was kept."""
        return training.problem(plan.objective, plan.keep, n_jobs)

    def _summarised(self, data: Dataset) -> Iterator[Reduced]:
        return data.apply(summarise, self._jobs)

    def _reduced(self, data: Dataset, plan: Plan, scale: Scale | None) -> Iterator[Reduced]:
        each = max(1, self._jobs // max(1, len(data)))  # threads for one part
        reduce = partial(reduce_part, plan=plan, scale=scale, n_jobs=each)
        return data.apply(reduce, self._jobs, key=plan if scale is None else None)


def _added_up(parts: Iterator[Reduced], title: str, n_parts: int, verbose: int) -> Training:
    with progress_bar(title, n_parts, verbose) as advance:

        def counted() -> Iterator[Reduced]:
            for part in parts:
                yield part
                advance(1, None)

        training = Training(counted())
    if np.isinf(training.low).all():
        raise InvalidInputError(
            "None of the scenes has a labelled bag. Label some segments of each class.", code="bags-missing"
        )
    return training


@dataclass(frozen=True, eq=False)
class FitResult:
    """A learned measure.

    Attributes
    ----------
    measure : Measure
        The measure.
    polarity : ndarray of shape (n_sources,)
        The signs by which sources are multiplied before the integral.
    solution : Solution
        What the solver found.
    usage : dict of str to ndarray of int64
        How many training instances "touched" each element (or term), and how many gave it weight ("weighted").
    """

    measure: Any
    polarity: Floats
    solution: Solution
    usage: dict[str, Ints]

    @classmethod
    def of(cls, space: Space, solution: Solution, usage: Usage, signs: Floats, names: Sequence[str] | None) -> Self:
        """Make the measure that a solver found, and count how training instances, with these signs, use it."""
        counts = {kind: usage.counts(kind == "weighted", signs) for kind in ("touched", "weighted")}
        return cls(space.measure(solution.values, names), signs, solution, counts)


def check_training(
    objective: Objective, solver: Any, polarity: str = "given", offers: frozenset[str] = IN_MEMORY
) -> None:
    """Raise an error if these do not go together, before any data are read; `offers` are those of an `Executor`."""
    check_choice(polarity, "polarity", ("given", "learn"))
    if polarity == "learn" and objective.measure == "capacity":
        raise InvalidInputError(
            f"polarity='learn' inverts sources around 0, but objective {objective.name!r} is for sources in [0, 1]. "
            "Use polarity='given'.",
            code="polarity-objective",
        )
    check_solver(solver, objective, offers)


def problem_in_memory(bags: Bags, objective: Objective, n_jobs: int | None = None) -> InMemory:
    """Return the problem of bags, of which equal ones with a single instance are merged."""
    usage = objective.space(bags.n_sources).count_usage(bags.X, n_jobs)
    return InMemory(bags.singles_merged(), objective, n_jobs, usage=usage)


def fit_measure(
    problem: Problem | Summed,
    solver: Any,
    *,
    samples: Sequence[Sample] | None = None,
    names: Sequence[str] | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> FitResult:
    """Learn a measure.

    Parameters
    ----------
    problem : Problem or Summed
        Of bags whose sources lie in the range of the objective's measure.
    solver : object
        See `bimichi.fit.solvers.get_solver`.
    samples : sequence of Sample, optional
        Rows of scenes, or of groups of bags, by which it is learned which sources to invert; none by default.
    names : sequence of str, optional
        Of the sources.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Seed of the solver.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.
    verbose : int, default=0
        Above 0, solvers show their progress.

    Raises
    ------
    InvalidInputError
        If the solver cannot solve the problem.
    """
    check_solver(solver, problem.objective, problem.offers)
    seed = random_generator(random_state).integers(2**63)
    signs = np.ones(problem.space.n_sources) if samples is None else trusted_signs(samples).signs
    solution: Solution = solver.solve(problem.with_signs(signs), np.random.default_rng(seed), n_jobs, verbose)
    return FitResult.of(problem.space, solution, problem.usage, signs, names)
