"""The least J over all measures by trying every choice of witnesses: plain, slow, and sharing nothing with bimichi."""

from itertools import product

import clarabel
import numpy as np
import scipy.sparse as sp

SIDES = {"bipolar": ((1, 1.0),), "magnitude": ((1, 0.0), (-1, 0.0)), "min-max": ((1, 0.0),)}
SIGNS = {"bipolar": (1,), "magnitude": (1, -1), "min-max": (1,)}


def elements_of(m, objective):
    """All elements as pairs of frozensets; of a capacity with an empty second set."""
    digits = (0, 1) if objective == "min-max" else (0, 1, 2)
    found = []
    for word in product(digits, repeat=m):
        found.append(tuple(frozenset(k for k in range(m) if word[k] == d) for d in (1, 2)))
    return found


def row_of(x, objective):
    """The integral of an instance as {element: weight}."""
    signed = objective != "min-max"
    size = np.abs(x) if signed else np.asarray(x)
    order, before, row = np.argsort(size, kind="stable"), 0.0, {}
    for at, k in enumerate(order):
        rest = order[at:]
        up = frozenset(int(j) for j in rest if x[j] >= 0 or not signed)
        pair = (up, frozenset(int(j) for j in rest) - up)
        row[pair] = row.get(pair, 0.0) + size[k] - before
        before = size[k]
    return row


def least(X, bags, labels, weights, objective):
    """The least J, and how many choices of witnesses there were; `labels` and `weights` are those of bags 0, 1, ..."""
    m = X.shape[1]
    everything = (frozenset(range(m)), frozenset())
    fixed = {everything: 1.0}
    if objective == "min-max":
        fixed[frozenset(), frozenset()] = 0.0
    else:
        fixed[everything[::-1]] = -1.0
        fixed[frozenset(), frozenset()] = 0.0  # read by no integral; in order only with the zero bound
    free = [pair for pair in elements_of(m, objective) if pair not in fixed]
    position = {pair: k for k, pair in enumerate(free)}
    n, negative = len(free), [b for b in range(len(labels)) if not labels[b]]
    lines, constants = np.zeros((len(X), n)), np.zeros(len(X))
    for i, x in enumerate(X):
        for pair, weight in row_of(x, objective).items():
            if pair in position:
                lines[i, position[pair]] += weight
            else:
                constants[i] += weight * fixed[pair]
    A, b = [], []
    bounded = [pair for pair in fixed if pair[0] or pair[1] or objective != "bipolar"]
    for p in free:
        for q in free:
            if p != q and p[0] <= q[0] and p[1] >= q[1]:
                line = np.zeros(n + len(negative))
                line[position[p]], line[position[q]] = 1, -1
                A.append(line)
                b.append(0.0)
        for q in bounded:
            for sign, holds in ((1, p[0] <= q[0] and p[1] >= q[1]), (-1, p[0] >= q[0] and p[1] <= q[1])):
                if holds:
                    line = np.zeros(n + len(negative))
                    line[position[p]] = sign
                    A.append(line)
                    b.append(sign * fixed[q])
    for k, bag in enumerate(negative):
        for i in np.flatnonzero(bags == bag):
            for sign, offset in SIDES[objective]:
                line = np.append(sign * lines[i], np.zeros(len(negative)))
                line[n + k] = -1
                A.append(line)
                b.append(-sign * constants[i] - offset)
    positive = [bag for bag in range(len(labels)) if labels[bag]]
    choices = [[(i, s) for i in np.flatnonzero(bags == bag) for s in SIGNS[objective]] for bag in positive]
    best, number = np.inf, 0
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    for choice in product(*choices):
        M = -np.array([s * lines[i] for i, s in choice])
        c = 1 - np.array([s * constants[i] for i, s in choice])
        w = np.array([weights[bag] for bag in positive])
        P = np.zeros((n + len(negative),) * 2)
        P[:n, :n] = 2 * M.T @ (w[:, None] * M)
        P[n:, n:] = np.diag([2 * weights[bag] for bag in negative])
        q = np.append(2 * M.T @ (w * c), np.zeros(len(negative)))
        cones = [clarabel.NonnegativeConeT(len(b))]
        solver = clarabel.DefaultSolver(sp.csc_matrix(np.triu(P)), q, sp.csc_matrix(np.array(A)), b, cones, settings)
        found = solver.solve()
        assert str(found.status) in ("Solved", "AlmostSolved")
        best, number = min(best, found.obj_val + float(w @ c**2)), number + 1
    return best, number


def small_problem(rng, objective, kind):
    """Instances, bags, labels and weights of a problem small enough to try all witnesses."""
    m = int(rng.integers(2, 5))
    n_positive, size = [(2, 4), (3, 3), (2, 3)][rng.integers(3)]
    n_bags = n_positive + int(rng.integers(1, 5))
    X = rng.uniform(-1, 1, (n_bags * size, m))
    if kind == "binary":
        X[:, 0] = np.sign(X[:, 0])
    elif kind == "three-valued":
        X = np.round(X * 1.49)
    elif kind == "correlated":
        X = 0.3 * X + 0.7 * rng.uniform(-1, 1, (len(X), 1))
    X = X if objective != "min-max" else np.abs(X)
    labels = np.arange(n_bags) < n_positive
    weights = rng.uniform(0.5, 2, n_bags) if kind == "uniform" else np.ones(n_bags)
    return X, np.repeat(np.arange(n_bags), size), labels, weights
