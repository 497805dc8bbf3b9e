"""The widget of a notebook: a studio in a thread, and a page that frames it."""

import sys
import urllib.error
import urllib.request
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import refused

import bimichi
from bimichi.studio import start as notebook
from bimichi.studio.start import ORIGIN, in_notebook

NOTEBOOK = "http://localhost:8888"


@pytest.fixture
def kernel(monkeypatch):
    """As if this were the kernel of a notebook."""
    import_module("anywidget")  # which needs the real IPython
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1)))


@pytest.fixture
def widget(kernel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    made = bimichi.open_studio({name: rng.uniform(-1, 1, (20, 30)).astype(np.float32) for name in ("heat", "light")})
    yield made
    made.close()


def ancestors(url):
    with urllib.request.urlopen(url) as answer:
        policy = answer.headers["content-security-policy"]
        return policy.partition("frame-ancestors ")[2], answer.read()


def test_only_the_notebook_may_frame_the_page(widget):
    assert widget.url == ""
    assert widget.note == notebook.STARTING
    widget.origin = NOTEBOOK  # as the browser reports it
    assert widget.url.startswith("http://127.0.0.1:")
    assert widget.note == ""
    allowed, page = ancestors(widget.url)
    assert allowed == NOTEBOOK
    assert b"<html" in page
    widget.origin = "https://hub.example.org"
    assert ancestors(widget.url)[0] == f"{NOTEBOOK} https://hub.example.org"


def test_closing_the_widget_ends_the_studio(kernel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = bimichi.open_studio([np.zeros((8, 9), np.float32), np.ones((8, 9), np.float32)])
    made.origin = NOTEBOOK
    url = made.url
    made.close()
    assert made.note == notebook.ENDED
    assert made.url == ""
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url)
    made.origin = "http://localhost:9999"  # too late
    assert made.url == ""


def test_what_is_no_address_does_not_get_into_headers(widget):
    widget.origin = "null"
    assert widget.url == ""
    assert "Open the studio in a browser: http://127.0.0.1" in widget.note
    for bad in ("", "null", "http://a b", "http://a; script-src *", "http://x\r\nSet-Cookie: a", "javascript:alert(1)"):
        assert not ORIGIN.fullmatch(bad)
    for good in (NOTEBOOK, "https://hub.example.org", "http://[::1]:8888", "vscode-webview://0abc"):
        assert ORIGIN.fullmatch(good)


def test_errors_of_the_start_are_raised_where_it_was_asked_for(kernel, tmp_path):
    with refused("file-missing"):
        bimichi.open_studio([str(tmp_path / "missing.tif"), str(tmp_path / "missing2.tif")])


def test_a_terminal_is_no_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert not in_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not in_notebook()


def test_the_module_frames_the_page():
    from browsers import launched

    code = Path(notebook.__file__).with_name("widget.js").read_text(encoding="utf-8")
    with launched("the widget of notebooks was not rendered") as browser:
        page = browser.new_page()
        page.goto("data:text/html,<div id='here'></div>")
        found = page.evaluate(
            """async (code) => {
              const state = { url: "", note: "Starting", height: 300 }, heard = {};
              const model = {
                get: (name) => state[name], set: (name, value) => { state[name] = value; }, save_changes() {},
                on: (name, call) => { heard[name] = call; }, off: (name) => { delete heard[name]; },
              };
              const module = await import("data:text/javascript," + encodeURIComponent(code));
              const el = document.getElementById("here");
              const end = module.default.render({ model, el });
              const frame = el.querySelector("iframe"), before = [frame.hidden, el.innerText];
              Object.assign(state, { url: "about:blank#studio", note: "" });
              heard["change:url"]();
              const after = [frame.src, frame.hidden, frame.style.height, el.querySelector("p").hidden];
              end();
              return { before, after, origin: state.origin, left: Object.keys(heard).length };
            }""",
            code,
        )
    assert found == {
        "before": [True, "Starting"],
        "after": ["about:blank#studio", False, "300px", True],
        "origin": "null",
        "left": 0,
    }
