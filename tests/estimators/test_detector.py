import copy
import pickle
import subprocess
import sys
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from bimichi.errors import InvalidInputError, ModelFileError, NotRunError
from bimichi.estimators import DetectorMask
from bimichi.estimators.mask_rcnn import detect, paste_mask

NAMES = ("6568", "6570", "6572", "6887")  # those of the zoo's file
SHAPES = {"6568": ["n", 4], "6570": ["n"], "6572": ["n"], "6887": ["n", 1, 28, 28]}
TYPES = {"6568": TensorProto.FLOAT, "6570": TensorProto.INT64, "6572": TensorProto.FLOAT, "6887": TensorProto.FLOAT}
ONES = np.ones((28, 28), np.float32)


def constant(name, value):
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(value)))


def write(path, nodes, image=(TensorProto.FLOAT, (3, "height", "width")), outputs=NAMES, types=TYPES, shapes=SHAPES):
    inputs = [helper.make_tensor_value_info("image", *image)]
    results = [helper.make_tensor_value_info(name, types[name], shapes[name]) for name in outputs]
    graph = helper.make_graph(nodes, "network", inputs, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=7)
    path.write_bytes(model.SerializeToString())
    return path


def network(path, boxes, scores, labels=None, masks=None, pixels=None, **changes):
    """Write a network that finds the same in every image; or, given `pixels`, scores that are pixels of its input."""
    n = len(boxes)
    nodes = [
        constant("6568", np.array(boxes, np.float32).reshape(n, 4)),
        constant("6570", np.array([1] * n if labels is None else labels, np.int64)),
        constant("6887", np.array([ONES] * n if masks is None else masks, np.float32).reshape(n, 1, 28, 28)),
    ]
    if pixels is None:
        nodes.append(constant("6572", np.array(scores, np.float32)))
    else:
        nodes += [
            constant("line", np.array([-1])),
            constant("pixels", np.array(pixels)),
            constant("full", np.float32(512)),
            constant("half", np.float32(0.5)),
            helper.make_node("Reshape", ["image", "line"], ["flat"]),
            helper.make_node("Gather", ["flat", "pixels"], ["taken"]),
            helper.make_node("Div", ["taken", "full"], ["small"]),
            helper.make_node("Add", ["small", "half"], ["6572"]),
        ]
    return write(path, nodes, **changes)


def naive_paste(mask, box, threshold, shape):
    """Stretch a mask over its box, pixel by pixel: padded by one cell, corners cut to whole pixels and included."""
    cells = len(mask) + 2
    padded = [[0.0] * cells, *([0.0, *map(float, line), 0.0] for line in mask), [0.0] * cells]
    x1, y1, x2, y2 = map(float, box)
    grown = cells / len(mask) / 2
    left, right = (int((x1 + x2) / 2 + s * (x2 - x1) * grown) for s in (-1, 1))
    top, bottom = (int((y1 + y2) / 2 + s * (y2 - y1) * grown) for s in (-1, 1))

    def between(at):
        at = min(max(at, 0.0), cells - 1.0)
        low = min(int(at), cells - 2)
        return low, at - low

    found = np.zeros(shape, bool)
    for y in range(max(top, 0), min(bottom + 1, shape[0])):
        j, v = between((y - top + 0.5) * cells / (bottom - top + 1) - 0.5)
        for x in range(max(left, 0), min(right + 1, shape[1])):
            i, u = between((x - left + 0.5) * cells / (right - left + 1) - 0.5)
            above = padded[j][i] * (1 - u) + padded[j][i + 1] * u
            below = padded[j + 1][i] * (1 - u) + padded[j + 1][i + 1] * u
            found[y, x] = above * (1 - v) + below * v > threshold
    return found


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


