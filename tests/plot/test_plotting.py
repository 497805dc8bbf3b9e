"""Maps, bags, and what all pictures share; judged by what is drawn."""

import subprocess
import sys
from itertools import pairwise, product

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from pictures import HOSTILE, color_of, indices, no_traces, plt, shown
from refusals import refused

from bimichi import BiCapacity, Capacity
from bimichi.plot import (
    plot_bags,
    plot_capacity,
    plot_history,
    plot_importance,
    plot_interaction,
    plot_lattice,
    plot_map,
    plot_maps,
    plot_matrix,
    plot_roc,
)
from bimichi.plot.maps import outlines
from bimichi.plot.style import LEFT_OUT, NEGATIVE, POSITIVE, literal

__all__ = ["indices", "no_traces"]  # fixtures


@pytest.mark.parametrize("name", HOSTILE)
def test_literal_text_is_drawn_as_it_is(name):
    def pixels(**text):
        figure = plt.figure(figsize=(6, 0.5))
        figure.text(0.01, 0.4, **text)
        figure.canvas.draw()
        return np.asarray(figure.canvas.buffer_rgba())

    assert np.array_equal(pixels(s=literal(name)), pixels(s=name, parse_math=False))


def test_literal_cuts_the_middle_and_joins_lines():
    assert literal("abcdefghij", 7) == "abc…hij"
    assert literal("abcdefgh", 8) == "abcdefgh"
    assert len(literal("x" * 100, 30)) == 30
    assert literal("two\nlines") == "two lines"


def test_matplotlib_is_imported_only_when_needed():
    script = "import sys, bimichi.plot; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'bimichi\[plot\]'"):
        plot_map(np.zeros((2, 2)))


def drawers(indices):
    g = BiCapacity.random(2, random_state=0)
    truth = np.array([0, 1, 1, 0])
    return [
        lambda ax: plot_map(np.zeros((2, 2)), ax=ax),
        lambda ax: plot_bags(np.array([[0, 1]]), {0: 1, 1: 0}, ax=ax),
        lambda ax: plot_matrix(g, ax=ax),
        lambda ax: plot_capacity(Capacity.random(2, random_state=0), ax=ax),
        lambda ax: plot_lattice(g, ax=ax),
        lambda ax: plot_importance(indices, ax=ax),
        lambda ax: plot_interaction(indices, ax=ax),
        lambda ax: plot_roc(truth, {"a": truth}, ax=ax),
        lambda ax: plot_history([3.0, 2.0], ax=ax),
    ]


def test_pictures_use_the_axes_they_are_given_and_make_no_other_figure(indices):
    for draw in drawers(indices):
        ax = Figure().subplots()
        assert draw(ax) is ax
        ax.figure.canvas.draw()
        assert plt.get_fignums() == []


def test_pictures_make_one_figure_of_their_own(indices):
    for draw in drawers(indices):
        ax = draw(None)
        assert plt.get_fignums() == [ax.figure.number]
        plt.close(ax.figure)


def test_several_axes_at_once_are_refused(indices):
    for draw in drawers(indices):
        with refused("axes-kind:ax"):
            draw(Figure().subplots(1, 2))


def test_map_has_the_fixed_scale_and_its_bar_the_range():
    plane = np.array([[-0.5, 0.0, np.nan], [0.25, 0.5, 0.1]])
    ax = plot_map(plane, title="$x$ of <b>")
    image = ax.images[0]
    assert (image.norm.vmin, image.norm.vmax) == (-1, 1)
    assert np.array_equal(image.get_array().filled(np.nan), plane, equal_nan=True)
    np.testing.assert_allclose(image.cmap(image.norm(0.5)), color_of(0.5))
    red, green, blue, _ = image.to_rgba(plane)[0, 2]
    assert red == green == blue  # what is missing is grey
    assert shown(ax.get_title()) == "$x$ of <b>"
    bar = ax.figure.axes[1]
    assert bar.get_ylim() == (-1, 1)
    assert plot_map(plane, colorbar=False).figure.axes[1:] == []


def test_magnitudes_keep_their_colours_and_show_half_the_bar():
    ax = plot_map(np.array([[0.0, 0.5]]), output_range=(0, 1))
    np.testing.assert_allclose(ax.images[0].to_rgba(np.array([[0.5]]))[0, 0], color_of(0.5), atol=0.01)
    assert ax.figure.axes[1].get_ylim() == (0, 1)


@pytest.mark.parametrize("ends", [(-1.0, 1.0), (0.0, 1.0)])
def test_boolean_maps_take_the_ends_of_the_range(ends):
    ax = plot_map(np.array([[False, True]]), output_range=ends)
    assert ax.images[0].get_array().tolist() == [list(ends)]


