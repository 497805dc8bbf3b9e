import re

import numpy as np
import pytest
from browsers import launched
from refusals import refused
from sklearn import config_context

from bimichi import Bags, BiCapacity, BiMIChI, Capacity, Comparison, FusionRule, _html
from bimichi._html import Cell, Table
from bimichi.datasets import street
from bimichi.evaluate.comparison import Result
from bimichi.evaluate.metrics import Scores
from bimichi.explain import chain, explain_pixel, indices
from bimichi.report import Report, write_report
from bimichi.report.write import INLINE

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "{{7*7}} & co"]


def shown(thing):
    return thing._repr_mimebundle_()["text/html"] if hasattr(thing, "_repr_mimebundle_") else thing._repr_html_()


@pytest.fixture(scope="module")
def scene():
    drawn = street(96, 128, random_state=0, n_segments=40)
    return type(drawn)(**{**vars(drawn), "source_names": tuple(HOSTILE), "name": HOSTILE[0], "citation": HOSTILE[1]})


@pytest.fixture(scope="module")
def model(scene):
    return BiMIChI("mean", source_names=scene.source_names, random_state=0).fit(scene.bags())


@pytest.fixture(scope="module")
def things(scene, model):
    scores = Scores(*[0.5] * len(Scores._fields))
    return {
        "model": model,
        "rule": model.rule_,
        "measure": model.measure_,
        "large measure": BiCapacity.random(6, random_state=0, source_names=[*HOSTILE, "d", "e", "f"]),
        "capacity": Capacity.additive([0.5, 0.3, 0.2], HOSTILE),
        "additive": BiMIChI("mean", additivity=2, source_names=HOSTILE).fit(scene.bags()).measure_,
        "scene": scene,
        "bags": scene.bags(),
        "comparison": Comparison(
            [Result(HOSTILE[0], model, [scores], problem=""), Result("b", model, problem=HOSTILE[1])]
        ),
        "pixel": model.explain_pixel(scene, 40, 60),
        "chain": chain(model, scene.sources[40, 60]),
        "indices": indices(model),
    }


def test_everything_is_escaped_and_styled(things):
    for name, thing in things.items():
        page = shown(thing)
        assert 'class="bimichi-view"' in page, name
        assert "<script>alert" not in page, name
        assert "<img src=x" not in page, name


def test_colours_follow_values():
    table = Table(["", "x", "n"], [[Cell("a"), Cell("-0.50"), Cell("12")], [Cell("b"), Cell("0.25"), Cell("")]])
    made = _html.table(table)
    assert '<td class="down" style="--share:0.5">-0.50</td>' in made
    assert '<td class="up" style="--share:0.25">0.25</td>' in made
    assert "<td>12</td>" in made  # a count is no value
    ranked = _html.table(table, _html.by_rank(table, {1: False}))
    assert '<td class="good" style="--share:1">-0.50</td>' in ranked
    assert '<td class="good" style="--share:0">0.25</td>' in ranked


