"""Algorithm 1 of the paper: a population of bi-capacities under small and large mutations.

Departures from the printed algorithm: a child replaces its parent only if it is better; the best is kept; the search
stops when the best has hardly improved over `patience` generations, not over one.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bimichi._checks import check_choice, check_integer, check_number
from bimichi._jit import jit
from bimichi._progress import checkpoint, progress_bar
from bimichi._types import Floats, Ints
from bimichi.errors import InvalidInputError
from bimichi.fit.objectives import Term, term_of_bag
from bimichi.fit.problem import InMemory, Solution, check_solver
from bimichi.fit.solvers.population import Population, bounds_of, copy, draw, drawing_order, uniform
from bimichi.integral.planes import check_n_jobs
from bimichi.measures.lattice import Lattice
from bimichi.record import Status

BLOCK_WORK = 2_000_000_000  # row visits per block; progress, callbacks, checkpoints and stopping follow each


@dataclass(frozen=True)
class EvolutionarySolver:
    """Minimise by mutation and selection, as in Algorithm 1 of [1]_.

    Parameters
    ----------
    population_size : int, default=36
        P, the number of bi-capacities.
    max_iter : int, default=5000
        I, the number of generations at most.
    small_mutation_probability : float, default=0.8
        eta: with this probability one element is redrawn between its bounds, otherwise the whole measure.
    tolerance : float, default=0.001
        J_T: an improvement of no more than this counts as none.
    patience : int or None, default=500
        Stop at the first generation t > patience with J(t - patience) - J(t) <= `tolerance`, where J(t) is the best J
        after t generations. None never stops; 1 is the paper's rule read literally, which ends the search after a few
        generations.
    element_choice : {"weighted", "touched"}
        Small mutations pick an element in proportion to the number of instances (equal ones count each) that give it
        weight, or, as in the paper, that touch it at all, if only with weight 0.
    sampling : {"breadth-first", "ranks"}, optional
        How a new measure is drawn; see `BiCapacity.random`. By default breadth-first, as in the paper, up to six
        sources, and by ranks above.
    callback : callable, optional
        Called as ``callback(generation, best_J, best_values)`` at intervals; the search ends if it returns True.
    checkpoint : path, optional
        A file with the state of the search at the end of its last whole block. If it exists, the search resumes from it
        and ends, bit for bit, as if it had never been interrupted, or stopped by a smaller `max_iter`.

    Notes
    -----
    Members of the population never meet: each has a random stream of its own, so that the result does not depend on
    `n_jobs`. A small mutation updates only rows and bags that use the element. Memory is O(P n).

    References
    ----------
    .. [1] H. Vakharia and X. Du, "Bi-capacity Choquet Integral for Sensor Fusion with Label Uncertainty",
       FUZZ-IEEE 2024.
    """

    needs: ClassVar[tuple[str, ...]] = ("in memory", "elements")

    population_size: int = 36
    max_iter: int = 5000
    small_mutation_probability: float = 0.8
    tolerance: float = 0.001
    patience: int | None = 500
    element_choice: Literal["weighted", "touched"] = "weighted"
    sampling: Literal["breadth-first", "ranks"] | None = None
    callback: Callable[[int, float, Floats], object] | None = None
    checkpoint: str | PathLike[str] | None = None

    def __post_init__(self) -> None:
        for name in ("population_size", "max_iter") + (("patience",) if self.patience is not None else ()):
            object.__setattr__(self, name, check_integer(getattr(self, name), name))
        for name, most in (("small_mutation_probability", 1.0), ("tolerance", None)):
            object.__setattr__(self, name, check_number(getattr(self, name), name, 0.0, most))
        check_choice(self.element_choice, "element_choice", ("weighted", "touched"))
        check_choice(self.sampling, "sampling", (None, "breadth-first", "ranks"))

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """Return the solver with settings of a name: "default"; "paper", those of the paper; or "literal".

        "paper" draws breadth-first and picks elements that are touched. "literal" also stops at the first generation
        that does not improve, which is what Algorithm 1 says if one reads it word by word. `changes` are other options.

        Examples
        --------
        >>> EvolutionarySolver.preset("paper", max_iter=100).element_choice
        'touched'
        """
        check_choice(name, "name", tuple(PRESETS))
        return cls(**(dict(PRESETS[name]) | changes))

    def solve(self, problem: InMemory, rng: Generator, n_jobs: int | None = None, verbose: int = 0) -> Solution:
        """Return the best measure found."""
        check_solver(self, problem.objective, problem.offers)
        order, index = drawing_order(_lattice(problem), self.sampling), _index(problem)
        choice = _choice(problem, self.element_choice)
        setting = _Setting(problem.objective.term, self.small_mutation_probability, choice)
        block = int(np.clip(BLOCK_WORK // (len(index.row) * self.population_size + 1), 1, 100))
        fingerprint = _fingerprint(problem, self, block)

        def evolved(before: Population, generations: int) -> Population:
            values, state = before.values.copy(), before.state.copy()

            def run(p: int) -> Floats:
                track, member = np.empty(generations), (values[p], state[p : p + 1])
                _evolve(problem.table, index, order, setting, member, track, before.generation == 0)
                return track

            return before.after(values, state, np.array(list(pool.map(run, range(self.population_size)))))

        with ThreadPoolExecutor(check_n_jobs(n_jobs)) as pool, progress_bar("evolving", self.max_iter, verbose) as show:
            start = self._population(problem, rng, fingerprint)
            show(start.generation, None)
            population, status = self._search(start, block, evolved, fingerprint, show)
        best = problem.space.complete(population.best, "lowest").values
        history = np.array(population.history)
        return Solution(best, problem.value(best), status, len(history), history, starts=population.J)

    def _search(
        self,
        now: Population,
        block: int,
        evolved: Callable[[Population, int], Population],
        fingerprint: str,
        show: Callable[[int, float | None], None],
    ) -> tuple[Population, Status]:
        """Evolve block by block; return the last population, and why it is the last."""
        if self._stalled(now.history, 0):  # resumed with less patience
            return now, Status.CONVERGED
        while now.generation < self.max_iter:
            checkpoint()
            before, now = now, evolved(now, min(block, self.max_iter - now.generation))
            show(now.generation - before.generation, now.best_value)
            end = self._stalled(now.history, before.generation)
            if end:
                return now if end == now.generation else evolved(before, end - before.generation), Status.CONVERGED
            if self.checkpoint is not None and now.generation % block == 0:
                now.save(self.checkpoint, fingerprint)
            if self.callback is not None and self.callback(now.generation, now.best_value, now.best):
                return now, Status.STOPPED
        return now, Status.MAX_ITER

    def _population(self, problem: InMemory, rng: Generator, fingerprint: str) -> Population:
        """Return a new population, or that of the checkpoint."""
        if self.checkpoint is None:
            return Population.start(problem.space.size, self.population_size, rng)
        if not Path(self.checkpoint).absolute().parent.is_dir():
            raise InvalidInputError(
                f"The folder of checkpoint {self.checkpoint} does not exist; create it first.", code="checkpoint-folder"
            )
        if Path(self.checkpoint).exists():
            return Population.load(self.checkpoint, fingerprint, problem.space, self.population_size)
        new = Population.start(problem.space.size, self.population_size, rng)
        new.save(self.checkpoint, fingerprint)  # so that a search that ends within its first block can be resumed
        return new

    def _stalled(self, history: Sequence[float], after: int) -> int:
        """Return the first generation after this one at which patience ends; 0 if there is none."""
        if self.patience is None:
            return 0
        best = np.asarray(history)
        stalled = best[: -self.patience] - best[self.patience :] <= self.tolerance
        ends = np.flatnonzero(stalled) + self.patience + 1
        ends = ends[ends > after]
        return int(ends[0]) if ends.size else 0


AS_PRINTED: Mapping[str, Any] = {"element_choice": "touched", "sampling": "breadth-first"}
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "paper": AS_PRINTED,
    "literal": {**AS_PRINTED, "patience": 1},
}
"""Options by the name of `EvolutionarySolver.preset`."""


class _Setting(NamedTuple):
    objective: Term
    eta: float
    choice: Floats  # cumulative shares of the elements in small mutations


class _Index(NamedTuple):
    """The rows that give weight to an element: entries start[e]..start[e+1], by row, so by bag."""

    start: Ints
    row: NDArray[np.int32]
    weight: Floats
    bag: NDArray[np.int32]  # of every row
    user_start: Ints  # bags that use the element: user_start[e]..user_start[e+1]
    user: NDArray[np.int32]


def _fingerprint(problem: InMemory, solver: EvolutionarySolver, block: int) -> str:
    """Return a hash of what must be the same for a search to resume from a checkpoint."""
    free = {"callback", "checkpoint", "max_iter", "patience", "tolerance"}
    options = {key: value for key, value in vars(solver).items() if key not in free}
    content = [problem.objective.name, problem.objective.parameters, asdict(_lattice(problem)), options, block]
    digest = hashlib.sha256(json.dumps(content).encode())
    for array in problem.table:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _lattice(problem: InMemory) -> Lattice:
    lattice = problem.space.lattice
    assert lattice is not None  # a need of the solver, which was checked
    return lattice


def _choice(problem: InMemory, element_choice: str) -> Floats:
    counts, fixed = problem.usage_counts(element_choice == "weighted").astype(np.float64), list(_lattice(problem).fixed)
    free = np.ones(len(counts))
    free[fixed] = 0
    counts = counts * free if (counts * free).any() else free  # if no instance depends on one, any choice is as good
    return np.asarray(np.cumsum(counts) / max(counts.sum(), 1.0))


def _index(problem: InMemory) -> _Index:
    codes, weights, size = problem.table.codes, problem.table.weights, problem.space.size
    row, step = np.nonzero(weights > 0)
    element = codes[row, step]
    order = np.argsort(element, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(element, minlength=size))])
    sizes = np.diff(problem.table.offsets)
    bag = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    row, element = row[order], element[order]
    first = np.ones(len(row), dtype=bool)
    first[1:] = (element[1:] != element[:-1]) | (bag[row[1:]] != bag[row[:-1]])
    user_start = np.searchsorted(element[first], np.arange(size + 1))
    return _Index(start, row.astype(np.int32), weights[row, step[order]], bag, user_start, bag[row[first]])


@jit
def _fuse_bag(rows, values, b, fused):
    """Write the integrals of the instances of bag b to the start of `fused`, which is returned cut to length."""
    start, stop = rows.offsets[b], rows.offsets[b + 1]
    for i in range(start, stop):
        total = 0.0
        for k in range(rows.codes.shape[1]):
            total += rows.weights[i, k] * values[np.uint32(rows.codes[i, k])]
        fused[i - start] = total
    return fused[: stop - start]


@jit
def _evaluate(rows, objective, values, limit, fused, terms):
    """Return J of a whole measure; infinite as soon as it cannot be below `limit`, since terms are not negative."""
    total = 0.0
    for b in range(terms.size):
        start, stop = rows.offsets[b], rows.offsets[b + 1]
        part = _fuse_bag(rows, values, b, fused[start:stop])
        terms[b] = rows.bag_weights[b] * term_of_bag(objective, part, rows.counts[start:stop], rows.labels[b])
        total += terms[b]
        if total >= limit:
            return np.inf
    return total


@jit
def _shift(rows, index, objective, code, delta, J, fused, terms, scratch, accept):
    """Return J after element `code` rises by delta, from the bags that use it; kept in `fused` and `terms` if `accept`.

    Otherwise infinite as soon as it cannot be below J, since terms are not negative.
    """
    place = fused if accept else scratch
    total, ahead = J, 0.0
    for n in range(index.user_start[code], index.user_start[code + 1]):
        ahead += terms[index.user[n]]
    entry, last = index.start[code], index.start[code + 1]
    while entry < last:
        b = index.bag[index.row[entry]]
        start, stop = rows.offsets[b], rows.offsets[b + 1]
        if not accept:
            for i in range(stop - start):  # an assignment of slices takes longer, where they are short
                scratch[i] = fused[start + i]
        base = 0 if accept else start
        while entry < last and index.row[entry] < stop:
            place[index.row[entry] - base] += delta * index.weight[entry]
            entry += 1
        part = place[start - base : stop - base]
        term = rows.bag_weights[b] * term_of_bag(objective, part, rows.counts[start:stop], rows.labels[b])
        total += term - terms[b]
        ahead -= terms[b]
        if accept:
            terms[b] = term
        elif total - ahead >= J:
            return np.inf
    return total


@jit
def _first_above(rising, x):
    """Return index of the first number above x, by halving; numba's own search takes a second to compile."""
    low, high = 0, rising.size
    while low < high:
        middle = (low + high) // 2
        if rising[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def _evolve(rows, index, order, setting, member, track, fresh):
    """Run one member for as many generations as `track` has room; its J after each is noted there."""
    values, state = member
    queue = np.empty(values.size, np.int64)
    drawn = np.ones(values.size, np.bool_)
    child = np.empty_like(values)
    fused, child_fused = np.empty(rows.codes.shape[0]), np.empty(rows.codes.shape[0])
    terms, child_terms = np.empty(rows.labels.size), np.empty(rows.labels.size)
    longest = 0
    for b in range(rows.labels.size):
        longest = max(longest, rows.offsets[b + 1] - rows.offsets[b])
    scratch = np.empty(longest)
    if fresh:
        draw(order, state, values, queue, drawn)
    J = _evaluate(rows, setting.objective, values, np.inf, fused, terms)
    for generation in range(track.size):
        if uniform(state) < setting.eta:
            code = _first_above(setting.choice, uniform(state))
            if code < values.size:
                low, high = bounds_of(order, values, drawn, code)
                delta = low + (high - low) * uniform(state) - values[code]
                new = _shift(rows, index, setting.objective, code, delta, J, fused, terms, scratch, False)
                if new < J:
                    _shift(rows, index, setting.objective, code, delta, J, fused, terms, scratch, True)
                    values[code] += delta
                    J = 0.0
                    for b in range(terms.size):
                        J += terms[b]
        else:
            draw(order, state, child, queue, drawn)
            new = _evaluate(rows, setting.objective, child, J, child_fused, child_terms)
            if new < J:
                copy(child, values)
                fused, child_fused = child_fused, fused
                terms, child_terms = child_terms, terms
                J = new
        track[generation] = J
