"""Learning in parts, in threads and on a real cluster of two processes, one of which is killed."""

import os
import signal
import warnings
import weakref
from collections import deque
from dataclasses import replace
from functools import partial

import dask.array as da
import numpy as np
import pytest
from dask import delayed
from distributed import Client, LocalCluster
from refusals import refused, warned
from samples import rows, scene
from sklearn.base import clone

from bimichi import Bags, BiMIChI, BimichiError, ConvexSolver, EvolutionarySolver, InvalidInputError, Scene, join_bags
from bimichi.fit.cluster import ClusterExecutor
from bimichi.scenes.dataset import Dataset

QUICK = ConvexSolver(n_starts=3)


@pytest.fixture(scope="module")
def cluster():
    with (
        warnings.catch_warnings(),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
    ):
        yield cluster


@pytest.fixture(params=["threads", "cluster"])
def place(request):
    if request.param == "threads":
        yield None
        return
    with Client(request.getfixturevalue("cluster")) as client:
        yield client


def assert_same(one, two):
    np.testing.assert_allclose(one.bicapacity_.values, two.bicapacity_.values, atol=1e-9)
    assert one.objective_value_ == pytest.approx(two.objective_value_, abs=1e-9)
    np.testing.assert_array_equal(one.polarity_, two.polarity_)
    for kind in ("touched", "weighted"):
        np.testing.assert_array_equal(one.usage_[kind], two.usage_[kind])
    if one.solution_.witnesses is not None:
        np.testing.assert_array_equal(one.solution_.witnesses, two.solution_.witnesses)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "chunk"), [("bipolar", 1000), ("bipolar", 170), ("magnitude", 333), ("mean", 70)]
)
def test_arrays_give_what_memory_gives(place, objective, chunk):
    X, y, ids = rows()
    model = BiMIChI(objective, QUICK, random_state=0)
    expected = BiMIChI(objective, QUICK, random_state=0).fit(X, y, ids)
    assert_same(model.fit(da.from_array(X, chunks=(chunk, 2)), y, ids), expected)
    assert model.classes_.tolist() == [0, 1]


def test_parts_of_which_nothing_is_left(place):
    X, y, ids = rows(2)
    X[:100] = np.nan
    weight = np.where(ids >= 32, 0.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NaN is left out, which workers report elsewhere
        one = BiMIChI(solver=QUICK, nan="drop", random_state=0).fit(X, y, ids, sample_weight=weight)
        two = clone(one).fit(da.from_array(X, chunks=(100, 3)), y, ids, sample_weight=weight)
    assert_same(two, one)


def test_polarity_scale_weights_and_names(place):
    X, y, ids = rows(1)
    weight = np.repeat(np.random.default_rng(0).integers(0, 3, 40), 25).astype(float)
    model = BiMIChI("mean", polarity="learn", scale="minmax", source_names=["a", "b", "c"], random_state=0)
    one = BiMIChI(**model.get_params()).fit(50 * X, y, ids, sample_weight=weight)
    two = model.fit(da.from_array(50 * X, chunks=(300, 3)), da.from_array(y, chunks=100), ids, sample_weight=weight)
    assert_same(two, one)
    assert two.polarity_.tolist() == [1, -1, 1]
    np.testing.assert_allclose(two.fuse(50 * X), one.fuse(50 * X), atol=1e-9)


def test_scenes_in_every_form(place, tmp_path):
    scenes = [scene(0, "a"), scene(1, "b"), scene(2, "c", positive=False)]
    expected = BiMIChI(solver=QUICK, random_state=0).fit(join_bags(scenes))
    scenes[1].save(tmp_path / "b.npz")
    mixed = [scenes[0], str(tmp_path / "b.npz"), delayed(scenes[2])]
    assert_same(BiMIChI(solver=QUICK, random_state=0).fit(mixed), expected)
    lazy = Dataset(["a", "b", "c"], {s.name: s for s in scenes}.__getitem__)
    assert_same(BiMIChI(solver=QUICK, random_state=0).fit(lazy), expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"polarity": "learn"},
        {"objective": "magnitude", "polarity": "learn"},
        {"objective": "mean", "polarity": "learn", "scale": "minmax"},
        {"scale": "maxabs"},
    ],
)
def test_scenes_for_every_way_of_learning(place, options):
    scenes = [scene(0, "a"), scene(1, "b", positive=False), scene(2, "c"), scene(3, "d")]
    scenes = [replace(one, sources=3 * one.sources if "scale" in options else one.sources) for one in scenes]
    scenes[0].sources[::3, ::2] = 0  # which stands on the positive side, inverted or not
    model = BiMIChI(solver=QUICK, random_state=0, **options)
    for first in (scenes[0], replace(scenes[0], labels={})):
        given = [first, *scenes[1:]]
        assert_same(clone(model).fit(given), clone(model).fit(join_bags(given)))


def test_evolution_from_scenes_in_this_process():
    scenes = [scene(0, "a"), scene(1, "b", positive=False)]
    model = BiMIChI(solver=EvolutionarySolver(max_iter=30, population_size=6), random_state=0)
    assert_same(model.fit(scenes), clone(model).fit(join_bags(scenes)))


