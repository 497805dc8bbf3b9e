"""The oracle of explanations: frozensets and plain loops. It imports nothing of bimichi."""

from itertools import combinations
from math import factorial
from typing import Any

import naive

Set = frozenset[int]
Game = dict[Set, float]
Measure = dict[Any, float]


def within(members: Any) -> list[Set]:
    """All subsets of some sources."""
    members = sorted(members)
    return [frozenset(s) for size in range(len(members) + 1) for s in combinations(members, size)]


def as_dict(values: list[float], n: int) -> Measure:
    """Values in code order, by subset or by pair, as their number tells."""
    if len(values) == 2**n:
        return {s: values[sum(2**k for k in s)] for s in naive.subsets(n)}
    return {pair: values[naive.code(pair)] for pair in naive.pairs(n)}


def interaction(g: dict[naive.Pair, float], n: int, up: Set, down: Set) -> float:
    """Grabisch and Labreuche's index of disjoint S (up) and T (down)."""
    everything = frozenset(range(n))
    rest = n - len(up) - len(down)
    total = 0.0
    for k in within(everything - up - down):
        weight = factorial(rest - len(k)) * factorial(len(k)) / factorial(rest + 1)
        for added in within(up):
            for removed in within(down):
                sign = (-1) ** (len(up - added) + len(down - removed))
                total += weight * sign * g[k | added, everything - k - up - removed]
    return total


def game_interaction(v: Game, n: int, members: Set) -> float:
    """Shapley value (one member) or interaction index of a game on subsets."""
    rest = n - len(members)
    total = 0.0
    for k in within(frozenset(range(n)) - members):
        weight = factorial(rest - len(k)) * factorial(len(k)) / factorial(rest + 1)
        total += weight * sum((-1) ** len(members - part) * v[k | part] for part in within(members))
    return total


def integral(x: list[float], g: Measure) -> float:
    """Either Choquet integral, by what the keys of the measure are."""
    return naive.choquet(x, g) if isinstance(next(iter(g)), tuple) else naive.capacity_choquet(x, g)


def game(x: list[float], g: Measure) -> Game:
    """v(S) = C(x with the sources outside S set to 0)."""
    n = len(x)
    return {s: integral([x[k] if k in s else 0.0 for k in range(n)], g) for s in within(range(n))}


def contributions(x: list[float], g: Measure) -> list[float]:
    """Shapley values of that game."""
    v = game(x, g)
    return [game_interaction(v, len(x), frozenset([k])) for k in range(len(x))]


def interval(g: dict[naive.Pair, float], used: set[naive.Pair], element: naive.Pair, zero_bound: bool) -> Any:
    """Where an element can lie, given the used ones and the boundary."""
    n = max(len(a) + len(b) for a, b in g)
    everything, nothing = frozenset(range(n)), frozenset[int]()
    known = used | {(everything, nothing), (nothing, everything)}
    known = known | {(nothing, nothing)} if zero_bound else known - {(nothing, nothing)}
    return (
        max(g[e] for e in known if naive.less_equal(e, element)),
        min(g[e] for e in known if naive.less_equal(element, e)),
    )
