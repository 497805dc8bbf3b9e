"""Arrays and datasets of xarray: the same numbers as planes, with coordinates, and nothing computed too early."""

import pickle

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from methods import METHODS, fitted
from refusals import refused
from sklearn.base import clone

import bimichi.fuse
import bimichi.xarray
from bimichi import BiCapacity, BiMIChI, Capacity, DetectorMask, MeanFusion, choquet

NAMES = ["thermal", "red", "edges"]
MEASURE = BiCapacity(BiCapacity.random(3, random_state=1).values, NAMES)


@pytest.fixture
def planes(rng):
    return list(rng.uniform(-1, 1, (3, 12, 20)).astype(np.float32))


@pytest.fixture
def grid(planes):
    return xr.DataArray(
        np.stack(planes),
        dims=("source", "y", "x"),
        coords={
            "source": NAMES,
            "y": np.linspace(50, 39, 12),
            "x": np.arange(20.0),
            "spatial_ref": ((), 0, {"crs_wkt": 'LOCAL_CS["here"]'}),
            "wavelength": ("source", [10.5, 0.6, 0.0]),
            "height": (("y", "x"), np.arange(240).reshape(12, 20)),
        },
        attrs={"title": "a scene", "scales": (1.0, 1.0, 1.0)},
    )


def refuse(*arguments, **named):
    raise AssertionError("computed")


class TestContract:
    @pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
    def test_every_method_fuses_them(self, method, data):
        model = fitted(method, data)
        expected = model.fuse(data[0].reshape(18, 20, 3))
        X = xr.DataArray(data[0].reshape(18, 20, 3), dims=("y", "x", "source"), coords={"y": np.arange(18)})
        for given in (X, X.chunk(y=5, x=20), X.chunk(y=9, source=1), X.to_dataset("source").rename({0: "p"})):
            fused = model.fuse(given)
            assert isinstance(fused, xr.DataArray)
            assert fused.dims == ("y", "x")
            np.testing.assert_array_equal(fused.values, expected)
            np.testing.assert_array_equal(fused.y, np.arange(18))
            assert fused.dtype == expected.dtype
        assert model.fuse(X.astype(np.float32).chunk(y=5)).compute().dtype == np.float32

    def test_the_integral_too(self, data):
        model = fitted(METHODS["Bi-MIChI (objective 2)"], data)
        X = xr.DataArray(data[0], dims=("pixel", "source"))
        np.testing.assert_array_equal(model.integral(X).values, model.integral(data[0]))
        assert model.integral(X).min() < 0 <= model.fuse(X).min()

    def test_with_a_capacity(self, rng):
        planes = list(rng.random((2, 5, 6)))
        g = Capacity.random(2, random_state=0)
        X = xr.DataArray(np.stack(planes), dims=("source", "y", "x"))
        np.testing.assert_array_equal(choquet(X, g).values, choquet(planes, g))

    def test_an_image_of_a_detector_is_an_array_like_any_other(self):
        image = xr.DataArray(np.zeros((4, 5, 3), np.uint8), dims=("y", "x", "rgb"))
        assert DetectorMask(masks=np.eye(4, 5)).fit().fuse(image).sum() == 4


