"""The studio in a real browser: what is kept when something ends or moves, hostile names, cancelling, and exports."""

import re

import pytest
from browsers import launched
from playwright import sync_api
from studios import Hand, Served, home_of, truth_boxes, write_streets

expect = sync_api.expect

UNTESTED = "the studio was not opened: crashes, moved images, hostile names and exports are not tested in a browser"
HOSTILE = "<img src=x onerror=alert(1)>&amp;"


@pytest.fixture(scope="module")
def browser():
    with launched(UNTESTED) as started:
        yield started


@pytest.fixture
def visit(browser):
    """Open a page; dialogs that scripts open fail the test."""
    contexts, said = [], []

    def open_page(url):
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(url)
        page.wait_for_selector("html[data-ready]", state="attached")
        return page, Hand(page)

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


@pytest.fixture
def serve():
    started = []

    def start(*arguments, home):
        started.append(Served(*arguments, home=home))
        return started[-1]

    yield start
    for program in started:
        program.end()


@pytest.mark.slow
def test_killed_server_moved_images_and_hostile_names(visit, serve, tmp_path):
    home = home_of(tmp_path)
    folder = tmp_path / "before"
    sources = write_streets(folder, [HOSTILE, "plain"])
    program = serve(*sources, home=home)
    page, hand = visit(program.url)
    expect(page.locator("#scene-list b").first).to_have_text(HOSTILE)
    assert page.locator("#scene-list b img").count() == 0
    hand.box(*truth_boxes(0, 1)[0])
    hand.wait_learned()
    drawn = hand.shapes()
    hand.wait("() => studio.saved")
    program.kill()
    expect(page.locator(".notice.lost")).to_be_visible()
    hand.box(5, 5, 20, 30)  # is kept by the tab, which says so
    expect(page.locator(".notice.lost")).to_contain_text("kept in this tab")
    after = tmp_path / "after"
    folder.rename(after)
    again, other = visit(serve(tmp_path / "bimichi.toml", home=home).url)
    assert other.shapes() == drawn
    expect(again.locator("#scene-list b").first).to_have_text(HOSTILE)


@pytest.mark.slow
def test_exports_come_back_and_give_the_same_model(visit, serve, tmp_path):
    home = home_of(tmp_path)
    page, hand = visit(serve(*write_streets(tmp_path / "streets"), home=home).url)
    for box in truth_boxes(0):
        hand.box(*box)
    hand.label("not")
    hand.box(2, 2, 20, 20)
    hand.wait_learned()
    drawn, model = hand.shapes(), exported(page, "model", tmp_path)
    labels = exported(page, "coco", tmp_path)
    hand.clear()
    assert hand.shapes() == []
    page.click("#add")
    page.locator('input[type="file"]').first.set_input_files(labels)
    hand.wait("() => studio.drawing.shapes.length === 3")
    page.keyboard.press("Escape")
    assert [shape["points"] for shape in hand.shapes()] == [shape["points"] for shape in drawn]
    hand.wait_learned()
    assert exported(page, "model", tmp_path, "again").read_bytes() == model.read_bytes()
    page.click("#export")
    page.click('[data-kind="command"]')
    expect(page.get_by_label("Text to copy")).to_have_value(re.compile("bimichi train"))


@pytest.mark.slow
def test_added_scenes_leave_what_can_be_undone(visit, serve, tmp_path):
    sources = write_streets(tmp_path / "streets")
    write_streets(tmp_path / "more", ["later"])
    page, hand = visit(serve(*sources, home=home_of(tmp_path)).url)
    before = page.locator("#scene-list li").count()
    hand.box(*truth_boxes(0, 1)[0])
    hand.wait_learned()
    page.click("#add")
    page.fill("#path", str(tmp_path / "more"))
    page.click("#add-path")
    expect(page.locator("#scene-list li")).to_have_count(before + 1)
    expect(page.locator("#scene-list b").last).to_have_text("later")
    expect(page.locator("dialog")).to_have_count(0)
    assert len(hand.shapes()) == 1
    page.keyboard.press("Control+z")
    hand.wait("() => studio.drawing.shapes.length === 0")
    page.keyboard.press("Control+Shift+z")
    hand.wait("() => studio.drawing.shapes.length === 1")
    page.click("#scene-list li:last-child button")
    hand.wait("() => studio.scenes.current.name === 'later'")


def exported(page, kind, folder, name="first"):
    """Export by the dialog, and download the file it offers."""
    page.click("#export")
    page.click(f'[data-kind="{kind}"]')
    with page.expect_download() as download:
        page.click(".result a")
    path = folder / f"{name}-{download.value.suggested_filename}"
    download.value.save_as(path)
    page.keyboard.press("Escape")
    return path


@pytest.mark.slow
def test_cancelling_keeps_the_map(visit, serve, tmp_path):
    page, hand = visit(serve(*write_streets(tmp_path / "streets"), home=home_of(tmp_path)).url)
    for box in truth_boxes(0):
        hand.box(*box)
    hand.wait_learned()
    hand.wait_idle()
    number = page.evaluate("() => studio.learned.model.number")
    page.click("#score >> text=Setting")
    page.click("text=Choose by cross-validation")
    page.click("#cancel")
    hand.wait("() => !studio.working")
    assert page.evaluate("() => studio.learned.model.number") == number
    hand.box(60, 5, 80, 30)  # and drawing goes on
    hand.wait_learned()
