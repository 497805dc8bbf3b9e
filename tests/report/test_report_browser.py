"""The report page in a real browser: what it shows of a pixel is what `bimichi.explain` says of it."""

import re

import numpy as np
import pytest
from browsers import launched
from pages import HOSTILE, data_of, fitted, image, other, planes_of
from playwright import sync_api

from bimichi import MICI, BiMIChI, WeightedMeanFusion, as_rule
from bimichi._colours import colour_of
from bimichi.explain import chain, contributions
from bimichi.report import write_report

READOUT = """() => {
  const text = (root, selector) => root.querySelector(selector)?.textContent ?? null;
  const rows = (selector) => [...document.querySelectorAll(selector)];
  return {
    fused: text(document, "#fused-value"),
    note: text(document, "#fused-note"),
    sources: rows("#sources tbody tr").map((row) => ({
      name: text(row, "th"), given: text(row, ".given"), enters: text(row, ".enters"), part: text(row, ".number"),
    })),
    steps: rows("#chain tbody tr").map((row) => ({
      code: Number(row.dataset.step), numbers: [...row.querySelectorAll("td")].map((cell) => cell.textContent),
    })),
    totals: rows("#sources .total, #chain .total").map((cell) => cell.textContent),
    active: rows(".active").map((cell) => Number(cell.dataset.code)),
    known: rows("[data-code]").map((cell) => Number(cell.dataset.code)),
  };
}"""


@pytest.fixture(scope="module")
def browser():
    untested = "no report was opened: pixels, keys, touch, hostile names, dark mode and narrow screens are not tested"
    with launched(untested) as started:
        yield started.new_context(has_touch=True)


@pytest.fixture
def opened(browser, tmp_path):
    """Write a report and open it; whatever the page complains of fails the test."""
    pages, complaints = [], []

    def open_page(model, sources, *, before=None, screen=(1300, 900), **options):
        path = tmp_path / f"report-{len(pages)}.html"
        write_report(path, model, sources, **options)
        page = browser.new_page()
        pages.append(page)
        page.set_viewport_size(dict(zip(("width", "height"), screen, strict=True)))
        page.set_default_timeout(60_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: complaints.append(request.url) if request.url != path.as_uri() else None)
        if before:
            page.add_init_script(before)
        page.goto(path.as_uri())
        if not before:
            page.wait_for_selector("html[data-ready]")
        page.embedded = data_of(path.read_text(encoding="utf-8"))
        return page

    yield open_page
    for page in pages:
        page.close()
    assert complaints == []


def place_of(page, x, y, which="fused"):
    """Where on the screen the centre of a pixel is, while the whole image is shown."""
    left, top, across, down = page.evaluate(
        """(which) => {
          const view = document.querySelector(`[data-map="${which}"]`);
          view.scrollIntoView({ block: "nearest" });
          const { x, y, width, height } = view.getBoundingClientRect();
          return [x, y, width, height];
        }""",
        which,
    )
    return left + (x + 0.5) / page.embedded["width"] * across, top + (y + 0.5) / page.embedded["height"] * down


def hover(page, x, y, which="fused"):
    page.mouse.move(*place_of(page, x, y, which))
    expect_pixel(page, x, y)


def expect_pixel(page, x, y):
    sync_api.expect(page.locator("#place")).to_have_text(re.compile(rf"^x {x}, y {y}\b"))


def number(text):
    return float(text.replace("−", "-"))


def same(text, value):
    """Whether a shown number is this value to its digits."""
    digits = len(text.split(".")[1])
    return abs(number(text) - value) <= 0.5 * 10**-digits + 1e-9


def check_pixel(page, model, x):
    """Compare what is shown with what `explain` says of the instance x."""
    found, steps, parts = page.evaluate(READOUT), chain(model, x), contributions(model, x[None])[0]
    entered = [float(plane[0]) for plane in as_rule(model).enter(np.array([x]))]
    rule = as_rule(model)
    unchanged = bool((rule.polarity > 0).all() and (rule.factor == 1).all() and not rule.centre.any())
    for k, row in enumerate(found["sources"]):
        assert same(row["given"], x[k])
        assert row["enters"] is None or same(row["enters"], entered[k])
        assert (row["enters"] is None) == unchanged
        assert same(row["part"], parts[k])
    rows, listed = found["steps"], list(steps.steps)
    if rule.measure.parts == "terms":  # the largest, and the rest in one row
        listed = [step for step in listed if abs(step.product) >= 0.0005][:20]
        if len(listed) < len(steps.steps):
            assert same(rows.pop()["numbers"][-1], steps.total - sum(step.product for step in listed))
    assert [step["code"] for step in rows] == codes_on_page(model, listed)
    for row, step in zip(rows, listed, strict=True):
        assert all(map(same, row["numbers"], (step.weight, step.value, step.product)))
    assert all(same(text, steps.total) for text in found["totals"])
    assert same(found["fused"], float(rule.fuse(x[None])[0]))
    assert set(found["active"]) == set(codes_on_page(model, listed)) & set(found["known"])


