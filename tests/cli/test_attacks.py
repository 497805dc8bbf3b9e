"""Names, files, streams and signals that are meant to break the program, or do by accident."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from program import ENVIRONMENT, HALF, PAPER, PROGRAM, program, run

from bimichi import BiCapacity, FusionRule
from bimichi.cli.console import clean

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals, devices and names of POSIX")
TRAIN = ("train", "thermal.png", "grey.png", "--boxes", "boxes.csv", "--superpixels", 40)


def edited(path, **training):
    document = json.loads(Path("model.json").read_text())
    document["training"] |= training
    Path(path).write_text(json.dumps(document))
    return path


def test_control_characters_are_escaped():
    assert clean("a\x1b[2Jb\x07\x9b\u202ec\nd\te\udcff") == "a\\x1b[2Jb\\x07\\x9b\\u202ec\nd\te\\udcff"
    assert clean("grün ✓ 名") == "grün ✓ 名"


class TestTerminal:
    def test_no_escape_of_a_file_reaches_it(self, trained):
        path = edited(
            "evil.json", method="ok\x1b]0;title\x07\x1b[2J", objective=":cat: [bold]x[/]", solver="\u202esrever"
        )
        shown = run("show", path).output
        assert "\x1b" not in shown
        assert "\x07" not in shown
        assert "\u202e" not in shown
        assert "ok\\x1b]0;title" in shown
        assert ":cat: [bold]x[/]" in shown

    def test_nor_of_names(self, trained):
        rule = FusionRule(BiCapacity.random(2, random_state=0, source_names=["a\x1b[31m", ":dog:"]))
        rule.save("named.json")
        shown = run("show", "named.json").output
        assert "\x1b" not in shown
        assert ":dog:" in shown

    @posix
    def test_nor_of_paths_and_arguments(self, trained):
        for arguments in (("show", "none\x1b[2J.json"), ("fuse", "model.json", "no\x1b[2J.png", "-o", "f.tif")):
            failed = run(*arguments, code=1)
            assert "\x1b" not in failed.stderr
            assert "\\x1b[2J" in failed.stderr
        failed = run("train", "thermal.png", "--recipe", "\x1b[2J:cat:", "-o", "m", "--boxes", "boxes.csv", code=2)
        assert "\x1b[2J" not in failed.stderr

    def test_messages_show_no_emoji(self, trained):
        assert ":cat:" in run("show", ":cat:.json", code=1).stderr

    def test_what_libraries_log_is_cleaned(self, here):
        script = """
