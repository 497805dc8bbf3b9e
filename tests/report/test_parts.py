"""Parts of report pages: markup, planes, samples, colours and thumbnails."""

import base64
from io import BytesIO

import numpy as np
import pytest
from jinja2 import UndefinedError
from matplotlib import colormaps
from matplotlib.colors import to_hex
from pages import planes_of
from PIL import Image

from bimichi._colours import MISSING, colour_of, swatch
from bimichi._html import environment, render
from bimichi.report import thumbnail
from bimichi.report.contents import embed_plane
from bimichi.report.inputs import Sampling


def test_templates_escape_text_and_attributes():
    page = environment().from_string('<td title="{{ text }}"{{ {"id": text}|xmlattr }}>{{ text }}</td>')
    escaped = "&#34;&lt;&gt;&amp;&#39;"
    assert page.render(text="\"<>&'") == f'<td title="{escaped}" id="{escaped}">{escaped}</td>'


def test_values_that_a_template_lacks_are_an_error():
    with pytest.raises(UndefinedError):
        render("parameters.html", parameters={})


@pytest.mark.parametrize("kind", [np.uint8, np.float32, np.float64])
def test_few_levels_are_exact(kind):
    plane = np.random.default_rng(0).integers(0, 200, (9, 7)).astype(kind)
    part = embed_plane(plane)
    assert np.array_equal(planes_of({"height": 9, "width": 7, "sources": [part]})[..., 0], plane)


def test_many_levels_are_close_and_gaps_stay():
    plane = np.random.default_rng(0).normal(0, 5, (80, 70))
    plane[3, :5] = np.nan
    part = embed_plane(plane, limits=(-8.0, np.inf))
    found = planes_of({"height": 80, "width": 70, "sources": [part]})[..., 0]
    assert np.array_equal(np.isnan(found), np.isnan(plane))
    assert np.nanmax(np.abs(found - np.maximum(plane, -8))) <= part["step"] / 2 * 1.0001
    assert part["step"] < 30 / 65534
    beyond = planes_of({"height": 80, "width": 70, "sources": [embed_plane(plane + 100, limits=(-1.0, 1.0))]})
    assert set(beyond[~np.isnan(beyond)]) == {1.0}


@pytest.mark.parametrize(("shape", "limit"), [((10, 10), 100), ((101, 99), 1000), ((1, 5000), 70), ((3000, 2), 10)])
def test_sampling_takes_evenly_spaced_pixels(shape, limit):
    sampling = Sampling(shape, limit)
    height, width = sampling.shape
    assert sampling.shrunk == (shape[0] * shape[1] > limit)
    assert 0.5 * min(limit, shape[0] * shape[1]) <= height * width <= limit
    rows = sampling(np.broadcast_to(np.arange(shape[0])[:, None], shape))[:, 0]
    columns = sampling(np.broadcast_to(np.arange(shape[1]), shape))[0]
    for places, full in ((rows, shape[0]), (columns, shape[1])):
        assert places.tolist() == sorted(set(places.tolist()))
        steps = np.diff(places)
        assert steps.size == 0 or steps.max() - steps.min() <= 1
        assert places[0] + places[-1] in (full - 1, full, full - 2)


def test_colours_are_those_of_the_pictures():
    for value in np.linspace(-1, 1, 301):
        wanted = to_hex(colormaps["RdBu_r"]((value + 1) / 2))
        parts = [[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in (wanted, colour_of(value))]
        assert np.abs(np.subtract(*parts)).max() <= 1
    assert swatch(0.0).partition("--ink")[2] != swatch(1.0).partition("--ink")[2]


def test_thumbnails_are_pictures_of_the_map(rng):
    fused = rng.uniform(-1, 1, (7, 5))
    fused[2, 3] = np.nan
    found = np.asarray(Image.open(BytesIO(base64.b64decode(thumbnail(fused).partition(",")[2]))))
    assert found.shape == (7, 5, 3)
    colours = [[colour_of(v) if v == v else MISSING for v in row] for row in fused.tolist()]
    assert [[f"#{r:02x}{g:02x}{b:02x}" for r, g, b in row] for row in found.tolist()] == colours
    large = np.asarray(Image.open(BytesIO(base64.b64decode(thumbnail(np.ones((900, 1300))).partition(",")[2]))))
    assert max(large.shape) <= 320
    assert (large == large[0, 0]).all()