def codes_on_page(model, steps):
    """The page has a capacity as a bi-capacity: sets in A, digits of base 3."""
    codes = [step.code for step in steps]
    if as_rule(model).measure.kind != "capacity":
        return codes
    return [sum(3**k for k in range(12) if code >> k & 1) for code in codes]


CASES = {
    "one": (1, {}),
    "two": (2, {}),
    "three": (3, {"names": ("thermal", "rgb", "grey")}),
    "six": (6, {}),
    "magnitude": (3, {"objective": "magnitude"}),
    "inverted": (3, {"polarity": "learn"}),
    "scaled": (3, {"scale": "minmax", "polarity": "learn"}),
}


OTHERS = {
    "weights": (6, BiMIChI, {"objective": "mean", "additivity": 1}),
    "pairs": (6, BiMIChI, {"objective": "mean", "additivity": 2, "polarity": "learn"}),
    "pairs, magnitude": (3, BiMIChI, {"objective": "magnitude", "additivity": 2}),
    "many sources": (20, BiMIChI, {"objective": "mean", "additivity": 2, "scale": "minmax"}),
    "capacity": (3, MICI, {"objective": "min-max", "bipolar_input": True}),
    "larger capacity": (5, MICI, {"objective": "mean", "bipolar_input": True}),
    "weighted mean": (4, WeightedMeanFusion, {"bipolar_input": True}),
}


@pytest.mark.parametrize("case", CASES)
def test_hovering_shows_what_explain_says(opened, case):
    m, options = CASES[case]
    model = fitted(m, **options)
    page = opened(model, image(m, scaled="scale" in options))
    assert (model.polarity_ < 0).any() == ("polarity" in options)
    planes = planes_of(page.embedded)
    for x, y in ((0, 0), (1, 1), (7, 5)):
        hover(page, x, y)
        check_pixel(page, model, planes[y, x])
    hover(page, 9, 3, which="source-0")
    check_pixel(page, model, planes[3, 9])


@pytest.mark.parametrize("case", OTHERS)
def test_every_kind_of_measure_is_shown_as_explain_says(opened, case):
    m, kind, options = OTHERS[case]
    model = other(m, kind, **options)
    page = opened(model, image(m, holes=2))
    planes = planes_of(page.embedded)
    for x, y in ((0, 0), (1, 1), (7, 5), (12, 9)):
        if not np.isnan(planes[y, x]).any():
            hover(page, x, y)
            check_pixel(page, model, planes[y, x])
    y, x = np.unravel_index(np.nanargmax(as_rule(model).fuse(planes)), planes.shape[:2])
    page.reload()
    page.wait_for_selector("html[data-ready]")
    expect_pixel(page, x, y)


def test_starts_with_the_largest_fused_value(opened):
    model, scene = fitted(3), image(3)
    page = opened(model, scene)
    fused = model.fuse(planes_of(page.embedded))
    y, x = np.unravel_index(np.argmax(fused), fused.shape)
    expect_pixel(page, x, y)


def test_the_fused_map_has_the_shared_colours(opened):
    model, scene = fitted(3, "magnitude"), image(3, holes=3)
    page = opened(model, scene)
    colours = page.evaluate(
        """([width, height]) => {
          const canvas = document.querySelector('[data-map="fused"] canvas');
          const context = canvas.getContext("2d");
          const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
          const at = (k, n, size) => Math.floor(((k + 0.5) / n) * size);
          return Array.from({ length: width * height }, (_, i) => {
            const row = at(Math.floor(i / width), height, canvas.height);
            const start = 4 * (row * canvas.width + at(i % width, width, canvas.width));
            return [...data.slice(start, start + 3)];
          });
        }""",
        [16, 12],
    )
    for (red, green, blue), value in zip(colours, model.fuse(scene).ravel(), strict=True):
        wanted = "#bdbdbd" if np.isnan(value) else colour_of(float(value))
        assert f"#{red:02x}{green:02x}{blue:02x}" == wanted


