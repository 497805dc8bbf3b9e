"""A refit that is interrupted anywhere leaves the model of before, of every method."""

import sys
from pathlib import Path

import numpy as np
import pytest
from methods import METHODS
from sklearn.base import clone

import bimichi
from bimichi import Bags, BiMIChI, DetectorMask
from bimichi.methods.base import all_or_nothing

WATCHED = str(Path(bimichi.__file__).parent)
POINTS = 4


class Interrupter:
    """Counts the lines that run in the package, and raises KeyboardInterrupt before one of them."""

    def __init__(self, at=None):
        self.count, self.at = 0, at

    def __enter__(self):
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def _enter(self, frame, event, argument):
        code = frame.f_code
        return self._line if code.co_filename.startswith(WATCHED) and code.co_name != "fit_copy" else None

    def _line(self, frame, event, argument):
        self.count += event == "line"
        if self.count == self.at:
            sys.settrace(None)
            self.at = None
            raise KeyboardInterrupt
        return self._line


def refit(method, data, seed, n_jobs=1):
    X, y, bags, target = data
    X = np.clip(X * (0.5 + 0.4 * seed), -1, 1)
    labels = {"bags": y, "instances": target}.get(method.needs)
    if method.needs == "instances":
        return lambda: method.fit(X, labels if seed == 0 else 1 - labels)
    return lambda: method.fit(X, labels, bags=bags)


@pytest.mark.parametrize("name", METHODS)
def test_the_old_model_is_intact_bit_for_bit(name, data):
    method = clone(METHODS[name])
    if "n_jobs" in method.get_params():
        method.set_params(n_jobs=1)
    refit(method, data, 0)()
    before, fused = dict(vars(method)), method.fuse(data[0])
    with Interrupter() as counted:
        refit(clone(method), data, 1)()
    points = np.unique(np.linspace(1, counted.count, POINTS).astype(int))
    for at in points:
        with Interrupter(int(at)), pytest.raises(KeyboardInterrupt):
            refit(method, data, 1)()
        assert vars(method).keys() == before.keys()
        assert all(vars(method)[key] is value for key, value in before.items())
    np.testing.assert_array_equal(method.fuse(data[0]), fused)


def test_a_detector_keeps_its_masks(tmp_path):
    image = np.zeros((2, 3, 3), np.uint8)
    detector = DetectorMask(masks=np.ones((2, 3))).fit()
    detector.set_params(masks=np.zeros(3))
    session = detector.session_
    with pytest.raises(bimichi.InvalidInputError):
        detector.fit()
    assert detector.session_ is session
    detector.set_params(masks=np.ones((2, 3)))
    assert detector.fuse(image).all()


def test_every_method_is_protected():
    for method in [*METHODS.values(), DetectorMask()]:
        assert method.fit.__code__ is all_or_nothing(lambda: None).__code__


def test_a_new_fit_forgets_the_names_of_the_old(data):
    import pandas as pd

    X, y, bags, _ = data
    frame = pd.DataFrame(X, columns=[f"band {k}" for k in range(X.shape[1])])
    model = BiMIChI(random_state=0).fit(frame, y, bags=bags)
    assert model.rule_.source_names[0] == "band 0"
    model.fit(Bags.from_instances(X, y, bags))
    assert model.rule_.source_names[0] == "1"
    assert not hasattr(model, "feature_names_in_")