@pytest.mark.parametrize(("objective", "scale"), [("bipolar", None), ("mean", None), ("bipolar", "minmax")])
def test_scenes_are_let_go_when_they_have_been_read(objective, scale):
    alive, most = weakref.WeakSet(), []

    def load(name):
        made = scene(int(name), name)
        alive.add(made)
        most.append(len(alive))
        return made

    scenes = Dataset([str(k) for k in range(30)], load)
    BiMIChI(objective, QUICK, scale=scale, n_jobs=2, random_state=0).fit(scenes)
    assert len(most) == (30 if scale is None else 60)
    assert max(most) <= 4  # two in work, two that threads have yet to forget


def test_the_first_bad_scene_ends_the_reading():
    read = []

    def load(name):
        read.append(name)
        if name == "3":
            raise InvalidInputError("It is damaged.", code="damage")
        return scene(0, name)

    with pytest.raises(InvalidInputError, match=r"^Scene '3': It is damaged\.$"):
        BiMIChI(n_jobs=1).fit(Dataset([str(k) for k in range(30)], load))
    assert len(read) < 8


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(cluster):
    X, y, ids = rows(3, n_bags=60)
    expected = BiMIChI(random_state=0).fit(X, y, ids)
    with Client(cluster) as client:
        victims = list(client.run(os.getpid).values())
        killed = []

        class Killing(ConvexSolver):
            """Kills a worker when the fit is under way and its parts are on the workers."""

            def solve(self, problem, rng, n_jobs=None, verbose=0):
                problem.value(problem.space.lattice.with_boundary(np.zeros(problem.space.lattice.size)))
                os.kill(victims[0], signal.SIGKILL)
                killed.append(victims[0])
                return super().solve(problem, rng, n_jobs, verbose)

        model = BiMIChI(solver=Killing(), random_state=0).fit(da.from_array(X, chunks=(200, 3)), y, ids)
        assert killed
        assert victims[0] not in client.run(os.getpid).values()
    assert_same(model, expected)


def test_scene_files(tmp_path):
    one = scene(0, "<a>")
    one.save(tmp_path / "a.npz")
    two = Scene.load(tmp_path / "a.npz")
    assert (two.name, two.source_names, two.labels) == (one.name, one.source_names, one.labels)
    np.testing.assert_array_equal(two.sources, one.sources)
    np.testing.assert_array_equal(two.truth, one.truth)
    assert two.rgb is None
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 no archive")
    for path in ("bad.npz", "missing.npz"):
        with refused("scene-file", path):
            Scene.load(tmp_path / path)


def test_bad_input():
    X, y, ids = rows()
    lazy = da.from_array(X, chunks=(100, 3))
    renamed = replace(scene(0, "b"), source_names=("x", "y"))
    for arguments, message in (
        ((lazy,), "labels-missing:y"),
        ((lazy, y[:-1], ids), "entries-shape:y"),
        ((lazy, np.arange(len(y)) % 2, ids), "bag-constant:y"),
        ((lazy, y, ids % 7), "bags-contiguous"),
        ((lazy, 0 * y, ids), "two-classes:y"),
        ((lazy * 9, y, ids), "source-range"),
        (([scene(0, "a")], y), "bags-with-labels"),
        (([scene(0, "a", positive=False)],), "one-class"),
        (([replace(scene(0, "a"), labels={})],), "bags-missing"),
        (([scene(0, "a"), scene(0, "a")],), "scenes-names"),
        (([scene(0, "a"), renamed],), "sources-differ"),
        (([lambda: 3],), "scene-kind"),
    ):
        with refused(message):
            BiMIChI().fit(*arguments)
    with refused("one-class"):
        Bags.from_instances(X, 0 * y, ids)


def test_pixels_without_a_value_are_dropped_if_asked():
    one, two = scene(0, "a"), scene(1, "b")
    holed = one.sources.copy()
    holed[5:7, 7] = np.nan
    spoiled = replace(one, sources=holed)
    with refused("nan", "460"):
        BiMIChI().fit([spoiled, two])
    rest = one.segments.copy()
    rest[5:7, 7] = -1
    expected = BiMIChI(random_state=0).fit(join_bags([replace(one, segments=rest), two]))
    for data in ([spoiled, lambda: two], [delayed(spoiled), two]):
        with warned("instances-left-out"):
            assert_same(BiMIChI(nan="drop", random_state=0).fit(data), expected)
    with warned("instances-left-out", "920"):
        assert_same(BiMIChI(random_state=0).fit(join_bags([spoiled, two], nan="drop")), expected)


class Dying:
    """A client whose workers are others at each look, or none."""

    def __init__(self, workers):
        self.looks, self.workers = 0, workers

    def nthreads(self):
        self.looks += 1
        return dict.fromkeys(f"worker-{self.looks}-{k}" for k in range(self.workers))


@pytest.mark.parametrize(("workers", "message"), [(2, "workers-lost"), (0, "workers-missing")])
def test_workers_that_keep_dying_end_the_fit(workers, message):
    executor = ClusterExecutor(Dying(workers))
    with refused(message, kind=BimichiError):
        deque((executor._watch() for _ in range(1000)), maxlen=0)


@pytest.mark.slow
def test_parts_that_kill_their_workers_end_the_fit(cluster, monkeypatch):
    """Dask gives up a part that was lost with several workers; the error is ours."""
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Client(cluster), refused("workers-lost", kind=BimichiError):
            BiMIChI().fit([partial(os._exit, 1), scene(0, "a")])
