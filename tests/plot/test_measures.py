"""Pictures of measures: the table, the bars, the lattice; judged by what is drawn."""

from itertools import pairwise, product

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from paper_tables import UM_1, matrix
from pictures import HOSTILE, bits, color_of, disjoint_pairs, no_traces, plt, rectangles, shown, texts_at
from refusals import refused

from bimichi import BiCapacity, Capacity, choquet, linear_form
from bimichi._html import number
from bimichi.plot import plot_capacity, plot_lattice, plot_matrix
from bimichi.plot.style import POSITIVE

__all__ = ["no_traces"]  # a fixture


@pytest.mark.parametrize("n_sources", [1, 2, 3, 4])
def test_table_has_every_value_at_its_place(n_sources, rng):
    g = BiCapacity.random(n_sources, random_state=rng)
    used, identified = rng.random((2, 3**n_sources)) < 0.5
    ax = plot_matrix(g, used, identified)
    texts, faces = texts_at(ax), rectangles(ax, fill=True)
    framed = {place for place, p in rectangles(ax, fill=False, hatch=None).items() if p.get_linewidth() > 0}
    hatched = rectangles(ax, fill=False, hatch="////")
    expected = {(bits(b), bits(a)): g.code((a, b)) for a, b in disjoint_pairs(n_sources)}
    assert set(texts) == set(faces) == set(expected)
    assert set(hatched) == {place for place, code in expected.items() if not identified[code]}
    assert framed == {place for place, code in expected.items() if used[code]}
    for place, code in expected.items():
        assert texts[place].get_text() == number(g.values[code])
        assert texts[place].get_fontweight() == ("bold" if used[code] else "normal")
        np.testing.assert_allclose(faces[place].get_facecolor(), color_of(g.values[code]), atol=0.01)


def test_table_is_that_of_the_paper():
    table = matrix(UM_1)
    g = BiCapacity.from_matrix(np.array(table, dtype=float), zero_bound=False)
    ax = plot_matrix(g, identified=np.zeros(27, bool))
    texts = texts_at(ax)
    assert texts.pop((0, 0)).get_text() == "–"  # means nothing without the zero bound
    assert {place: float(text.get_text()) for place, text in texts.items()} == {
        (column, row): value
        for row, line in enumerate(table)
        for column, value in enumerate(line)
        if value is not None and (row, column) != (0, 0)
    }
    assert sum(bool(p.get_hatch()) for p in ax.patches) == 26
    order = ["∅", "1", "2", "12", "3", "13", "23", "123"]
    assert [t.get_text() for t in ax.get_xticklabels()] == [t.get_text() for t in ax.get_yticklabels()] == order


def test_table_marks_elements_given_by_their_sources():
    g = BiCapacity.random(2, random_state=0, source_names=["thermal", "rgb"])
    ax = plot_matrix(g, used=[(["thermal"], ["rgb"])], identified=[({0}, {1}), ((), (0, 1))])
    bold = [place for place, text in texts_at(ax).items() if text.get_fontweight() == "bold"]
    assert bold == [(2, 1)]
    assert sum(bool(p.get_hatch()) for p in ax.patches) == 7
    assert [t.get_text() for t in ax.get_xticklabels()] == ["∅", "thermal", "rgb", "thermal+rgb"]
    assert ax.texts[-1].get_text() == "bold, framed: used     hatched: not identified"


@pytest.mark.parametrize("plot", [plot_matrix, plot_lattice])
def test_long_names_are_numbered_with_a_key(plot):
    ax = plot(BiCapacity.random(4, random_state=0, source_names=[*HOSTILE[:3], HOSTILE[-1]]))
    key = shown(ax.texts[-1].get_text()).split("\n")
    assert key[0] == "1 = <b>,  2 = $x$,  3 = a_b"
    assert key[1].startswith("4 = a sensor of a very")
    assert len(key[1]) <= 64
    ax.figure.canvas.draw()
    assert ax.figure.bbox.x0 <= ax.texts[-1].get_window_extent().x0
    assert ax.texts[-1].get_window_extent().x1 <= ax.figure.bbox.x1


@pytest.mark.parametrize(("n_sources", "figsize"), [(1, None), (3, None), (3, (3.4, 3.0)), (4, None), (4, (5.0, 4.5))])
def test_values_fit_their_cells(n_sources, figsize):
    ax = None if figsize is None else Figure(figsize=figsize, layout="constrained").subplots()
    g = BiCapacity.random(n_sources, random_state=0)
    ax = plot_matrix(g, used=np.ones(g.values.size, bool), ax=ax)
    ax.figure.canvas.draw()
    cell = ax.get_window_extent().width / 2**n_sources
    assert all(text.get_window_extent().width < cell for text in texts_at(ax).values())


