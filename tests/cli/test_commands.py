"""The commands `bags`, `show` and `compare`; options, help and completion."""

import csv
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from program import BOX, SHAPE, program, run, target_mask
from typer.testing import CliRunner

from bimichi import BiMIChI
from bimichi.cli.options import expand_groups
from bimichi.io import read_image, write_image
from bimichi.sources.recipes import RECIPES


def test_masks_bags_and_what_to_ignore(here):
    ignore = np.zeros(SHAPE, bool)
    ignore[25:33, 40:50] = True
    write_image("ignore.png", ignore)
    write_image("classes.png", (target_mask() * 2 + ignore).astype(np.uint8))
    common = ["thermal.png", "grey.png", "--bags", "segments.png", "-o", "bags.png", "--json"]
    scene = json.loads(run("bags", *common, "--labels", "classes.png", "--target", 2).stdout)["scenes"][0]
    assert (scene["positive"], scene["negative"], scene["left_out"]) == (6, 18, 0)
    scene = json.loads(run("bags", *common, "--labels", "mask.png", "--ignore", "ignore.png").stdout)["scenes"][0]
    assert (scene["positive"], scene["negative"], scene["left_out"]) == (6, 16, 2)
    scene = json.loads(run("bags", *common, "--boxes", "boxes.csv", "--min-overlap", "0.5").stdout)["scenes"][0]
    assert (scene["positive"], scene["negative"]) == (1, 23)
    picture = read_image("bags.png")
    assert picture.ndim == 3
    assert picture.std() > 20


def test_every_annotation_format_can_label_a_scene(here):
    x, y, w, h = BOX
    text = f"% bbGt version=3\nperson {x} {y} {w} {h} 0 0 0 0 0 0 0\nperson? 40 25 10 8 0 0 0 0 0 1 0\n"
    Path("boxes.txt").write_text(text)
    common = ["bags", "thermal.png", "grey.png", "--bags", "segments.png", "-o", "bags.png", "--json"]
    counts = {
        labels: json.loads(run(*common, *labels.split()).stdout)["scenes"][0]
        for labels in ("--labels mask.png", "--labels boxes.csv", "--boxes boxes.csv", "--labels boxes.txt")
    }
    ignored = counts.pop("--labels boxes.txt")
    assert len({(found["positive"], found["negative"], found["left_out"]) for found in counts.values()}) == 1
    assert ignored["positive"] == 6
    assert ignored["left_out"] == 2
    Path("boxes.csv").write_text(f"image,x,y,w,h\nthermal,{x},{y},{w},{h}\n")
    named = json.loads(run(*common, "--labels", "boxes.csv").stdout)["scenes"][0]
    assert named == counts["--boxes boxes.csv"]


def test_bags_of_many_scenes(many):
    done = run("bags", "thermals", "greys", "--labels", "masks", "--superpixels", 20, "-o", "pictures")
    assert {path.name for path in Path("pictures").iterdir()} == {"s0.png", "s1.png", "s2.png", "run.json"}
    assert "left out" in done.stdout
    assert "s1" in done.stdout


def test_show_tells_of_the_model(trained):
    shown = run("show", "model.json").stdout
    assert "objective bipolar" in shown
    assert "thermal+grey" in shown
    data = json.loads(run("show", "model.json", "--json").stdout)
    g = BiMIChI.load("model.json").bicapacity_
    assert [source["name"] for source in data["sources"]] == ["thermal", "grey"]
    assert len(data["elements"]) == 9
    for element in data["elements"]:
        assert element["value"] == g[element["A"], element["B"]]
    assert sum(element["used_by"] for element in data["elements"]) > 0


def test_names_are_shown_as_they_are(here):
    names = ["[bold]a", "<script>", "[/red]", "b_c"]
    X = np.random.default_rng(0).uniform(-1, 1, (100, 4))
    ids = np.repeat(np.arange(10), 10)
    BiMIChI(source_names=names, random_state=0).fit(X, ids % 2, ids).save("model.json")
    shown = run("show", "model.json", "--elements", 5).stdout
    for name in names:
        assert name in shown
    assert "used by" in shown
    failed = run("fuse", "model.json", "thermal.png", "grey.png", "-o", "fused.tif", code=1)
    assert "([bold]a, <script>, [/red], b_c)" in failed.stderr


def test_compare_writes_every_kind_of_table(here):
    command = ["compare", "thermal.png", "grey.png", "--boxes", "boxes.csv", "--truth", "mask.png", "--superpixels", 20]
    done = json.loads(run(*command, "-o", "table.csv", "--json").stdout)
    rows = list(csv.DictReader(Path("table.csv").read_text().splitlines()))
    assert [row["method"] for row in rows] == [row["method"] for row in done["methods"]]
    assert "Bi-MIChI (objective 1)" in {row["method"] for row in rows}
    assert all(float(row["auc"]) > 0.4 for row in rows if not row["problem"])
    assert json.loads(Path("table.csv.run.json").read_text())["command"] == "compare"


def test_compare_prints_a_table_of_some_methods(here):
    command = ["compare", "thermal.png", "grey.png", "--labels", "mask.png", "--truth", "mask.png", "--superpixels", 20]
    assert "[method-unknown]" in run(*command, "--methods", "mean,best", code=1).stderr
    command += ["--methods", "mean, Bi-MIChI (mean)"]
    shown = run(*command).stdout
    assert "Bi-MIChI (mean)" in shown
    assert "SVM" not in shown
    assert run(*command, "-o", "table.md", "--quiet").stdout == ""
    assert Path("table.md").read_text().startswith("| method |")
    run(*command, "-o", "table.tex")
    assert "\\toprule" in Path("table.tex").read_text()


def test_groups_of_options_are_options_of_the_command():
    @dataclass(frozen=True)
    class Group:
        size: Annotated[int, typer.Option(help="How large.")] = 3

    def command(*, name: str, group: Group, loud: bool = False) -> None:
        print(name, group.size, loud)

    alone = typer.Typer()
    alone.command()(expand_groups(command))
    assert CliRunner().invoke(alone, ["x", "--size", "5", "--loud"]).stdout == "x 5 True\n"
    assert CliRunner().invoke(alone, ["x"]).stdout == "x 3 False\n"
    assert "How large." in CliRunner().invoke(alone, ["--help"]).stdout


def test_help_lists_recipes():
    shown = " ".join(run("train", "--help").stdout.replace("│", " ").split())
    assert ", ".join(RECIPES) in shown


def test_help_has_examples():
    experiments = ("study", "reproduce um", "reproduce pedestrian", "reproduce flood", "reproduce lesions", "demo")
    for command in ("train", "fuse", "bags", "show", "compare", "report", *experiments):
        assert re.search(rf"^ *bimichi {command}( \S|$)", run(*command.split(), "--help").stdout, re.MULTILINE), command


def test_help_and_completion_are_quick():
    script = "import sys, bimichi.cli.app; print([m for m in ('numba', 'scipy', 'sklearn') if m in sys.modules])"
    assert program(script=script).stdout.strip() == "[]"
    done = program(_BIMICHI_COMPLETE="complete_bash", COMP_WORDS="bimichi tr", COMP_CWORD="1")
    assert done.stdout.split() == ["train"]
