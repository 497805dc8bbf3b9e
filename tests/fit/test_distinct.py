"""`distinct` numbers values as NumPy's unique does, without sorting whole numbers."""

import numpy as np
import pytest

from bimichi.scenes.checks import distinct, group


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).integers(-5, 40, (20, 30)),
        np.random.default_rng(1).integers(0, 5, 50).astype(np.uint8),
        np.array([2**62 + 5, 3, 2**62 + 5]),
        np.array([7, -(2**60)]),
        np.array([], np.int64),
        np.array([0.5, -1.0, 0.5]),
        np.array(["b", "a", "b"]),
    ],
)
def test_values_are_numbered_in_order(values):
    names, where = distinct(values)
    expected, inverse = np.unique(values, return_inverse=True)
    assert np.array_equal(names, expected)
    assert names.dtype == expected.dtype
    assert np.array_equal(where, inverse.ravel())


def test_bags_are_in_order_of_appearance():
    order, offsets, ids = group(np.array([7, 3, 7, 9, 3]), 5)
    assert ids == [7, 3, 9]
    assert order.tolist() == [0, 2, 1, 4, 3]
    assert offsets.tolist() == [0, 2, 4, 5]