def test_an_unfitted_estimator_is_scikit_learns(model):
    plain = shown(BiMIChI())
    assert "sk-" in plain
    assert "bimichi-view" not in plain
    assert shown(model).index("sk-") < shown(model).index("bimichi-view")
    assert "bimichi-view" in model._repr_html_()
    with config_context(display="text"):
        assert set(model._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(model, "_repr_html_")


def test_a_scene_shows_its_pictures(scene):
    assert scene._repr_html_().count("<figure>") == 1 + 3 + 1  # colour, sources, truth
    assert "96 x 128" in scene._repr_html_()
    rows = type(scene)(np.zeros((5, 2)))
    assert "<figure>" not in rows._repr_html_()  # no image


def test_bags_show_both_kinds():
    bags = Bags.from_instances([[0.5, -1.0], [0.5, 0.0], [-0.25, 1.0]], [1, 1, 0], [0, 0, 1])
    page = bags._repr_html_()
    assert "mean in positive bags" in page
    assert re.search(r"source 1</th><td[^>]*>-0.25</td><td[^>]*>0.50</td><td[^>]*>-0.25</td><td[^>]*>0.50</td>", page)


def test_a_rule_says_how_it_was_learned(model):
    page = FusionRule(model.measure_, polarity=[1, -1, 1])._repr_html_()
    assert "<dt>inverted</dt>" in page
    assert "learned by" not in page
    assert "BiMIChI (mean)" in model.rule_._repr_html_()


def test_a_pixel_is_explained(scene, model):
    found = model.explain_pixel(scene, 40, -1)
    assert (found.row, found.column) == (40, 127)
    x = scene.sources[40, 127]
    assert found.fused == pytest.approx(float(model.fuse(x[None])[0]))
    assert found.contributions.sum() == pytest.approx(found.chain.total, abs=1e-6)
    np.testing.assert_array_equal(found.values, x)
    assert repr(found).startswith("Pixel in row 40, column 127: ")
    assert found.to_table().header == ["source", "value", "enters as", "contributes"]
    planes = explain_pixel(model.rule_, [scene.sources[..., k] for k in range(3)], 40, 127)
    np.testing.assert_array_equal(planes.contributions, found.contributions)


def test_elements_that_training_did_not_meet_are_named(scene):
    ids = np.arange(20) % 4
    X = np.column_stack([np.linspace(0.1, 1, 20), np.full(20, 0.05)])
    model = BiMIChI("mean", source_names=["a", "b"]).fit(X, ids % 2, ids)
    found = model.explain_pixel(np.full((1, 1, 2), [-0.5, 0.8]), 0, 0)
    assert "g_{b,a}" in found.unmet
    assert "Not met in training" in repr(found)
    assert "Not met in training" in found._repr_html_()


@pytest.mark.parametrize(
    ("sources", "place", "message"),
    [
        (np.zeros((4, 5, 3)), (4, 0), "pixel-outside:row"),
        (np.zeros((4, 5, 3)), (0, 1.5), "pixel-outside:column"),
        (np.zeros((4, 3)), (0, 0), "sources-not-image:sources"),
        (np.full((4, 5, 3), np.nan), (0, 0), "pixel-no-data"),
    ],
)
def test_pixels_that_cannot_be_explained(model, sources, place, message):
    with refused(message):
        model.explain_pixel(sources, *place)


def test_a_scene_of_other_sources_is_refused(model):
    with refused("sources-differ"):
        model.explain_pixel(street(96, 128, random_state=0), 0, 0)


def test_a_report_is_framed(scene, model, tmp_path, monkeypatch):
    report = model.report(tmp_path / "report.html", scene)
    assert report == Report(tmp_path / "report.html") == write_report(tmp_path / "report.html", model, scene)
    page = report._repr_html_()
    assert '<iframe sandbox="allow-scripts"' in page
    assert "<script>" not in page  # all of it is text of an attribute
    monkeypatch.setattr("bimichi.report.write.INLINE", 10)
    assert "open the file in a browser" in report._repr_html_()
    report.path.unlink()
    assert "cannot be read any more" in report._repr_html_()
    assert INLINE > 10**6


@pytest.mark.slow
def test_pages_fit_and_nothing_of_them_runs(things, scene, model, tmp_path):
    things = {**things, "report": model.report(tmp_path / "report.html", scene)}
    body = "".join(shown(thing) for thing in things.values())
    (tmp_path / "page.html").write_text(f"<!doctype html><meta charset=utf-8><body>{body}", encoding="utf-8")
    with launched("whether results fit the cell of a notebook is not tested") as browser:
        for scheme, expected in (("light", "178 24 43"), ("dark", "244 109 95")):
            page = browser.new_context(color_scheme=scheme, viewport={"width": 420, "height": 800}).new_page()
            page.on("dialog", lambda dialog: pytest.fail(dialog.message))
            page.on("pageerror", lambda error: pytest.fail(str(error)))
            page.goto((tmp_path / "page.html").as_uri())
            wide = (
                "[...document.querySelectorAll('.bimichi-view')].filter(v => v.scrollWidth > v.clientWidth + 1).length"
            )
            assert page.evaluate(wide) == 0
            hue = "getComputedStyle(document.querySelector('.bimichi-view')).getPropertyValue('--up').trim()"
            assert page.evaluate(hue) == expected
            frame = page.frames[-1]
            frame.wait_for_selector("#sources")
            assert frame.evaluate("window.origin") == "null"  # it reaches nothing of the notebook