class TestWhatIsKept:
    def test_coordinates_crs_and_attributes(self, grid, planes):
        fused = choquet(grid, MEASURE)
        np.testing.assert_array_equal(fused.values, choquet(planes, MEASURE))
        assert fused.name == "fused"
        assert set(fused.coords) == {"y", "x", "spatial_ref", "height"}
        for name in fused.coords:
            xr.testing.assert_identical(fused.coords[name].variable, grid.coords[name].variable)
        assert fused.attrs == {"title": "a scene"}

    def test_of_a_dataset(self, grid, planes):
        X = grid.drop_vars("wavelength").to_dataset("source").reset_coords("spatial_ref")  # as CF files hold a CRS
        for name in NAMES:
            X[name].attrs = {"units": "1", "sensor": name, "grid_mapping": "spatial_ref"}
            X[name].encoding["grid_mapping"] = "spatial_ref"
        fused = choquet(X, MEASURE)
        np.testing.assert_array_equal(fused.values, choquet(planes, MEASURE))
        assert fused.attrs == {"title": "a scene", "units": "1", "grid_mapping": "spatial_ref"}
        assert fused.encoding["grid_mapping"] == "spatial_ref"

    @pytest.mark.parametrize("dtype", [np.int16, np.float32, np.float64])
    @pytest.mark.parametrize("chunks", [None, {"y": 5}])
    def test_fill_values_become_nan(self, grid, data, dtype, chunks):
        model = clone(METHODS["Bi-MIChI (objective 1)"]).set_params(scale="minmax")
        model.fit(data[0] * 100, data[1], bags=data[2])
        values = (grid.values * 100).astype(dtype)
        expected = model.fuse(list(values))
        for k, (fill, name) in enumerate(((-9999, "_FillValue"), (-9998.9, "missing_value"))):
            values[k, 3, 4 + k] = fill
            expected[3, 4 + k] = np.nan
            grid = grid.assign_attrs({name: np.float64(values[k, 3, 4 + k])})
        fused = model.fuse(grid.copy(data=values).chunk(chunks) if chunks else grid.copy(data=values))
        np.testing.assert_array_equal(fused.values, expected)
        assert np.isnan(fused.attrs["_FillValue"])
        assert "missing_value" not in fused.attrs
        dataset = grid.copy(data=values).drop_vars("wavelength").to_dataset("source")
        np.testing.assert_array_equal(model.fuse(dataset).values, expected)

    def test_nan_gives_nan_or_an_error(self, grid):
        grid[1, 2, 3] = np.nan
        assert np.argwhere(np.isnan(choquet(grid, MEASURE).values)).tolist() == [[2, 3]]
        lazy = choquet(grid.chunk(y=4), MEASURE, nan="raise")
        with refused("nan", "'red'"):
            lazy.compute()


class TestNames:
    def test_sources_are_matched_by_name(self, grid, planes):
        expected = choquet(planes, MEASURE)
        shuffled = grid.sel(source=["edges", "thermal", "red"])
        np.testing.assert_array_equal(choquet(shuffled, MEASURE).values, expected)
        dataset = shuffled.drop_vars("wavelength").to_dataset("source")
        np.testing.assert_array_equal(choquet(dataset, MEASURE).values, expected)

    def test_without_names_the_order_counts(self, grid, planes):
        plain = BiCapacity(MEASURE.values)
        expected = choquet(planes, plain)
        np.testing.assert_array_equal(choquet(grid, plain).values, expected)
        np.testing.assert_array_equal(choquet(grid.assign_coords(source=[1, 2, 3]), MEASURE).values, expected)

    def test_other_names_are_refused(self, grid):
        message = "sources-number"
        with refused(message):
            choquet(grid.assign_coords(source=["thermal", "red", "blue"]), MEASURE)
        with refused("sources-number"):
            choquet(grid.drop_vars("wavelength").to_dataset("source")[["thermal", "red"]], MEASURE)

    def test_a_model_keeps_the_names_it_was_given(self, grid, data):
        model = BiMIChI(source_names=NAMES, random_state=0).fit(*data[:3])
        shuffled = grid.sel(source=NAMES[::-1])
        np.testing.assert_array_equal(model.fuse(shuffled).values, model.fuse(list(grid.values)))
        with refused("sources-number"):
            model.fuse(grid.assign_coords(source=["a", "b", "c"]))


