"""The user's own files: the same data in any format gives the same model and map, and nothing is silently wrong."""

import json
import os
import re
import sys
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
import tifffile
import xarray as xr
from program import PAPER, SHAPE, images, run, target_mask
from rasters import GRID, write
from real import real

from bimichi import BiMIChI, FusionRule, InvalidInputError, Scene
from bimichi.fuse.images import make_sources
from bimichi.io import open_scenes, raster as raster_layers, read_image, write_image
from bimichi.io.labelled import LabelledDataset
from bimichi.scenes.labels import Labelling

NAMES = ("thermal", "grey")


@pytest.fixture
def planes(here):
    return {name: image.astype(np.uint16) * 257 for name, image in images(0).items()}


def read(path):
    with raster_layers.open_dataset(path) as dataset:
        return dataset.read(1), dataset


def train(*sources, options=()):
    command = ["train", *PAPER, *sources, "--labels", "mask.png", "--superpixels", 40, "-o", "model.json", *options]
    return run(*command)


@contextmanager
def warned(message):
    """The program prints a warning that matches; pass what `run` returns."""
    said = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        yield lambda result: said.append(result.stderr)
    assert re.search(f"Warning: .*{message}", said[0]), said[0]


def learned():
    document = json.loads(Path("model.json").read_text())
    return {what: document[what] for what in ("arrays", "recipes", "inputs", "source_names")}


@pytest.mark.parametrize("options", [(), ("--recipe", "edge_strength,gamma_correction"), ("--scale", "minmax")])
def test_the_same_data_in_any_format_gives_the_same_model_and_map(planes, options):
    Path("geo").mkdir()
    Path("tif").mkdir()
    kinds = {"png": [], "tif": [], "per band": [], "npy": []}
    for name, plane in planes.items():
        kinds["png"].append(f"{name}.png")
        kinds["tif"].append(f"tif/{name}.tif")
        kinds["npy"].append(f"{name}.npy")
        kinds["per band"].append(write(f"geo/{name}.tif", [plane]))
        write_image(f"{name}.png", plane)
        tifffile.imwrite(f"tif/{name}.tif", plane)
        np.save(f"{name}.npy", plane)
    kinds["bands"] = [write("bands.tif", [*planes.values()], NAMES)]
    np.savez("both.npz", **planes)
    kinds["npz"] = ["both.npz"]
    data = xr.Dataset({name: (("y", "x"), plane) for name, plane in planes.items()})
    models, maps = [], []
    for kind, sources in kinds.items():
        train(*sources, options=options)
        run("fuse", "model.json", *sources, "-o", "fused.tif")
        models.append(learned())
        maps.append(read("fused.tif")[0] if kind in ("bands", "per band") else read_image("fused.tif"))
    rule, found = FusionRule.load("model.json"), open_scenes(data)
    made = make_sources(rule, found[0])
    maps.append(rule.fuse(made).astype(np.float32))
    labels = Labelling(labels="mask.png", superpixels=40)
    scale = dict(zip(options[::2], options[1::2], strict=True)).get("--scale")
    recipes = rule.recipes if "--recipe" in options else None
    reader = LabelledDataset(found, labels, recipes=recipes, scaled=scale is not None)
    model = BiMIChI(scale=scale, source_names=reader.source_names, random_state=0).fit(reader[0].bags())
    assert np.array_equal(model.rule_.measure.values, rule.measure.values)
    assert models[0]["inputs"][0]["dtype"] == "uint16"
    for other, fused in zip(models[1:], maps[1:], strict=False):
        assert other == models[0]
        np.testing.assert_array_equal(fused, maps[0])
    np.testing.assert_array_equal(maps[-1], maps[0])


