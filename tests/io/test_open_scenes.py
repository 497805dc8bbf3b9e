"""One way in: whatever holds the same data gives the same scenes, and what cannot be a source is refused at once."""

import os
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import tifffile
import xarray as xr
from rasterio.crs import CRS
from rasters import GRID, write
from refusals import refused

from bimichi import InvalidInputError
from bimichi.io import open_scenes, write_image
from bimichi.io.images import check_file
from bimichi.scenes.grid import Window

NAMES = ("thermal", "grey")


@pytest.fixture
def planes(rng):
    return rng.integers(1, 60_000, (2, 12, 17)).astype(np.uint16)


def stored(folder, planes):
    """The same two sources in every kind of file and object."""
    thermal, grey = planes
    found = {}
    for suffix in (".png", ".tif", ".npy"):
        found[suffix] = [folder / f"{name}{suffix}" for name in NAMES]
        for path, plane in zip(found[suffix], planes, strict=True):
            np.save(path, plane) if suffix == ".npy" else write_image(path, plane)
    np.savez(folder / "both.npz", thermal=thermal, grey=grey)
    (folder / "geo").mkdir()
    found["npz"] = folder / "both.npz"
    found["bands"] = write(folder / "bands.tif", planes, NAMES)
    found["per band"] = [
        write(folder / "geo" / f"{name}.tif", [plane]) for name, plane in zip(NAMES, planes, strict=True)
    ]
    found["arrays"] = dict(zip(NAMES, planes, strict=True))
    found["DataArray"] = xr.DataArray(planes, dims=("band", "y", "x"), coords={"band": list(NAMES)})
    found["Dataset"] = xr.Dataset({name: (("y", "x"), plane) for name, plane in zip(NAMES, planes, strict=True)})
    found["Dataset"].to_zarr(folder / "both.zarr", consolidated=False)
    found["zarr"] = folder / "both.zarr"
    return found


def test_every_kind_of_file_and_object_gives_the_same_sources(planes, tmp_path):
    for kind, sources in stored(tmp_path, planes).items():
        scene = open_scenes(sources)[0]
        assert sorted(scene.source_names) == sorted(NAMES), kind  # Zarr orders its arrays by name
        scene = scene.ordered([scene.source_names.index(name) for name in NAMES])
        assert scene.shape == (12, 17)
        assert [dtype.name for dtype in scene.dtypes] == ["uint16"] * 2, kind
        np.testing.assert_array_equal(scene.read(), planes, err_msg=kind)
        part = Window(2, 3, 4, 5)
        np.testing.assert_array_equal(scene.read(part), planes[:, 2:6, 3:8], err_msg=kind)
        assert scene.placed == (kind in ("bands", "per band")), kind


def test_georeference_is_that_of_the_files(planes, tmp_path):
    plain = write_image(tmp_path / "plain.png", planes[0]) or tmp_path / "plain.png"
    for sources in (write(tmp_path / "bands.tif", planes), [plain, write(tmp_path / "one.tif", planes[:1])]):
        scene = open_scenes(sources)[0]
        assert (scene.crs, scene.transform) == (GRID["crs"], GRID["transform"])
        assert scene.crs.to_epsg() == 32632


@pytest.mark.parametrize("kind", ["nodata", "NaN", "mask", "fill", "masked array"])
def test_pixels_without_data_are_not_valid(planes, tmp_path, kind):
    expected = np.ones((12, 17), bool)
    expected[3, 4] = False
    if kind == "NaN":
        holed = planes.astype(np.float32)
        holed[1, 3, 4] = np.nan
        scene = open_scenes(list(map(np.asarray, holed)))[0]
    elif kind == "masked array":
        scene = open_scenes([np.ma.MaskedArray(planes[0], ~expected), planes[1]])[0]
    elif kind == "fill":
        planes[0, 3, 4] = 0
        both = xr.DataArray(planes, dims=("source", "y", "x"), attrs={"_FillValue": 0})
        scene = open_scenes(both)[0]
    else:
        planes[0, 3, 4] = 0
        path = write(tmp_path / "a.tif", planes, nodata=0 if kind == "nodata" else None)
        if kind == "mask":
            import rasterio

            with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(path, "r+") as dataset:
                dataset.write_mask(expected)
        scene = open_scenes(path)[0]
    np.testing.assert_array_equal(scene.valid(), expected)
    if kind != "NaN":
        assert scene.dtypes[0] == np.uint16


