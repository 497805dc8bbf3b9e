"""The studio in a real browser: whom it refuses, a folder that is dropped, and labels on a map."""

import json

import numpy as np
import pytest
import rasters
from browsers import launched
from studios import HEIGHT, WIDTH, Hand, Served, home_of

UNTESTED = "the studio was not opened: refusals, dropped folders and labels on a map are not tested in a browser"
FOREIGN = "elsewhere.example"  # a name of another site, which it lets point to this machine

SOCKET = """(address) => new Promise((done) => {
  const socket = new WebSocket(address);
  socket.onopen = () => done("open");
  socket.onclose = () => done("refused");
})"""


@pytest.fixture(scope="module")
def browser():
    with launched(UNTESTED, f"--host-resolver-rules=MAP {FOREIGN} 127.0.0.1") as started:
        yield started


@pytest.fixture(scope="module")
def served(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    program = Served(home=home_of(folder))
    yield program
    program.end()


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    opened = context.new_page()
    opened.set_default_timeout(60_000)
    yield opened
    context.close()


def test_other_tokens_names_and_origins_are_refused(page, served):
    site, token = served.url.rsplit("/", 2)[0], served.url.split("/")[-2]
    foreign = site.replace("127.0.0.1", FOREIGN)
    for address, why in (
        (f"{site}/", "lacks the token"),
        (f"{site}/{token[:-1]}x/", "lacks the token"),
        (f"{site}/{token[:-1]}x/state", "lacks the token"),
        (f"{foreign}/{token}/", "under its own address only"),
    ):
        assert page.goto(address).status == 403
        assert why in page.inner_text("body")
    # The page is now one of the other site, though its name leads here.
    socket = f"{site.replace('http', 'ws')}/{token}/socket"
    assert page.evaluate(SOCKET, socket) == "refused"
    assert page.evaluate(SOCKET, socket.replace("127.0.0.1", FOREIGN)) == "refused"
    post = "(address) => fetch(address, { method: 'POST', mode: 'no-cors', body: '{}' }).then(({ type }) => type)"
    assert page.evaluate(post, f"{served.url}close") == "opaque"  # it does not end the server, as what follows shows
    page.goto(served.url)
    page.wait_for_selector("html[data-ready]", state="attached")
    assert page.evaluate(SOCKET, socket.replace(token, token[:-1] + "x")) == "refused"
    assert page.evaluate(SOCKET, socket) == "open"


@pytest.mark.slow
def test_labels_on_a_dropped_folder_land_on_the_map(page, served, tmp_path):
    rng = np.random.default_rng(0)
    for name in ("grey", "thermal"):
        (tmp_path / "place" / name).mkdir(parents=True)
        plane = rng.uniform(-1, 1, (1, HEIGHT, WIDTH)).astype(np.float32)
        plane[:, 20:40, 30:45] += 1
        rasters.write(tmp_path / "place" / name / "one.tif", np.clip(plane, -1, 1))
    page.goto(served.url)
    page.wait_for_selector("html[data-ready]", state="attached")
    protocol = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(tmp_path / "place")], "dragOperationsMask": 1}
    with page.expect_navigation():
        for kind in ("dragEnter", "dragOver", "drop"):
            protocol.send("Input.dispatchDragEvent", {"type": kind, "x": 300, "y": 300, "data": data})
    page.wait_for_selector("#scene-list li", state="attached")
    page.wait_for_selector("html[data-ready]", state="attached")
    hand = Hand(page)
    assert page.evaluate("() => studio.state.sources.map(({ name }) => name)") == ["grey", "thermal"]
    hand.box(30, 20, 45, 40)
    hand.wait_learned()
    (shape,) = hand.shapes()
    assert np.allclose(shape["points"], [[30, 20], [45, 40]], atol=1)  # as near as a mouse is
    page.click("#export")
    page.click('[data-kind="geojson"]')
    with page.expect_download() as download:
        page.click(".result a")
    found = json.loads(download.value.path().read_text())
    assert found["crs"]["properties"]["name"] == "EPSG:32632"
    ring = np.array(found["features"][0]["geometry"]["coordinates"][0])
    (left, top), (right, bottom) = shape["points"]
    # 10 m per pixel, from (500000, 5000000) to the right and down.
    assert (ring.min(axis=0) == [500_000 + 10 * left, 5_000_000 - 10 * bottom]).all()
    assert (ring.max(axis=0) == [500_000 + 10 * right, 5_000_000 - 10 * top]).all()
