"""The other networks that `DetectorMask` takes, made here as small graphs: torchvision's Mask R-CNN, and YOLO-seg."""

import numpy as np
import pytest
from networks import constant
from onnx import TensorProto, helper
from PIL import Image
from refusals import refused

from bimichi import paper_methods
from bimichi.errors import ModelFileError
from bimichi.methods import DetectorMask
from bimichi.methods.networks import n_anchors, suppressed

FLOAT, WHOLE = TensorProto.FLOAT, TensorProto.INT64
SIDE = 64  # of the input of the YOLO networks below
CELLS = SIDE // 4


def write(path, nodes, image, outputs):
    inputs = [helper.make_tensor_value_info("image", FLOAT, image)]
    results = [helper.make_tensor_value_info(name, *one) for name, one in outputs.items()]
    graph = helper.make_graph(nodes, "network", inputs, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=7)
    path.write_bytes(model.SerializeToString())
    return path


# --- torchvision


def torchvision(path, labels=(1, 1, 3), scores=(0.9, 0.6, 0.95), image=(3, "h", "w"), masks=("n", 1, "h", "w")):
    """Write a network whose mask k is channel k of the image: so the test sees what the network was given."""
    n = len(labels)
    nodes = [
        constant("boxes", np.zeros((n, 4), np.float32)),
        constant("labels", np.array(labels, np.int64)),
        constant("scores", np.array(scores, np.float32)),
        constant("shape", np.array([3, 1, 0, 0] if len(image) == 3 else [3, 1, -1, 0], np.int64)),
    ]
    if len(image) == 3:
        nodes.append(helper.make_node("Unsqueeze", ["image"], ["masks"], axes=[1]))
    else:
        nodes.append(helper.make_node("Transpose", ["image"], ["masks"], perm=[1, 0, 2, 3]))
    sizes = {"boxes": (FLOAT, ["n", 4]), "labels": (WHOLE, ["n"]), "scores": (FLOAT, ["n"]), "masks": (FLOAT, masks)}
    return write(path, nodes, image, sizes)


@pytest.mark.parametrize("image", [(3, "h", "w"), (1, 3, "h", "w"), (3, 20, 30), (1, 3, 20, 30)])
def test_torchvision_networks_take_images_as_they_are(image, tmp_path, rng):
    fixed = isinstance(image[-1], int)
    path = torchvision(tmp_path / "a.onnx", image=image, masks=["n", 1, *((20, 30) if fixed else "hw")])
    photo = rng.integers(0, 256, (20, 30, 3), np.uint8)
    model = DetectorMask(path).fit()
    assert model.title == "Mask R-CNN"
    np.testing.assert_array_equal(model.fuse(photo), photo[..., 0] / 255 > 0.5)  # the second scores too little
    model.set_params(score_threshold=0.5, output="score", mask_threshold=0.3)
    red, green = (photo[..., k] / 255 > 0.3 for k in range(2))
    np.testing.assert_array_equal(
        model.fuse(photo), np.where(red, np.float32(0.9), np.where(green, np.float32(0.6), 0))
    )
    np.testing.assert_array_equal(DetectorMask(path, target_class=3).fit().fuse(photo), photo[..., 2] / 255 > 0.5)


def test_torchvision_masks_of_another_size_than_images(tmp_path):
    nodes = [
        constant("boxes", np.zeros((1, 4), np.float32)),
        constant("labels", np.ones(1, np.int64)),
        constant("scores", np.ones(1, np.float32)),
        constant("size", np.array([1, 1, 9, 9], np.int64)),
        helper.make_node("Expand", ["one", "size"], ["whole"]),
        constant("one", np.float32(1)),
    ]
    nodes = [nodes[-1], *nodes[:-1]]
    nodes += [helper.make_node("NonZero", ["image"], ["places"]), helper.make_node("Size", ["places"], ["count"])]
    nodes += [constant("zero", np.int64(0)), helper.make_node("Mul", ["count", "zero"], ["nothing"])]
    nodes += [
        helper.make_node("Add", ["size", "nothing"], ["open"]),
        helper.make_node("Expand", ["one", "open"], ["masks"]),
    ]
    sizes = {"boxes": (FLOAT, ["n", 4]), "labels": (WHOLE, ["n"]), "scores": (FLOAT, ["n"])}
    path = write(tmp_path / "a.onnx", nodes, (3, "h", "w"), sizes | {"masks": (FLOAT, ["n", 1, "h", "w"])})
    with refused("network-outputs", kind=ModelFileError):
        DetectorMask(path).fit().fuse(np.zeros((20, 30, 3), np.uint8))