def test_bands_are_chosen_by_description_or_number(rng, tmp_path):
    planes = rng.integers(1, 99, (4, 5, 6)).astype(np.int16)
    path = write(tmp_path / "s2.tif", planes, ["B2", "B3", "B8", "B8A"])
    scene = open_scenes(f"{path}[B8,B3]")[0]
    assert scene.source_names == ("B8", "B3")
    np.testing.assert_array_equal(scene.read(), planes[[2, 1]])
    np.testing.assert_array_equal(open_scenes(f"{path}[4, 1]")[0].read(), planes[[3, 0]])
    grey = tmp_path / "grey.png"
    write_image(grey, planes[0].astype(np.uint8))
    assert open_scenes([grey, f"{path}[3]"])[0].source_names == ("grey", "B8")
    many = open_scenes(f"{tmp_path}/s*.tif[B3]")
    assert (many.names, many[0].source_names) == (["2"], ("B3",))
    for wrong, message in (("B9", "band-unknown"), ("B3,2", "bands-twice")):
        with refused(message):
            open_scenes(f"{path}[{wrong}]")[0]
    with refused("bands-list"):
        open_scenes(f"{path}[B3,]")


def test_names_of_bands(planes, tmp_path):
    assert open_scenes(write(tmp_path / "a.tif", planes))[0].source_names == ("band 1", "band 2")
    files = [write(tmp_path / f"{date}.tif", planes, ["B3", "B8"]) for date in ("may", "june")]
    assert open_scenes(files)[0].source_names == ("may B3", "may B8", "june B3", "june B8")
    assert open_scenes(files[0], ["a", "b"])[0].source_names == ("a", "b")
    same = [write(tmp_path / f"{name}.tif", [plane], ["Layer_1"]) for name, plane in zip("xy", planes, strict=True)]
    assert open_scenes(same)[0].source_names == ("x", "y")


def test_four_bands_are_four_unless_one_is_alpha(rng, tmp_path):
    planes = rng.integers(1, 99, (4, 5, 6)).astype(np.uint8)
    planes[3] = 255
    planes[3, 1, 2] = 0
    plain = write(tmp_path / "plain.tif", planes, photometric="minisblack")
    assert open_scenes(plain)[0].source_names == ("band 1", "band 2", "band 3", "band 4")
    assert open_scenes(plain)[0].valid().all()
    alpha = open_scenes(write(tmp_path / "alpha.tif", planes, photometric="rgb", alpha="YES"))[0]
    assert len(alpha.sources) == 3
    assert np.argwhere(~alpha.valid()).tolist() == [[1, 2]]
    described = write(tmp_path / "nir.tif", planes, ["r", "g", "b", "nir"], photometric="rgb", alpha="YES")
    assert open_scenes(described)[0].source_names == ("r", "g", "b", "nir")
    assert open_scenes(described)[0].valid().all()


def test_a_geotiff_needs_rasterio_and_is_never_read_as_a_plain_one(planes, tmp_path, monkeypatch):
    files = [
        write(tmp_path / "geo.tif", planes),
        write(tmp_path / "nodata.tif", planes, nodata=0, crs=None, transform=None),
    ]
    monkeypatch.setitem(sys.modules, "rasterio", None)
    monkeypatch.setitem(sys.modules, "rasterio.errors", None)
    for file in files:
        with pytest.raises(ImportError, match=r"pip install 'bimichi\[raster\]'"):
            open_scenes(file)[0]


def test_other_sizes_are_aligned_if_asked_for(tmp_path):
    ramp = np.tile(np.linspace(0, 100, 40, dtype=np.float32), (20, 1))
    write_image(tmp_path / "a.tif", ramp)
    write_image(tmp_path / "b.tif", ramp[::2, ::2])
    with refused("grids-differ", "--align"):
        open_scenes([tmp_path / "a.tif", tmp_path / "b.tif"])[0]
    first, second = open_scenes([tmp_path / "a.tif", tmp_path / "b.tif"], align=True)[0].read()
    assert np.abs(first - second)[:, 2:-2].max() < 2
    geo = write(tmp_path / "geo.tif", [ramp])
    with refused("align-crs"):
        open_scenes([geo, tmp_path / "b.tif"], align=True)[0]


