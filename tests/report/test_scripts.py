"""The scripts of pages, without a page: one module of all, and the same numbers as Python computes."""

import re

import numpy as np
import pytest
from nodes import ROOT, answer_of, run_node
from pages import data_of, fitted, image, other, planes_of
from scipy import ndimage

from bimichi import MICI, BiMIChI, as_rule
from bimichi.explain import chain, contributions
from bimichi.report import write_report
from bimichi.report.write import script_text

EXPLAIN = """
  import { unpack } from "report/planes.js";
  import { fusedOf, partFactor } from "report/integral.js";
  const report = await unpack(document);
  const { measure, sources } = report;
  const integral = [...measure.integrate(sources)];
  const pixels = integral.map((value, i) => {
    const x = sources.map((source) => source.entered[source.indices[i]]);
    if (x.some(Number.isNaN)) return null;
    const factor = partFactor(value, report);
    const steps = measure.chain(x).map(({ code, weight, value, product }) => [code, weight, value, product * factor]);
    return { steps, parts: measure.contributions(x).map((part) => part * factor) };
  });
  const answer = { fused: integral.map((value) => fusedOf(value, report)), pixels };
"""

DETECT = """
  import { countDetections, detectionAt } from "studio/outlines.js";
  const map = { ...document, indices: Uint16Array.from(document.indices) };
  const at = (i) => detectionAt(map, i % map.width, Math.floor(i / map.width), document.least)?.size ?? 0;
  const answer = { count: countDetections(map, document.least), sizes: document.indices.map((_, i) => at(i)) };
"""

MODELS = {
    "bi-capacity": lambda: fitted(4),
    "magnitude": lambda: fitted(3, "magnitude"),
    "probability": lambda: fitted(3, "logistic"),
    "scaled and inverted": lambda: fitted(3, scale="minmax", polarity="learn"),
    "pairs": lambda: other(5, BiMIChI, objective="mean", additivity=2, polarity="learn"),
    "weights": lambda: other(6, BiMIChI, objective="logistic", additivity=1),
    "capacity": lambda: other(3, MICI, objective="mean", bipolar_input=True),
}


def test_the_script_is_one_module():
    script = script_text()
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    assert script.index("const MEASURES") < script.index("function unpackMeasure") < script.index("class Readout")
    assert script.count("const MEASURES") == 1
    done = run_node("--check", "--input-type=module", input=script)
    assert done.returncode == 0, done.stderr  # such as two modules that define the same name


def test_only_names_of_other_modules_are_left_out():
    assert "import" not in script_text("integral.js")  # which imports nothing, and is as it was
    assert script_text("planes.js").startswith(script_text("integral.js"))


def test_the_studio_asks_for_all_its_modules_at_once():
    folder = ROOT / "src" / "bimichi" / "studio" / "static"
    wanted, waiting = set(), ["main.js"]
    while waiting:
        name = waiting.pop()
        path = ROOT / "src" / "bimichi" / name if name.startswith("report/") else folder / name
        within = "report/" if name.startswith("report/") else ""
        names = {within + other for other in re.findall(r'from "\./([\w/]+\.js)"', path.read_text(encoding="utf-8"))}
        waiting += names - wanted
        wanted |= names
    preloaded = re.findall(
        r'rel="modulepreload" href="static/(.*?)"', (folder / "index.html").read_text(encoding="utf-8")
    )
    assert sorted(preloaded) == sorted(wanted)
    assert {path.name for path in folder.glob("*.js")} <= wanted | {"main.js", "theme.js"}


@pytest.mark.parametrize("name", MODELS)
def test_every_pixel_is_explained_as_python_does(tmp_path, name):
    model = MODELS[name]()
    rule = as_rule(model)
    write_report(tmp_path / "report.html", model, image(rule.measure.n_sources, scaled="scaled" in name, holes=5))
    document = data_of((tmp_path / "report.html").read_text(encoding="utf-8"))
    answer = answer_of(EXPLAIN, document)
    rows = planes_of(document).reshape(-1, rule.measure.n_sources)
    whole = ~np.isnan(rows).any(axis=1)
    np.testing.assert_allclose(np.array(answer["fused"], float), rule.fuse(rows), atol=1e-12)
    assert [pixel is not None for pixel in answer["pixels"]] == whole.tolist()
    pixels = [pixel for pixel in answer["pixels"] if pixel]
    np.testing.assert_allclose([pixel["parts"] for pixel in pixels], contributions(model, rows[whole]), atol=1e-12)
    for pixel, x in zip(pixels[::10], rows[whole][::10], strict=True):
        steps = [(step.weight, step.value, step.product) for step in chain(model, x).steps]
        del steps[: rule.link is not None]  # the offset, which pages show in a row of its own
        np.testing.assert_allclose([step[1:] for step in pixel["steps"]], steps, atol=1e-12)


@pytest.mark.parametrize("least", [20_000, 40_000, 60_000])
def test_detections_are_the_regions_that_scipy_finds(least):
    rng = np.random.default_rng(least)
    values = rng.integers(0, 65_536, (25, 30))
    regions, count = ndimage.label((values >= least) & (values < 65_535), structure=np.ones((3, 3)))
    sizes = np.bincount(regions.ravel())
    sizes[0] = 0
    document = {"width": 30, "height": 25, "least": least, "indices": values.ravel().tolist()}
    assert answer_of(DETECT, document) == {"count": count, "sizes": sizes[regions].ravel().tolist()}