def test_nodata_enters_neither_scale_nor_bags(planes):
    """Point 1 of the issue: nodata of -9999 became the least value of the scale."""
    hole = np.zeros(SHAPE, bool)
    hole[:6, :9] = True
    for folder, fill in (("declared", -9999.0), ("nan", np.nan)):
        Path(folder).mkdir()
        for name, plane in planes.items():
            values = np.where(hole, np.float32(fill), plane.astype(np.float32) / 100)
            write(f"{folder}/{name}.tif", [values], nodata=None if np.isnan(fill) else fill)
    models = []
    for folder in ("declared", "nan"):
        sources = [f"{folder}/{name}.tif" for name in NAMES]
        train(*sources, options=("--scale", "minmax"))
        models.append(learned())
        run("fuse", "model.json", *sources, "-o", f"{folder}.tif")
    assert models[0] == models[1]
    assert min(models[0]["arrays"]["centre"]) > 0
    first, dataset = read("declared.tif")
    assert (dataset.nodata, dataset.crs, dataset.transform) == (-9999.0, GRID["crs"], GRID["transform"])
    np.testing.assert_array_equal(first == -9999, hole)
    np.testing.assert_array_equal(np.where(first == -9999, np.nan, first), read("nan.tif")[0])


def test_geotiffs_are_matched_by_name(planes):
    """Point 2: two files in the other order were fused as they came."""
    files = [write(f"{name}.tif", [plane]) for name, plane in planes.items()]
    train(*files)
    run("fuse", "model.json", *files, "-o", "a.tif")
    run("fuse", "model.json", *files[::-1], "-o", "b.tif")
    np.testing.assert_array_equal(read("a.tif")[0], read("b.tif")[0])
    Path("other").mkdir(exist_ok=True)
    others = [write(f"other/{name}.tif", [plane]) for name, plane in zip(("ir", "vi"), planes.values(), strict=True)]
    failed = run("fuse", "model.json", *others, "-o", "c.tif", code=1).stderr
    assert "[sources-number]" in failed
    assert "--names" in failed


def test_a_mask_of_another_place_is_refused(planes):
    files = [write(f"{name}.tif", [plane]) for name, plane in planes.items()]
    mask = target_mask().astype(np.int16)
    mask[-5:] = -1
    write("mask.tif", [mask])
    found = json.loads(
        run("bags", *files, "--labels", "mask.tif", "--bags", "segments.png", "-o", "b.png", "--json").stdout
    )
    assert found["scenes"][0]["left_out"] == 6  # bags below, whose pixels the mask does not know
    elsewhere = GRID["transform"] @ GRID["transform"].translation(60, 0)
    write("mask.tif", [mask], transform=elsewhere)
    failed = run("train", *PAPER, *files, "--labels", "mask.tif", "-o", "m.json", code=1).stderr
    assert "[grids-differ]" in failed


