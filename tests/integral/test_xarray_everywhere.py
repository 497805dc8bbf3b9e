"""Functions besides `fuse` on arrays and datasets of xarray give what they give on plain arrays, with coordinates."""

import numpy as np
import pytest
import xarray as xr
from refusals import refused, warned

from bimichi import (
    Bags,
    BiCapacity,
    BiMIChI,
    FusionRule,
    MeanFusion,
    MICIRegressor,
    Scene,
    usage_counts,
    write_report,
)
from bimichi.explain import bootstrap, chain, contributions, data_indices, identifiability, summary
from bimichi.scenes import grid_segments, label_bags, superpixels

NAMES = ["thermal", "grey"]
FILL = -9999.0


@pytest.fixture
def image(rng):
    return rng.uniform(-1, 1, (12, 16, 2))


@pytest.fixture
def dataset(image):
    where = {"y": np.arange(12) * 10.0, "x": np.arange(16) * 10.0}
    return xr.Dataset({name: (("y", "x"), image[..., k]) for k, name in enumerate(NAMES)}, coords=where)


@pytest.fixture
def array(dataset):
    return dataset.to_array("source")


@pytest.fixture
def labels(image):
    return (image[..., 0] > 0).astype(int)


@pytest.mark.parametrize("kind", ["array", "dataset", "last", "lazy"])
def test_fit_takes_xarray_and_keeps_names(kind, array, dataset, image, labels):
    given = {"array": array, "dataset": dataset, "last": array.transpose("y", "x", "source")}.get(kind)
    given = dataset.chunk({"x": 5}) if given is None else given
    segments = grid_segments((12, 16), 4)
    y = np.array([labels[segments == k].max() * (k % 2) for k in range(12)])[segments]
    like = dataset["thermal"]
    model = BiMIChI(random_state=0).fit(given, like.copy(data=y).T, bags=like.copy(data=segments))
    plain = BiMIChI(random_state=0).fit(image.reshape(-1, 2), y.ravel(), bags=segments.ravel())
    assert np.array_equal(model.measure_.values, plain.measure_.values)
    assert model.measure_.source_names == tuple(NAMES)
    assert np.array_equal(BiMIChI(random_state=0).fit(given, y, segments).measure_.values, plain.measure_.values)
    swapped = dataset[["grey", "thermal"]]
    decided = model.predict(swapped)
    assert decided.dims == ("y", "x")
    assert np.array_equal(decided.values.ravel(), plain.predict(image.reshape(-1, 2)))
    expected = plain.bag_scores(image.reshape(-1, 2), segments.ravel())
    assert np.allclose(model.bag_scores(swapped, segments), expected)


def test_nodata_is_missing_in_fit(dataset, image, labels):
    holed = dataset.copy(deep=True)
    holed["thermal"][2:4] = FILL
    holed["thermal"].attrs["_FillValue"] = FILL
    with refused("nan", "nan='drop'", "32", "192"):
        BiMIChI().fit(holed, labels)
    with warned("instances-left-out", "32", "192"):
        model = BiMIChI(nan="drop", random_state=0).fit(holed, labels)
    kept = np.delete(np.arange(12), [2, 3])
    plain = BiMIChI(random_state=0).fit(image[kept].reshape(-1, 2), labels[kept].ravel())
    assert np.array_equal(model.measure_.values, plain.measure_.values)


def test_every_kind_of_method_fits(dataset, labels):
    unit = (dataset + 1) / 2
    assert MeanFusion().fit(unit).fuse(unit).dims == ("y", "x")
    model = MICIRegressor(random_state=0).fit(unit, labels.astype(float))
    assert model.predict(unit).shape == (12, 16)


def test_labels_must_belong_to_the_pixels(dataset, labels):
    like = dataset["thermal"]
    with refused("dimensions-differ:y", "12", "16"):
        BiMIChI().fit(dataset, like.copy(data=labels).assign_coords(x=np.arange(16)))
    with refused("entries-per-pixel:y"):
        BiMIChI().fit(dataset, [0, 1, 0])
    with refused("xarray-dataset:y"):
        BiMIChI().fit(dataset, dataset)
    with refused("source-dimension:X", "'source'", "X.rename(band='source')"):
        BiMIChI().fit(dataset.to_array("band"), labels)
    assert BiMIChI().fit(dataset.to_array("band").rename(band="source"), labels).measure_.source_names == tuple(NAMES)