class TestLazy:
    @pytest.mark.parametrize("chunks", [(3, 6, 20), (1, 4, 7)])
    def test_nothing_is_computed_and_chunks_stay(self, grid, planes, chunks):
        poisoned = da.map_blocks(refuse, da.zeros((3, 12, 20), chunks=chunks, dtype=np.float32), dtype=np.float32)
        fused = choquet(grid.copy(data=poisoned), MEASURE)
        assert fused.chunks == grid.chunk(dict(zip(grid.dims, chunks, strict=True))).chunks[1:]
        with pytest.raises(AssertionError, match="computed"):
            fused.compute()
        whole = choquet(grid.chunk(dict(zip(grid.dims, chunks, strict=True))), MEASURE)
        np.testing.assert_array_equal(whole.values, choquet(planes, MEASURE))

    def test_each_block_is_loaded_once(self, grid):
        loaded = []

        def load(block):
            loaded.append(block.shape)
            return block

        source = da.from_array(grid.values, chunks=(3, 4, 20)).map_blocks(load, meta=np.empty((0, 0, 0), np.float32))
        choquet(grid.copy(data=source), MEASURE).compute(scheduler="synchronous")
        assert loaded == [(3, 4, 20)] * 3

    def test_graphs_can_be_sent(self, grid, planes):
        sent = pickle.loads(pickle.dumps(choquet(grid.chunk(y=4), MEASURE)))
        np.testing.assert_array_equal(sent.values, choquet(planes, MEASURE))

    def test_values_out_of_range_are_found_when_computed(self, grid):
        lazy = choquet((grid * 2).chunk(y=4), MEASURE)
        with refused("source-range", "'thermal'"):
            lazy.compute()
        beyond = choquet((grid * 2).chunk(y=4), MEASURE, check_range=False)
        np.testing.assert_array_equal(beyond.values, choquet(list(grid.values * 2), MEASURE, check_range=False))

    def test_zarr(self, grid, planes, tmp_path):
        grid.drop_vars("wavelength").to_dataset("source").chunk(y=4).to_zarr(tmp_path / "in.zarr", consolidated=False)
        scene = xr.open_zarr(tmp_path / "in.zarr", consolidated=False)
        scene.bimichi.fuse(MEASURE).to_zarr(tmp_path / "out.zarr", consolidated=False)
        fused = xr.open_zarr(tmp_path / "out.zarr", consolidated=False)["fused"]
        assert fused.chunks == ((4, 4, 4), (20,))
        np.testing.assert_array_equal(fused.values, choquet(planes, MEASURE))
        assert fused.coords["spatial_ref"].attrs == grid.coords["spatial_ref"].attrs


class TestAccessor:
    def test_of_arrays_and_datasets(self, grid, planes):
        expected = choquet(planes, MEASURE)
        banded = grid.rename(source="band")
        np.testing.assert_array_equal(banded.bimichi.fuse(MEASURE, source_dim="band").values, expected)
        dataset = grid.drop_vars("wavelength").to_dataset("source")
        np.testing.assert_array_equal(dataset.bimichi.fuse(MEASURE).values, expected)
        assert bimichi.fuse.fuse_array(MEASURE, banded, "band").equals(banded.bimichi.fuse(MEASURE, "band"))


class TestRefused:
    def test_no_dimension_of_sources(self, grid):
        with refused("source-dimension", "'source'"):
            choquet(grid.rename(source="band"), MEASURE)

    def test_variables_that_differ(self, grid):
        X = grid.drop_vars("wavelength").to_dataset("source")
        with refused("source-dimensions", "'thermal'", "'y'", "'x'", "'red'"):
            choquet(X.assign(red=X["red"][:, 0]), MEASURE)
        with refused("source-chunks", "'thermal'", "'red'", "'y'"):
            choquet(X.assign(red=X["red"].chunk(y=5)), MEASURE)
        with refused("source-type", "'edges'"):
            choquet(X.assign(edges=X["edges"] * np.complex64(1)), MEASURE)
        with refused("sources-empty"):
            choquet(X[[]], MEASURE)

    def test_what_makes_no_sense(self, grid):
        with refused("out-with-xarray:out"):
            choquet(grid, MEASURE, out=np.empty((12, 20), np.float32))
        with refused("model-kind:model"):
            grid.bimichi.fuse(DetectorMask(masks=np.eye(3)).fit())
        with refused("xarray-kind"):
            choquet(grid.variable, MEASURE)
        with refused("not-fitted"):
            grid.bimichi.fuse(MeanFusion())
