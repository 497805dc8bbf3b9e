"""The studio, through the real server and headless Chromium: from mouse-up to the map, and what a session takes."""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bench.marks import Mark, at_most
from bimichi.datasets import street
from bimichi.io import write_image

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
EDITS = 5  # of which the median counts
SESSION = 500

# Draws boxes one after the other as a mouse would, and waits for the map of each.
EDIT = """async ([left, top, right, bottom]) => {
  const learned = () => {
    const { model, stale } = studio.learned;
    return model && !stale && studio.scenes.data.fused?.number === model.number;
  };
  const { tools } = studio;
  tools.choose("box");
  tools.press([left, top], null);
  tools.move([right, bottom], true, null);
  tools.release([right, bottom], null);
  const mapped = () => performance.getEntriesByName("mapped")[0]?.startTime ?? 0;
  const edited = performance.getEntriesByName("edited")[0].startTime;
  while (!learned() || mapped() < edited) await new Promise((done) => setTimeout(done, 1));
  return mapped() - edited;
}"""

HOVER = """() => {
  const taken = [];
  for (let k = 0; k < 300; k++) {
    const start = performance.now();
    studio.cursor.choose((k * 37) % studio.scenes.current.width, (k * 23) % studio.scenes.current.height);
    studio.cursor.explain();
    document.querySelector("#chain").getBoundingClientRect(); // the layout is part of it
    taken.push(performance.now() - start);
  }
  return taken.sort((a, b) => a - b)[Math.floor(0.95 * taken.length)];
}"""

SESSION_EDITS = """async (count) => {
  const { width, height } = studio.scenes.current;
  const settled = () => !studio.working && !studio.learned.stale;
  for (let k = 0; k < count; k++) {
    const [x, y] = [(k * 53) % (width - 40), (k * 31) % (height - 80)];
    if (k % 3 === 2) studio.drawing.undo();
    else {
      studio.tools.press([x, y], null);
      studio.tools.move([x + 30, y + 70], true, null);
      studio.tools.release([x + 30, y + 70], null);
    }
    studio.cursor.choose(x, y);
    await new Promise(requestAnimationFrame);
  }
  while (!settled()) await new Promise((done) => setTimeout(done, 50));
}"""


def write_scenes(folder: Path, n_scenes: int, n_sources: int) -> list[str]:
    """Streets of 640 x 480 as one folder per source."""
    for seed in range(n_scenes):
        scene = street(random_state=seed % 3, n_segments=50, n_sources=3)
        rng = np.random.default_rng(seed)
        for k in range(n_sources):
            plane = scene.sources[..., k % 3]
            noisy = plane if k < 3 else np.clip(plane + rng.normal(0, 0.3, plane.shape), -1, 1)
            (folder / f"source{k + 1}").mkdir(parents=True, exist_ok=True)
            write_image(folder / f"source{k + 1}" / f"scene{seed + 1:02}.tif", noisy.astype(np.float32))
    return [str(folder / f"source{k + 1}") for k in range(n_sources)]


@contextmanager
def served(*arguments: str) -> Iterator[tuple[str, int]]:
    """The address of a studio in a process of its own, and the process's number."""
    with tempfile.TemporaryDirectory() as home:
        places = {"HOME": home, "XDG_DATA_HOME": home, "XDG_STATE_HOME": home}
        command = [sys.executable, "-m", "bimichi.cli", "studio", *arguments, "--no-browser"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | places, cwd=home)
        assert process.stderr is not None
        try:
            found = next(filter(None, (re.search(r"http://\S+/", line) for line in process.stderr)))
            yield found[0], process.pid
        finally:
            process.terminate()
            process.communicate()


