"""The command `report`: one page, or many with an index."""

import numpy as np
from pages import data_of, fitted, image, planes_of, text_of
from typer.testing import CliRunner

from bimichi.cli.app import app
from bimichi.evaluate.metrics import auc


def test_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, plane in zip(("ir", "vi"), np.moveaxis(image(2), -1, 0), strict=True):
        np.save(f"{name}.npy", plane)
    np.save("mask.npy", image(2)[..., 0] > 0)
    (tmp_path / "boxes.csv").write_text("x,y,w,h\n1,2,3,4\n")
    for name, objective in (("a", "bipolar"), ("b", "mean")):
        fitted(2, objective, names=("ir", "vi")).save(f"{name}.json")
    call = "report a.json vi.npy ir.npy --truth mask.npy --boxes boxes.csv --compare b.json -o out/r.html"
    done = CliRunner().invoke(app, call.split())
    assert done.exit_code == 0, done.output
    page = (tmp_path / "out" / "r.html").read_text()
    assert (tmp_path / "out" / "r.html.run.json").exists()
    assert data_of(page)["boxes"] == [[1, 2, 3, 4]]
    assert np.allclose(planes_of(data_of(page)), image(2))
    assert "Compared with other methods" in page
    assert "<h1>Fusion report</h1>" in page
    for problem, said in (
        ("report a.json ir.npy -o r.html", "[sources-number]"),
        ("report a.json ir.npy vi.npy --compare b.json -o r.html", "needs --truth"),
        ("report a.json ir.npy vi.npy -o r.png", "[output-suffix]"),
    ):
        done = CliRunner().invoke(app, problem.split())
        assert done.exit_code != 0
        assert said in done.output


def test_command_for_many_scenes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for k, name in enumerate(("ir", "vi")):
        (tmp_path / name).mkdir()
        for seed, scene in enumerate(("one", "two")):
            np.save(f"{name}/{scene}.npy", image(2, seed=seed)[..., k])
    (tmp_path / "boxes.csv").write_text("image,x,y,w,h\ntwo,1,2,3,4\n")
    fitted(2, names=("ir", "vi")).save("model.json")
    done = CliRunner().invoke(app, ["report", "model.json", "ir", "vi", "--boxes", "boxes.csv", "-o", "pages"])
    assert done.exit_code == 0, done.output
    pages = [(tmp_path / "pages" / f"{scene}.html").read_text() for scene in ("one", "two")]
    assert [len(data_of(page)["boxes"]) for page in pages] == [0, 1]
    assert ["<h1>one</h1>" in page for page in pages] == [True, False]
    for seed, page in enumerate(pages):
        assert np.allclose(planes_of(data_of(page)), image(2, seed=seed))


def test_command_writes_an_index_of_many_scenes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hostile = "a&<b> 'q'"
    for k, name in enumerate(("ir", "vi")):
        (tmp_path / name).mkdir()
        for seed, scene in enumerate((hostile, "bare", "broken", "index", "unmasked")):
            np.save(f"{name}/{scene}.npy", image(2, seed=seed)[..., k])
    np.save("vi/broken.npy", np.full((3, 3), 0.5))
    (tmp_path / "masks").mkdir()
    for scene in (hostile, "broken", "index"):
        np.save(f"masks/{scene}.npy", image(2, seed=0)[..., 0] > 0)
    np.save("masks/bare.npy", np.zeros((12, 16), bool))
    fitted(2, names=("ir", "vi")).save("model.json")
    done = CliRunner().invoke(app, ["report", "model.json", "ir", "vi", "--truth", "masks", "-o", "pages"])
    assert done.exit_code == 1
    assert "4 reported, 1 failed" in done.output
    assert "broken:" in done.output
    written = {path.name for path in (tmp_path / "pages").glob("*.html")}
    assert written == {f"{hostile}.html", "bare.html", "index-1.html", "unmasked.html", "index.html"}
    page = (tmp_path / "pages" / "index.html").read_text()
    assert "Content-Security-Policy" in page
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert "<b> 'q'" not in page
    assert 'href="a%26%3Cb%3E%20%27q%27.html"' in page
    assert 'href="index-1.html"' in page
    assert page.count('src="data:image/png;base64,') == 4
    text = text_of(page)
    assert "5 scenes, of which 1 could not be reported." in text
    assert "the truth has no targets" in text
    assert "no file of truth" in text
    assert "On average over 2 with truth" in text
    assert "Not reported" in text
    assert "Compared with the truth" not in (tmp_path / "pages" / "bare.html").read_text()
    scored = (tmp_path / "pages" / f"{hostile}.html").read_text()
    assert "Compared with the truth" in scored
    expected = auc(image(2, seed=0)[..., 0] > 0, fitted(2, names=("ir", "vi")).fuse(image(2, seed=0)))
    assert f"AUC {expected:.3f}" in text


def test_command_reports_one_scene_without_targets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, plane in zip(("ir", "vi"), np.moveaxis(image(2), -1, 0), strict=True):
        np.save(f"{name}.npy", plane)
    np.save("mask.npy", np.zeros((12, 16), bool))
    fitted(2, names=("ir", "vi")).save("model.json")
    done = CliRunner().invoke(app, ["report", "model.json", "ir.npy", "vi.npy", "--truth", "mask.npy", "-o", "r.html"])
    assert done.exit_code == 0, done.output
    assert "Without scores: the truth has no targets." in done.output
    assert "Compared with the truth" not in (tmp_path / "r.html").read_text()
