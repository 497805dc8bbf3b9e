"""Binary measures for min-max: all of them up to five sources, local search above; see docs/methods.md."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from bimichi._checks import check_choice, check_integer
from bimichi._jit import jit
from bimichi.fit.problem import InMemory, Solution, check_solver
from bimichi.integral.planes import check_n_jobs
from bimichi.measures.capacity import ENUMERATION_LIMIT, binary_values
from bimichi.record import Status


@dataclass(frozen=True)
class BinarySolver:
    """Minimise min-max over measures with values in {0, 1}.

    Parameters
    ----------
    n_restarts : int, default=100
        How many random measures the local search starts from.
    method : {"auto", "exact", "local"}
        "exact" looks at all measures, which are listed up to five sources. "local" flips one element at a time
        while J falls. "auto" is exact where it can be.

    Notes
    -----
    Of several measures with the least J, the one with the fewest sets of value 1 is returned. `Solution.status` says
    which of the two methods was used.
    """

    needs: ClassVar[tuple[str, ...]] = ("in memory", "elements", "min-max")

    n_restarts: int = 100
    method: str = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_restarts", check_integer(self.n_restarts, "n_restarts"))
        check_choice(self.method, "method", ("auto", "exact", "local"))

    def solve(self, problem: InMemory, rng: Generator, n_jobs: int | None = None, verbose: int = 0) -> Solution:
        """Return the best binary measure."""
        check_solver(self, problem.objective, problem.offers)
        reach = _reach(np.ascontiguousarray(problem.bags.X), problem.bags.offsets)
        bags = (reach, problem.labels, problem.weights)
        m, jobs = problem.space.n_sources, check_n_jobs(n_jobs)
        if self.method == "exact" or (self.method == "auto" and m <= ENUMERATION_LIMIT):
            candidates = binary_values(m).astype(np.bool_)
            candidates = candidates[np.argsort(candidates.sum(axis=1), kind="stable")]
            with ThreadPoolExecutor(jobs) as pool:
                J = np.concatenate([*pool.map(lambda part: _values(*bags, part), np.array_split(candidates, jobs))])
            status = Status.EXACT
        else:
            seeds = rng.spawn(self.n_restarts)  # of random capacities, each cut at a random height
            starts = [problem.space.sample(seed) > seed.uniform(0.02, 0.98) for seed in seeds]
            for start in starts:
                start[-1] = True
            with ThreadPoolExecutor(jobs) as pool:
                J = np.array(list(pool.map(lambda start: _descend(*bags, start), starts)))
            candidates = np.array(starts)
            status = Status.LOCAL
        best = int(np.lexsort((candidates.sum(axis=1), J))[0])
        values = candidates[best].astype(np.float64)
        return Solution(values, problem.value(values), status, len(J), np.minimum.accumulate(J), starts=J)


@jit
def _reach(X, offsets):
    """Return, for each bag and set, the largest over the bag's instances of the smallest source in the set."""
    n_bags, m = offsets.size - 1, X.shape[1]
    reach = np.zeros((n_bags, 1 << m))
    least = np.empty(1 << m)
    for b in range(n_bags):
        for i in range(offsets[b], offsets[b + 1]):
            least[0] = 1.0
            for k in range(m):
                for rest in range(1 << k):
                    least[(1 << k) + rest] = min(X[i, k], least[rest])
            for code in range(1, 1 << m):
                reach[b, code] = max(reach[b, code], least[code])
    return reach


@jit
def _value_of(reach, labels, weights, wins):
    total = 0.0
    for b in range(labels.size):
        top = 0.0
        for code in range(wins.size):
            if wins[code]:
                top = max(top, reach[b, code])
        total += weights[b] * ((1.0 - top) ** 2 if labels[b] else top**2)
    return total


@jit
def _values(reach, labels, weights, candidates):
    values = np.empty(len(candidates))
    for i in range(len(candidates)):
        values[i] = _value_of(reach, labels, weights, candidates[i])
    return values


@jit
def _may_flip(wins, code):
    """Return whether `wins` stays monotone: a set may lose if none below wins, and win if none above loses."""
    bit = 1
    while bit < wins.size:
        if wins[code] and code & bit and wins[code ^ bit]:
            return False
        if not wins[code] and not code & bit and not wins[code | bit]:
            return False
        bit <<= 1
    return True


@jit
def _descend(reach, labels, weights, wins):
    """Flip the element that lowers J most, until none does; `wins` is changed in place, and its J returned."""
    J = _value_of(reach, labels, weights, wins)
    while True:
        best, best_code = J, 0
        for code in range(1, wins.size - 1):
            if _may_flip(wins, code):
                wins[code] = not wins[code]
                value = _value_of(reach, labels, weights, wins)
                wins[code] = not wins[code]
                if value < best:
                    best, best_code = value, code
        if best_code == 0:
            return J
        wins[best_code] = not wins[best_code]
        J = best
