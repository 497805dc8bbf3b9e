"""`DetectorMask` with a network or ready-made masks."""

import copy
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
from networks import IMAGE, network
from PIL import Image
from refusals import refused
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from bimichi.errors import InvalidInputError, ModelFileError, NotRunError
from bimichi.methods import DetectorMask


def test_no_detections(tmp_path):
    fused = DetectorMask(network(tmp_path / "a.onnx", [], [])).fit().fuse(IMAGE)
    assert fused.dtype == np.float32
    np.testing.assert_array_equal(fused, np.zeros(IMAGE.shape[:2]))


def test_clones_copies_pickles_and_threads(tmp_path, rng):
    path = network(tmp_path / "a.onnx", [[80, 80, 400, 640]], None, pixels=[5], masks=[rng.random((28, 28))])
    model = DetectorMask(str(path), score_threshold=0.1, output="score", n_jobs=1).fit()
    images = [rng.integers(0, 256, IMAGE.shape, np.uint8) for _ in range(5)]
    wanted = [model.fuse(image) for image in images]
    assert len({fused.max() for fused in wanted}) > 2
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        clone(model).fuse(IMAGE)
    assert model.session_ is not None
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other.session_ is None
        found = joblib.Parallel(4, backend="threading")(joblib.delayed(other.fuse)(image) for image in images)
        np.testing.assert_array_equal(found, wanted)
        assert other.session_ is not None
    np.testing.assert_array_equal(DetectorMask(path, None, 1, 0.1, 0.5, "score", 2).fit().fuse(images[0]), wanted[0])
    assert not hasattr(pickle.loads(pickle.dumps(clone(model))), "session_")


def test_nothing_given_or_both(tmp_path):
    with pytest.raises(NotRunError) as caught:
        DetectorMask().fit()
    assert str(caught.value) == "no detector weights given"
    with refused("detector-twice"):
        DetectorMask(tmp_path / "a.onnx", np.zeros((2, 2))).fit()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output": "box"}, "choice:output"),
        ({"score_threshold": 70}, "number-range:score_threshold"),
        ({"score_threshold": "high"}, "number-range:score_threshold"),
        ({"mask_threshold": np.nan}, "number-range:mask_threshold"),
        ({"mask_threshold": True}, "number-range:mask_threshold"),
        ({"target_class": "person"}, "whole-number:target_class"),
        ({"n_jobs": 0}, "n-jobs:n_jobs"),
    ],
)
def test_bad_parameters(options, message):
    with refused(message):
        DetectorMask(masks=np.zeros((2, 2)), **options).fit()


def test_files_that_are_no_network(tmp_path, capfd):
    text = tmp_path / "notes.onnx"
    text.write_text("not a network")
    (tmp_path / "empty.onnx").touch()
    for path, message in (
        (tmp_path / "none.onnx", "network-missing"),
        (tmp_path, "network-missing"),
        (text, "network-unreadable"),
        (tmp_path / "empty.onnx", "network-unreadable"),
        ("a\0b", "network-missing"),
    ):
        with refused(message, kind=(ModelFileError, InvalidInputError)):
            DetectorMask(path).fit()
    with refused("network-path:model"):
        DetectorMask(5).fit()
    assert capfd.readouterr() == ("", "")


def test_ready_made_masks(tmp_path, rng):
    image = np.zeros((6, 7, 3), np.uint8)
    shades = rng.choice(np.array([0, 1, 51, 255], np.uint8), (6, 7))
    others = rng.random((6, 7)) < 0.5
    Image.fromarray(shades).save(tmp_path / "shades.png")
    Image.fromarray(others).save(tmp_path / "night.01.png")
    path = tmp_path / "shades.png"
    mapping = {"a": shades, "b": str(path), "c": others}
    for masks, name in ((shades, None), (shades.tolist(), "any"), (path, None), (str(path), "any"), (mapping, "a")):
        fused = DetectorMask(masks=masks).fit().fuse(image, name)
        assert fused.dtype == np.float32
        np.testing.assert_array_equal(fused, shades > 0)
    for masks, name in ((tmp_path, "shades"), (shades, None), (path, None), (mapping, "a"), (mapping, "b")):
        np.testing.assert_array_equal(
            DetectorMask(masks=masks, output="score").fit().fuse(image, name), shades / np.float32(255)
        )
    for masks, name in ((str(tmp_path), "night.01"), (mapping, "c"), (others, None), (others / 1.0, None)):
        for output in ("mask", "score"):
            np.testing.assert_array_equal(DetectorMask(masks=masks, output=output).fit().fuse(image, name), others)
    model = pickle.loads(pickle.dumps(clone(DetectorMask(masks=mapping)).fit()))
    np.testing.assert_array_equal(model.fuse(image, name="c"), others)


