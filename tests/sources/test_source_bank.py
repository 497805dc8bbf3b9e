import json
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from scipy.ndimage import gaussian_filter
from sources_of_raw import BOXES, raw_scene

from bimichi import InvalidInputError
from bimichi.sources import Bank, bank
from bimichi.sources.filters import blur


@pytest.fixture(scope="module")
def images():
    sources = raw_scene(0, "a").sources
    colour = np.random.default_rng(1).integers(0, 255, (*sources.shape[:2], 3)).astype(np.uint8)
    return {"thermal": sources[..., 0], "vi": colour}


@pytest.fixture(scope="module")
def made(images):
    return bank([images], [BOXES])


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.3, 20.0])
def test_means_are_gaussian(sigma):
    plane = np.zeros((121, 141), np.float32)
    plane[60, 70] = 1
    expected = gaussian_filter(plane.astype(float), sigma, truncate=6)
    assert np.abs(blur(plane, sigma, sigma) - expected).max() < 0.12 * expected.max()  # 6 % along either axis
    np.testing.assert_allclose(blur(np.full((9, 7), 3.5, np.float32), sigma, 2), 3.5, rtol=1e-6)


def test_means_have_two_widths():
    plane = np.zeros((61, 61), np.float32)
    plane[30, 30] = 1
    wide = blur(plane, 1, 6)
    place = np.arange(61) - 30
    assert (wide.sum(axis=0) * place**2).sum() == pytest.approx(36, rel=1e-3)
    assert (wide.sum(axis=1) * place**2).sum() == pytest.approx(1, rel=1e-3)


def test_sources_are_named_grouped_and_in_range(made, images):
    planes = made.planes(list(images.values()))
    assert len(planes) == len(made.source_names) == len(set(made.source_names)) == len(made.groups)
    assert all(plane.dtype == np.float32 and np.abs(plane).max() <= 1 for plane in planes)
    assert made.size == 12
    assert "thermal, rare if high" in made.source_names
    assert "vi red-green" in made.source_names
    assert set(made.groups) == {"thermal", "vi", "thermal and vi"}


def test_threads_change_nothing(made, images):
    for one, two in zip(made.planes(list(images.values()), 1), made.planes(list(images.values()), 2), strict=True):
        np.testing.assert_array_equal(one, two)


def test_sizes_follow_the_boxes(images):
    sizes = {width: bank([images], [[[1, 1, width, width]]]).size for width in (8, 30)}
    assert sizes == {8: 8, 30: 30}
    assert bank([images], [np.empty((0, 4))]).size > 0


def test_a_blob_responds_to_a_blob(made):
    image = np.zeros((60, 60), np.float32)
    image[24:36, 24:36] = 1
    flat = bank([{"a": image}], [[[24, 24, 12, 12]]])
    planes = dict(zip(flat.source_names, flat.planes([image]), strict=True))
    blobs = [plane for name, plane in planes.items() if "blob" in name]
    assert len(blobs) == 5
    for plane in blobs:
        assert plane[30, 30] > 0.9 > 0.2 > plane[5, 5]


def test_missing_data_stay_missing(made, images):
    holes = images["thermal"].copy()
    holes[:5, :7] = np.nan
    for plane in made.planes([holes, images["vi"]]):
        assert np.isnan(plane[:5, :7]).all()
        assert np.isfinite(plane[5:, 7:]).all()


def test_constant_images_are_left_out(images):
    flat = np.full((56, 80), 7.0)
    names = bank([images | {"flat": flat}], [BOXES]).source_names
    assert names == bank([images], [BOXES]).source_names
    with refused("sources-constant"):
        bank([{"flat": flat}], [BOXES])


def test_forty_bands_make_a_bounded_bank(rng):
    bands = {f"b{k}": rng.normal(size=(30, 30)) for k in range(40)}
    many = bank([bands], [[[5, 5, 8, 8]]])
    assert 40 < len(many.sources) <= 256


def test_a_bank_is_kept_as_plain_data(made, images):
    again = Bank.unpack(json.loads(json.dumps(made.pack())))
    assert again == made
    chosen = made.chosen([3, 0])
    planes = made.planes(list(images.values()))
    for one, k in zip(chosen.planes(list(images.values())), (3, 0), strict=True):
        np.testing.assert_array_equal(one, planes[k])


@pytest.mark.parametrize(
    "change",
    [
        {"size": 1e9},
        {"sources": [["blob", [0], [1e9, 2.0]]]},
        {"sources": [["blob", [99], [1.0, 2.0]]]},
        {"sources": [["no such", [0], []]]},
        {"sources": [["mean", [0, 1], [1.0]]]},
        {"sources": []},
        {"raws": [["thermal", False], ["thermal", False]]},
        {"raws": 3},
        {"channels": [{"raw": "thermal", "colour": None, "low": 2.0, "middle": 1.0, "high": 3.0}]},
        {"channels": [{"raw": "other", "colour": None, "low": 0.0, "middle": 1.0, "high": 3.0}]},
        {"channels": [{"raw": "thermal", "colour": "infrared", "low": 0.0, "middle": 1.0, "high": 3.0}]},
    ],
)
def test_impossible_banks_are_refused(made, change):
    with pytest.raises(InvalidInputError):
        Bank.unpack(made.pack() | change)


def test_channels_have_a_neutral_point(made, images):
    plane = replace(made.channels[0], low=270.0, middle=280.0, high=300.0).plane(
        np.array([[260.0, 275, 280, 290, 400]])
    )
    np.testing.assert_allclose(plane, [[-1, -0.5, 0, 0.5, 1]], atol=1e-6)
