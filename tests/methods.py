"""Every registered method once, quick to fit, for the tests that run over all of them."""

from sklearn.base import clone

from bimichi import AdditiveBiCapacity, BiCapacity, BiMIChI, BiMIChICV, Capacity, DetectorMask, EvolutionarySolver
from bimichi.fit.objectives import CAPACITY_OBJECTIVES
from bimichi.methods.measured import MeasureFusion
from bimichi.methods.registry import registered_methods

QUICK = EvolutionarySolver(max_iter=100, population_size=6)


def quick(entry):
    """Make the method; where only the evolutionary search applies, let it search for a short time."""
    method = entry.make()
    parameters = method.get_params()
    objective = CAPACITY_OBJECTIVES.get(parameters.get("objective"))
    if isinstance(method, BiMIChICV):
        return method.set_params(candidates=[{"objective": "mean", "additivity": 2}, {"objective": "logistic"}])
    slow = parameters.get("solver") == "auto" and objective is not None and objective.convex is None
    return method.set_params(solver=QUICK) if slow or parameters.get("solver") == "evolutionary" else method


METHODS = {}
"""By name in the registry. `DetectorMask`, which takes an image instead of sources, has tests of its own."""

for _entry in registered_methods():
    _method = quick(_entry)
    if "candidates" in _entry.parameters:
        continue  # these learn from scenes with boxes alone, and are tested with them
    if _entry.estimator is not DetectorMask and repr(_method) not in map(repr, METHODS.values()):
        _name = _entry.name if _entry.name not in METHODS else f"{_entry.name} ({_entry.estimator.__name__})"
        METHODS[_name] = _method  # one of those that differ in nothing but the name

MEASURED = {name: method for name, method in METHODS.items() if isinstance(method, MeasureFusion)} | {
    f"{objective} {additivity}-additive": BiMIChI(objective, additivity=additivity, random_state=0)
    for objective in ("mean", "magnitude")
    for additivity in (1, 2)
}
"""Those that learn a measure, with every additivity."""

BARE = {
    "bi-capacity": BiCapacity.random(3, False, 1),
    "capacity": Capacity.random(3, 1),
    "additive": AdditiveBiCapacity.random(3, 1),
    "weights": AdditiveBiCapacity.random(3, 1, order=1),
}
"""Measures of three sources that nobody learned."""


def fitted(method, data):
    X, y, bags, target = data
    return clone(method).fit(X, {"bags": y, "instances": target}.get(method.needs), bags=bags)
