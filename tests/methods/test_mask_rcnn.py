"""What Mask R-CNN finds, as `DetectorMask` makes a map of it; networks and images that it refuses."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from networks import IMAGE, NAMES, SHAPES, TYPES, constant, naive_paste, network, write
from onnx import TensorProto
from PIL import Image
from refusals import refused

from bimichi.errors import ModelFileError
from bimichi.methods import DetectorMask
from bimichi.methods.networks import detect, paste_mask

BOXES = {
    "inside": (20.3, 10.7, 60.2, 80.9),
    "smaller than the mask": (20.3, 10.7, 29.1, 25.4),
    "one pixel": (5.0, 6.0, 5.0, 6.0),
    "beyond left and top": (-30.6, -20.2, 25.4, 30.8),
    "beyond right and bottom": (70.2, 60.5, 150.9, 140.1),
    "beyond all sides": (-40.0, -50.0, 200.0, 180.0),
    "outside to the left": (-60.0, 20.0, -30.0, 60.0),
    "outside below": (20.0, 130.0, 40.0, 170.0),
    "inverted": (60.0, 50.0, 20.0, 10.0),
}


@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.8])
def test_masks_are_pasted_as_a_plain_loop_does(name, threshold, rng):
    box, mask = np.array(BOXES[name], np.float32), rng.random((28, 28), np.float32)
    fused = np.zeros((100, 120), np.float32)
    paste_mask(mask, box, threshold, 0.75, fused)
    np.testing.assert_array_equal(fused, 0.75 * naive_paste(mask, box, threshold, fused.shape))
    if threshold == 0:
        assert fused.any() == (name not in ("outside to the left", "outside below", "inverted"))


def test_enlarged_masks_are_those_that_pillow_makes(rng):
    mask = rng.random((28, 28), np.float32)
    fused = np.zeros((100, 120), np.float32)
    paste_mask(mask, np.array([14.0, 7.0, 70.0, 63.0], np.float32), 0.5, 1.0, fused)  # grown by 2 to (12, 5, 72, 65)
    enlarged = np.asarray(Image.fromarray(np.pad(mask, 1)).resize((61, 61), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(fused[5:66, 12:73], enlarged > 0.5)
    assert fused.sum() == fused[5:66, 12:73].sum()


@pytest.mark.parametrize("shape", [(60, 90), (90, 60), (801, 1000), (1250, 900), (333, 333)])
def test_images_are_prepared_as_the_network_wants(shape, rng, tmp_path):
    """Each score is one value of the network's input; the pixel count of its last row and column fixes its shape."""
    image = rng.integers(0, 256, (*shape, 3), np.uint8)
    ratio = 800 / min(shape)
    height, width = int(ratio * shape[0]), int(ratio * shape[1])
    padded = [length + -length % 32 for length in (height, width)]
    resized = np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR))
    where = [rng.integers(0, (3, *padded)) for _ in range(60)]
    where += [(2, 0, 0), (0, height - 1, width - 1), (1, padded[0] - 1, 5), (1, 5, padded[1] - 1), (2, height - 1, 0)]
    wanted, boxes = [], []
    for k, (c, y, x) in enumerate(where):
        mean = (102.9801, 115.9465, 122.7717)[c]
        wanted.append(resized[y, x, 2 - c] - mean if y < height and x < width else 0.0)
        top, left = 6 * (k // 10) + 2, 6 * (k % 10) + 2
        boxes.append([left * ratio, top * ratio, (left + 2) * ratio, (top + 2) * ratio])
    pixels = [(c * padded[0] + y) * padded[1] + x for c, y, x in where]
    model = DetectorMask(network(tmp_path / "a.onnx", boxes, None, pixels=pixels), score_threshold=0, output="score")
    fused = model.fit().fuse(image)
    found = [fused[6 * (k // 10) + 3, 6 * (k % 10) + 3] for k in range(len(where))]
    np.testing.assert_allclose(found, np.array(wanted) / 512 + 0.5, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(model.fuse(image / 255), fused)
    np.testing.assert_array_equal(model.fuse((image / 255).astype(np.float32)), fused)


RATIO = 8.0


def test_several_people_other_classes_and_low_scores(rng, tmp_path):
    corners = rng.uniform(-20, 90, (12, 2))
    boxes = np.hstack([corners, corners + np.array([40, 60])])
    scores = np.array([0.95, 0.71, 0.7, 0.69, 0.99, 0.8, 0.75, 0.9, 0.3, 0.99, 0.85, 0.72], np.float32)
    labels = np.array([1, 1, 1, 1, 2, 1, 1, 1, 1, 17, 1, 1])
    masks = rng.random((12, 28, 28))
    path = network(tmp_path / "a.onnx", boxes * RATIO, scores, labels, masks)
    for target, threshold, cut in ((1, 0.7, 0.5), (2, 0.7, 0.5), (1, 0.0, 0.6), (1, 0.74, 0.5), (5, 0.0, 0.5)):
        score = np.zeros(IMAGE.shape[:2], np.float32)
        for k in range(12):
            if labels[k] == target and scores[k] > np.float32(threshold):
                inside = naive_paste(np.float32(masks[k]), np.float32(boxes[k]), cut, score.shape)
                score[inside] = np.maximum(score[inside], scores[k])
        model = DetectorMask(path, None, target, threshold, cut).fit()
        np.testing.assert_array_equal(model.fuse(IMAGE), (score > 0).astype(np.float32))
        np.testing.assert_array_equal(model.set_params(output="score").fuse(IMAGE), score)
        assert score.any() == (target != 5)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"image": (TensorProto.FLOAT, (1, 3, "height", "width"))}, r"inputs image tensor\(float\) \(1, 3, height"),
        ({"image": (TensorProto.FLOAT, (4, "height", "width"))}, r"\(4, height, width\)"),
        ({"image": (TensorProto.UINT8, (3, "height", "width"))}, r"tensor\(uint8\)"),
        ({"outputs": NAMES[:3]}, r"outputs 6568 .* 6572 tensor\(float\) \(.*\); "),
        ({"outputs": NAMES[::-1]}, r"outputs 6887 tensor\(float\)"),
        (
            {"shapes": SHAPES | {"6570": ["n", 1]}, "nodes": {"6570": np.zeros((1, 1), np.int64)}},
            r"6570 tensor\(int64\) \(1, 1\)",
        ),
        (
            {"types": TYPES | {"6570": TensorProto.FLOAT}, "nodes": {"6570": np.zeros(1, np.float32)}},
            "6570 .*float",
        ),
        ({"shapes": SHAPES | {"6887": None}, "nodes": {"6887": np.zeros((1, 1, 14, 14), np.float32)}}, "1, 1, 14, 14"),
    ],
)
def test_networks_of_another_signature(changes, found, tmp_path):
    values = {
        "6568": np.zeros((1, 4), np.float32),
        "6570": np.zeros(1, np.int64),
        "6572": np.zeros(1, np.float32),
        "6887": np.zeros((1, 1, 28, 28), np.float32),
    } | changes.pop("nodes", {})
    write(tmp_path / "other.onnx", [constant(name, value) for name, value in values.items()], **changes)
    with refused("detector-signature", "other.onnx", "(n, 1, 28, 28)", kind=ModelFileError) as raised:
        DetectorMask(tmp_path / "other.onnx").fit()
    assert re.search(f"(?s){found}", str(raised.value))


def test_sizes_that_a_file_leaves_open(tmp_path):
    unknown = dict.fromkeys(NAMES)
    path = network(tmp_path / "a.onnx", [[80, 80, 400, 640]], [0.9], image=(TensorProto.FLOAT, None), shapes=unknown)
    assert DetectorMask(path).fit().fuse(IMAGE).any()


def test_a_network_for_one_size_only(tmp_path):
    path = network(tmp_path / "a.onnx", [[0, 0, 9, 9]], None, pixels=[0], image=(TensorProto.FLOAT, (3, 800, 800)))
    model = DetectorMask(path).fit()
    assert not model.fuse(np.zeros((50, 50, 3), np.uint8)).any()
    message = "network-failed"
    with refused(message, kind=ModelFileError):
        model.fuse(IMAGE)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({3: np.zeros((2, 1, 800, 960), np.float32)}, "network-outputs"),
        ({1: np.zeros(3, np.int64)}, "network-outputs"),
        ({0: np.float32(0)}, "network-outputs"),
        ({0: np.full((2, 4), np.nan, np.float32)}, "network-nan"),
    ],
)
def test_outputs_that_cannot_be_used(outputs, message):
    given = [np.zeros((2, 4), np.float32), np.zeros(2, np.int64), np.zeros(2, np.float32), np.zeros((2, 1, 28, 28))]
    for k, array in outputs.items():
        given[k] = array
    session = SimpleNamespace(get_inputs=lambda: [SimpleNamespace(name="image")], run=lambda names, feed: given)
    with refused(message, kind=ModelFileError):
        detect(session, IMAGE)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (IMAGE[..., 0], "image-rgb"),
        (np.zeros((9, 9, 4), np.uint8), "image-rgb"),
        (np.moveaxis(IMAGE, -1, 0), "image-rgb"),
        (IMAGE[:0], "image-rgb"),
        (IMAGE.astype(np.uint16), "image-type:X"),
        (IMAGE.astype(np.int64), "image-type"),
        (IMAGE.astype(bool), "image-type"),
        (IMAGE + 255.0, "image-range"),
        (IMAGE - 0.5, "image-range"),
        (IMAGE * np.nan, "image-range"),
    ],
)
def test_images_that_cannot_be_used(image, message, tmp_path):
    model = DetectorMask(network(tmp_path / "a.onnx", [], [])).fit()
    with refused(message):
        model.fuse(image)
