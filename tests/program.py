"""Runs the program on small drawn scenes."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

import bimichi
from bimichi.cli.app import app
from bimichi.io import write_image
from bimichi.scenes import grid_segments

SHAPE = (40, 60)
BOX = (12, 8, 9, 14)
PAPER = ("--objective", "bipolar")
PROGRAM = "from bimichi.cli import main; main()"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(bimichi.__file__).parents[1])}


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.stderr
    return result


def images(seed):
    """A target that is warm and of middling grey, and a lamp that is warm and bright."""
    rng = np.random.default_rng(seed)
    thermal, grey = rng.normal(80, 8, SHAPE), rng.normal(60, 8, SHAPE)
    x, y, w, h = BOX
    thermal[y : y + h, x : x + w] += 120
    grey[y : y + h, x : x + w] += 40
    thermal[25:33, 40:50] += 130
    grey[25:33, 40:50] += 180
    return {"thermal": thermal.clip(0, 255).astype(np.uint8), "grey": grey.clip(0, 255).astype(np.uint8)}


def target_mask():
    x, y, w, h = BOX
    mask = np.zeros(SHAPE, bool)
    mask[y : y + h, x : x + w] = True
    return mask


def make_scenes():
    """One scene, its boxes and masks, and another scene in `other`."""
    for folder, seed in ((".", 0), ("other", 1)):
        Path(folder).mkdir(exist_ok=True)
        for name, image in images(seed).items():
            write_image(f"{folder}/{name}.png", image)
    Path("boxes.csv").write_text(f"x,y,w,h,label\n{','.join(map(str, BOX))},person\n")
    write_image("mask.png", target_mask())
    write_image("segments.png", grid_segments(SHAPE, 10).astype(np.uint8))


HALF = """
import signal
from bimichi.cli import main
from bimichi.fuse import images as fusing
whole = fusing.fused_strips
def slow(*arguments):
    yield next(whole(*arguments))
    print("half of it is written", flush=True)
    signal.pause()
fusing.fused_strips = slow
fusing.STRIP = 600
main()
"""
"""A program that writes half of a fused map, and waits for a signal."""


def train_masks(model, *options):
    """Train on the mask of the scene, for the first objective of the paper."""
    run("train", *PAPER, "thermal.png", "grey.png", "--labels", "mask.png", *options, "-o", model)
    return model


def program(*arguments, script=PROGRAM, **environment):
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT | environment, timeout=600)
