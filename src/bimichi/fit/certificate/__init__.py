"""Proof that no measure has a smaller J: relaxations of the problem, and branch and bound over them.

A lower bound of J over all measures, and better measures where there are any.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from bimichi._types import Flags, Floats, Ints
from bimichi.fit.certificate.relaxation import NegativeRows, Part, Relaxation, Relaxed, all_measures
from bimichi.record import Certificate

__all__ = ["Certified", "Limits", "certify"]

BATCH = 4  # parts that are divided before results are used: a fixed number, so that threads change nothing
ROUNDS = 8  # how often rows may be added to one relaxation
WORTH = 0.1  # which share of the gap missing rows must make up for another round
NEAR = 2e-3  # a relaxed measure with a J so near the best, relatively, is worth a descent
FIRST = 20  # parts, at first, after which `EARLY` is enough
EARLY = 2e-2


@dataclass(frozen=True)
class Limits:
    """When to stop: see `ConvexSolver`."""

    gap: float
    absolute_gap: float
    max_nodes: int
    time_limit: float | None

    def allowed(self, value: float) -> float:
        """Return the difference between J and its bound that is small enough."""
        return max(self.gap * abs(value), self.absolute_gap)


class Incumbent(NamedTuple):
    """The best measure so far."""

    values: Floats
    value: float


class Certified(NamedTuple):
    """Bounds of the minimum of J over all measures."""

    best: Incumbent
    bound: float
    n_nodes: int
    certificate: Certificate | None  # None while it goes on


class _Open(NamedTuple):
    bound: float
    number: int  # which decides among equal bounds
    part: Part
    relaxed: Relaxed


@dataclass
class _Tree:
    """Open parts, best bound first, and what is known of the closed ones."""

    relaxation: Relaxation
    limits: Limits
    best: Incumbent
    rows: NegativeRows
    improve: Callable[[Floats], Incumbent]
    open: list[_Open] = field(default_factory=list)
    closed: float = np.inf
    n_nodes: int = 0
    _number: int = 0

    @property
    def bound(self) -> float:
        """No measure has a smaller J."""
        least = min(self.open[0].bound if self.open else np.inf, self.closed, self.best.value)
        return least - self.relaxation.candidates.lost

    @property
    def cutoff(self) -> float:
        """Parts with a bound so high need not be divided."""
        return self.best.value - self.limits.allowed(self.best.value)

    def done(self) -> bool:
        return not self.open or self.open[0].bound >= self.cutoff

    def take(self) -> list[_Open]:
        taken: list[_Open] = []
        while self.open and len(taken) < BATCH and self.open[0].bound < self.cutoff:
            taken.append(heappop(self.open))
        return taken

    def add(self, part: Part, inherited: float, relaxation: tuple[Relaxed, NegativeRows] | None) -> None:
        """Take up what was found for a part of a part with the bound `inherited`."""
        self.n_nodes += 1
        if relaxation is None:  # it stays as it is, undivided
            self.closed = min(self.closed, inherited)
            return
        relaxed, rows = relaxation
        self.rows = self.rows.with_rows(rows)
        bound = max(inherited, relaxed.bound)
        near = EARLY if self.n_nodes <= FIRST else NEAR
        if bound < self.best.value and relaxed.value < self.best.value + near * abs(self.best.value):
            self.best = min(self.best, self.improve(relaxed.values), key=lambda incumbent: incumbent.value)
        if bound >= self.cutoff:
            self.closed = min(self.closed, bound)
            return
        self._number += 1
        heappush(self.open, _Open(bound, self._number, part, relaxed))

    def prune(self) -> None:
        """Close parts that the best measure so far rules out."""
        cutoff = self.cutoff
        self.closed = min([self.closed, *(part.bound for part in self.open if part.bound >= cutoff)])
        self.open = [part for part in self.open if part.bound < cutoff]
        heapify(self.open)


def certify(
    relaxation: Relaxation,
    best: Incumbent,
    improve: Callable[[Floats], Incumbent],
    limits: Limits,
    n_jobs: int,
    report: Callable[[Certified], None],
) -> Certified:
    """Divide all measures until none can have a J below the best by more than is allowed.

    `improve` descends from a measure. Interrupted by Ctrl-C, it returns what is known so far.
    """
    start = time.monotonic()
    tree = _Tree(relaxation, limits, best, relaxation.worst_rows(best.values), improve)
    root = all_measures(relaxation.region, relaxation.candidates)
    end = Certificate.INTERRUPTED
    try:
        tree.add(root, -np.inf, _bounded(relaxation, root, tree.rows, tree.cutoff, best.value))
        with ThreadPoolExecutor(n_jobs) as pool:
            while True:
                if tree.done():
                    end = Certificate.OPTIMAL
                    break
                if tree.n_nodes >= limits.max_nodes:
                    end = Certificate.MAX_NODES
                    break
                if limits.time_limit is not None and time.monotonic() - start > limits.time_limit:
                    end = Certificate.TIME_LIMIT
                    break
                _divide_batch(tree, pool)
                report(Certified(tree.best, tree.bound, tree.n_nodes, None))
    except KeyboardInterrupt:
        pass
    if end is Certificate.OPTIMAL and tree.best.value - tree.bound > 2 * limits.allowed(tree.best.value):
        end = Certificate.UNSOLVED
    return Certified(tree.best, tree.bound, tree.n_nodes, end)


def _divide_batch(tree: _Tree, pool: ThreadPoolExecutor) -> None:
    relaxation, taken = tree.relaxation, tree.take()
    children = [(parent, part) for parent in taken for part in _divided(relaxation, parent)]
    rows, cutoff, best = tree.rows, tree.cutoff, tree.best.value
    try:
        relaxations = list(pool.map(lambda child: _bounded(relaxation, child[1], rows, cutoff, best), children))
    except BaseException:
        tree.open += taken  # what was taken is still open
        heapify(tree.open)
        raise
    for parent in taken:
        if not any(one is parent for one, _ in children):
            tree.closed = min(tree.closed, parent.bound)
    for at, ((parent, part), one) in enumerate(zip(children, relaxations, strict=True)):
        try:
            tree.add(part, parent.bound, one)
        except BaseException:
            tree.open += {id(p): p for p, _ in children[at:]}.values()
            heapify(tree.open)
            raise
    tree.prune()


def _bounded(
    relaxation: Relaxation, part: Part, rows: NegativeRows, cutoff: float, best: float
) -> tuple[Relaxed, NegativeRows] | None:
    """Relax J over a part, adding rows while that may raise the bound; the best bound, and the rows added."""
    bound, last, added = -np.inf, None, NegativeRows(*(np.empty(0, np.int64) for _ in range(3)))
    for _ in range(ROUNDS):
        relaxed = relaxation.solve(part, rows)
        if relaxed is None:
            break
        bound, last = max(bound, relaxed.bound), relaxed
        if bound >= cutoff or not len(relaxed.missing.row):
            break
        added = added.with_rows(relaxed.missing)
        if relaxed.shortfall < WORTH * max(best - bound, 0.0):
            break
        rows = rows.with_rows(relaxed.missing)
    return None if last is None else (last._replace(bound=bound), added)


def _divided(relaxation: Relaxation, node: _Open) -> Iterator[Part]:
    """Divide a part where its relaxation is loosest: the candidates of a bag in two, or the box of an element."""
    part, relaxed, candidates = node.part, node.relaxed, relaxation.candidates
    several = np.array([len(ids) > 1 for ids in part.candidates])
    gaps = np.where(several, relaxed.gaps, -1.0)
    bag, element = int(gaps.argmax()), int(relaxed.spread.argmax())
    if len(relaxed.missing.row) and relaxed.shortfall > max(gaps[bag], relaxed.spread[element]):
        yield part  # which rows of negative bags are left out matters more: again, with those found by now
    elif relaxed.spread[element] > max(gaps[bag], 0.0):
        low, high = part.box.low[element], part.box.high[element]
        value = relaxed.values[relaxation.region.elements[element]]
        middle = float(np.clip(0.8 * value + 0.1 * (low + high), 0.9 * low + 0.1 * high, 0.1 * low + 0.9 * high))
        for box in (
            relaxation.region.beneath(part.box, element, middle),
            relaxation.region.above(part.box, element, middle),
        ):
            yield Part(box, tuple(candidates.within(box, ids) for ids in part.candidates))
    elif several.any():
        first = _halved(relaxation, part.candidates[bag], relaxed.shares[bag])
        for some in (first, ~first):
            ids = part.candidates[bag][some]
            yield part._replace(candidates=(*part.candidates[:bag], ids, *part.candidates[bag + 1 :]))


def _halved(relaxation: Relaxation, ids: Ints, shares: Floats) -> Flags:
    """Divide candidates by which of two rows they are nearer to: that of the largest share, and one far from it."""
    vectors = relaxation.candidates.vectors[ids]
    groups, _ = relaxation.candidates.grouped(ids)
    if len(groups) > 1:
        first = int(shares.argmax())
        second = int((np.abs(groups - groups[first]).sum(axis=1) * (shares + 1e-3)).argmax())
        to_first, to_second = (np.abs(vectors - groups[k]).sum(axis=1) for k in (first, second))
        nearer = to_first <= to_second
        if nearer.any() and not nearer.all():
            return np.asarray(nearer)
    halves = fcluster(linkage(vectors, "complete"), 2, "maxclust") == 1
    return np.asarray(halves if halves.any() and not halves.all() else np.arange(len(ids)) == 0)