def test_train_and_fuse_agree_on_a_geotiff(planes):
    """Point 4: names of bands, recipes that need the whole image, and four bands."""
    bands = np.stack([*planes.values(), planes["grey"] // 2, planes["thermal"] // 3]) // 257
    write("four.tif", bands.astype(np.uint8), photometric="minisblack")
    train("four.tif", options=("--recipe", "edge_strength,to_bipolar,equalize,to_bipolar"))
    assert learned()["source_names"] == ["band 1", "band 2", "band 3", "band 4"]
    run("fuse", "model.json", "four.tif", "-o", "fused.tif")
    np.testing.assert_array_equal(read("fused.tif")[1].transform, GRID["transform"])
    train("four.tif[2,4]")
    assert learned()["source_names"] == ["band 2", "band 4"]
    failed = run("fuse", "model.json", "four.tif", "-o", "f.tif", code=1).stderr
    assert "[sources-number]" in failed
    run("fuse", "model.json", "four.tif[4,2]", "-o", "f.tif")
    run("bags", "four.tif[2,4]", "--labels", "mask.png", "--superpixels", 40, "-o", "bags.png")
    run("report", "model.json", "four.tif[2,4]", "-o", "report.html")


def test_a_geotiff_without_rasterio_says_what_to_install(planes, monkeypatch):
    """Point 3: it was read as a plain TIFF."""
    files = [write(f"{name}.tif", [plane]) for name, plane in planes.items()]
    train(*files)
    for name in ("rasterio", "rasterio.errors", "rasterio.enums"):
        monkeypatch.setitem(sys.modules, name, None)
    for command in (
        ("fuse", "model.json", *files, "-o", "f.tif"),
        ("train", *files, "--labels", "mask.png", "-o", "m.json"),
    ):
        assert "pip install 'bimichi[raster]'" in run(*command, code=1).stderr


def test_a_loaded_model_keeps_recipes_and_inputs(planes):
    """Point 5."""
    train("thermal.png", "grey.png", options=("--recipe", "equalize,to_bipolar"))
    BiMIChI.load("model.json").save("again.json")
    first, again = FusionRule.load("model.json"), FusionRule.load("again.json")
    assert again.recipes == first.recipes == ("equalize", "to_bipolar")
    assert again.inputs == first.inputs
    assert again.inputs[0].dtype == "uint8"


@pytest.mark.parametrize(
    "inputs", [3, [{}], [{"dtype": "uint8"}] * 2, [{"dtype": "O", "low": 0, "high": 1, "usual": [0, 1]}] * 2]
)
def test_hostile_inputs_in_a_model(trained, inputs):
    Path("model.json").write_text(json.dumps(json.loads(Path("model.json").read_text()) | {"inputs": inputs}))
    assert "not a valid FusionRule file" in run("show", "model.json", code=1).stderr


def test_sixteen_bits_that_fill_a_sliver_and_constant_sources(planes):
    """Point 8: the remedy works."""
    thermal = (7000 + planes["thermal"] / 65535 * 5100).astype(np.uint16)
    write_image("counts.tif", thermal)
    write_image("flat.tif", np.full(SHAPE, 7, np.uint8))
    with warned(r"'counts' \(uint16\) .* to_bipolar maps to .*--scale minmax") as say:
        say(train("counts.tif", "grey.png"))
    run("fuse", "model.json", "counts.tif", "grey.png", "-o", "sliver.tif")
    train("counts.tif", "grey.png", options=("--scale", "minmax"))
    run("fuse", "model.json", "counts.tif", "grey.png", "-o", "scaled.tif")
    scaled, sliver = read_image("scaled.tif"), read_image("sliver.tif")
    truth = target_mask()
    assert scaled[truth].mean() - scaled[~truth].mean() > 3 * (sliver[truth].mean() - sliver[~truth].mean())
    with warned("'flat' is constant: it is 7 in every pixel of training") as say:
        say(train("thermal.png", "flat.tif"))


def test_other_types_are_refused_and_other_ranges_warned_of(planes):
    train("thermal.png", "grey.png")
    write_image("other/thermal.png", planes["thermal"])
    failed = run("fuse", "model.json", "other/thermal.png", "grey.png", "-o", "f.tif", code=1).stderr
    assert "'thermal' of scene" in failed
    assert "[type-of-training]" in failed
    command = ("report", "model.json", "other/thermal.png", "grey.png", "-o", "r.html")
    assert "[type-of-training]" in run(*command, code=1).stderr
    write_image("other/thermal.png", np.full(SHAPE, 9, np.uint8))
    with warned(r"'thermal' of scene .* is constant \(9\), but the model was trained on") as say:
        say(run("fuse", "model.json", "other/thermal.png", "grey.png", "-o", "f.tif"))
    kelvin = {name: write(f"{name}.tif", [plane.astype(np.float32) / 400 + 250]) for name, plane in planes.items()}
    train(*kelvin.values(), options=("--scale", "minmax"))
    Path("celsius").mkdir()
    colder = [write(f"celsius/{name}.tif", [read(path)[0] - 273]) for name, path in kelvin.items()]
    with warned("'(thermal|grey)' .* far outside: the model was trained on .*units") as say:
        say(run("fuse", "model.json", *colder, "-o", "f.tif"))
    run("fuse", "model.json", *kelvin.values(), "-o", "f.tif")  # without a warning, which would be an error here


def test_align_works_in_training_too(planes):
    small = write(
        "thermal.tif", [planes["thermal"][::2, ::2]], transform=GRID["transform"] @ GRID["transform"].scale(2)
    )
    grey = write("grey.tif", [planes["grey"]])
    failed = run("train", *PAPER, grey, small, "--labels", "mask.png", "-o", "m.json", code=1).stderr
    assert "--align" in failed
    train(grey, small, options=("--align",))
    run("fuse", "model.json", small, grey, "--align", "-o", "f.tif")
    assert read("f.tif")[0].shape == (SHAPE[0] // 2, SHAPE[1] // 2)
    run("fuse", "model.json", grey, small, "--align", "-o", "f.tif")
    assert read("f.tif")[0].shape == SHAPE


def test_one_damaged_tiff_does_not_end_a_batch(many):
    """Fault d."""
    for name in NAMES:
        Path(f"geo/{name}").mkdir(parents=True)
        for k in range(3):
            write(f"geo/{name}/s{k}.tif", [images(k)[name]])
    path = Path("geo/grey/s1.tif")
    data = bytearray(path.read_bytes())
    first = int.from_bytes(data[4:8], "little")
    for k in range(int.from_bytes(data[first : first + 2], "little")):
        entry = first + 2 + 12 * k
        if int.from_bytes(data[entry : entry + 2], "little") == 257:  # ImageLength
            data[entry + 4 : entry + 8] = bytes(4)  # of which there are none
    path.write_bytes(data)
    train("geo/thermal/s0.tif", "geo/grey/s0.tif")
    failed = run("fuse", "model.json", "geo/thermal", "geo/grey", "-o", "fused", code=1).stderr
    assert "2 fused, 0 existed already, 1 failed" in failed
    assert "[image-damaged]" in failed
    assert {file.name for file in Path("fused").glob("*.tif")} == {"s0.tif", "s2.tif"}


def test_paths_that_are_not_there_are_said_so_first(trained):
    for command in (("train", "own/ir.png", "grey.png", "--boxes", "boxes.csv"), ("fuse", "model.json", "own/ir.png")):
        assert "[file-missing]" in run(*command, "-o", "out.tif", code=1).stderr
    os.mkfifo("pipe.png")
    assert "[file-kind]" in run("fuse", "model.json", "pipe.png", "grey.png", "-o", "out.tif", code=1).stderr


def test_damaged_scene_files_give_our_error(tmp_path, rng):
    path = tmp_path / "scene.npz"
    Scene(rng.random((4, 5, 2))).save(path)
    whole = path.read_bytes()
    for at in range(0, len(whole), 3):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        with suppress(InvalidInputError):  # and nothing else
            Scene.load(path)


def test_radar_and_optical_bands_stay_georeferenced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stem = real("sen1floods11") / "Spain_7370579"
    sources = [f"{stem}_S1Hand.tif[VV,VH]", f"{stem}_S2Hand.tif[B3,B8]"]
    label = f"{stem}_LabelHand.tif"
    options = ["--labels", label, "--recipe", "as_is", "--scale", "minmax", "--superpixels", 200]
    run("train", *PAPER, *sources, *options, "--polarity", "learn", "--objective", "mean", "-o", "m.json")
    assert learned_names("m.json") == ["VV", "VH", "B3", "B8"]
    run("fuse", "m.json", *sources, "-o", "fused.tif")
    fused, dataset = read("fused.tif")
    _, source = read(f"{stem}_S1Hand.tif")
    assert (dataset.crs, dataset.transform, dataset.shape) == (source.crs, source.transform, source.shape)
    assert np.isnan(dataset.nodata)
    scene = open_scenes(sources)[0]
    np.testing.assert_array_equal(np.isnan(fused), ~scene.valid())
    water = read(label)[0]
    known = scene.valid() & (water >= 0)
    assert fused[known & (water == 1)].mean() > fused[known & (water == 0)].mean()
    run("report", "m.json", *sources, "--truth", label, "-o", "report.html")


def learned_names(path):
    return json.loads(Path(path).read_text())["source_names"]
