import os
from functools import cache

if "PYTEST_XDIST_WORKER" in os.environ:  # one process per core: further threads would only wait for each other
    for _library in ("OMP", "OPENBLAS"):
        os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(20240703)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    bags = np.repeat(np.arange(30), 12)
    positive = bags % 3 == 0
    target = positive & (rng.random(360) < 0.4)
    target[::36] = True
    X = np.clip(rng.normal(-0.3, 0.3, (360, 3)) + 0.9 * target[:, None], -1, 1)
    return X, positive.astype(int), bags, target.astype(int)


@pytest.fixture(scope="module")
def model_of(data):
    """A fitted model, or a bare measure, by its name in `methods`; each is fitted once."""
    from methods import BARE, MEASURED, fitted

    return cache(lambda name: BARE[name] if name in BARE else fitted(MEASURED[name], data))


@pytest.fixture(scope="session")
def streets():
    """Four small streets at night, two people in each; no test may change them."""
    from samples import small_streets

    return small_streets(range(4))