IMAGE = np.zeros((100, 120, 3), np.uint8)
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
    with pytest.raises(InvalidInputError, match="Both model and masks"):
        DetectorMask(tmp_path / "a.onnx", np.zeros((2, 2))).fit()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output": "box"}, "output must be one of mask, score, got 'box'"),
        ({"score_threshold": 70}, r"score_threshold must be a number in \[0, 1\], got 70"),
        ({"score_threshold": "high"}, "score_threshold must be"),
        ({"mask_threshold": np.nan}, "mask_threshold must be"),
        ({"mask_threshold": True}, "mask_threshold must be"),
        ({"target_class": "person"}, "target_class must be a whole number of at least 0, got 'person'"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(InvalidInputError, match=message):
        DetectorMask(masks=np.zeros((2, 2)), **options).fit()


def test_files_that_are_no_network(tmp_path, capfd):
    text = tmp_path / "notes.onnx"
    text.write_text("not a network")
    (tmp_path / "empty.onnx").touch()
    for path, message in (
        (tmp_path / "none.onnx", r"none\.onnx' is not a file"),
        (tmp_path, "is not a file"),
        (text, r"notes\.onnx' cannot be opened as an ONNX file: .*Protobuf"),
        (tmp_path / "empty.onnx", "cannot be opened as an ONNX file"),
        ("a\0b", "is not a file|must be the path"),
    ):
        with pytest.raises((ModelFileError, InvalidInputError), match=message):
            DetectorMask(path).fit()
    with pytest.raises(InvalidInputError, match="model must be the path of an ONNX file, got 5"):
        DetectorMask(5).fit()
    assert capfd.readouterr() == ("", "")


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
    with pytest.raises(ModelFileError, match=rf"(?s)other\.onnx' has .*{found}.*expected .*masks \(n, 1, 28, 28\)"):
        DetectorMask(tmp_path / "other.onnx").fit()


def test_sizes_that_a_file_leaves_open(tmp_path):
    unknown = dict.fromkeys(NAMES)
    path = network(tmp_path / "a.onnx", [[80, 80, 400, 640]], [0.9], image=(TensorProto.FLOAT, None), shapes=unknown)
    assert DetectorMask(path).fit().fuse(IMAGE).any()


def test_a_network_for_one_size_only(tmp_path):
    path = network(tmp_path / "a.onnx", [[0, 0, 9, 9]], None, pixels=[0], image=(TensorProto.FLOAT, (3, 800, 800)))
    model = DetectorMask(path).fit()
    assert not model.fuse(np.zeros((50, 50, 3), np.uint8)).any()
    message = r"(?s)failed on an image of 100 x 120 pixels, resized to 800 x 960: .* 960"
    with pytest.raises(ModelFileError, match=message):
        model.fuse(IMAGE)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({3: np.zeros((2, 1, 800, 960), np.float32)}, r"shapes .*\(2, 1, 800, 960\); expected"),
        ({1: np.zeros(3, np.int64)}, r"shapes \(2, 4\), \(3,\)"),
        ({0: np.float32(0)}, r"shapes \(\), \(2,\)"),
        ({0: np.full((2, 4), np.nan, np.float32)}, "NaN or infinite values on an image of 100 x 120 pixels"),
    ],
)
def test_outputs_that_cannot_be_used(outputs, message):
    given = [np.zeros((2, 4), np.float32), np.zeros(2, np.int64), np.zeros(2, np.float32), np.zeros((2, 1, 28, 28))]
    for k, array in outputs.items():
        given[k] = array
    session = SimpleNamespace(get_inputs=lambda: [SimpleNamespace(name="image")], run=lambda names, feed: given)
    with pytest.raises(ModelFileError, match=message):
        detect(session, IMAGE)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (IMAGE[..., 0], r"RGB image .* got shape \(100, 120\).*np\.stack"),
        (np.zeros((9, 9, 4), np.uint8), "alpha"),
        (np.moveaxis(IMAGE, -1, 0), "moveaxis"),
        (IMAGE[:0], r"got shape \(0, 120, 3\)\.$"),
        (IMAGE.astype(np.uint16), r"image of uint16; .*X / 65535"),
        (IMAGE.astype(np.int64), "image of int64"),
        (IMAGE.astype(bool), "image of bool"),
        (IMAGE + 255.0, "floats from 255 to 255"),
        (IMAGE - 0.5, r"floats from -0\.5 to -0\.5"),
        (IMAGE * np.nan, "floats from nan to nan"),
    ],
)
def test_images_that_cannot_be_used(image, message, tmp_path):
    model = DetectorMask(network(tmp_path / "a.onnx", [], [])).fit()
    with pytest.raises(InvalidInputError, match=message):
        model.fuse(image)


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
        with pytest.raises(InvalidInputError, match="scores must be bool, uint8 or floats"):
            DetectorMask(masks=masks, output="score").fit().fuse(image)