import logging
from bimichi.cli import main
from bimichi.rule import FusionRule
FusionRule.load = lambda path: logging.getLogger("other").warning("odd \\x1b[2J file") or exit(3)
main()
"""
        done = program("show", "model.json", script=script)
        assert (done.returncode, done.stderr) == (3, "odd \\x1b[2J file\n")

    @pytest.mark.parametrize(("encoding", "path"), [("ascii", "wide.json"), ("cp437", "名.json")])
    def test_narrow_encodings(self, trained, encoding, path):
        FusionRule(BiCapacity.random(2, random_state=0, source_names=["名", "–"])).save("wide.json")
        done = program("show", path, PYTHONIOENCODING=encoding, PYTHONUTF8="0")
        assert "Traceback" not in done.stderr
        assert done.returncode == (0 if path == "wide.json" else 1)


class TestShow:
    @pytest.mark.parametrize("value", [1e308, -1e308, 1e7, 3])
    def test_large_j(self, trained, value):
        assert len(run("show", edited("large.json", objective_value=value, lower_bound=value)).output) < 3000

    def test_nested_json(self, trained):
        deep = "[" * 500 + "]" * 500
        Path("deep.json").write_text(
            Path("model.json").read_text().replace('"parameters": {', f'"parameters": {{"x": {deep},', 1)
        )
        assert "nested more than" in run("show", "deep.json", code=1).stderr

    def test_json_of_many_sources_is_bounded(self, trained, monkeypatch):
        g = BiCapacity.random(6, random_state=0)
        FusionRule(g).save("six.json")
        whole = json.loads(run("show", "six.json", "--json").stdout)
        assert (len(whole["elements"]), whole["n_elements"]) == (729, 729)
        for code in (0, 5, 200, 728):
            up, down = g.sets(code)
            assert whole["elements"][code] == {"A": up, "B": down, "value": g.values[code], "used_by": 0}
        monkeypatch.setattr("bimichi.cli.show.LISTED", 100)
        some = json.loads(run("show", "six.json", "--json").stdout)
        assert (len(some["elements"]), some["n_elements"]) == (100, 729)


class TestOutputs:
    @posix
    def test_a_device_is_not_replaced(self, trained):
        """As root, -o /dev/null would be destroyed; a pipe stands for it."""
        os.mkfifo("device.tif")
        failed = run("fuse", "model.json", "thermal.png", "grey.png", "-o", "device.tif", code=1)
        assert "no regular file" in failed.stderr
        assert Path("device.tif").is_fifo()

    def test_the_run_record_does_not_replace_an_input(self, trained):
        shutil.copy("model.json", "fused.tif.run.json")
        before = Path("fused.tif.run.json").read_bytes()
        failed = run("fuse", "fused.tif.run.json", "thermal.png", "grey.png", "-o", "fused.tif", code=1)
        assert "is one of the inputs" in failed.stderr
        assert Path("fused.tif.run.json").read_bytes() == before
        assert not Path("fused.tif").exists()
        shutil.copy("boxes.csv", "new.json.run.json")
        failed = run(*TRAIN[:4], "new.json.run.json", "-o", "new.json", code=1)
        assert "is one of the inputs" in failed.stderr

    @posix
    def test_names_that_are_no_text(self, trained):
        folder = os.fsdecode(b"caf\xe9")
        try:
            Path(folder).mkdir()
        except OSError:
            pytest.skip("this disk takes UTF-8 only")
        for name in ("thermal", "grey"):
            shutil.copy(f"{name}.png", f"{folder}/{name}.png")
        sources = [f"{folder}/{name}.png" for name in ("thermal", "grey")]
        done = program("train", *PAPER, *sources, "--boxes", "boxes.csv", "--superpixels", 40, "-o", f"{folder}/m.json")
        assert done.returncode == 0, done.stderr
        assert json.loads(Path(f"{folder}/m.json.run.json").read_text())["outputs"] == [f"{folder}/m.json"]
        done = program("fuse", f"{folder}/m.json", *sources, "-o", f"{folder}/f.tif", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["model"] == f"{folder}/m.json"
        done = program("show", f"{folder}/none.json")
        assert "caf\\udce9/none.json" in done.stderr


@posix
class TestStreams:
    @pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
    def test_closed_streams(self, trained, closed):
        """What is opened next would take the place of a closed stream, and get what is printed."""
        command = f'"{sys.executable}" -c "{PROGRAM}" fuse model.json thermal.png grey.png -o fused.tif {closed}'
        done = subprocess.run(["sh", "-c", command], env=ENVIRONMENT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        run("fuse", "model.json", "thermal.png", "grey.png", "-o", "whole.tif")
        assert Path("fused.tif").read_bytes() == Path("whole.tif").read_bytes()

    @pytest.mark.parametrize("options", [[], ["--json"]])
    def test_a_pipe_that_nobody_reads(self, trained, options):
        reader, writer = os.pipe()
        os.close(reader)
        command = [sys.executable, "-c", PROGRAM, "show", "model.json", *options]
        done = subprocess.run(command, env=ENVIRONMENT, stdout=writer, stderr=subprocess.PIPE, text=True)
        os.close(writer)
        assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
    def test_a_full_disk(self, trained):
        with Path("/dev/full").open("w") as full:
            command = [sys.executable, "-c", PROGRAM, "show", "model.json"]
            done = subprocess.run(command, env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1
        assert "No space left on device" in done.stderr
        assert "Traceback" not in done.stderr


LATE = """
import signal, threading
from bimichi.cli import console, main
from bimichi.evaluate import engine
signal.signal(signal.SIGINT, signal.default_int_handler)
said, say, begun = threading.Event(), console.say, threading.Lock()

def announced(*arguments):
    say(*arguments)
    if arguments[0].startswith("Stopped"):
        said.set()

def fail_late(*arguments):
    if begun.acquire(blocking=False):
        print("ready", flush=True)
    said.wait()
    raise RuntimeError("cannot schedule new futures after shutdown")  # as pools do when the program ends

console.say = announced
engine.TrainingData.arguments = fail_late
main()
"""


COMPARE = ("compare", *TRAIN[1:], "--truth", "mask.png")


@posix
@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        (COMPARE, signal.SIGINT),
        (COMPARE, signal.SIGTERM),
        pytest.param(("reproduce", "pedestrian", "-o", "out"), signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(("demo", "--output", "out"), signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_threads_are_silent_after_stopped(here, arguments, number):
    command = [sys.executable, "-c", LATE, *map(str, arguments), "--jobs", "2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, env=ENVIRONMENT) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        _, stderr = process.communicate(timeout=600)
    assert process.returncode == 128 + number
    assert stderr.rstrip().endswith("Stopped; no file is half-written.")
    assert "Traceback" not in stderr


@posix
def test_sigterm_leaves_no_part_file(trained):
    Path("out").mkdir()
    command = [sys.executable, "-c", HALF, "fuse", "model.json", "thermal.png", "grey.png", "-o", "out/fused.tif"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, env=ENVIRONMENT) as process:
        assert process.stdout.readline() == "half of it is written\n"
        assert list(Path("out").iterdir())
        process.terminate()
        _, stderr = process.communicate(timeout=600)
    assert process.returncode == 143
    assert "Traceback" not in stderr
    assert list(Path("out").iterdir()) == []


def test_arrays_are_not_taken_for_models(here):
    np.save("model.json", np.zeros(3))
    assert "Error" in run("show", "model.json.npy", code=1).stderr
