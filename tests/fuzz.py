"""Feeds damaged files to every reader: briefly in the tests, and as long as one likes with `make fuzz`.

A reader may give a result, or raise an error of the library. Anything else is a bug: the target and the seed are
printed, and the file is kept in output/fuzz.
"""

import argparse
import faulthandler
import logging
import random
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from annotation_files import PLACES, WRITERS
from mutation import mutate_content
from samples import scene
from typer.testing import CliRunner

from bimichi import BiMIChI, BimichiError, Capacity, EvolutionarySolver, FusionRule, Scene
from bimichi.cli.app import app
from bimichi.evaluate.metrics import Scores
from bimichi.evaluate.study import StudyResult, StudyRow, _finished_rows
from bimichi.fit.objectives import OBJECTIVES
from bimichi.fit.problem import InMemory
from bimichi.io import check_annotations, read_annotations, read_image, write_image
from bimichi.io.annotations.text import CLASS_FILES
from bimichi.io.project import Project, ProjectSource, read_project, write_project
from bimichi.scenes import rasterise
from bimichi.scenes.annotations import in_pixels
from bimichi.studio.open import Options, open_project, open_workspace

OUTPUT = Path("output/fuzz")
MEMORY = 8 << 30  # bytes of address space; a bomb ends in a MemoryError, which is a bug
SETTING = {"train": ["a"], "test": ["a"], "sources": ["ir"], "seed": 0, "way of making scenes": {}}
HANGING = 120  # seconds after which a case is taken to hang


@dataclass(frozen=True)
class Target:
    """A reader: `make` writes whole files to a folder, `read` reads one of them."""

    make: Callable[[Path], None]
    read: Callable[[Path], object]


def _problem() -> InMemory:
    return InMemory(scene(0, "a").bags(), OBJECTIVES["bipolar"])


def _evolve(path: Path) -> object:
    solver = EvolutionarySolver(3, 120, patience=None, checkpoint=path)
    return solver.solve(_problem(), np.random.default_rng(0), 1)


def _models(folder: Path) -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (40, 3))
    y = np.arange(40) % 2
    model = BiMIChI(random_state=0, source_names=["ir", "rgb", "lidar"]).fit(X, y)
    model.save(folder / "model.json")
    BiMIChI("mean", EvolutionarySolver(2, 5), polarity="learn", scale="minmax", random_state=0).fit(9 * X, y).save(
        folder / "evolved.json"
    )
    BiMIChI("mean", additivity=2, random_state=0).fit(X, y).save(folder / "additive.json")
    FusionRule(Capacity.random(3, 0)).save(folder / "capacity.json")
    wide = np.random.default_rng(0).uniform(-1, 1, (30, 8))
    BiMIChI(random_state=0).fit(wide, y[:30]).save(folder / "archive.npz")


def _read_model(path: Path) -> object:
    for arguments in (["show", str(path)], ["show", str(path), "--json"]):
        done = CliRunner().invoke(app, arguments)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert "\x1b" not in done.output, "an escape sequence reached the terminal"
    rule = FusionRule.load(path)
    try:
        model = BiMIChI.load(path)
    except BimichiError:
        model = None
    assert rule.measure.is_monotone(1e-9)
    if rule.n_sources <= 5:
        rule.to_markdown()
    fused = rule.fuse(np.zeros((2, rule.n_sources)) + rule.centre)
    assert fused.shape == (2,)
    return model


def _annotations(folder: Path) -> None:
    """One file of each dialect of each format, but those that are several files."""
    for name, writers in WRITERS.items():
        for k, writer in enumerate(writers[:1] if name == "vector" else writers):
            with TemporaryDirectory() as made:
                writer(Path(made))
                files = [path for path in sorted(Path(made).iterdir()) if path.name not in CLASS_FILES]
                (folder / f"{name}-{k}{files[0].suffix}").write_bytes(files[0].read_bytes())


def _read_annotations(path: Path) -> object:
    """Read a file, and find the pixels of what it holds."""
    place = PLACES["a.png"]
    for found in read_annotations(path).values():
        pixels = in_pixels(found, place, str(path))
        check_annotations(pixels, place.shape, str(path))
        if pixels.mask is None:
            rasterise(pixels, place.shape)
    return None


def _projects(folder: Path) -> None:
    sources = [
        ProjectSource("*.png", ("1",), ("ir",), ("to_bipolar",)),
        ProjectSource("vi", (), ("vi",), ("equalize",)),
    ]
    labels = {"boxes": "boxes.csv", "superpixels": 40, "min_overlap": 0.5, "target": "person"}
    project = Project(sources, ["n: (ir - vi) / 2"], labels, {"train": {"objective": "mean"}, "fuse": {"png": True}})
    write_project(folder / "bimichi.toml", project)


def _read_project(path: Path) -> object:
    done = CliRunner().invoke(app, ["train", "--project", str(path), "-o", str(path.with_name("m.json"))])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return read_project(path).to_toml()