@pytest.mark.parametrize(
    ("masks", "name", "message"),
    [
        ({}, None, "empty mapping"),
        ({"a": "none.png"}, "a", r"masks\['a'\] is 'none\.png', where there is no file"),
        ("none.png", None, "masks is 'none.png', where there is no file"),
        (5, None, r"array of numbers \(height, width\) or a path, got int64 of shape \(\)"),
        (np.zeros((6, 7, 3)), None, r"got float64 of shape \(6, 7, 3\)"),
        ({"a": np.zeros((6, 7), complex)}, "a", r"masks\['a'\] must be an array of numbers"),
        ({"a": np.zeros((6, 7))}, "b", "masks has no mask named 'b'; pass one of these to fuse: name='a'"),
        ({"a": np.zeros((6, 7))}, None, "no mask named None"),
        (np.zeros((7, 6)), None, r"masks has shape \(7, 6\); it must be that of the image, \(6, 7\)"),
        ({"a": np.zeros((7, 6))}, "a", r"masks\['a'\] has shape \(7, 6\)"),
        (np.full((6, 7), 255.0), None, r"outside \[0, 1\]"),
        (np.full((6, 7), np.nan), None, "has NaN"),
        ("folder", None, "masks is the folder .* pass the name of a mask to fuse: name="),
        ("folder", "none", r"none\.png' cannot be read as a PNG image: .*No such file"),
        ("folder", "text", r"text\.png' cannot be read as a PNG image"),
        ("folder", "cut", r"cut\.png' cannot be read as a PNG image"),
        ("folder", "jpeg", r"jpeg\.png' cannot be read as a PNG image"),
        ("folder", "colour", r"colour\.png' has shape \(6, 7, 3\); .* Save it with one channel"),
    ],
)
def test_ready_made_masks_that_cannot_be_used(masks, name, message, tmp_path):
    if isinstance(masks, str) and masks == "folder":
        masks = tmp_path
        (tmp_path / "text.png").write_text("no picture")
        Image.fromarray(np.zeros((6, 7, 3), np.uint8)).save(tmp_path / "colour.png")
        (tmp_path / "cut.png").write_bytes((tmp_path / "colour.png").read_bytes()[:45])
        Image.fromarray(np.zeros((6, 7), np.uint8)).save(tmp_path / "jpeg.png", format="JPEG")
    with pytest.raises(InvalidInputError, match=message):
        DetectorMask(masks=masks).fit().fuse(np.zeros((6, 7, 3), np.uint8), name)


@pytest.mark.parametrize(("module", "package"), [("onnxruntime", "onnxruntime"), ("PIL.Image", "PIL")])
def test_a_missing_package_is_named(module, package, tmp_path, monkeypatch):
    path = network(tmp_path / "a.onnx", [], [])
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"needs {package}; .* pip install 'bimichi\[detector\]'"):
        DetectorMask(path).fit().fuse(IMAGE)


def test_what_is_not_used_is_not_imported():
    script = "import sys, bimichi.estimators; print([m for m in ('onnxruntime', 'PIL') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_a_comparison_asks():
    assert DetectorMask.needs == "image"
    assert DetectorMask().output_range == (0.0, 1.0)
    assert DetectorMask(masks=np.ones((2, 2))).fit(np.zeros((4, 3)), [0, 1, 0, 1], bags=[0, 0, 1, 1]).fuse(
        np.zeros((2, 2, 3), np.uint8)
    ).tolist() == [[1, 1], [1, 1]]