class Ratio:
    name, bands, text = "ratio", ("B8", "B3"), "ratio: (B3 - B8) / (B3 + B8)"

    def resolve(self, names):
        missing = [band for band in self.bands if band not in names]
        if missing:
            raise InvalidInputError(f"{self.name} needs the band {missing[0]!r}")
        return {band: band for band in self.bands}

    def evaluate(self, bands):
        return (bands["B3"] - bands["B8"]) / (bands["B3"] + bands["B8"])


def test_a_source_may_be_computed_from_bands(rng, tmp_path):
    planes = rng.integers(1, 99, (3, 5, 6)).astype(np.uint16)
    planes[1, 0, 0] = 0
    path = write(tmp_path / "s2.tif", planes, ["B2", "B3", "B8"], nodata=0)
    scene = open_scenes(path, computed=[Ratio()])[0]
    assert scene.source_names == ("ratio",)
    low, high = planes[1].astype(np.float32), planes[2].astype(np.float32)
    low[0, 0] = np.nan
    np.testing.assert_array_equal(scene.read()[0], (low - high) / (low + high))
    with pytest.raises(InvalidInputError, match="'B8'"):
        open_scenes(f"{path}[B3]", computed=[Ratio()])[0]


def test_what_is_not_there_or_no_file_is_refused_first(tmp_path):
    with refused("file-missing", "ir.png"):
        open_scenes([tmp_path / "own" / "ir.png"] * 40)
    os.mkfifo(tmp_path / "pipe.png")
    for sources in ([tmp_path / "pipe.png"], [tmp_path]):
        with refused("file-kind"):
            open_scenes(sources)
    (tmp_path / "folder.png").mkdir()
    for path, kind in (("/dev/null", "a device"), (tmp_path / "folder.png", "a directory")):
        with refused("file-kind", kind):
            check_file(path)


def test_a_tif_that_is_a_vrt_reaches_no_other_file(planes, tmp_path):
    secret = write(tmp_path / "secret.tif", planes[:1])
    vrt = tmp_path / "a.tif"
    vrt.write_text(
        f'<VRTDataset rasterXSize="17" rasterYSize="12"><VRTRasterBand dataType="UInt16" band="1"><SimpleSource>'
        f"<SourceFilename>{secret}</SourceFilename><SourceBand>1</SourceBand></SimpleSource></VRTRasterBand></VRTDataset>"
    )
    with refused("file-format", "--driver"):
        open_scenes(vrt)[0]
    np.testing.assert_array_equal(open_scenes(vrt, drivers=["VRT"])[0].read(), planes[:1])


def bomb(path, side=65_000, geo=False):
    """A small TIFF of one deflated strip that unpacks to about 4.2 GB."""
    packed = zlib.compress(bytes(1000), 9)
    tags = [(256, 4, side), (257, 4, side), (258, 3, 8), (259, 3, 8), (262, 3, 1), (273, 4, 0), (277, 3, 1)]
    tags += [(278, 4, side), (279, 4, len(packed))]
    if geo:
        tags.append((42113, 2, 0x0030))  # nodata "0"
    start = 8 + 2 + 12 * len(tags) + 4
    content = struct.pack("<2sHIH", b"II", 42, 8, len(tags))
    for code, kind, value in tags:
        count = 2 if kind == 2 else 1
        content += struct.pack("<HHII", code, kind, count, start if code == 273 else value)
    path.write_bytes(content + struct.pack("<I", 0) + packed)
    return path


@pytest.mark.parametrize("geo", [False, True])
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch, geo):
    with refused("image-large", "4,225,000,000", "BIMICHI_MAX_PIXELS=4225000000"):
        open_scenes(bomb(tmp_path / "bomb.tif", geo=geo))[0].read()
    write_image(tmp_path / "a.png", np.zeros((30, 40), np.uint8))
    np.save(tmp_path / "a.npy", np.zeros((30, 40)))
    tifffile.imwrite(tmp_path / "a.tif", np.zeros((30, 40), np.uint8))
    np.savez(tmp_path / "a.npz", a=np.zeros((30, 40), np.uint8))
    monkeypatch.setenv("BIMICHI_MAX_PIXELS", "1000")
    for name in ("a.png", "a.npy", "a.tif", "a.npz"):
        with refused("image-large", "1,000"):
            open_scenes(tmp_path / name)[0].read()
    monkeypatch.setenv("BIMICHI_MAX_PIXELS", "many")
    with refused("limit-variable"):
        open_scenes(tmp_path / "a.png")[0]