@contextmanager
def browsing() -> Iterator[Any]:
    """Chromium; nothing where there is none."""
    path = os.environ.get("BIMICHI_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        print("no Chromium was found: the studio is not measured", file=sys.stderr)
        yield None
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        yield browser
        browser.close()


def opened(browser: Any, url: str) -> Any:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(120_000)
    page.goto(url)
    page.wait_for_selector("html[data-ready]", state="attached")
    return page


def wait_idle(page: Any) -> None:
    page.evaluate(
        "async () => { while (studio.working || studio.learned.stale) await new Promise((r) => setTimeout(r, 50)); }"
    )


def latency(page: Any) -> float:
    """The median of several boxes, in milliseconds; each is drawn when all work on the one before is done."""
    taken = []
    for k in range(EDITS + 1):
        x, y = 60 + 70 * k, 200 + 10 * (k % 3)
        taken.append(float(page.evaluate(EDIT, [x, y, x + 35, y + 90])))
        wait_idle(page)
    return statistics.median(taken[1:])  # the first compiles what was not


def resident(pid: int) -> float:
    """MiB that a process holds."""
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024


def page_memory(browser: Any, page: Any) -> float:
    """MiB of the largest process that renders, after a collection."""
    page.context.new_cdp_session(page).send("HeapProfiler.collectGarbage")
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return max(resident(one["id"]) for one in processes if one["type"] == "renderer")


def studio_edits() -> Iterator[Mark]:
    """From mouse-up to the changed map, through socket and screen."""
    with browsing() as browser, tempfile.TemporaryDirectory() as name:
        if browser is None:
            return
        for n_scenes, n_sources, limit in ((1, 3, 300), (1, 6, 700), (10, 3, 1500)):
            sources = write_scenes(Path(name) / f"{n_scenes}-{n_sources}", n_scenes, n_sources)
            with served(*sources) as (url, _):
                page = opened(browser, url)
                wait_idle(page)
                if n_scenes > 1:
                    label_all(page, n_scenes)
                what = f"studio: mouse-up to map, {n_sources} sources, {n_scenes} scene{'s' * (n_scenes > 1)}"
                yield at_most(what, latency(page), limit, "ms", "median, 640 x 480")
                if n_scenes == 1:
                    detail = f"95 % of pixels, {n_sources} sources"
                    yield at_most("studio: hover to explanation", float(page.evaluate(HOVER)), 16, "ms", detail)
                page.close()


def label_all(page: Any, n_scenes: int) -> None:
    """One box on every scene, so that all are learned from."""
    for k in range(n_scenes):
        page.evaluate("(k) => studio.scenes.show(k)", k)
        page.evaluate(EDIT, [300, 200, 335, 290])
    page.evaluate("() => studio.scenes.show(0)")
    wait_idle(page)


def studio_session() -> Iterator[Mark]:
    """Start, twenty scenes looked at, and five hundred edits."""
    with browsing() as browser, tempfile.TemporaryDirectory() as name:
        if browser is None:
            return
        sources = write_scenes(Path(name), 20, 3)
        with served(*sources) as (url, _):  # once, so that files and compiled code are in memory
            opened(browser, url).close()
        start = time.perf_counter()
        with served(*sources) as (url, pid):
            page = opened(browser, url)
            yield at_most("studio: start to usable page, warm", time.perf_counter() - start, 3, "s", "20 scenes")
            for k in range(20):
                page.evaluate("(k) => studio.scenes.show(k)", k)
            yield at_most("studio: memory of the page", page_memory(browser, page), 500, "MiB", "20 scenes seen")
            page.evaluate("() => studio.scenes.show(0)")
            page.evaluate(SESSION_EDITS, SESSION // 5)
            before = page_memory(browser, page), resident(pid)
            page.evaluate(SESSION_EDITS, SESSION - SESSION // 5)
            after = page_memory(browser, page), resident(pid)
            detail = f"{before[0]:.0f} to {after[0]:.0f} MiB after {SESSION} edits"
            yield at_most("studio: growth of the page", after[0] / before[0], 1.25, "x", detail)
            detail = f"{before[1]:.0f} to {after[1]:.0f} MiB after {SESSION} edits"
            yield at_most("studio: growth of the server", after[1] / before[1], 1.25, "x", detail)


BENCHES = [studio_edits, studio_session]