# --- YOLO


def yolo(path, detections, prototypes, n_classes=3, image=(1, 3, SIDE, SIDE), anchors=None, declared=None):
    """Write a network that finds the same in every image: (x, y, w, h, class, score, coefficients) in its input."""
    total = n_anchors(SIDE, SIDE) if anchors is None else anchors
    rows = np.zeros((total, 4 + n_classes + len(prototypes)), np.float32)
    for k, (x, y, w, h, label, score, coefficients) in enumerate(detections):
        rows[3 * k, :4] = x, y, w, h
        rows[3 * k, 4 + label] = score
        rows[3 * k, 4 + n_classes :] = coefficients
    nodes = [constant("output0", rows.T[None]), constant("output1", np.asarray(prototypes, np.float32)[None])]
    sizes = declared or {"output0": list(rows.T[None].shape), "output1": [1, len(prototypes), CELLS, CELLS]}
    return write(path, nodes, image, {name: (FLOAT, size) for name, size in sizes.items()})


@pytest.fixture
def prototypes():
    """Everything, and the left half of the input."""
    left = np.where(np.arange(CELLS) < CELLS // 2, 1.0, -1.0) * np.ones((CELLS, 1))
    return np.stack([np.ones((CELLS, CELLS)), left])


def test_yolo_masks_are_prototypes_cut_off_at_boxes(tmp_path, prototypes):
    found = [
        (16, 16, 16, 24, 0, 0.9, (5, 0)),  # all of its box: 8 to 24, 4 to 28
        (32, 48, 32, 16, 0, 0.6, (0, 5)),  # the left half of its box: 16 to 48, 40 to 56
        (48, 16, 16, 16, 1, 0.9, (5, 0)),  # another class
        (56, 56, 8, 8, 0, 0.2, (5, 0)),  # scores too little
        (40, 20, 8, 8, 0, 0.8, (-5, 0)),  # an empty mask
    ]
    path = yolo(tmp_path / "a.onnx", found, prototypes)
    model = DetectorMask(path, output="score").fit()
    assert model.title == "YOLO-seg"
    wanted = np.zeros((SIDE, SIDE), np.float32)
    wanted[40:56, 16:32] = 0.6
    wanted[4:28, 8:24] = 0.9
    fused = model.fuse(np.zeros((SIDE, SIDE, 3), np.uint8))
    np.testing.assert_array_equal(fused, wanted)
    large = model.fuse(np.zeros((2 * SIDE, 2 * SIDE, 3), np.uint8))
    np.testing.assert_array_equal(large, wanted.repeat(2, 0).repeat(2, 1))
    other = DetectorMask(path, target_class=1).fit().fuse(np.zeros((SIDE, SIDE, 3), np.uint8))
    np.testing.assert_array_equal(np.argwhere(other).min(axis=0), [8, 40])


def test_yolo_images_are_letterboxed(tmp_path, prototypes):
    """A wide image has grey above and below; what lies there is not painted."""
    found = [(16, 32, 16, 16, 0, 0.9, (5, 0)), (48, 8, 16, 16, 0, 0.9, (5, 0))]
    path = yolo(tmp_path / "a.onnx", found, prototypes)
    fused = DetectorMask(path).fit().fuse(np.zeros((SIDE, 2 * SIDE, 3), np.uint8))  # rows 16 to 48 of the input
    wanted = np.zeros((SIDE, 2 * SIDE))
    wanted[16:48, 16:48] = 1
    np.testing.assert_array_equal(fused, wanted)


def test_yolo_is_given_colours_in_the_unit_range_between_grey(tmp_path):
    """Prototypes are the image itself, shrunk: so masks show what the network was given."""
    total = n_anchors(SIDE, SIDE)
    rows = np.zeros((total, 4 + 1 + 3), np.float32)
    rows[0] = 32, 32, 64, 64, 0.9, 20, 0, 0
    nodes = [
        constant("output0", rows.T[None]),
        constant("half", np.float32(0.5)),
        helper.make_node("Sub", ["image", "half"], ["centred"]),
        helper.make_node("AveragePool", ["centred"], ["output1"], kernel_shape=[4, 4], strides=[4, 4]),
    ]
    sizes = {"output0": (FLOAT, [1, 8, total]), "output1": (FLOAT, [1, 3, CELLS, CELLS])}
    path = write(tmp_path / "a.onnx", nodes, (1, 3, SIDE, SIDE), sizes)
    photo = np.zeros((32, SIDE, 3), np.uint8)
    photo[:, :32, 0] = 255  # red on the left
    fused = DetectorMask(path).fit().fuse(photo)
    assert fused[:, :30].all()
    assert not fused[:, 34:].any()
    likely = DetectorMask(path, mask_threshold=0.999).fit().fuse(photo)
    assert likely[4:28, :28].all()  # away from the grey: 20 * 0.5 as a logit
    assert not likely[:, 36:].any()


def test_yolo_of_any_size_and_overlapping_boxes(tmp_path, prototypes):
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 9], [0, 0, 10, 5], [20, 0, 30, 10]], float)
    assert suppressed(boxes, np.array([0.5, 0.9, 0.8, 0.3])) == [1, 2, 3]
    assert suppressed(boxes, np.array([0.5, 0.9, 0.8, 0.3]), overlap=0.3) == [1, 3]
    assert suppressed(np.empty((0, 4)), np.empty(0)) == []
    found = [(320, 320, 100, 100, 0, 0.5, (5, 0)), (322, 320, 100, 100, 0, 0.9, (5, 0))]
    anchors = n_anchors(640, 640)
    assert anchors == 8400
    sizes = {"output0": [1, 9, "anchors"], "output1": [1, 2, CELLS, CELLS]}
    path = yolo(tmp_path / "a.onnx", found, prototypes, image=(1, 3, "h", "w"), anchors=anchors, declared=sizes)
    fused = DetectorMask(path, output="score").fit().fuse(np.zeros((640, 640, 3), np.uint8))
    assert fused[320, 320] == np.float32(0.9)
    assert (fused > 0).sum() == 100 * 100  # the other box was the same object


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"anchors": 38}, "output0 tensor(float) (1, 9, 38)"),
        ({"image": (1, 4, SIDE, SIDE)}, "image tensor(float) (1, 4, 64, 64)"),
        ({"image": (2, 3, SIDE, SIDE)}, "(2, 3, 64, 64)"),
    ],
)
def test_yolo_networks_of_another_signature(changes, message, tmp_path, prototypes):
    path = yolo(tmp_path / "other.onnx", [], prototypes, **changes)
    with refused("detector-signature", "other.onnx", message, kind=ModelFileError) as caught:
        DetectorMask(path).fit()
    for network in ("model zoo's Mask R-CNN", "torchvision's Mask R-CNN", "YOLO segmentation network"):
        assert network in str(caught.value)


