"""Pictures of indices, scores and searches; judged by what is drawn."""

from itertools import product

import numpy as np
import pytest
import um
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from pictures import HOSTILE, indices, no_traces, shown, texts_at
from refusals import refused
from sklearn.metrics import roc_auc_score, roc_curve

from bimichi import BiCapacity, BiMIChI, EvolutionarySolver
from bimichi.measures.additive import AdditiveBiCapacity
from bimichi.plot import plot_history, plot_importance, plot_interaction, plot_interactions, plot_roc, plot_terms

__all__ = ["indices", "no_traces"]  # fixtures


def test_importance_has_bars_on_both_sides(indices):
    ax = plot_importance(indices)
    right, left = ax.containers
    assert [bar.get_width() for bar in right] == indices.up.tolist()
    assert [bar.get_width() for bar in left] == (-indices.down).tolist()
    assert [shown(t.get_text()) for t in ax.get_yticklabels()] == list(indices.source_names)
    written = [t.get_text() for t in ax.texts]
    assert written == ["0.50", "0.10", "0.30", "0.20", "0.60", "0.30", "down (below 0)", "up (above 0)"]
    ax.figure.canvas.draw()
    ticks = [t.get_text() for t in ax.get_xticklabels()]
    assert ticks == ticks[::-1]  # importance is never negative


def test_importance_from_arrays_with_intervals():
    up, down = np.array([0.5, 0.1]), np.array([0.2, 0.6])
    ends = np.array([[[0.4, 0.7], [0.0, 0.2]], [[0.1, 0.25], [0.5, 0.9]]])
    ax = plot_importance(up, down, ["$x$", HOSTILE[-1]], ends)
    names = [shown(t.get_text()) for t in ax.get_yticklabels()]
    assert names[0] == "$x$"
    assert len(names[1]) == 28
    whiskers = [line for c in ax.collections if isinstance(c, LineCollection) for line in c.get_segments()]
    expected = [[[0.4, 0], [0.7, 0]], [[0.0, 1], [0.2, 1]], [[-0.1, 0], [-0.25, 0]], [[-0.5, 1], [-0.9, 1]]]
    np.testing.assert_allclose(whiskers, expected)
    beside = [t.xy[0] for t in ax.texts if t.get_text().startswith("0.")]
    assert beside == [0.7, 0.2, -0.25, -0.9]
    assert ax.get_xlim()[1] > 0.9


@pytest.mark.parametrize("figsize", [None, (3.5, 2.0)])
def test_importance_values_stay_inside(indices, figsize):
    ax = None if figsize is None else Figure(figsize=figsize, layout="constrained").subplots()
    ax = plot_importance(indices, ax=ax)
    ax.figure.canvas.draw()
    box = ax.get_window_extent()
    for text in (t for t in ax.texts if t.get_text().startswith("0.")):
        extent = text.get_window_extent()
        assert box.x0 <= extent.x0
        assert extent.x1 <= box.x1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([0.1, 0.2],), "down-missing:down"),
        (([0.1, 0.2], [0.1]), "bars-shape"),
        (([0.1, np.nan], [0.1, 0.2]), "finite"),
        (([0.1], [0.1], ["a", "b"]), "names-number"),
        (([0.1], [0.1], None, [[0.0, 0.2]]), "intervals-shape"),
        (([0.1], [0.1], None, [[[0.2, 0.0]], [[0.0, 0.2]]]), "intervals-shape"),
    ],
)
def test_bad_importance(given, message):
    with refused(message):
        plot_importance(*given)


def test_terms_have_signed_bars_and_pairs_by_strength():
    up, down = [[0.6, 0.2], [0.2, 0.2]], [[-0.5, 0], [0, -0.5]]
    g = AdditiveBiCapacity.from_tables(up, down, [[0, -0.1], [0.003, 0]], ["$hot$", "bright"])
    ax = plot_terms(g)
    above, below, pairs = ax.containers
    assert [bar.get_width() for bar in above] == [0.6, 0.2]
    assert [bar.get_width() for bar in below] == [-0.5, -0.5]
    assert [bar.get_width() for bar in pairs] == [0.2, -0.1]  # the strongest first; 0.00 is not drawn
    names = [shown(t.get_text()) for t in ax.get_yticklabels()]
    assert names == ["$hot$", "bright", "$hot$ ↑  bright ↑", "$hot$ ↑  bright ↓"]
    assert {t.get_text() for t in ax.texts} >= {"0.60", "-0.50", "0.20", "-0.10", "↓ below 0", "↑ above 0"}
    assert ax.get_xlim()[0] == -ax.get_xlim()[1]


