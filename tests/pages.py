"""What tests of report pages share: small models with images, and what a page holds, read without a browser."""

import base64
import json
import re
import zlib
from functools import cache
from html import unescape

import numpy as np

from bimichi import BiMIChI

HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "</script>&amp;${title}")


@cache
def fitted(m, objective="bipolar", scale=None, polarity="given", names=None, seed=0):
    """A model of m sources, learned from 30 small bags. With minmax, sources lie far from [-1, 1]."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (150, m))
    y = np.repeat(np.arange(30) % 3 == 0, 5).astype(int)
    X[y == 1] = np.clip(X[y == 1] + 0.4, -1, 1)
    X[:, 0] *= -1 if polarity == "learn" else 1  # low on the target
    X = 500 + 300 * X if scale else X
    model = BiMIChI(objective, polarity=polarity, scale=scale, source_names=names, random_state=0)
    return model.fit(X, y, bags=np.repeat(np.arange(30), 5))


@cache
def other(m, kind, **options):
    """A model of another kind, learned from the same bags; of the label of every instance where it needs these."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (150, m))
    y = np.repeat(np.arange(30) % 3 == 0, 5).astype(int)
    X[y == 1] = np.clip(X[y == 1] + 0.4, -1, 1)
    X[:, 0] *= -1 if options.get("polarity") == "learn" else 1
    return kind(**options).fit(X, y, bags=np.repeat(np.arange(30), 5))


def image(m, height=12, width=16, seed=1, scaled=False, holes=0):
    """An image of m sources; the first is of few levels, ties and zeros are among the rest."""
    rng = np.random.default_rng(seed)
    planes = rng.uniform(-1, 1, (height, width, m))
    planes[..., 0] = rng.integers(-3, 4, (height, width)) / 3
    planes[0, :3] = 0.5
    planes[1, :3, -1] = 0.0
    planes = 500 + 300 * planes if scaled else planes
    for row, column, k in rng.integers(0, (height, width, m), (holes, 3)):
        planes[row, column, k] = np.nan
    return planes


def text_of(page):
    """What the page says, without its data and script."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


def data_of(page):
    """The page's data, as its script parses it."""
    return json.loads(data_text(page))


def data_text(page):
    return re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]


def planes_of(document):
    """The sources in a page, unpacked by plain loops: shape (height, width, m)."""
    return np.stack([plane_of(part, document["height"], document["width"]) for part in document["sources"]], axis=-1)


def plane_of(part, height, width):
    numbers = indices_of(part["data"], height, width)
    if "levels" in part:
        known = dict(enumerate(part["levels"]))
    else:
        known = {k: part["low"] + part["step"] * k for k in range(65535)}
    return np.array([[known.get(k, np.nan) for k in row] for row in numbers])


def indices_of(text, height, width):
    data = zlib.decompress(base64.b64decode(text))
    size = height * width
    assert len(data) == 2 * size
    rows = []
    for y in range(height):
        left, row = 0, []
        for i in range(y * width, (y + 1) * width):
            folded = data[i] + 256 * data[i + size]
            left = (left + (-(folded + 1) // 2 if folded % 2 else folded // 2)) % 65536
            row.append(left)
        rows.append(row)
    return rows
