"""Objectives with a free scale on the workers of a Dask cluster."""

import dask.array as da
import numpy as np
from distributed import Client

from bimichi import BiMIChI


def test_a_cluster_gives_what_memory_gives():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 3))
    y = (rng.random(600) < 1 / (1 + np.exp(1 - 3 * X[:, 0]))).astype(int)
    models = [BiMIChI("logistic", additivity=additivity) for additivity in (None, 1, 2)]
    models += [BiMIChI("mean", additivity=additivity, free_scale=True) for additivity in (None, 1, 2)]
    expected = [model.fit(X, y).fuse(X) for model in models]
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None):
        lazy = da.from_array(X, chunks=(200, 3))
        for model, wanted in zip(models, expected, strict=True):
            np.testing.assert_allclose(model.fit(lazy, y).fuse(X), wanted, atol=1e-4)
