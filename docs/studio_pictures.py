"""Draw the pictures of the studio's page: ``python docs/studio_pictures.py``.

Opens the drawn streets in a real studio and labels them with the mouse; needs Chromium and playwright.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

from bimichi.datasets import street
from bimichi.studio.open import SIZE

FOLDER = Path(__file__).parent / "images"
LEARNED = """async () => {
  const done = () => {
    const { learned, scenes, suggestions, working } = studio;
    const { model, stale, score } = learned;
    const numbers = [scenes.data.fused?.number, score?.number, suggestions.number];
    return model && !stale && !working && numbers.every((number) => number === model.number);
  };
  while (!done()) await new Promise((wait) => setTimeout(wait, 50));
}"""
PLAIN_FOLDER = """() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    text.data = text.data.replace(/Opens what lies in \\S+/, "Opens what lies in /data.");
  }
}"""  # the folder that this script runs in says nothing to a reader

FALSE_ALARM = """(people) => {
  const { indices, width } = studio.scenes.data.fused;
  const inside = (x, y) => people.some(([l, t, w, h]) => x >= l - 3 && x < l + w + 3 && y >= t - 3 && y < t + h + 3);
  let [best, most] = [0, -1];
  indices.forEach((value, i) => {
    if (value < 65535 && value > most && !inside(i % width, Math.floor(i / width))) [best, most] = [i, value];
  });
  return [best % width + 0.5, Math.floor(best / width) + 0.5];
}"""


@contextmanager
def studio() -> Iterator[str]:
    """Yield the address of a studio with nothing open."""
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "bimichi.cli", "studio", "--no-browser"]
        places = {"HOME": home, "XDG_DATA_HOME": home, "XDG_STATE_HOME": home}
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | places, cwd=home)
        assert process.stderr is not None
        try:
            yield next(filter(None, (re.search(r"http://\S+/", line) for line in process.stderr)))[0]
        finally:
            process.terminate()
            process.communicate()


def at(page: Any, x: float, y: float) -> tuple[float, float]:
    """Return where on the screen a pixel of the first view is."""
    left, top = page.evaluate(
        """([x, y]) => {
          const box = document.querySelector(".view").getBoundingClientRect();
          const { left, top, scale } = studio.views;
          return [box.left + (x - left) / scale, box.top + (y - top) / scale];
        }""",
        [x, y],
    )
    return left, top


def draw_box(page: Any, box: tuple[int, int, int, int]) -> None:
    """Drag a box (x, y, width, height) with the mouse."""
    x, y, width, height = box
    page.mouse.move(*at(page, x, y))
    page.mouse.down()
    page.mouse.move(*at(page, x + width / 2, y + height / 2))
    page.mouse.move(*at(page, x + width, y + height))
    page.mouse.up()


def people(seed: int) -> list[tuple[int, int, int, int]]:
    """Return boxes around the people of a drawn street, the largest first."""
    boxes = np.asarray(street(*SIZE, random_state=seed, n_segments=50).boxes).tolist()
    return sorted((tuple(box) for box in boxes), key=lambda box: -box[2] * box[3])


def save(page: Any, name: str) -> None:
    """Write what the screen shows."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.jpg").write_bytes(page.screenshot(type="jpeg", quality=88))


def draw(page: Any, url: str) -> None:
    """Go through what the page describes."""
    page.goto(url)
    page.wait_for_selector("#try")
    page.evaluate(PLAIN_FOLDER)
    save(page, "studio-start")
    page.click("#try")
    page.wait_for_selector("#scene-list img")
    page.wait_for_selector("html[data-ready]", state="attached")
    first = people(0)
    draw_box(page, first[0])
    page.evaluate(LEARNED)
    save(page, "studio-box")
    for box in first[1:]:
        draw_box(page, box)
    page.evaluate(LEARNED)
    page.click('[data-tool="ask"]')
    page.mouse.click(*at(page, *page.evaluate(FALSE_ALARM, first)))
    page.wait_for_selector(".verdict button")
    save(page, "studio-alarm")
    page.click("text=False alarm: make this a negative region")
    page.evaluate(LEARNED)
    page.click("#theme-switch")
    page.keyboard.press(".")  # the next scene, of which nothing is labelled
    page.mouse.move(*at(page, 20, 20))
    page.wait_for_selector("html[data-map]", state="attached")
    page.wait_for_timeout(2000)
    save(page, "studio-next")


def main() -> None:
    """Start both, and draw."""
    path = os.environ.get("BIMICHI_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with studio() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(120_000)
        draw(page, url)
        browser.close()


if __name__ == "__main__":
    main()
