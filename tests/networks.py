"""Small ONNX networks of Mask R-CNN's signature, and a plain loop that pastes masks."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

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


IMAGE = np.zeros((100, 120, 3), np.uint8)
