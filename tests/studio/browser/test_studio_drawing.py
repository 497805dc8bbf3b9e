"""The studio in a real browser: what is drawn by mouse, keys and touch, and what the screen then shows."""

import re

import numpy as np
import pytest
from browsers import launched
from playwright import sync_api
from studios import HEIGHT, WIDTH, Hand, Served, home_of, truth_boxes, write_streets

from bimichi import BiMIChI
from bimichi._colours import SCALE
from bimichi.io import read_image
from bimichi.scenes import core_bags

expect = sync_api.expect

UNTESTED = "the studio was not opened: drawing, undo, keys, touch and maps on the screen are not tested"
VIEW = """(layer) => {
  const views = [...document.querySelectorAll(".view")];
  const view = views[views.findIndex((one) => one.dataset.map === layer)];
  const { left, top, scale } = studio.views;
  const canvas = view.querySelector("canvas");
  const ratio = devicePixelRatio / scale;
  const { width, height } = studio.scenes.current;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return Array.from({ length: width * height }, (_, i) => {
    const across = Math.floor(((i % width) + 0.5 - left) * ratio);
    const down = Math.floor((Math.floor(i / width) + 0.5 - top) * ratio);
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
        page.set_default_timeout(60_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("response", lambda answer: complaints.append(answer.url) if answer.status >= 400 else None)
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
    exact = np.array(page.evaluate("() => [...studio.scenes.data.fused.indices]")).reshape(HEIGHT, WIDTH) / 65534
    assert np.abs(exact - fused).max() <= 1 / 255
    for x, y in [(20, 30), (100, 60)]:
        hand.move(x + 0.5, y + 0.5, view=1)
        expect(page.locator("#place")).to_have_text(f"x {x}, y {y}")
        assert abs(float(page.locator("#fused-value").text_content()) - fused[y, x]) <= 1 / 255


def test_undo_and_redo_without_limit(opened):
    page, hand = opened()
    page.click("text=Off")
    for k in range(12):
        hand.box(4 + 3 * k, 10, 14 + 3 * k, 30)
    hand.tool("ask")
    hand.click(20, 20)
    page.keyboard.press("Delete")
    drawn = hand.shapes()
    assert len(drawn) == 11
    for _ in range(13):
        page.keyboard.press("Control+z")
    assert hand.shapes() == []
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()
    for _ in range(13):
        page.keyboard.press("Control+Shift+Z")
    assert hand.shapes() == drawn
    assert page.get_by_role("button", name="Redo").is_disabled()
    page.click("text=Live")


def test_every_tool_by_mouse(opened):
    page, hand = opened()
    page.click("text=Off")
    hand.tool("polygon")
    hand.label("not")
    for place in [(10, 10), (30, 12), (28, 40), (10, 10)]:
        hand.click(*place)
    hand.tool("brush")
    hand.label("ignore")
    hand.drag((50, 50), (60, 55), (90, 50))
    hand.tool("superpixel")
    hand.label("target")
    hand.click(110, 20)
    expect(page.locator("#scene-list .facts-line").first).to_have_text("3 labels")
    polygon, stroke, region = hand.shapes()
    assert (polygon["kind"], polygon["label"], len(polygon["points"])) == ("polygon", "not", 3)
    assert (stroke["kind"], stroke["label"], stroke["width"]) == ("stroke", "ignore", 12)
    assert (region["kind"], region["label"]) == ("polygon", "target")
    hand.tool("eraser")
    hand.drag((75, 40), (75, 60))  # cuts the stroke in two
    hand.click(15, 15)  # removes the polygon
    kinds = [shape["kind"] for shape in hand.shapes()]
    assert sorted(kinds) == ["polygon", "stroke", "stroke"]
    hand.tool("box")
    hand.box(10, 60, 40, 90)
    hand.tool("ask")
    hand.click(25, 75)
    hand.drag((25, 75), (30, 80), (35, 80))  # moves it
    np.testing.assert_allclose(hand.shapes()[-1]["points"], [[20, 65], [50, 95]], atol=0.5)
    hand.drag((50, 95), (60, 90), (60, 85))  # its corner
    np.testing.assert_allclose(hand.shapes()[-1]["points"], [[20, 65], [60, 85]], atol=0.5)
    page.keyboard.press("3")
    assert hand.shapes()[-1]["label"] == "ignore"
    page.click("text=Live")


def test_keyboard_alone_draws_learns_and_refuses_a_false_alarm(opened):
    page, hand = opened()
    left, top, right, bottom = (int(value) for value in truth_boxes(0, 1)[0])
    page.evaluate("([x, y]) => studio.cursor.choose(x, y)", [left, top])
    page.keyboard.press("b")
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    for key, steps in (("ArrowRight", right - left), ("ArrowDown", bottom - top)):
        for _ in range(steps // 10):
            page.keyboard.press(f"Shift+{key}")
        for _ in range(steps % 10):
            page.keyboard.press(key)
    page.keyboard.press("Enter")
    [shape] = hand.shapes()
    assert shape["points"] == [[left, top], [right + 1, bottom + 1]]  # the pixels of both corners are in it
    hand.wait_learned()
    for _ in range(25):
        page.keyboard.press("Shift+I")  # the threshold down, until something else is found
    page.evaluate(
        """() => {
          const { indices, width } = studio.scenes.data.fused;
          const [[[left, top], [right, bottom]]] = studio.drawing.shapes.map(({ points }) => points);
          const inside = (x, y) => x >= left && x < right && y >= top && y < bottom;
          let best = 0, most = -1;
          indices.forEach((value, i) => {
            const outside = value < 65535 && !inside(i % width, Math.floor(i / width));
            if (outside && value > most) [best, most] = [i, value];
          });
          studio.detector.set(most / 65534 - 0.001);
          studio.cursor.choose(best % width, Math.floor(best / width));
        }"""
    )
    page.keyboard.press("v")
    page.keyboard.press("Enter")  # holds the pixel
    expect(page.locator(".verdict button")).to_be_visible()
    page.keyboard.press("x")
    assert hand.shapes()[-1]["label"] == "not"
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys and help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    hand.wait_learned()


def test_touch_draws_with_one_finger_and_zooms_with_two(opened):
    page, hand = opened(screen=(420, 860), touch=True)
    page.click("text=Off")
    touches = page.context.new_cdp_session(page)

    def send(kind, *places):
        points = [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(places)]
        touches.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    send("touchStart", hand.at(20, 20))
    for place in [(25, 25), (40, 40), (50, 60)]:
        send("touchMove", hand.at(*place))
    send("touchEnd")
    [shape] = hand.shapes()
    np.testing.assert_allclose(shape["points"], [[20, 20], [50, 60]], atol=1)
    centre = hand.at(64, 48)
    apart = [[(centre[0] - by, centre[1]), (centre[0] + by, centre[1])] for by in (20, 40, 60)]
    send("touchStart", *apart[0])
    for places in apart[1:]:
        send("touchMove", *places)
    send("touchEnd")
    assert page.evaluate("() => studio.views.zoom") > 2
    assert len(hand.shapes()) == 1
    page.click("text=Live")


def test_second_tab_watches_until_it_takes_over(opened):
    first, hand = opened()
    second, other = opened(clear=False)
    expect(second.locator(".notice.tabs")).to_contain_text("open in another tab")
    expect(second.locator('[data-tool="box"]')).to_be_disabled()
    hand.box(20, 20, 50, 60)
    expect(second.locator("#scene-list .facts-line").first).to_have_text(re.compile("^1 label"))  # it follows
    second.click("text=Work here instead")
    expect(first.locator(".notice.tabs")).to_be_visible()
    expect(second.locator(".notice.tabs")).to_have_count(0)
    other.box(60, 20, 80, 60)
    expect(first.locator("#scene-list .facts-line").first).to_have_text(re.compile("^2 labels"))
    assert len(hand.shapes()) == 2


def test_reload_keeps_what_was_drawn(opened):
    page, hand = opened()
    hand.box(20, 20, 50, 60)
    hand.wait_learned()
    drawn = hand.shapes()
    page.reload()
    page.wait_for_selector("html[data-map]", state="attached")
    assert hand.shapes() == drawn
