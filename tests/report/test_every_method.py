"""Every method that learns a measure, with every additivity, has a report; and so has a bare measure."""

import re

import numpy as np
import pytest
from markupsafe import Markup
from methods import BARE, MEASURED
from pages import data_of, image, other, text_of
from refusals import refused
from typer.testing import CliRunner

from bimichi import AdditiveBiCapacity, BiMIChI, FusionRule, as_rule
from bimichi.cli.app import app
from bimichi.explain import summary
from bimichi.report import sections, write_report


def written(tmp_path, *given, **options):
    write_report(tmp_path / "report.html", *given, **options)
    return (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*MEASURED, *BARE])
def test_every_model_has_a_report_as_fitted_and_as_saved(model_of, name, tmp_path):
    model = model_of(name)
    scene = np.abs(image(3)) if name == "capacity" else image(3)
    truth = np.random.default_rng(0).random(scene.shape[:2]) < 0.4
    page = written(tmp_path, model, scene, truth=truth, title="One of many")
    said = text_of(page)
    for sentence in summary(model, scene).sentences:
        assert sentence in said
    rule = as_rule(model)
    assert ("Training not learned here" in said) == (name in BARE)
    assert data_of(page)["measure"]["parts"] == rule.measure.parts
    assert ('class="matrix"' in page) == (rule.measure.kind == "bicapacity")
    assert ("not applicable" in said) == (rule.measure.parts == "terms" and bool(rule.usage))
    rule.save(tmp_path / "rule.json")
    assert written(tmp_path, FusionRule.load(tmp_path / "rule.json"), scene, truth=truth, title="One of many") == page


@pytest.mark.parametrize("name", ["MICI min-max", "mean 2-additive", "weighted mean"])
def test_command(model_of, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for source, plane in zip(model_of(name).rule_.source_names, np.moveaxis(image(3), -1, 0), strict=True):
        np.save(f"{source}.npy", plane)
    np.save("mask.npy", image(3)[..., 0] > 0)
    model_of(name).save("model.json")
    model_of("Bi-MIChI (objective 1)").save("other.json")
    call = "report model.json 1.npy 2.npy 3.npy --truth mask.npy --compare other.json -o report.html"
    done = CliRunner().invoke(app, call.split())
    assert done.exit_code == 0, done.output
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert summary(model_of(name), image(3)).sentences[0] in text_of(page)
    assert "Compared with other methods" in page


def rows_of(page, table):
    body = re.search(rf'<table class="{table}">.*?<tbody>(.*?)</tbody>', page, re.DOTALL)[1]
    return re.findall(r"<tr.*?</tr>", body, re.DOTALL)


def numbers_of(row):
    return [float(text.replace("−", "-")) for text in re.findall(r">(−?\d\.\d{3})<", row)]


def test_weights_are_charted_above_and_below_zero(tmp_path):
    model = other(6, BiMIChI, objective="mean", additivity=1)
    page = written(tmp_path, model, image(6))
    values = model.measure_.values
    most = np.abs(values).max()
    rows = rows_of(page, "bars weights")
    assert len(rows) == 6
    for k, row in enumerate(rows):
        assert numbers_of(row) == pytest.approx([values[6 + k], values[k]], abs=0.0005001)
        widths = dict(re.findall(r'class="(up|down)" style="left:[\d.]+%;width:([\d.]+)%', row))
        for side, value in (("up", values[k]), ("down", -values[6 + k])):
            assert float(widths.get(side, 0)) == pytest.approx(50 * value / most, abs=0.01)
    assert "Pairs by strength" not in page
    assert "No two sources interact" in page


def test_pairs_are_listed_by_strength(tmp_path):
    measure = AdditiveBiCapacity.random(5, 3, ["ir", "vi", "uv", "sar", "dem"])
    page = written(tmp_path, measure, image(5))
    rows = re.findall(r"<tr data-code=.*?</tr>", page, re.DOTALL)
    codes = [int(re.search(r'data-code="(\d+)"', row)[1]) for row in rows]
    values = [numbers_of(row)[-1] for row in rows]
    assert values == pytest.approx([measure.values[code] for code in codes], abs=0.0005001)
    strengths = [abs(measure.values[code]) for code in codes]
    assert strengths == sorted(strengths, reverse=True)
    assert len(codes) == (np.abs(measure.values[10:]) >= 0.0005).sum()
    for row, code in zip(rows, codes, strict=True):
        cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)
        assert cells[:2] == [" and ".join(part) or "–" for part in measure.sets(code)]
    assert f"{len(codes) - 10} weaker pairs" in page


def test_many_sources(tmp_path):
    measure = AdditiveBiCapacity.random(64, 0)
    page = written(tmp_path, measure, image(64))
    assert len(data_of(page)["sources"]) == 64
    assert "64 sources fused by a Choquet integral over a 2-additive bi-capacity." in text_of(page)
    assert len(re.findall(r"<tr data-code", page)) == 200
    with refused("sources-many", "13", "1,594,323"):
        write_report(tmp_path / "r.html", BiMIChI("mean").fit(*_thirteen()), image(13))


def _thirteen():
    return np.random.default_rng(0).uniform(-1, 1, (4, 13)), [0, 1, 0, 1]


def test_a_new_section_is_one_function_and_one_line(tmp_path, monkeypatch):
    added = [lambda material: Markup(f"<section>{len(material.names)} sources here</section>"), lambda material: None]
    monkeypatch.setattr("bimichi.report.write.SECTIONS", [*sections.SECTIONS, *added])
    assert "<section>3 sources here</section>" in written(tmp_path, BARE["capacity"], np.abs(image(3)))


def test_capacities_list_their_sets(tmp_path, model_of):
    page = written(tmp_path, model_of("MICI min-max"), image(3))
    measure = model_of("MICI min-max").capacity_
    codes = [int(code) for code in re.findall(r'<tr data-code="(\d+)"', page)]
    sets = [1, 2, 4, 3, 5, 6, 7]  # by size
    assert codes == [sum(3**k for k in range(3) if subset >> k & 1) for subset in sets]
    assert "The capacity" in text_of(page)
    assert "Against (B)" not in page
    known = model_of("MICI min-max").usage_["weighted"]
    for subset, row in zip(sets, re.findall(r"<tr data-code.*?</tr>", page, re.DOTALL), strict=True):
        assert f"{known[subset]:,} training instances give it weight" in row
        assert known[subset] == 0 or numbers_of(row)[0] == pytest.approx(measure.values[subset], abs=0.0005001)
