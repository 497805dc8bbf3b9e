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
from bimichi.sources.source_bank import OPERATORS, PAIRS, RARITY, VALUES, Bank

LASSO = 1e-4  # the cost of weights, per mean loss
STEPS, CLOSE = 30, 1e-6  # of Newton's method, and the relative gain at which it ends
MARGIN = 0.05  # how far from one half the AUC of a source must be, at least, that its direction is clear
SURE = 0.98  # the quantile of Student's distribution by which it must be
ALONE = 0.15  # how far, where a single target is all there is


class Rows(NamedTuple):
    """Some pixels of a scene, or of a part of it.

    Attributes
    ----------
    name, scene : str
        Of the scene or part, and of the scene.
    X : ndarray of shape (n, n_sources)
        Sources of the bank.
    labels : ndarray of int8
        As in `bimichi.scenes.labels`; 0 is in the rim of an object.
    weight : ndarray
        How many pixels each row stands for.
    objects : ndarray of int
        The object that a target belongs to, -1 for other pixels.
    """

    name: str
    scene: str
    X: NDArray[np.float32]
    labels: NDArray[np.int8]
    weight: Floats
    objects: Ints

    @property
    def has_targets(self) -> bool:
        """Return whether it can be scored."""
        return bool((self.labels > 0).any() and (self.labels < 0).any())

    def known(self) -> "Rows":
        """Return the rows that are labelled."""
        which = self.labels != 0
        return Rows(self.name, self.scene, *(part[which] for part in self[2:]))


def whole_scenes(units: Sequence[Rows]) -> list[Rows]:
    """Return the labelled rows of each scene, its parts joined."""
    parts: dict[str, list[Rows]] = {}
    for unit in units:
        if (unit.labels != 0).any():
            parts.setdefault(unit.scene, []).append(unit.known())
    return [
        Rows(name, name, *map(np.concatenate, zip(*(part[2:] for part in own), strict=True)))
        for name, own in parts.items()
    ]


class Member(NamedTuple):
    """One of the rules that are averaged: its name, and the sources that it is about."""

    name: str
    columns: list[int]


def members_of(bank: Bank) -> list[Member]:
    """Return the rules that are averaged."""
    values = bank.positions(*VALUES)
    local = [name for name in OPERATORS if name not in VALUES + RARITY]
    return [
        Member("values and rarity", values + bank.positions(*RARITY)),
        Member("values and differences", values + bank.positions(*PAIRS)),
        Member("whole bank", values + bank.positions(*local)),
    ]


@dataclass(frozen=True, eq=False)
class Average:
    """Log-odds as ``offset + up . max(s x, 0) + down . min(s x, 0)``, where s are the signs of the sources x.

    A sign of 0 means that a source has no clear direction; its weights are 0.
    """

    signs: Floats
    up: Floats
    down: Floats
    offset: float

    def log_odds(self, X: NDArray[np.float32]) -> Floats:
        """Return those of some rows."""
        entered = X * self.signs.astype(np.float32)
        weights = self.up.astype(np.float32), self.down.astype(np.float32)
        return np.asarray(np.maximum(entered, 0) @ weights[0] + np.minimum(entered, 0) @ weights[1]) + self.offset


def learn_average(units: Sequence[Rows], members: Sequence[Member]) -> Average:
    """Learn all members from some scenes, and average them; what has no clear direction takes no part."""
    known = whole_scenes(units)
    X, y = [unit.X for unit in known], [unit.labels > 0 for unit in known]
    signs = learn_signs(X, y, [unit.objects for unit in known])
    weights = np.concatenate(scene_weights([unit.weight for unit in known], y))
    scene = np.repeat(np.arange(len(known)), [len(labels) for labels in y])
    rows, labels = np.concatenate(X) * signs.astype(np.float32), np.concatenate(y)
    up, down, offsets = np.zeros(len(signs)), np.zeros(len(signs)), []
    used = [columns for member in members if (columns := [k for k in member.columns if signs[k]])]
    for columns in used:
        own_up, own_down, offset = fit_additive(rows[:, columns], labels, weights, scene)
        up[columns] += own_up / len(used)
        down[columns] += own_down / len(used)
        offsets.append(offset)
    return Average(signs, up, down, float(np.mean(offsets)) if offsets else 0.0)


def scene_weights(weights: Sequence[Floats], labels: Sequence[Flags]) -> list[Floats]:
    """Return weights of pixels by which a scene counts as the square root of its target pixels."""
    counts = np.array([float(weight[y].sum()) for weight, y in zip(weights, labels, strict=True)])
    typical = float(np.median(counts[counts > 0])) if counts.any() else 1.0
    return [weight / np.sqrt(count or typical) for weight, count in zip(weights, counts, strict=True)]


def learn_signs(X: Sequence[NDArray[np.float32]], y: Sequence[Flags], objects: Sequence[Ints]) -> Floats:
    """Return for each source 1 if targets are clearly above the rest, -1 if clearly below, else 0.

    The AUC of a source is taken in each scene; where fewer than three have targets, of each object against the rest of
    its scene. It must differ from one half by `MARGIN`, and by the quantile `SURE` of its mean's distribution. So an
    inverted image gives the same rule, and noise is seldom given a direction.
    """
    groups = [
        (rows[labels], rows[~labels], own[labels])
        for rows, labels, own in zip(X, y, objects, strict=True)
        if labels.any() and not labels.all()
    ]
    if not groups:
        return np.zeros(X[0].shape[1])
    if len(groups) < 3:
        aucs = [column_aucs(targets[own == k], others) for targets, others, own in groups for k in np.unique(own)]
    else:
        aucs = [column_aucs(targets, others) for targets, others, _ in groups]
    n, mean = len(aucs), np.mean(aucs, axis=0) - 0.5
    error = np.std(aucs, axis=0, ddof=1) / np.sqrt(n) * stats.t.ppf(SURE, n - 1) if n > 1 else ALONE
    return np.where(np.abs(mean) > np.maximum(MARGIN, error), np.sign(mean), 0.0)


def column_aucs(targets: NDArray[np.float32], others: NDArray[np.float32]) -> Floats:
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
    cost[~F.any(axis=0)] = LASSO / 100  # sides that no pixel has: they only make the two sums equal

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
        hessian = np.block([[scaled.T @ scaled, mixed.T], [mixed, np.diag(by_scene @ curve + ridge)]]).astype(
            np.float64
        )
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