def test_maps_share_one_bar():
    planes = np.random.default_rng(0).uniform(-1, 1, (7, 6, 8))
    titles = ["a", "$x$", "c", "d", "e", "f", "g"]
    figure = plot_maps(list(planes), titles, ncols=3)
    panels = [ax for ax in figure.axes if ax.images]
    assert [shown(ax.get_title()) for ax in panels] == titles
    for ax, plane in zip(panels, planes, strict=True):
        assert np.array_equal(ax.images[0].get_array(), plane)
        assert (ax.images[0].norm.vmin, ax.images[0].norm.vmax) == (-1, 1)
    assert len(figure.axes) == 8  # seven maps, one bar; the two places left over are empty
    figure.canvas.draw()
    assert len({round(ax.get_position().x0, 6) for ax in panels}) == 3


def test_maps_from_a_mapping_and_in_rows_of_equal_length():
    figure = plot_maps({f"method {k}": np.zeros((3, 4)) for k in range(12)})
    panels = [ax for ax in figure.axes if ax.images]
    assert [ax.get_title() for ax in panels] == [f"method {k}" for k in range(12)]
    assert panels[0].get_gridspec().ncols == 4


def test_titles_stay_within_their_panels():
    figure = plot_maps([np.zeros((30, 40))] * 4, [HOSTILE[-1]] * 4)
    figure.canvas.draw()
    for ax in (ax for ax in figure.axes if ax.images):
        title, panel = ax.title.get_window_extent(), ax.get_window_extent()
        assert title.width < panel.width * 1.02
        assert title.y1 <= figure.bbox.y1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: plot_map(np.zeros((2, 2, 3))), "map-shape"),
        (lambda: plot_map(np.array([["a"]])), "real-numbers"),
        (lambda: plot_map([[0.0, 3.7]]), "output-range-exceeded"),
        (lambda: plot_map([[-0.5]], output_range=(0, 1)), "output-range-exceeded"),
        (lambda: plot_map([[0.0]], output_range=(0, 255)), "output-range:output_range"),
        (lambda: plot_map([[0.0]], output_range=1), "output-range:output_range"),
        (lambda: plot_maps([]), "maps-empty:planes"),
        (lambda: plot_maps([[[0.0]]], ["a", "b"]), "titles-number"),
        (lambda: plot_maps([[[0.0]], [[2.0]]]), "output-range-exceeded"),
        (lambda: plot_maps({"a": [[0.0]]}, ["a"]), "titles-twice:titles"),
        (lambda: plot_maps([[[0.0]]], ncols=0), "whole-number:ncols"),
    ],
)
def test_bad_maps(make, message):
    with refused(message):
        make()
    assert plt.get_fignums() == []


def naive_sides(segments):
    """For each segment, its directed sides, clockwise on the screen, as ((x, y), (x, y))."""
    height, width = segments.shape
    sides = {}
    for r, c in product(range(height), range(width)):
        corners = [(c, r), (c + 1, r), (c + 1, r + 1), (c, r + 1), (c, r)]
        for side, (dr, dc) in zip(pairwise(corners), [(-1, 0), (0, 1), (1, 0), (0, -1)], strict=True):
            inside = 0 <= r + dr < height and 0 <= c + dc < width
            if not inside or segments[r + dr, c + dc] != segments[r, c]:
                sides.setdefault(int(segments[r, c]), []).append(side)
    return {segment: sorted(found) for segment, found in sides.items()}


def unit_sides(loop):
    """Cut a polygon into sides of one pixel."""
    for a, b in pairwise([*loop, loop[0]]):
        n = int(np.abs(b - a).sum())
        step = (b - a) // n
        for k in range(n):
            yield tuple((a + k * step).tolist()), tuple((a + (k + 1) * step).tolist())


@pytest.mark.parametrize("seed", range(20))
def test_outlines_are_the_sides_between_segments(seed):
    rng = np.random.default_rng(seed)
    segments = rng.integers(-1, 3, rng.integers(1, 9, 2))  # holes, islands, corners that touch
    found = outlines(segments)
    assert {s: sorted(side for loop in loops for side in unit_sides(loop)) for s, loops in found.items()} == (
        naive_sides(segments)
    )
    for loop in (loop for loops in found.values() for loop in loops):
        ahead = np.roll(loop, -1, axis=0) - loop
        assert (np.count_nonzero(ahead, axis=1) == 1).all()
        assert (np.sign(ahead) != np.sign(np.roll(ahead, 1, axis=0))).any(axis=1).all()  # no corner on a straight line


def test_outlines_part_where_only_corners_touch():
    assert len(outlines(np.array([[1, 0], [0, 1]]))[1]) == 2
    ring = np.ones((3, 3), int)
    ring[1, 1] = 0
    outer, hole = outlines(ring)[1]
    assert sorted(map(tuple, outer.tolist())) == [(0, 0), (0, 3), (3, 0), (3, 3)]
    assert sorted(map(tuple, hole.tolist())) == [(1, 1), (1, 2), (2, 1), (2, 2)]


def area(path):
    """Signed area of all closed parts of a path."""
    return sum(
        0.5 * float(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]))
        for x, y in (p.T for p in path.to_polygons(closed_only=True))
    )


