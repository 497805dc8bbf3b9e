import os
from functools import cache

if "PYTEST_XDIST_WORKER" in os.environ:  # one process per core: further threads would only wait for each other
    for _library in ("OMP", "OPENBLAS"):
        os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("suite", derandomize=True, deadline=None)  # the same examples in every run, however long
settings.load_profile("suite")


@pytest.fixture
def rng():
    return np.random.default_rng(20240703)


@pytest.fixture(scope="session")
def data():
    """Rows, labels of bags for each row, bag ids, and what each row really is; none can be written to."""
    rng = np.random.default_rng(0)
    bags = np.repeat(np.arange(30), 12)
    positive = bags % 3 == 0
    target = positive & (rng.random(360) < 0.4)
    target[::36] = True
    X = np.clip(rng.normal(-0.3, 0.3, (360, 3)) + 0.9 * target[:, None], -1, 1)
    made = X, positive.astype(int), bags, target.astype(int)
    for array in made:
        array.setflags(write=False)
    return made


@pytest.fixture(scope="session")
def model_of(data):
    """A fitted model, or a bare measure, by its name in `methods`; each is fitted once, and no test may change it."""
    from methods import BARE, MEASURED, METHODS, fitted

    return cache(lambda name: BARE[name] if name in BARE else fitted((METHODS | MEASURED)[name], data))


@pytest.fixture(scope="session")
def streets():
    """Four small streets at night, two people in each; no test may change them."""
    from samples import small_streets

    return small_streets(range(4))


@pytest.fixture
def few_rows(monkeypatch):
    """Leave out most settings of Bi-MIChI in studies; returns the names of those that are kept."""
    from bimichi.evaluate import study

    every, kept = (
        study.candidates,
        [f"Bi-MIChI mean, {k}-additive, polarity {how}" for k in (2, 1) for how in ("given", "learned")],
    )
    monkeypatch.setattr(
        study, "candidates", lambda *given: [row for row in every(*given) if row.kind != "bi-michi" or row.name in kept]
    )
    return kept
