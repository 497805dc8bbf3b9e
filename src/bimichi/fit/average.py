"""Several additive rules over the sources of a bank, learned from pixels of cores, and their average.

Cross-validation between such rules hardly follows the truth, so that none of them is chosen: their log-odds are
averaged with equal weights. The average is one additive rule over the sources of all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from bimichi._types import Flags, Floats, Ints
from bimichi.link import probability_of
from bimichi.sources.bank import OPERATORS, PAIRS, RARITY, VALUES, Bank
from bimichi.sources.discriminant import Discriminant

LASSO = 1e-4  # the cost of weights, per mean loss
STEPS, CLOSE = 30, 1e-6  # of Newton's method, and the relative gain at which it ends
MARGIN = 0.05  # of the AUC below one half, at least, by which a source is inverted
SURE = 0.98  # the quantile of Student's distribution by which it must be below
ALONE = 0.15  # how far below, where a single target is all there is
NAME = "discriminant of all images"


class Rows(NamedTuple):
    """Some pixels of a scene, or of a part of it.

    Attributes
    ----------
    name : str
        Of the scene or part.
    X, Z : ndarray of shape (n, n_sources) and (n, n_channels)
        Sources of the bank, and channels as discriminants take them.
    labels : ndarray of int8
        As in `bimichi.scenes.labels`, 0 for the rim of objects.
    weight : ndarray
        How many pixels each row stands for.
    objects : ndarray of int
        The object that a target belongs to, -1 for other pixels.
    """

    name: str
    X: NDArray[np.float32]
    Z: NDArray[np.float32]
    labels: NDArray[np.int8]
    weight: Floats
    objects: Ints

    @property
    def has_targets(self) -> bool:
        """Return whether it can be scored."""
        return bool((self.labels > 0).any() and (self.labels < 0).any())


class Member(NamedTuple):
    """One of the rules that are averaged: its name, and the sources it is about."""

    name: str
    columns: list[int]


def members_of(bank: Bank) -> list[Member]:
    """Return the rules that are averaged: about values and how rare they are, differences, all operators, and the
    discriminant, which is the source after those of the bank.
    """
    values = bank.positions(*VALUES)
    local = [name for name in OPERATORS if name not in VALUES + RARITY]
    found = [
        Member("values and rarity", values + bank.positions(*RARITY)),
        Member("values and differences", values + bank.positions(*PAIRS)),
        Member("bank", values + bank.positions(*local)),
        Member("values and discriminant", [*values, len(bank.sources)]),
    ]
    return found


@dataclass(frozen=True, eq=False)
class Average:
    """Log-odds as ``offset + up . max(s x, 0) + down . min(s x, 0)``, s the signs of the sources x, the last learned."""

    signs: Floats
    up: Floats
    down: Floats
    offset: float
    discriminant: Discriminant
    parts: tuple[tuple[Floats, Floats, float], ...] = ()

    def log_odds(self, rows: Rows) -> Floats:
        """Return those of some rows."""
        return self._of(self.sources(rows), self.up, self.down, self.offset)

    def sources(self, rows: Rows) -> NDArray[np.float32]:
        """Return all sources of some rows, inverted as learned."""
        return _with_discriminant(rows, self.discriminant) * self.signs.astype(np.float32)

    @staticmethod
    def _of(X: NDArray[np.float32], up: Floats, down: Floats, offset: float) -> Floats:
        return np.asarray(np.maximum(X, 0) @ up.astype(np.float32) + np.minimum(X, 0) @ down.astype(np.float32)) + offset


def _with_discriminant(rows: Rows, learned: Discriminant) -> NDArray[np.float32]:
    return np.column_stack([rows.X, learned.rows(rows.Z)])


def learn_average(units: Sequence[Rows], members: Sequence[Member], seed: int) -> Average:
    """Learn all members from some scenes, and average them."""
    cores = [unit.labels > 0 for unit in units]
    outside = [unit.labels < 0 for unit in units]
    learned = Discriminant.learn(
        np.concatenate([unit.Z[core] for unit, core in zip(units, cores, strict=True)]),
        np.concatenate([unit.Z[out] for unit, out in zip(units, outside, strict=True)]),
        np.concatenate([unit.weight[out] for unit, out in zip(units, outside, strict=True)]),
        seed,
    )
    kept = [core | out for core, out in zip(cores, outside, strict=True)]
    X = [_with_discriminant(unit, learned)[keep] for unit, keep in zip(units, kept, strict=True)]
    y = [unit.labels[keep] > 0 for unit, keep in zip(units, kept, strict=True)]
    objects = [unit.objects[keep] for unit, keep in zip(units, kept, strict=True)]
    signs = learn_signs(X, y, objects)
    weight = scene_weights([unit.weight[keep] for unit, keep in zip(units, kept, strict=True)], y)
    scene = np.repeat(np.arange(len(units)), [len(labels) for labels in y])
    rows, labels, weights = np.concatenate(X) * signs.astype(np.float32), np.concatenate(y), np.concatenate(weight)
    m = rows.shape[1]
    parts = []
    for member in members:
        up, down = np.zeros(m), np.zeros(m)
        own = rows[:, member.columns]
        up[member.columns], down[member.columns], offset = fit_additive(own, labels, weights, scene)
        parts.append((up, down, offset))
    mean = [np.mean([part[k] for part in parts], axis=0) for k in range(3)]
    return Average(signs, mean[0], mean[1], float(mean[2]), learned, tuple(parts))


def scene_weights(weights: Sequence[Floats], labels: Sequence[Flags]) -> list[Floats]:
    """Return weights of pixels by which a scene counts as the square root of its target pixels."""
    counts = np.array([float(weight[y].sum()) for weight, y in zip(weights, labels, strict=True)])
    typical = float(np.median(counts[counts > 0])) if counts.any() else 1.0
    return [weight / np.sqrt(count or typical) for weight, count in zip(weights, counts, strict=True)]


def learn_signs(X: Sequence[NDArray[np.float32]], y: Sequence[Flags], objects: Sequence[Ints]) -> Floats:
    """Return -1 for sources that are to be inverted, as targets are clearly below the rest, 1 for all others.

    The AUC of a source is taken in each scene; where fewer than three have targets, of each object against the rest of
    its scene. It must be below one half by `MARGIN`, and by the quantile `SURE` of its mean's distribution.
    """
    groups = []
    for rows, labels, own in zip(X, y, objects, strict=True):
        if labels.any() and not labels.all():
            groups.append((rows[labels], rows[~labels], own[labels]))
    m = X[0].shape[1]
    if not groups:
        return np.ones(m)
    aucs = np.array([_aucs(targets, others) for targets, others, _ in groups])
    if len(groups) < 3:
        alone = [
            _aucs(targets[own == k], others) for targets, others, own in groups for k in np.unique(own)
        ]
        aucs = np.array(alone)
    n, mean = len(aucs), aucs.mean(axis=0)
    error = aucs.std(axis=0, ddof=1) / np.sqrt(n) * stats.t.ppf(SURE, n - 1) if n > 1 else np.full(m, ALONE)
    return np.where(mean < 0.5 - np.maximum(MARGIN, error), -1.0, 1.0)


def _aucs(targets: NDArray[np.float32], others: NDArray[np.float32]) -> Floats:
    """Return the AUC of each column, ties counting half."""
    found = np.empty(targets.shape[1])
    for k in range(targets.shape[1]):
        ranked = np.sort(others[:, k])
        sides = (np.searchsorted(ranked, targets[:, k], side=side).mean() for side in ("left", "right"))
        found[k] = sum(sides) / (2 * len(ranked))
    return found


def fit_additive(X: NDArray[np.float32], y: Flags, weight: Floats, scene: Ints) -> tuple[Floats, Floats, float]:
    """Fit log-odds ``b + up . max(x, 0) + down . min(x, 0)``, weights not negative and of the same sum.

    The loss is logistic, with a small cost of weights and an intercept per scene; their mean, by what scenes weigh, is
    returned. Newton's method: each step is a quadratic program.
    """
    m, n_scenes = X.shape[1], int(scene.max()) + 1
    F = np.concatenate([np.maximum(X, 0), np.minimum(X, 0)], axis=1)
    share = weight / weight.sum()
    target = y.astype(np.float64)
    by_scene = sparse.csr_matrix((np.ones(len(y)), (scene, np.arange(len(y)))), shape=(n_scenes, len(y)))
    total = by_scene @ share
    rate = float(np.clip(share @ target, 1e-6, 1 - 1e-6))
    own = np.clip((by_scene @ (share * target) + 0.01 * rate * total) / (1.01 * total), 1e-6, 1 - 1e-6)
    beta, offsets = np.zeros(2 * m), np.log(own / (1 - own))
    ridge = 1e-6 * total  # of intercepts, so that scenes of one class have finite ones
    log_odds = offsets[scene]
    cost = np.full(2 * m, LASSO)
    cost[~F.any(axis=0)] = 0.0

    def loss(f: Floats, at: Floats, b: Floats) -> float:
        return float(share @ (np.logaddexp(0, f) - target * f) + cost @ at + 0.5 * ridge @ b**2)

    value = loss(log_odds, beta, offsets)
    for _ in range(STEPS):
        p = probability_of(log_odds)
        curve = share * np.maximum(p * (1 - p), 1e-5)
        pull = (share * (p - target)).astype(np.float32)
        gradient = np.concatenate([F.T @ pull, by_scene @ pull + ridge * offsets]).astype(np.float64)
        scaled = F * np.sqrt(curve).astype(np.float32)[:, None]
        mixed = by_scene @ (F * curve.astype(np.float32)[:, None])
        hessian = np.block([[scaled.T @ scaled, mixed.T], [mixed, np.diag(by_scene @ curve + ridge)]]).astype(np.float64)
        step = _step(hessian, gradient, beta, cost, m)
        f = F @ step[: 2 * m].astype(np.float32) + step[2 * m :][scene]
        t = 1.0
        while t > 1e-4 and loss(log_odds + t * f, beta + t * step[: 2 * m], offsets + t * step[2 * m :]) > value:
            t /= 2
        if t <= 1e-4:
            break
        beta, offsets = np.maximum(beta + t * step[: 2 * m], 0), offsets + t * step[2 * m :]
        log_odds = log_odds + t * f
        before, value = value, loss(log_odds, beta, offsets)
        if before - value < CLOSE * before:
            break
    return beta[:m], beta[m:], float(total @ offsets / total.sum())


def _step(hessian: Floats, gradient: Floats, beta: Floats, cost: Floats, m: int) -> Floats:
    """Return the step to the minimum of the quadratic model with weights not below 0, up and down of the same sum."""
    n = len(gradient)
    size = np.sqrt(np.maximum(hessian.diagonal(), 1e-12))  # the same units for all variables
    P = hessian / np.outer(size, size) + 1e-9 * np.eye(n)
    q = (gradient + np.concatenate([cost, np.zeros(n - 2 * m)])) / size
    balance = np.concatenate([np.ones(m), -np.ones(m), np.zeros(n - 2 * m)]) / size
    scale = np.abs(balance).max()
    A = sparse.vstack([sparse.csr_matrix(balance / scale), -sparse.eye(2 * m, n)]).tocsc()
    b = np.concatenate([[-(beta[:m].sum() - beta[m:].sum()) / scale], beta * size[: 2 * m]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * m)]
    answer = clarabel.DefaultSolver(sparse.triu(sparse.csc_matrix(P)).tocsc(), q, A, b, cones, settings).solve()
    return np.asarray(answer.x) / size
