"""One of each method, quick to fit, for the tests that run over all of them."""

from sklearn.base import clone

from bimichi import (
    MICI,
    AdditiveBiCapacity,
    BiCapacity,
    BiCapacityQP,
    BiMIChI,
    BinaryMICI,
    Capacity,
    ChoquetQP,
    ConstantFusion,
    EvolutionarySolver,
    KNNFusion,
    MaxFusion,
    MeanFusion,
    MICIRegressor,
    MinFusion,
    SingleSource,
    SVMFusion,
    WeightedMeanFusion,
)
from bimichi.estimators.measured import MeasureFusion

QUICK = EvolutionarySolver(max_iter=100, population_size=6)
BIPOLAR = {"bipolar_input": True}
METHODS = {
    "bipolar": BiMIChI(random_state=0),
    "magnitude": BiMIChI("magnitude", random_state=0),
    "mean": BiMIChI("mean", random_state=0),
    "noisy-or": MICI(solver=QUICK, random_state=0, **BIPOLAR),
    "min-max": MICI("min-max", random_state=0, **BIPOLAR),
    "generalized-mean": MICI("generalized-mean", solver=QUICK, random_state=0, **BIPOLAR),
    "normalised mean": MICI("mean", **BIPOLAR),
    "binary": BinaryMICI(**BIPOLAR),
    "regression": MICIRegressor(solver=QUICK, random_state=0, **BIPOLAR),
    "CI-QP": ChoquetQP(**BIPOLAR),
    "bi-capacity QP": BiCapacityQP(),
    "min": MinFusion(**BIPOLAR),
    "max": MaxFusion(**BIPOLAR),
    "average": MeanFusion(**BIPOLAR),
    "weighted mean": WeightedMeanFusion(**BIPOLAR),
    "single": SingleSource(1, **BIPOLAR),
    "constant": ConstantFusion(0.25, **BIPOLAR),
    "KNN": KNNFusion(n_neighbors=20),
    "SVM": SVMFusion(),
}

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
