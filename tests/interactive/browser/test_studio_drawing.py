"""The studio in a real browser: what is drawn by mouse, keys and touch, and what the screen then shows."""

import numpy as np
import pytest
from browsers import launched
from studios import HEIGHT, WIDTH, Hand, Served, home_of, truth_boxes, write_streets

from bimichi import BiMIChI
from bimichi.imaging import core_bags, read_image
from bimichi.report.colours import SCALE

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is missing: the studio was not opened")
expect = sync_api.expect

UNTESTED = "the studio was not opened: drawing, undo, keys, touch and maps on the screen are not tested"
VIEW = """(layer) => {
  const views = [...document.querySelectorAll(".view")];
  const view = views[views.findIndex((one) => one.dataset.map === layer)];
  const { left, top, scale } = studio.views;
  const canvas = view.querySelector("canvas");
  const ratio = devicePixelRatio / scale;
  const { width, height } = studio.current;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return Array.from({ length: width * height }, (_, i) => {
    const [across, down] = [Math.floor(((i % width) + 0.5 - left) * ratio), Math.floor((Math.floor(i / width) + 0.5 - top) * ratio)];
    const at = 4 * (down * canvas.width + across);
    return (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
  });
}"""


@pytest.fixture(scope="module")
def browser():
    with launched(UNTESTED) as started:
        yield started


@pytest.fixture(scope="module")
def served(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    program = Served(*write_streets(folder), home=home_of(folder))
    program.folder = folder
    yield program
    program.end()


@pytest.fixture
def opened(browser, served):
    """The page with nothing drawn; whatever it complains of fails the test."""
    contexts, complaints = [], []

    def open_page(screen=(1280, 800), touch=False, clear=True):
        context = browser.new_context(viewport=dict(zip(("width", "height"), screen, strict=True)), has_touch=touch)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(served.url)
        page.wait_for_selector("html[data-ready]", state="attached")
        hand = Hand(page)
        if clear:
            hand.clear()
            hand.show(0)
        return page, hand

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def fitted(folder, boxes):
    """The model that these boxes on the first scene give, learned in Python; and the scene's sources."""
    sources = np.stack([read_image(folder / name / "one.tif") for name in ("grey", "thermal")], axis=-1)
    given = np.array([(x, y, right - x, bottom - y) for x, y, right, bottom in boxes])
    segments, labels = core_bags((HEIGHT, WIDTH), given)
    model = BiMIChI("logistic", additivity=1, random_state=0)
    ids = segments.ravel()
    known = np.isin(ids, list(labels))
    bags = ids[known]
    model.fit(sources.reshape(-1, 2)[known], [int(labels[one]) for one in bags], bags=bags)
    return model, sources


def test_map_on_screen_is_what_python_fuses(opened, served):
    page, hand = opened()
    boxes = truth_boxes(0)
    for box in boxes:
        hand.box(*box)
    hand.wait_learned()
    drawn = [[value for point in shape["points"] for value in point] for shape in hand.shapes()]
    np.testing.assert_allclose(drawn, boxes, atol=0.3)  # a mouse has whole pixels of the screen
    model, sources = fitted(served.folder, drawn)
    fused = np.asarray(model.fuse(sources))
    page.keyboard.press("d")
    page.keyboard.press("h")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    shown = np.array(page.evaluate(VIEW, "fused")).reshape(HEIGHT, WIDTH)
    number = {int(colour[1:], 16): k for k, colour in enumerate(SCALE)}
    levels = np.array([[number[colour] for colour in row] for row in shown])
    assert np.abs((levels + 0.5) / 128 - 1 - fused).max() <= 1 / 255 + 0.5 / 128  # of 256 colours over [-1, 1]
    exact = np.array(page.evaluate("() => [...studio.data.fused.indices]")).reshape(HEIGHT, WIDTH) / 65534
    assert np.abs(exact - fused).max() <= 1 / 255
    for x, y in [(20, 30), (100, 60)]:
        hand.move(x + 0.5, y + 0.5, view=1)
        expect(page.locator("#place")).to_have_text(f"x {x}, y {y}")
        assert abs(float(page.locator("#fused-value").text_content()) - fused[y, x]) <= 1 / 255