def test_yolo_outputs_that_cannot_be_used(tmp_path, prototypes):
    image = np.zeros((SIDE, SIDE, 3), np.uint8)
    path = yolo(tmp_path / "a.onnx", [], prototypes)
    with refused("network-class:target_class"):
        DetectorMask(path, target_class=7).fit().fuse(image)
    path = yolo(tmp_path / "b.onnx", [], prototypes, n_classes=0)
    with refused("network-outputs", "84", "16", kind=ModelFileError):
        DetectorMask(path).fit().fuse(image)
    path = yolo(tmp_path / "c.onnx", [(1, 1, 1, 1, 0, np.nan, (0, 0))], prototypes)
    with refused("network-nan", kind=ModelFileError):
        DetectorMask(path).fit().fuse(image)


def test_the_row_of_a_table_is_named_after_the_network(tmp_path, prototypes):
    names = ["a", "b"]
    plain = list(paper_methods(names))
    place = plain.index("Mask R-CNN")
    detector = DetectorMask(yolo(tmp_path / "a.onnx", [], prototypes))
    rows = paper_methods(names, detector)
    assert list(rows) == [*plain[: place + 1], "YOLO-seg", *plain[place + 1 :]]
    assert rows["YOLO-seg"] is detector
    assert rows["Mask R-CNN"].model is None
    for other in (DetectorMask(torchvision(tmp_path / "b.onnx")), DetectorMask(masks=np.zeros((2, 2)))):
        rows = paper_methods(names, other)
        assert list(rows) == plain
        assert rows["Mask R-CNN"] is other
    photo = Image.new("RGB", (SIDE, SIDE))
    assert not detector.fit().fuse(np.asarray(photo)).any()