@pytest.mark.parametrize("plot", [plot_matrix, plot_lattice])
def test_too_many_sources_for_a_picture(plot):
    with refused("picture-sources", "243", "to_matrix()"):
        plot(BiCapacity.additive([0.2] * 5))
    with refused("picture-sources"):
        plot(Capacity.additive([0.5, 0.5]))


def test_bad_marks():
    g = BiCapacity.random(2, random_state=0)
    with refused("values-shape:used"):
        plot_matrix(g, used=np.arange(9))
    with refused("values-shape:identified"):
        plot_matrix(g, identified=np.ones(8, bool))


def test_capacity_as_bars(rng):
    g = Capacity.random(4, random_state=1)
    used, identified = rng.random((2, 16)) < 0.5
    ax = plot_capacity(g, used, identified)
    subsets = [subset for subset, _ in g.listing()]
    codes = [bits(subset) for subset in subsets]
    bars = ax.containers[0]
    assert [bar.get_width() for bar in bars] == [g.values[code] for code in codes]
    for bar, code in zip(bars, codes, strict=True):
        np.testing.assert_allclose(bar.get_facecolor(), color_of(g.values[code]), atol=0.01)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["".join(str(k + 1) for k in s) for s in subsets]
    hatched = [round(p.get_y() + 0.4) for p in ax.patches if p.get_hatch()]
    assert hatched == [k for k, code in enumerate(codes) if not identified[code]]
    values = ax.texts[:15]
    assert [t.get_text() for t in values] == [f"{g.values[code]:.2f}" for code in codes]
    assert [t.get_fontweight() == "bold" for t in values] == [bool(used[code]) for code in codes]
    ax.figure.canvas.draw()


def test_capacity_names_and_limit():
    ax = plot_capacity(Capacity.random(2, random_state=0, source_names=["$x$", "<b>"]), used=[("$x$",)])
    assert [shown(t.get_text()) for t in ax.get_yticklabels()] == ["$x$", "<b>", "$x$+<b>"]
    with refused("picture-sources", "capacity.listing()"):
        plot_capacity(Capacity.additive([1 / 7] * 7))
    with refused("picture-sources"):
        plot_capacity(BiCapacity.additive([0.5, 0.5]))


def node_of(a, b):
    return f"{''.join(str(k + 1) for k in sorted(a)) or '∅'},{''.join(str(k + 1) for k in sorted(b)) or '∅'}"


def nodes(ax):
    """Centre and rectangle of each node by its label, and its value as written."""
    texts = {tuple(np.round(t.get_position(), 6)): t for t in ax.texts if "," in t.get_text() and "\n" in t.get_text()}
    return {
        texts[place].get_text().split("\n")[0]: (place, patch, texts[place].get_text().split("\n")[1])
        for place, patch in rectangles(ax).items()
    }


def edges(ax, which):
    """Pairs of labels that collection number `which` connects, from the lower's upper side to the upper's lower."""
    tops, feet = {}, {}
    for label, ((x, _), patch, _) in nodes(ax).items():
        feet[x, round(patch.get_y(), 6)] = label
        tops[x, round(patch.get_y() + patch.get_height(), 6)] = label
    lines = [c for c in ax.collections if isinstance(c, LineCollection)][which].get_segments()
    ends = [sorted(map(tuple, np.round(line, 6).tolist()), key=lambda end: end[1]) for line in lines]
    return {(tops[low], feet[high]) for low, high in ends}


@pytest.mark.parametrize("n_sources", [1, 2, 3, 4])
def test_lattice_has_levels_colours_and_covers(n_sources):
    g = BiCapacity.random(n_sources, random_state=0)
    ax = plot_lattice(g)
    drawn = nodes(ax)
    pairs = {node_of(a, b): (a, b) for a, b in disjoint_pairs(n_sources)}
    assert set(drawn) == set(pairs)
    for label, (a, b) in pairs.items():
        (_, y), patch, value = drawn[label]
        assert y == len(a) - len(b)
        np.testing.assert_allclose(patch.get_facecolor(), color_of(g[a, b]), atol=0.01)
        assert value == number(g[a, b])
    covers = {
        (low, high)
        for (low, (a, b)), (high, (e, f)) in product(pairs.items(), repeat=2)
        if a <= e and b >= f and len(e) - len(a) + len(b) - len(f) == 1
    }
    assert edges(ax, 0) == covers


