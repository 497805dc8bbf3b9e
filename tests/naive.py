"""The oracle: straight from the paper's Eq. (1), with frozensets and plain loops. It imports nothing of bimichi."""

from itertools import combinations
from math import exp, log, prod

Pair = tuple[frozenset[int], frozenset[int]]


def subsets(n_sources: int) -> list[frozenset[int]]:
    """All subsets of the sources in bitmask order."""
    return [frozenset(k for k in range(n_sources) if mask >> k & 1) for mask in range(2**n_sources)]


def pairs(n_sources: int) -> list[Pair]:
    """All pairs of disjoint subsets."""
    return [(a, b) for a in subsets(n_sources) for b in subsets(n_sources) if not a & b]


def code(pair: Pair) -> int:
    """Ternary code: 3^k for k in the first set, 2 * 3^k for k in the second."""
    return sum(int(3**k) for k in pair[0]) + sum(2 * int(3**k) for k in pair[1])


def less_equal(lower: Pair, upper: Pair) -> bool:
    """The order of pairs: the first set grows, the second shrinks."""
    return lower[0] <= upper[0] and lower[1] >= upper[1]


def is_monotone(g: dict[Pair, float], zero_bound: bool) -> bool:
    """Over all ordered pairs of elements; (empty, empty) takes part only with the zero bound."""
    empty = (frozenset[int](), frozenset[int]())
    elements = [e for e in g if zero_bound or e != empty]
    return all(g[a] <= g[b] for a in elements for b in elements if less_equal(a, b))


def chain(x: list[float]) -> list[tuple[Pair, float]]:
    """The steps of Eq. (1): element and weight, sources in ascending |x|, ties in source order."""
    order = sorted(range(len(x)), key=lambda k: abs(x[k]))
    steps, last = [], 0.0
    for position, k in enumerate(order):
        remaining = frozenset(order[position:])
        positive = frozenset(i for i in remaining if x[i] >= 0)
        steps.append(((positive, remaining - positive), abs(x[k]) - last))
        last = abs(x[k])
    return steps


def choquet(x: list[float], g: dict[Pair, float]) -> float:
    """The bi-capacity Choquet integral of one instance, Eq. (1)."""
    return sum(weight * g[element] for element, weight in chain(x))


def capacity_choquet(x: list[float], g: dict[frozenset[int], float]) -> float:
    """The ordinary Choquet integral, written with the sort descending."""
    order = sorted(range(len(x)), key=lambda k: -x[k])
    total = 0.0
    for position, k in enumerate(order):
        nxt = x[order[position + 1]] if position + 1 < len(x) else 0.0
        total += (x[k] - nxt) * g[frozenset(order[: position + 1])]
    return total


def objective(name: str, bags: list[list[list[float]]], labels: list[bool], g: dict[Pair, float]) -> float:
    """J of the paper's two objectives, Eqs. (2) to (6), of the mean objective, and of log-odds that are C."""
    total = 0.0
    for bag, positive in zip(bags, labels, strict=True):
        fused = [choquet(x, g) for x in bag]
        if name == "bipolar":
            total += min((c - 1) ** 2 for c in fused) if positive else max((c + 1) ** 2 for c in fused)
        elif name == "magnitude":
            total += min((1 - abs(c)) ** 2 for c in fused) if positive else max(c**2 for c in fused)
        elif name == "logistic":
            total += sum(log(1 + exp(-c if positive else c)) for c in fused)
        else:
            total += sum((c - (1 if positive else -1)) ** 2 for c in fused) / len(fused)
    return total


def capacity_objective(
    name: str, bags: list[list[list[float]]], labels: list[float], g: dict[frozenset[int], float]
) -> float:
    """J of MICI's objectives with their usual parameters, and of regression; spec: C is the ordinary integral."""
    total = 0.0
    for bag, label in zip(bags, labels, strict=True):
        fused = [capacity_choquet(x, g) for x in bag]
        chance = [exp(-((c - 1) ** 2) / (2 * 0.1**2)) for c in fused]
        if name == "regression":
            total += min((c - label) ** 2 for c in fused)
        elif name == "min-max":
            total += min((c - 1) ** 2 for c in fused) if label else max(c**2 for c in fused)
        elif name == "mean":
            total += sum((c - label) ** 2 for c in fused) / len(fused)
        elif name == "noisy-or":
            total -= log(1 - prod(1 - n for n in chance)) if label else sum(log(1 - n) for n in chance)
        else:
            p, power = (10, -10)[bool(label)], [abs(c - label) for c in fused]
            total += (sum(d ** (2 * p) for d in power) / len(fused)) ** (1 / p)
    return total


def binary_measures(n_sources: int) -> int:
    """Number of non-constant monotone 0/1 measures, by checking every 0/1 function."""
    sets = subsets(n_sources)
    ordered = [(i, j) for i, j in combinations(range(len(sets)), 2) if sets[i] < sets[j]]
    inner = len(sets) - 2
    count = 0
    for bits in range(2**inner):
        values = [0, *(bits >> i & 1 for i in range(inner)), 1]
        count += all(values[i] <= values[j] for i, j in ordered)
    return count