def test_terms_of_many_sources_and_of_none_but_sources():
    g = AdditiveBiCapacity.random(6, random_state=0)
    ax = plot_terms(g)
    pairs = [abs(bar.get_width()) for bar in ax.containers[2]]
    assert len(pairs) == 12
    assert pairs == sorted(pairs, reverse=True)
    assert "weaker pairs" in ax.texts[-1].get_text()
    ax.figure.canvas.draw()
    box = ax.get_window_extent()
    for text in (t for t in ax.texts if t.get_text().strip("-").startswith("0.")):
        assert box.x0 <= text.get_window_extent().x0
        assert text.get_window_extent().x1 <= box.x1
    X = np.array([[0.9, -0.8], [-0.7, 0.6], [-0.9, 0.7]])
    model = BiMIChI("mean", additivity=1).fit(X, [1, 0, 0])
    for given in (model, model.rule_, model.rule_.measure):
        assert [len(bars) for bars in plot_terms(given).containers] == [2, 2, 0]
    with refused("picture-sources"):
        plot_terms(BiCapacity.random(2, random_state=0))


def test_interaction_writes_all_but_the_diagonal(indices):
    ax = plot_interaction(indices, side="mixed")
    texts = texts_at(ax)
    assert set(texts) == {(c, r) for r, c in product(range(3), repeat=2) if r != c}
    for (column, row), text in texts.items():
        assert float(text.get_text()) == round(indices.interaction_mixed[row, column], 2)
    image = ax.images[0]
    assert (image.norm.vmin, image.norm.vmax) == (-1, 1)
    assert np.array_equal(image.get_array().mask, np.eye(3, dtype=bool))
    assert [shown(t.get_text()) for t in ax.get_xticklabels()] == list(indices.source_names)
    assert ax.get_title() == "mixed\nrow above, column below 0"
    ax.figure.canvas.draw()


def test_interaction_of_a_matrix():
    matrix = np.array([[0.0, 1.6], [1.6, 0.0]])
    ax = plot_interaction(matrix, HOSTILE[1:3])
    assert [t.get_text() for t in ax.texts] == ["1.60", "1.60"]
    assert matrix[0, 0] == 0  # not written to
    assert [shown(t.get_text()) for t in ax.get_yticklabels()] == HOSTILE[1:3]
    assert len(plot_interaction(matrix, colorbar=False).figure.axes) == 1


def test_interactions_have_three_panels(indices):
    figure = plot_interactions(indices)
    panels = [ax for ax in figure.axes if ax.images]
    assert [ax.get_title().split("\n")[0] for ax in panels] == ["up", "down", "mixed"]
    for ax, side in zip(panels, ("up", "down", "mixed"), strict=True):
        for (column, row), text in texts_at(ax).items():
            assert float(text.get_text()) == round(getattr(indices, f"interaction_{side}")[row, column], 2)
    assert len(figure.axes) == 4
    figure.canvas.draw()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda i: plot_interaction(np.zeros((2, 3))), "matrix-shape"),
        (lambda i: plot_interaction(np.zeros((2, 2)), ["a"]), "names-number"),
        (lambda i: plot_interaction(i, side="left"), "choice:side"),
        (lambda i: plot_interactions(np.zeros((2, 2))), "indices-kind"),
    ],
)
def test_bad_interaction(indices, make, message):
    with refused(message):
        make(indices)


def test_roc_is_exact_in_its_area_and_close_in_its_line():
    rng = np.random.default_rng(0)
    truth = rng.random((200, 300)) < 0.05
    maps = {name: truth * (0.2 + 0.3 * k) + rng.normal(0, 0.5, truth.shape) for k, name in enumerate(HOSTILE)}
    ax = plot_roc(truth, maps)
    labels = [shown(t.get_text()) for t in ax.get_legend().get_texts()]
    assert len(labels) == len(HOSTILE)
    for label, line, (name, fused) in zip(labels, ax.lines, maps.items(), strict=False):
        area, written = label.split("  ", 1)
        assert area == f"{roc_auc_score(truth.ravel(), fused.ravel()):.3f}"
        assert written == name or ("…" in written and len(written) == 28)
        x, y = line.get_data()
        assert len(x) <= 1001
        assert (x[0], y[0], x[-1], y[-1]) == (0, 0, 1, 1)
        false_rate, true_rate, _ = roc_curve(truth.ravel(), fused.ravel())
        along = np.interp(false_rate + true_rate, x + y, y)
        assert np.abs(along - true_rate).max() <= 0.002 + 1e-12
    ax.figure.canvas.draw()


