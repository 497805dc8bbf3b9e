"""A studio for tests in a browser: drawn streets as files, the program that serves them, and a hand for its page."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from bimichi.datasets import street
from bimichi.io import write_image

HEIGHT, WIDTH = 96, 128
SHAPES = """() => studio.drawing.shapes.map(({ kind, label, points, width }) => ({ kind, label, points, width }))"""


def write_streets(folder, names=("one", "two")):
    """Write scenes of two sources, one folder each, as `bimichi studio` takes them; return the folders."""
    for seed, name in enumerate(names):
        scene = street(HEIGHT, WIDTH, n_people=3, random_state=seed + 1, n_segments=40)
        for source, plane in (("grey", scene.sources[..., 1]), ("thermal", scene.sources[..., 2])):
            (folder / source).mkdir(parents=True, exist_ok=True)
            write_image(folder / source / f"{name}.tif", plane.astype(np.float32))
    return [str(folder / "grey"), str(folder / "thermal")]


class Served:
    """The program in a process of its own, which can be killed."""

    def __init__(self, *arguments, home):
        environment = os.environ | {"HOME": str(home), "XDG_DATA_HOME": str(home), "XDG_STATE_HOME": str(home)}
        command = [sys.executable, "-m", "bimichi.cli", "studio", *map(str, arguments), "--no-browser"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=home.parent)
        said = []
        for line in self.process.stderr:
            said.append(line)
            found = re.search(r"http://\S+/", line)
            if found:
                self.url = found[0]
                return
        raise AssertionError(f"the studio did not start: {''.join(said)}")

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def end(self):
        self.process.terminate()
        try:
            self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.kill()


class Hand:
    """What a user does with the mouse, in pixels of the scene."""

    def __init__(self, page):
        self.page = page

    def at(self, x, y, view=0):
        return self.page.evaluate(
            """([x, y, k]) => {
              const box = document.querySelectorAll(".view")[k].getBoundingClientRect();
              const { left, top, scale } = studio.views;
              return [box.left + (x - left) / scale, box.top + (y - top) / scale];
            }""",
            [x, y, view],
        )

    def move(self, x, y, view=0):
        self.page.mouse.move(*self.at(x, y, view))

    def click(self, x, y, view=0):
        self.page.mouse.click(*self.at(x, y, view))

    def drag(self, *places, view=0):
        self.move(*places[0], view)
        self.page.mouse.down()
        for place in places[1:]:
            self.move(*place, view)
        self.page.mouse.up()

    def box(self, left, top, right, bottom, view=0):
        self.drag((left, top), ((left + right) / 2, (top + bottom) / 2), (right, bottom), view=view)

    def tool(self, name):
        self.page.click(f'[data-tool="{name}"]')

    def label(self, name):
        self.page.click(f'[data-label="{name}"]')

    def shapes(self):
        return self.page.evaluate(SHAPES)

    def show(self, scene):
        self.page.evaluate("(k) => studio.scenes.show(k)", scene)

    def wait(self, what, seconds=60):
        """Until a condition, a function of JavaScript, holds; playwright's own way needs eval, which is forbidden."""
        waited = self.page.evaluate(
            f"""(limit) => new Promise((done) => {{
              const holds = {what};
              const start = performance.now();
              const look = () => {{
                if (holds()) done(true);
                else if (performance.now() - start > limit) done(false);
                else setTimeout(look, 20);
              }};
              look();
            }})""",
            1000 * seconds,
        )
        assert waited, f"not within {seconds} s: {what}"

    def wait_learned(self):
        """Until the map of the newest labels is on the screen."""
        self.wait(
            """() => {
              const { model, stale } = studio.learned;
              return model && !stale && studio.scenes.data.fused?.number === model.number
                && document.documentElement.dataset.map === String(model.number);
            }""",
            60,  # the first one waits until the server has prepared to learn
        )

    def wait_idle(self):
        """Until nothing is being worked on."""
        self.wait("() => !studio.working && !studio.learned.stale")

    def clear(self):
        """Remove all labels, of all scenes, and the history."""
        self.page.evaluate(
            """() => {
              const { labels } = studio;
              labels.scenes.forEach(({ shapes }, k) => shapes.length && labels.edit(k, [], "clearing"));
              labels.past.length = 0;
              studio.tell("labels", {});
            }"""
        )


def truth_boxes(name_seed, n=2):
    """Boxes (left, top, right, bottom) around the largest people of a written street."""
    scene = street(HEIGHT, WIDTH, n_people=3, random_state=name_seed + 1, n_segments=40)
    boxes = sorted(np.asarray(scene.boxes).tolist(), key=lambda box: -box[2] * box[3])[:n]
    return [(x, y, x + width, y + height) for x, y, width, height in boxes]


def home_of(folder):
    """A home of its own, so that tests neither see nor leave recent projects."""
    home = Path(folder) / "home"
    home.mkdir(exist_ok=True)
    return home