@pytest.mark.parametrize(("n_sources", "zero_bound"), [(2, True), (3, False), (4, True)])
def test_lattice_labels_do_not_collide(n_sources, zero_bound):
    ax = plot_lattice(BiCapacity.random(n_sources, zero_bound, random_state=0), x=np.linspace(-0.8, 0.6, n_sources))
    ax.figure.canvas.draw()
    drawn = nodes(ax)
    boxes = [patch.get_window_extent() for _, patch, _ in drawn.values()]
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    texts = {tuple(np.round(t.get_position(), 6)): t.get_window_extent() for t in ax.texts if "\n" in t.get_text()}
    for place, patch, _ in drawn.values():
        text, box = texts[place], patch.get_window_extent()
        assert box.x0 <= text.x0
        assert text.x1 <= box.x1
        assert box.y0 <= text.y0 + 2  # extents of two lines reach a little beyond their ink
        assert text.y1 <= box.y1 + 2
    weights = [t.get_window_extent() for t in ax.texts if t.get_text().startswith("×")]
    assert weights
    assert not any(w.overlaps(text) for w in weights for text in texts.values())


def test_lattice_without_the_zero_bound():
    ax = plot_lattice(BiCapacity.random(3, zero_bound=False, random_state=0))
    _, patch, value = nodes(ax)["∅,∅"]
    assert value == "–"
    assert patch.get_facecolor() == to_rgba("white")
    found = edges(ax, 0)
    assert not any("∅,∅" in edge for edge in found)
    assert {("∅,1", "1,∅"), ("∅,2", "2,∅"), ("∅,3", "3,∅")} <= found
    places = {label: np.array(place) for label, (place, _, _) in nodes(ax).items()}
    for k in "123":  # these lines pass behind the node that is out of the order
        assert (places[f"∅,{k}"] + places[f"{k},∅"] == 0).all()


PATH = [((), (0, 1, 2)), ((), (1, 2)), ((0,), (1, 2)), ((0,), (2,)), ((0, 1), (2,)), ((0, 1), ()), ((0, 1, 2), ())]


@pytest.mark.parametrize("path", [PATH, PATH[::-1]])
def test_lattice_path(path):
    ax = plot_lattice(BiCapacity.random(3, random_state=0), path=path)
    labels = ["∅,123", "∅,23", "1,23", "1,3", "12,3", "12,∅", "123,∅"]
    assert edges(ax, 1) == set(pairwise(labels))
    framed = {label for label, (_, patch, _) in nodes(ax).items() if to_hex(patch.get_edgecolor()) == POSITIVE}
    assert framed == set(labels)


def test_lattice_chain_of_an_instance():
    g, x = BiCapacity.random(3, random_state=0), [0.3, -0.8, 0.5]
    ax = plot_lattice(g, x=x)
    codes, weights = linear_form([x])
    labels = [node_of(*map(set, g.lattice.sets(code))) for code in codes[0]]
    assert labels == ["13,2", "3,2", "∅,2"]
    assert edges(ax, 2) == {("3,2", "13,2"), ("∅,2", "3,2")}
    drawn = nodes(ax)
    for label, weight in zip(labels, weights[0], strict=True):
        (column, row), patch, _ = drawn[label]
        written = {
            t.get_text() for t in ax.texts if t.get_position()[0] == column and row < t.get_position()[1] < row + 1
        }
        assert written == {f"× {weight:.2f}"}
        assert patch.get_linewidth() > 2
    assert ax.texts[-1].get_text().endswith(f"= {number(float(choquet(x, g)))}")


def test_lattice_chain_leaves_out_elements_without_weight():
    tied = plot_lattice(BiCapacity.random(3, random_state=0), x=[1.0, 0.5, -1.0])
    assert edges(tied, 2) == {("1,3", "12,3")}
    ax = plot_lattice(BiCapacity.random(2, random_state=0), x=[1.0, -1.0])
    assert [t.get_text() for t in ax.texts if t.get_text().startswith("×")] == ["× 1.00"]
    assert sum(patch.get_linewidth() > 2 for _, patch, _ in nodes(ax).values()) == 1
    assert plot_lattice(BiCapacity.random(2, random_state=0), x=[0, 0]).texts[-1].get_text() == "C(x) = 0 = 0.00"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"path": [((), (0, 1)), ((0,), ())]}, "path-steps:path"),
        ({"path": [((), (0,)), ((), ()), ((), (1,))]}, "path-steps:path"),
        ({"path": [((0,), (0,))]}, "element-disjoint"),
        ({"x": [0.1, 0.2, 0.3]}, "instance-shape"),
        ({"x": [0.1, 1.2]}, "source-range"),
        ({"x": [0.1, np.nan]}, "nan"),
    ],
)
def test_bad_lattice(given, message):
    with refused(message):
        plot_lattice(BiCapacity.random(2, random_state=0), **given)
    assert plt.get_fignums() == []