def test_pixels_without_data_say_so(opened):
    scene = image(3, holes=4)
    y, x, k = np.argwhere(np.isnan(scene))[0].tolist()
    page = opened(fitted(3, names=("thermal", "rgb", "grey")), scene)
    hover(page, x, y)
    found = page.evaluate(READOUT)
    assert found["fused"] == "no data"
    assert found["note"].startswith(("thermal", "rgb", "grey")[k])
    assert found["sources"][k]["given"] == "no data"
    assert found["steps"] == found["active"] == []
    assert found["totals"] == ["", ""]


def test_arrow_keys_move_the_pixel(opened):
    model = fitted(3)
    page = opened(model, image(3))
    hover(page, 3, 2)
    page.locator('[data-map="fused"]').focus()
    for key, x, y in (
        ("ArrowRight", 4, 2),
        ("ArrowDown", 4, 3),
        ("Shift+ArrowRight", 14, 3),
        ("Shift+ArrowRight", 15, 3),
        ("ArrowUp", 15, 2),
        ("Shift+ArrowUp", 15, 0),
        ("ArrowLeft", 14, 0),
    ):
        page.keyboard.press(key)
        expect_pixel(page, x, y)
    check_pixel(page, model, planes_of(page.embedded)[0, 14])
    sync_api.expect(page.locator("#announcement")).to_have_text(re.compile(r"^x 14, y 0\. Fused .*3 contributes"))


def test_zoom_is_shared_and_a_click_holds(opened):
    page = opened(fitted(3), image(3))
    hover(page, 8, 6)
    page.locator('[data-map="fused"]').focus()
    for _ in range(4):
        page.keyboard.press("+")
    sync_api.expect(page.locator(".view.zoomed")).to_have_count(4)
    page.mouse.move(*place_of(page, 0, 0, "source-2"))  # the corner of the view, which is near its middle now
    shown = re.match(r"x (\d+), y (\d+)", page.locator("#place").text_content())
    assert abs(int(shown[1]) - 8) < 4
    assert abs(int(shown[2]) - 6) < 4
    page.get_by_role("button", name="Show the whole image").click()
    sync_api.expect(page.locator(".view.zoomed")).to_have_count(0)
    hover(page, 2, 3)
    page.mouse.click(*place_of(page, 2, 3))
    page.mouse.move(*place_of(page, 9, 9))
    expect_pixel(page, 2, 3)
    page.get_by_role("button", name="Release").click()
    hover(page, 9, 9)


def test_dragging_moves_the_view(opened):
    page = opened(fitted(2), image(2))
    page.get_by_role("button", name="Zoom in").click()
    hover_at = place_of(page, 8, 6)
    page.mouse.move(*hover_at)
    before = page.locator("#place").text_content()
    page.mouse.down()
    page.mouse.move(hover_at[0] - 120, hover_at[1], steps=4)
    page.mouse.up()
    page.mouse.move(hover_at[0] - 120, hover_at[1] + 1)
    sync_api.expect(page.locator("#place")).to_have_text(before)  # the pixel went along
    sync_api.expect(page.locator("#release")).to_be_hidden()


def test_tapping_chooses_a_pixel(opened):
    model = fitted(3)
    page = opened(model, image(3), screen=(390, 800))
    page.touchscreen.tap(*place_of(page, 5, 7))
    expect_pixel(page, 5, 7)
    check_pixel(page, model, planes_of(page.embedded)[7, 5])


def test_hostile_names_stay_text(opened):
    truth = image(3)[..., 0] > 0
    page = opened(fitted(3, names=HOSTILE), image(3), title=HOSTILE[0], truth=truth, notes={HOSTILE[1]: HOSTILE[2]})
    hover(page, 4, 4)
    assert page.title() == HOSTILE[0]
    assert page.locator("h1").text_content() == HOSTILE[0]
    assert [row["name"] for row in page.evaluate(READOUT)["sources"]] == list(HOSTILE)
    assert page.locator("script").count() == 2
    assert page.locator("img, iframe, object").count() == 0