def test_bags_are_polygons_of_their_kind():
    rng = np.random.default_rng(0)
    segments = rng.integers(0, 6, (12, 15))
    labels = {0: True, 2: False, 3: True, 5: False}
    image = rng.random((12, 15, 3))
    ax = plot_bags(segments, labels, image)
    kinds = {c.get_label(): c for c in ax.collections if isinstance(c, PathCollection)}
    members = {"positive": [0, 3], "negative": [2, 5], "left out": [1, 4]}
    colors = set()
    for kind in members:
        collection = kinds[kind]
        colors.add(to_hex(collection.get_edgecolor()[0]))
        assert collection.get_facecolor()[0, 3] == 0  # the image shows through
        assert not collection.get_hatch()
        assert collection.get_linewidth()[0] <= 1
        assert [abs(area(path)) for path in collection.get_paths()] == [np.sum(segments == s) for s in members[kind]]
    assert len(colors) == 3
    assert kinds["positive"].get_linewidth()[0] > kinds["negative"].get_linewidth()[0]
    keys = [text.get_text() for text in ax.get_legend().get_texts()]
    assert keys == ["positive (2)", "negative (2)", "left out (2)"]
    assert ax.images[0].get_extent() == [0, 15, 12, 0]
    assert ax.images[0].get_alpha() is None
    assert np.array_equal(ax.images[0].get_array(), image)
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 15), (12, 0))
    ax.figure.canvas.draw()


def test_bags_without_an_image_and_with_labels_by_number():
    ax = plot_bags(np.array([[0, 0, 2]], dtype=np.uint8), [-1, 1, 1])
    assert [c.get_label() for c in ax.collections] == ["positive", "negative"]
    assert ax.images[:] == []
    for collection, color in zip(ax.collections, (POSITIVE, NEGATIVE), strict=True):
        assert to_hex(collection.get_edgecolor()[0]) == to_hex(collection.get_facecolor()[0]) == color
        assert 0 < collection.get_facecolor()[0, 3] < 1
    assert ax.collections[0].get_hatch()
    assert not ax.collections[1].get_hatch()
    left_out = plot_bags(np.array([[4, 4]]), {})
    assert [c.get_label() for c in left_out.collections] == ["left out"]
    assert to_hex(left_out.collections[0].get_edgecolor()[0]) == LEFT_OUT


def test_targets_are_drawn_over_bags():
    mask = np.zeros((12, 15), bool)
    mask[2:4, 2:5] = mask[8:11, 10] = True
    triangle = [(1.0, 1.0), (4.0, 1.0), (4.0, 5.0)]
    segments = np.arange(12 * 15).reshape(12, 15) // 30
    image = np.zeros((12, 15))
    ax = plot_bags(segments, {0: True, 1: False}, image, boxes=[(3, 4, 5, 2.5)], polygons=[triangle], mask=mask)
    targets = next(c for c in ax.collections if c.get_label() == "targets")
    assert sorted(abs(area(path)) for path in targets.get_paths()) == [3, 6, 6, 12.5]
    assert to_hex(targets.get_edgecolor()[0]) not in {to_hex(c.get_edgecolor()[0]) for c in ax.collections[:3]}
    assert targets.get_zorder() > max(c.get_zorder() for c in ax.collections if c is not targets)
    assert ax.get_legend().get_texts()[-1].get_text() == "targets (4)"
    ax.figure.canvas.draw()


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ({"boxes": [(1, 2, 3)]}, "boxes-shape:boxes"),
        ({"polygons": [[1, 2]]}, "polygons-shape:polygons"),
        ({"mask": np.zeros((1, 2))}, "mask-kind:mask"),
        ({"mask": np.zeros((2, 2), bool)}, "mask-kind"),
    ],
)
def test_bad_targets(targets, message):
    with refused(message):
        plot_bags(np.array([[0, 1]]), {0: 1, 1: 0}, **targets)


@pytest.mark.parametrize(
    ("segments", "labels", "image", "message"),
    [
        ([[0.5, 1.0]], {0: 1}, None, "segments-shape:segments"),
        ([0, 1], {0: 1}, None, "segments-shape:segments"),
        ([[0, 1]], {7: True}, None, "labels-segments"),
        ([[0, 1]], [1], None, "labels-segments"),
        ([[0, 1]], {0: 2}, None, "labels-binary:labels"),
        ([[0, 1, 2]], [-1, 0, 1], None, "labels-binary:labels"),
        ([[0, 1]], {0: "yes"}, None, "labels-binary"),
        ([[0, 1]], {0: 1}, np.zeros((2, 2)), "image-shape:image"),
        ([[0, 1]], {0: 1}, np.zeros((1, 2, 5)), "image-shape:image"),
    ],
)
def test_bad_bags(segments, labels, image, message):
    with refused(message):
        plot_bags(segments, labels, image)