def test_roc_keeps_all_corners_of_a_coarse_map():
    truth = np.array([1, 0, 1, 0, 0])
    ax = plot_roc(truth, {"a": [0.9, 0.8, 0.7, 0.2, 0.1]})
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[0, 0], [0, 0.5], [1 / 3, 0.5], [1 / 3, 1], [1, 1]])


def test_roc_ignores_and_tells_many_lines_apart():
    truth = np.array([1, -1, 1, -1])
    ignore = np.array([False, False, True, False])
    ax = plot_roc(truth, {f"m{k}": np.array([1.0, 0.0, np.nan, 0.5]) for k in range(20)}, ignore)
    assert ax.get_legend().get_texts()[0].get_text() == "1.000  m0"
    assert len({(line.get_color(), line.get_linestyle()) for line in ax.lines[:20]}) == 20
    ax.figure.canvas.draw()
    legend, figure = ax.get_legend().get_window_extent(), ax.figure.bbox
    assert not legend.overlaps(ax.get_window_extent().shrunk(0.98, 0.98))
    assert legend.x1 <= figure.x1
    assert legend.y1 <= figure.y1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([0, 1], {}), "maps-mapping"),
        (([0, 1], [[0.1, 0.2]]), "maps-mapping"),
        (([0, 2], {"a": [0.1, 0.2]}), "labels-binary:truth"),
        (([0, 0], {"a": [0.1, 0.2]}), "truth-one-class"),
        (([0, 1], {"a": [0.1, 0.2, 0.3]}), "map-shape"),
        (([0, 1], {"a": [0.1, np.nan]}), "nan"),
        (([0, 1], {"a": [0.1, 0.2]}, [True]), "ignore-shape:ignore"),
    ],
)
def test_bad_roc(given, message):
    with refused(message):
        plot_roc(*given)


def test_history_of_models_beside_the_convex_result():
    bags, _, _ = um.um()
    convex = BiMIChI(random_state=0).fit(bags)
    search = EvolutionarySolver(population_size=4, max_iter=40, patience=None)
    evolved = BiMIChI(random_state=0, solver=search).fit(bags)
    for given in (evolved, evolved.solution_, evolved.history_):
        for level in (convex, convex.solution_, convex.objective_value_):
            ax = plot_history({"_evolved $x$": given}, level, ax=Figure().subplots())
            line, horizontal = ax.lines
            assert np.array_equal(line.get_xdata(), np.arange(1, 41))
            assert np.array_equal(line.get_ydata(), evolved.history_)
            assert set(horizontal.get_ydata()) == {convex.objective_value_}
            assert ax.get_xscale() == "log"
            labels = [shown(t.get_text()) for t in ax.get_legend().get_texts()]
            assert labels == [
                f"J = {evolved.objective_value_:.5g}  _evolved $x$",
                f"J = {convex.objective_value_:.5g}  convex",
            ]


@pytest.mark.parametrize(
    ("history", "convex_value", "scale"),
    [
        ([5.0, 4.0, 3.0], 2.0, "linear"),
        ([5.0, 0.4, 0.3], None, "log"),
        ([5.0, 4.0], 0.1, "log"),
        ([5.0, 0.1, 0.01], 1e-16, "symlog"),
        ([5.0, 0.1, 0.0], None, "symlog"),
        ([0.0, 0.0], 0.0, "linear"),
        ([7.0], None, "linear"),
        ([5.0, 0.1, -2.0], None, "linear"),
    ],
)
def test_history_scales(history, convex_value, scale):
    ax = plot_history(history, convex_value)
    assert ax.get_yscale() == scale
    assert ax.get_xscale() == "linear"
    ax.figure.canvas.draw()
    low, high = ax.get_ylim()
    assert all(low <= value <= high for value in [*history, history[0] if convex_value is None else convex_value])
    assert all(t.get_text() == "" or float(t.get_text()) % 1 == 0 for t in ax.get_xticklabels())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (({},), "history-empty"),
        (([],), "history-kind"),
        (({"a": [[1.0]]},), "history-kind"),
        (([1.0, np.nan],), "history-kind"),
        ((BiMIChI(),), "real-numbers"),
        (([1.0], np.inf), "history-kind"),
        (([1.0], [1.0, 2.0]), "history-kind"),
    ],
)
def test_bad_history(given, message):
    with refused(message):
        plot_history(*given)