def test_overlays(opened):
    scene = image(2)
    segments = np.arange(12)[:, None] // 4 + np.zeros((1, 16), int)
    labels = {0: True, 1: False}
    page = opened(fitted(2), scene, truth=scene[..., 0] > 0, boxes=[[2, 3, 4, 5]], segments=segments, labels=labels)
    pictures = {page.locator('[data-map="fused"]').screenshot()}
    for name in ("Boxes", "Truth", "Bags"):
        button = page.get_by_role("button", name=name)
        before = button.get_attribute("aria-pressed")
        button.click()
        assert button.get_attribute("aria-pressed") != before
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        pictures.add(page.locator('[data-map="fused"]').screenshot())
    assert len(pictures) == 4
    hover(page, 3, 1)
    assert page.locator("#place").text_content().endswith("in a positive bag")
    hover(page, 3, 11)
    assert page.locator("#place").text_content().endswith("in no labelled bag")


def test_thinned_images_show_places_of_the_whole(opened):
    row, column = np.mgrid[:1200, :1000]
    scene = np.stack([np.sign(np.sin(row / 90)), (column // 10) / 99], axis=-1)
    model = fitted(2)
    page = opened(model, scene)
    page.mouse.move(*place_of(page, page.embedded["width"] - 20, page.embedded["height"] - 20))
    sync_api.expect(page.locator("#place")).to_have_text(re.compile(r"^x 97\d, y 117\d$"))
    x, y = map(int, re.findall(r"\d+", page.locator("#place").text_content()))
    check_pixel(page, model, scene[y, x])


def luminance(colour):
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def test_light_and_dark(opened):
    page = opened(fitted(3), image(3), truth=image(3)[..., 0] > 0)
    style = """() => {
      const of = (selector) => getComputedStyle(document.querySelector(selector));
      const text = ["body", ".lead", ".note", "dt", "dd", "caption", "#place", "button", "summary", "th"];
      return {
        grounds: ["html", ".card", "button"].map((selector) => of(selector).backgroundColor),
        inks: [...text.map((selector) => of(selector).color), of(".roc text").fill],
      };
    }"""
    for scheme, toggled in (("light", False), ("dark", False), ("light", True), ("dark", True)):
        if toggled:
            page.locator("#theme").click()
        else:
            page.emulate_media(color_scheme=scheme)
        found = page.evaluate(style)
        grounds = [luminance(colour) for colour in found["grounds"]]
        assert (max(grounds) < 0.1) == (scheme == "dark")
        for ink in map(luminance, found["inks"]):
            for ground in grounds:
                low, high = sorted((ink, ground))
                assert (high + 0.05) / (low + 0.05) >= 4.5


@pytest.mark.parametrize(
    ("m", "options"),
    [(1, {}), (4, {}), (6, {}), (6, {"additivity": 1}), (6, {"additivity": 2}), (12, {"additivity": 2})],
)  # without pairs, with the largest table, with a list; weights beside the maps, and pairs, and both below them
def test_narrow_screens_have_no_overflow(opened, m, options):
    names = ("an_unbroken_name_" * 8, *(f"a source called {k}" for k in range(1, m)))
    scene = image(m)
    model = other(m, BiMIChI, objective="mean", source_names=names, **options)
    page = opened(model, scene, screen=(390, 844), truth=scene[..., 0] > 0, title="unbroken" * 20)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size({"width": 320, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_an_old_browser_shows_a_message(opened):
    page = opened(fitted(2), image(2), before="delete window.DecompressionStream")
    sync_api.expect(page.locator("#problem")).to_contain_text("DecompressionStream")


def test_a_notebook_shows_the_page_in_a_frame(browser, tmp_path):
    report = write_report(tmp_path / "report.html", fitted(2), image(2))
    page = browser.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.set_content(report._repr_html_())
    frame = page.frame_locator("iframe")
    sync_api.expect(frame.locator("#fused-value")).to_have_text(re.compile(r"\d"))
    page.close()
    assert complaints == []


def test_every_control_can_be_reached_by_key(opened):
    page = opened(fitted(3), image(3), truth=image(3)[..., 0] > 0)
    reached = set()
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.dataset.map"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none" or page.evaluate("document.activeElement === document.body")
    assert {"theme", "fused", "zoom-in", "zoom-out", "zoom-reset"} <= reached
