"""What tests of pictures share: no traces are left, and what was drawn is found again."""

from itertools import product
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.patches import Rectangle

mpl.use("agg")
import matplotlib.pyplot as plt  # the backend is chosen first

HOSTILE = ["<b>", "$x$", "a_b", r"\$1 & $2^3$", "_hidden", "a sensor of a very long name that goes on " * 4]
RED_BLUE = mpl.colormaps["RdBu_r"]


@pytest.fixture(autouse=True)
def no_traces():
    """Close what a test draws; nothing may be shown or set globally."""
    before = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == before


def color_of(value):
    return RED_BLUE((value + 1) / 2)


def texts_at(ax):
    """Texts of the axes by their place."""
    return {text.get_position(): text for text in ax.texts if text.get_text() and text.get_transform() == ax.transData}


def shown(text):
    """What matplotlib shows of a text that holds no formula."""
    assert not mpl.cbook.is_math_text(text)
    return text.replace(r"\$", "$")


def disjoint_pairs(n_sources):
    for digits in product((0, 1, 2), repeat=n_sources):
        yield tuple({k for k in range(n_sources) if digits[k] == d} for d in (1, 2))


def bits(members):
    return sum(1 << k for k in members)


def rectangles(ax, **wanted):
    """Rectangles of the axes that have these properties, by their centre."""
    found = {}
    for patch in ax.patches:
        if isinstance(patch, Rectangle) and all(getattr(patch, f"get_{k}")() == v for k, v in wanted.items()):
            x, y = patch.get_xy()
            found[round(x + patch.get_width() / 2, 6), round(y + patch.get_height() / 2, 6)] = patch
    return found


@pytest.fixture
def indices():
    rng = np.random.default_rng(3)
    up, down, mixed = rng.uniform(-0.9, 0.9, (3, 3, 3))
    return SimpleNamespace(
        up=np.array([0.5, 0.1, 0.3]),
        down=np.array([0.2, 0.6, 0.3]),
        shapley=np.array([0.7, 0.7, 0.6]),
        interaction_up=up,
        interaction_down=down,
        interaction_mixed=mixed,
        source_names=("thermal", "$x$", "grey"),
    )