def test_numbered_people_are_a_mask_but_no_scores(tmp_path, rng):
    numbers = rng.integers(0, 4, (6, 7), np.uint8)
    coloured = Image.fromarray(numbers)
    coloured.putpalette(rng.integers(0, 256, 768, np.uint8).tobytes())
    coloured.save(tmp_path / "palette.png")
    Image.fromarray(numbers.astype(np.uint16)).save(tmp_path / "wide.png")
    image = np.zeros((6, 7, 3), np.uint8)
    for masks in (numbers.astype(np.int64), tmp_path / "palette.png", tmp_path / "wide.png"):
        np.testing.assert_array_equal(DetectorMask(masks=masks).fit().fuse(image), numbers > 0)
        with refused("mask-type"):
            DetectorMask(masks=masks, output="score").fit().fuse(image)


@pytest.mark.parametrize(
    ("masks", "name", "message"),
    [
        ({}, None, "masks-empty"),
        ({"a": "none.png"}, "a", "file-missing"),
        ("none.png", None, "file-missing:masks"),
        (5, None, "mask-kind"),
        (np.zeros((6, 7, 3)), None, "mask-kind"),
        ({"a": np.zeros((6, 7), complex)}, "a", "mask-kind"),
        ({"a": np.zeros((6, 7))}, "b", "mask-unnamed:masks"),
        ({"a": np.zeros((6, 7))}, None, "mask-unnamed"),
        (np.zeros((7, 6)), None, "mask-size:masks"),
        ({"a": np.zeros((7, 6))}, "a", "mask-size"),
        (np.full((6, 7), 255.0), None, "mask-range"),
        (np.full((6, 7), np.nan), None, "mask-range"),
        ("folder", None, "mask-unnamed:masks"),
        ("folder", "none", "mask-unreadable"),
        ("folder", "text", "mask-unreadable"),
        ("folder", "cut", "mask-unreadable"),
        ("folder", "jpeg", "mask-unreadable"),
        ("folder", "colour", "mask-size"),
    ],
)
def test_ready_made_masks_that_cannot_be_used(masks, name, message, tmp_path):
    if isinstance(masks, str) and masks == "folder":
        masks = tmp_path
        (tmp_path / "text.png").write_text("no picture")
        Image.fromarray(np.zeros((6, 7, 3), np.uint8)).save(tmp_path / "colour.png")
        (tmp_path / "cut.png").write_bytes((tmp_path / "colour.png").read_bytes()[:45])
        Image.fromarray(np.zeros((6, 7), np.uint8)).save(tmp_path / "jpeg.png", format="JPEG")
    with refused(message):
        DetectorMask(masks=masks).fit().fuse(np.zeros((6, 7, 3), np.uint8), name)


@pytest.mark.parametrize(("module", "package"), [("onnxruntime", "onnxruntime"), ("PIL.Image", "PIL")])
def test_a_missing_package_is_named(module, package, tmp_path, monkeypatch):
    path = network(tmp_path / "a.onnx", [], [])
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"needs {package}; .* pip install 'bimichi\[detector\]'"):
        DetectorMask(path).fit().fuse(IMAGE)


def test_what_is_not_used_is_not_imported():
    script = "import sys, bimichi.methods; print([m for m in ('onnxruntime', 'PIL') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_a_comparison_asks():
    assert DetectorMask.needs == "image"
    assert DetectorMask().output_range == (0.0, 1.0)
    assert DetectorMask(masks=np.ones((2, 2))).fit(np.zeros((4, 3)), [0, 1, 0, 1], bags=[0, 0, 1, 1]).fuse(
        np.zeros((2, 2, 3), np.uint8)
    ).tolist() == [[1, 1], [1, 1]]
