"""Suggestions and uncertainty of a studio, from its session; the arrays on disk are drawn here."""

import struct
from types import SimpleNamespace

import numpy as np
import pytest

from bimichi import Bags
from bimichi._progress import Stopped
from bimichi.studio.learning import Learner
from bimichi.studio.open import Options, open_workspace
from bimichi.studio.suggestions import Suggester, thinned

SHAPE = (48, 64)
PEOPLE = [(6, 8, 8, 16), (30, 20, 8, 16), (52, 26, 8, 16)]  # x, y, width, height


def box(person, name="a", label="target"):
    x, y, width, height = person
    return {"id": name, "kind": "box", "label": label, "points": [[x, y], [x + width, y + height]]}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scene")
    rng = np.random.default_rng(0)
    files = []
    for k in range(2):
        plane = rng.normal(-0.4, 0.1, SHAPE)
        for x, y, width, height in PEOPLE:
            plane[y : y + height, x : x + width] += 0.9
        np.save(folder / f"source{k}.npy", np.clip(plane, -1, 1).astype(np.float32))
        files.append(str(folder / f"source{k}.npy"))
    found = open_workspace(files, Options(names=["heat", "light"]))
    found.draw(0, 1, [box(PEOPLE[0], "a"), box(PEOPLE[1], "b")])
    return found


def session_of(work, **settings):
    work.settings = work.settings.changed({"objective": "logistic", "additivity": 1} | settings)
    learner = Learner(work.store, 1)
    return SimpleNamespace(learner=learner, model=learner.fit(work.task()), workspace=work)


def overlap(found, person):
    x, y, width, height = found
    left, top, wide, tall = person
    return x < left + wide and left < x + width and y < top + tall and top < y + height


def test_the_person_without_a_box_is_suggested_first(work):
    session = session_of(work)
    suggester = Suggester(session)
    found = suggester.suggestions()
    assert found[0].keys() == {"scene", "box", "reason", "kind", "score"}
    assert found[0]["scene"] == 0
    assert found[0]["kind"] == "conflict"
    assert overlap(found[0]["box"], PEOPLE[2])
    assert not any(overlap(one["box"], PEOPLE[0]) for one in found if one["kind"] == "uncertain")
    assert suggester.suggestions() is found  # kept until there is another model
    session.model = None
    assert suggester.suggestions() == []
    assert suggester.uncertainty(0) is None


@pytest.mark.parametrize(("objective", "additivity"), [("logistic", 1), ("mean", None)])
def test_the_map_of_uncertainty_has_the_layout_of_maps(work, objective, additivity):
    session = session_of(work, objective=objective, additivity=additivity)
    suggester = Suggester(session)
    found = suggester.uncertainty(0)
    assert struct.unpack("<4I", found[:16]) == (session.model.number, SHAPE[1], SHAPE[0], 0)
    values = np.frombuffer(found[16:], "<u2").reshape(SHAPE)
    expected = suggester._maps[0]
    width = expected.spread if additivity else expected.width
    assert (expected.spread is None) == (additivity is None)
    np.testing.assert_allclose(values / 65534, width, atol=1e-5)


def test_work_for_an_old_model_ends(work):
    session = session_of(work)
    suggester = Suggester(session)
    trained = session.model
    suggester._current()
    session.model = None
    for work_for in (suggester._suggest, suggester._refits):
        with pytest.raises(Stopped), suggester._while_current(trained):
            work_for(session.learner, trained)


def test_thinned_bags_count_for_what_was_left_out():
    rng = np.random.default_rng(0)
    bags = Bags.from_list([rng.uniform(-1, 1, (size, 2)) for size in (30, 900, 2000)], [True, False, False])
    found = thinned(bags, 500)
    sizes = np.diff(found.offsets)
    assert sizes.tolist() == [30, 154, 342]  # 500 of 2,930 instances, but all of the positive bag
    np.testing.assert_allclose(np.add.reduceat(found.counts, found.offsets[:-1]), [30, 900, 2000])
    np.testing.assert_array_equal(found.X, bags.X[found.instance])
    assert thinned(bags, 5000) is bags
    assert np.array_equal(thinned(bags, 500).X, found.X)