def test_explanations_take_xarray(dataset, array, image):
    rule = FusionRule(BiCapacity.random(2, True, 0, source_names=NAMES), polarity=[1, -1])
    made = contributions(rule, dataset[["grey", "thermal"]])
    assert made.dims == ("y", "x", "source")
    assert made.source.values.tolist() == NAMES
    assert np.array_equal(made.x, dataset.x)
    assert np.array_equal(made.values, contributions(rule, image))
    assert np.array_equal(data_indices(rule, array).share, data_indices(rule, image).share)
    assert summary(rule, array).sentences == summary(rule, image).sentences
    assert np.array_equal(identifiability(rule, array, exact=False).counts, identifiability(rule, image).counts)
    for pixel in (array.isel(y=3, x=4), dataset.isel(y=3, x=4)):
        assert chain(rule, pixel) == chain(rule, image[3, 4])
    with refused("instance-shape"):
        chain(rule, array)
    with refused("sources-number"):
        contributions(rule, dataset[["grey"]])


def test_bags_of_images_take_xarray(dataset, array, image):
    found = superpixels(array, 12)
    assert found.dims == ("y", "x")
    assert np.array_equal(found.y, dataset.y)
    assert np.array_equal(found.values, superpixels(image, 12))
    assert np.array_equal(superpixels(dataset, 12), found)
    grey = dataset["grey"]
    assert np.array_equal(superpixels(grey, 12, mask=(grey > -2).T), superpixels(image[..., 1], 12))
    with refused("source-dimension", "'source'"):
        superpixels(array.rename(source="band"))
    squares = grid_segments(array, 4)
    assert squares.equals(grid_segments(dataset, 4))
    assert np.array_equal(squares, grid_segments((12, 16), 4))
    mask = np.zeros((12, 16), bool)
    mask[:3, :3] = True
    mine = grey.copy(data=mask)
    labels = label_bags(squares, mask=mine.T, ignore=mine.copy(data=mask[::-1]))
    assert labels == label_bags(squares.values, mask=mask, ignore=mask[::-1])
    plain = Bags.from_image(image, squares.values, labels)
    assert np.array_equal(Bags.from_image(dataset, squares.T, labels).X, plain.X)


def test_reports_take_xarray(dataset, array, image, tmp_path):
    rule = FusionRule(BiCapacity.random(2, True, 0, source_names=NAMES))
    truth = dataset["grey"].copy(data=image[..., 0] > 0)
    write_report(tmp_path / "a.html", rule, dataset[["grey", "thermal"]], truth=truth.T)
    write_report(tmp_path / "b.html", rule, image, truth=truth.values)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    unnamed = FusionRule(BiCapacity.random(2, True, 0))
    write_report(tmp_path / "c.html", unnamed, array)
    assert "thermal" in (tmp_path / "c.html").read_text()


def test_what_takes_plain_arrays_refuses_in_words(dataset, array, labels):
    with refused("xarray-dataset:X", "X.to_array('source')"):
        usage_counts(dataset)
    with refused("sources-axis:X", "X.transpose(..., 'source')"):
        usage_counts(array)
    counts = usage_counts(array.transpose(..., "source").values)
    assert np.array_equal(counts, usage_counts(dataset.to_array("source").transpose(..., "source").values))
    with refused("xarray-rows"):
        Bags.from_instances(dataset, labels)
    model = BiMIChI(random_state=0).fit(dataset, labels)
    with refused("xarray-rows"):
        bootstrap(model, dataset, labels, n_resamples=1)


def test_scenes_take_xarray(dataset, image):
    like = dataset["grey"]
    truth = like.copy(data=image[..., 0] > 0)
    scene = Scene(dataset, truth=truth.T, segments=grid_segments(like, 4))
    assert scene.source_names == tuple(NAMES)
    assert np.array_equal(scene.sources, image)
    assert np.array_equal(scene.truth, truth.values)
    assert type(scene.segments) is np.ndarray
    named = Scene(dataset.to_array("source"), source_names=("a", "b"))
    assert named.source_names == ("a", "b")