def _studies(folder: Path) -> None:
    row = StudyRow("mean", "baseline", "none", {"a": Scores(0.5, 0.5, 0.5, 0.0, 0.5, 9, 0.1)}, 1.0)
    StudyResult(SETTING, [row]).write(folder)
    (folder / "results.md").unlink()


def _read_study(path: Path) -> object:
    return StudyResult(SETTING, _finished_rows(path.parent, SETTING)).to_markdown()


def _images(folder: Path) -> None:
    image = np.random.default_rng(0).integers(0, 255, (12, 16), np.uint8)
    for name in ("grey.png", "grey.tif"):
        write_image(folder / name, image)
    write_image(folder / "float.tif", image.astype(np.float32) / 255)
    np.save(folder / "array.npy", image)


@cache
def _studio_images() -> TemporaryDirectory[str]:
    """Images of a project, which are found by their content wherever it lies."""
    held = TemporaryDirectory()
    for seed, name in enumerate(("a", "b")):
        write_image(Path(held.name) / f"{name}.png", np.random.default_rng(seed).integers(0, 255, (12, 16), np.uint8))
    return held


def _studio(folder: Path) -> None:
    work = open_workspace([str(path) for path in sorted(Path(_studio_images().name).iterdir())], Options())
    shapes = [
        {"id": "1", "kind": "box", "label": "target", "points": [[2, 2], [6, 8]]},
        {"id": "2", "kind": "stroke", "label": "not", "points": [[9, 2], [14, 5]], "width": 2},
    ]
    work.draw(0, 1, shapes)
    work.project = folder / "bimichi.toml"
    work.save()


def _read_studio(path: Path) -> None:
    """Open a project one of whose files is damaged."""
    for name, content in originals("studio").items():
        if name != path.name:
            (path.parent / name).write_bytes(content)
    open_project(path.parent / "bimichi.toml", folders=[Path(_studio_images().name)]).state()


TARGETS = {
    "models": Target(_models, _read_model),
    "checkpoints": Target(lambda folder: _evolve(folder / "search.npz"), _evolve),
    "annotations": Target(_annotations, _read_annotations),
    "images": Target(_images, read_image),
    "scenes": Target(lambda folder: scene(0, "a").save(folder / "scene.npz"), Scene.load),
    "projects": Target(_projects, _read_project),
    "studies": Target(_studies, _read_study),
    "studio": Target(_studio, _read_studio),
}
"""What is fuzzed. A new reader is one more line."""


@cache
def originals(name: str) -> dict[str, bytes]:
    """The whole files of a target, by name."""
    with TemporaryDirectory() as folder:
        TARGETS[name].make(Path(folder))
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def check(name: str, seed: int, folder: Path) -> str:
    """Damage one file and read it; returns "read" or "refused", and raises whatever is a bug."""
    rng = random.Random(f"{name} {seed}")
    file = rng.choice(list(originals(name)))
    path = folder / file
    path.write_bytes(mutate_content(originals(name)[file], rng))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            TARGETS[name].read(path)
    except BimichiError:
        return "refused"
    return "read"


def work(names: list[str], seed: int, minutes: float) -> int:
    """Go through seeds, target by target, until the time is over; returns the number of bugs."""
    import resource

    logging.disable()  # what other libraries have to say about damaged files
    for name in names:
        originals(name)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    end, failures, counts = time.monotonic() + 60 * minutes, 0, dict.fromkeys(("read", "refused"), 0)
    with TemporaryDirectory() as folder:
        while time.monotonic() < end and failures < 20:
            for name in names:
                (OUTPUT / "current").write_text(f"{name} --seed {seed}")
                faulthandler.dump_traceback_later(HANGING, exit=True)
                try:
                    counts[check(name, seed, Path(folder))] += 1
                except Exception:
                    failures += 1
                    print(f"\n{name}, seed {seed}:\n{traceback.format_exc(limit=-4)}", flush=True)
                    for path in Path(folder).iterdir():
                        path.replace(OUTPUT / f"{name}-{seed}-{path.name}")
                for path in Path(folder).iterdir():
                    path.unlink()
            seed += 1
    faulthandler.cancel_dump_traceback_later()
    print(f"{sum(counts.values()):,} files, up to seed {seed - 1}: {counts}, {failures} failures", flush=True)
    return failures


def main() -> None:
    """Run in a process of its own, so that a crash is noticed, too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=None, help="the first; by default, the time")
    parser.add_argument("--only", choices=TARGETS, action="append")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    if given.worker:
        sys.exit(work(given.only, given.seed, given.minutes) > 0)
    seed = int(time.time()) if given.seed is None else given.seed
    chosen = [argument for name in given.only or TARGETS for argument in ("--only", name)]
    command = [sys.executable, __file__, "--worker", "--seed", str(seed), "--minutes", str(given.minutes), *chosen]
    print(f"Fuzzing {', '.join(given.only or TARGETS)} for {given.minutes:g} minutes from seed {seed}.", flush=True)
    code = subprocess.run(command, check=False).returncode
    if code not in (0, 1):
        print(f"The process crashed or hung ({code}) at --only {(OUTPUT / 'current').read_text()}.")
    sys.exit(code != 0)


if __name__ == "__main__":
    main()