def test_coordinates_of_xarray_and_files_of_netcdf(tmp_path, rng):
    values = rng.integers(0, 99, (4, 5)).astype(np.int16)
    values[1, 2] = -1
    data = xr.Dataset(
        {name: (("y", "x"), values + k, {"units": "K"}) for k, name in enumerate(NAMES)},
        {"x": 500_005.0 + 10 * np.arange(5), "y": 4_999_995.0 - 10 * np.arange(4)},
    )
    data["thermal"].encoding["_FillValue"] = -1
    data["spatial_ref"] = ((), 0, {"crs_wkt": CRS.from_epsg(32632).to_wkt()})
    data.to_netcdf(tmp_path / "a.nc", engine="scipy", format="NETCDF3_64BIT")
    for sources in (data.assign_attrs(_FillValue=-1), tmp_path / "a.nc"):
        scene = open_scenes(sources)[0]
        assert (scene.crs, scene.transform) == (GRID["crs"], GRID["transform"])
        assert [source.units for source in scene.sources] == ["K", "K"]
        assert scene.dtypes[0] == np.int16
        assert np.argwhere(~scene.valid()).tolist() == [[1, 2]]
    turned = data["grey"].transpose("x", "y").drop_vars("spatial_ref", errors="ignore")
    np.testing.assert_array_equal(open_scenes(turned)[0].read()[0], values + 1)
    with refused("source-dimension"):
        open_scenes(data["grey"].expand_dims("time"))[0]


def test_dicom_with_units_of_the_modality_and_padding(tmp_path):
    import pydicom
    from pydicom.dataset import FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage, generate_uid

    stored = np.arange(12, dtype=np.uint16).reshape(3, 4)
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = SecondaryCaptureImageStorage, generate_uid()
    image = pydicom.Dataset()
    image.file_meta = meta
    image.Rows, image.Columns, image.SamplesPerPixel, image.PhotometricInterpretation = 3, 4, 1, "MONOCHROME2"
    image.BitsAllocated, image.BitsStored, image.HighBit, image.PixelRepresentation = 16, 16, 15, 0
    image.PixelData = stored.tobytes()
    image.save_as(tmp_path / "plain.dcm", enforce_file_format=True)
    np.testing.assert_array_equal(open_scenes(tmp_path / "plain.dcm")[0].read()[0], stored)
    image.RescaleSlope, image.RescaleIntercept = 2, -1024
    image.add_new("PixelPaddingValue", "US", 5)
    image.save_as(tmp_path / "ct.dcm", enforce_file_format=True)
    scene = open_scenes([tmp_path / "ct.dcm"])[0]
    expected = stored * 2.0 - 1024
    expected[1, 1] = np.nan
    np.testing.assert_array_equal(scene.read()[0], expected)
    Path(tmp_path / "cut.dcm").write_bytes(Path(tmp_path / "ct.dcm").read_bytes()[:-9])
    with refused("image-damaged"):
        open_scenes(tmp_path / "cut.dcm")[0]


def test_slices_of_nifti(tmp_path, rng):
    import nibabel

    volume = rng.integers(0, 99, (4, 5, 3)).astype(np.int16)
    for name in ("t1.nii", "flair.nii.gz"):
        nibabel.save(nibabel.Nifti1Image(volume, np.eye(4)), tmp_path / name)
    with refused("slice-missing"):
        open_scenes(tmp_path / "t1.nii")[0]
    scene = open_scenes([f"{tmp_path}/t1.nii[2]", f"{tmp_path}/flair.nii.gz[2]"])[0]
    assert scene.source_names == ("t1", "flair")
    assert scene.dtypes[0] == np.int16
    np.testing.assert_array_equal(scene.read()[1], volume[:, :, 1].T)
    (tmp_path / "bad.nii").write_bytes(b"nothing of the kind")
    with refused("image-damaged"):
        open_scenes(tmp_path / "bad.nii")[0]
