"""`bimichi fuse`: fuse images by a model."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import bimichi
import bimichi.cli.options as opt
from bimichi.cli.console import Output, Run, failures, keep_inputs, output_file, output_files, run_path
from bimichi.decision import Decision
from bimichi.errors import InvalidInputError
from bimichi.fuse.detections import SUFFIXES, Detections, Georeference, decision_of, detect, write_detections
from bimichi.io.dataset import MAX_ADDITIVE_SOURCES, open_scenes

MAPS = (".tif", ".tiff", ".png")


def fuse(
    ctx: typer.Context,
    *,
    model: opt.Model,
    sources: opt.Sources,
    output: Annotated[
        Path,
        opt.output_option("The map: .tif (float32) or .png (8 bits: -1 is 0, +1 is 255); a folder for many scenes."),
    ],
    png: Annotated[bool, opt.flag("--png", "Also write a PNG beside each TIFF; not for GeoTIFFs.")] = False,
    names: opt.Names = None,
    resume: Annotated[bool, opt.flag("--resume", "Skip scenes whose map exists already.")] = False,
    align: opt.Align = False,
    driver: opt.Driver = None,
    overviews: Annotated[bool, opt.flag("--overviews", "Add overviews to fused GeoTIFFs.")] = False,
    detections: Annotated[
        Path | None,
        opt.value(
            "Also find targets and write them to one file: .csv (boxes) or .json (COCO) in pixels, or .geojson "
            "for georeferenced maps.",
            "FILE",
        ),
    ] = None,
    threshold: Annotated[
        float | None, opt.value("Find targets by this value of the map instead of the model's threshold.")
    ] = None,
    min_size: opt.MinSize = None,
    smooth: opt.Smooth = None,
    trust_recipes: opt.TrustRecipes = False,
    prior_shift: Annotated[
        bool,
        opt.flag(
            "--prior-shift",
            "Estimate on each scene how frequent targets are, and shift its probabilities; for models with "
            "probabilities, such as those of --objective logistic.",
        ),
    ] = False,
    prior_shift_batch: Annotated[
        bool,
        opt.flag(
            "--prior-shift-batch",
            "The same, but estimated once from all scenes together, which are read twice: for scenes that are alike, "
            "such as slices of one volume.",
        ),
    ] = False,
    base_rate: Annotated[
        float | None,
        opt.value(
            "The share of targets in the scenes, between 0 and 1, if you know it: shifts probabilities to it.", "SHARE"
        ),
    ] = None,
    jobs: opt.Jobs = None,
    say: Output,
) -> None:
    """Fuse images by a model. Sources are matched by name, in any order.

    A source has the name of its file without suffix; if that is not its name in the model, give it with --names:

    ```
    bimichi fuse model.json day2/thermal.png day2/grey.png -o fused.tif
    bimichi fuse model.json heat.png cam.png --names thermal,grey -o fused.tif
    ```

    Many scenes: one folder or quoted pattern per source; one map per scene is written to the output folder. A scene
    that fails is reported at the end and does not stop the others:

    ```
    bimichi fuse model.json ir/ vi/ -o fused/ --resume
    ```

    GeoTIFFs of any size are fused in windows and stay georeferenced:

    ```
    bimichi fuse model.json bands.tif -o fused.tif --overviews
    ```

    Targets, by the threshold that the model keeps or another:

    ```
    bimichi fuse model.json ir/ vi/ -o fused/ --detections found.csv
    bimichi fuse model.json bands.tif -o fused.tif --detections found.geojson --threshold 0.5 --min-size 20
    ```
    """
    if prior_shift + prior_shift_batch + (base_rate is not None) > 1:
        raise InvalidInputError(
            "--prior-shift and --prior-shift-batch estimate the share of targets, which --base-rate gives; choose one.",
            code="base-rate-twice",
        )
    widths = opt.widths_of(smooth)
    scenes = opt.open_sources(sources, names, align, driver, MAX_ADDITIVE_SOURCES)
    inputs = [model, *scenes.files]

    from bimichi.fuse.frames import fuse_scenes  # after the sources: if they are wrong, that is said without delay
    from bimichi.fuse.images import shifted_by_batch

    rule = bimichi.FusionRule.load(model)
    decision = decision_of(rule, threshold, min_size, widths)
    rule = replace(rule if base_rate is None else rule.shifted(base_rate=base_rate), decision=decision)
    if trust_recipes:
        opt.load_recipes(rule.recipes)
    outputs = {
        scene: [path, path.with_suffix(".png")] if png else [path]
        for scene, path in zip(scenes.names, output_files(output, scenes.names, scenes.many, MAPS), strict=True)
    }
    if detections is not None:
        _check_detections(detections, outputs, decision)
    wanted = [*(path for paths in outputs.values() for path in paths), *([detections] if detections else [])]
    keep_inputs([*wanted, run_path(output)], inputs)
    with Run("fuse", ctx.params, inputs) as run:
        if prior_shift_batch:
            with run.timed("prior shift"):
                rule = shifted_by_batch(rule, map(scenes.open, scenes.names), jobs)
        shared: Any = {"resume": resume, "n_jobs": jobs, "verbose": say.verbose}
        with run.timed("fuse"):
            fused, failed = fuse_scenes(rule, scenes, outputs, overviews=overviews, prior_shift=prior_shift, **shared)
        done = [(name, fused[name]) for name in outputs if name in fused]
        written = [path for _, scene in done for path in scene.files]
        counts: dict[str, int] = {}
        if detections is not None and len(failed) < len(outputs):
            with run.timed("detect"):
                maps = {name: paths[0] for name, paths in outputs.items() if name not in failed}
                counts = _write_detections(detections, maps, decision, scenes.many)
            written.append(detections)
        record = run.write(run_path(output), written)
    for name, scene in done:
        if scene.missing:
            say.note(f"Scene {name!r} has NaN in {scene.missing:,} pixels, which are 0 in the PNG.")
        if not scenes.many:
            say.note(f"Wrote {' and '.join(map(str, scene.files))}.")
    if counts:
        say.note(f"Wrote {sum(counts.values()):,} targets to {detections}.")
    skipped = len(outputs) - len(done) - len(failed)
    summary = f"{len(done):,} fused, {skipped:,} existed already, {len(failed):,} failed"
    if scenes.many:
        say.note(f"{summary}; in {output}.")
    result = {
        "model": model,
        "run": record,
        "scenes": [{"scene": name, "files": scene.files, "pixels": scene.pixels} for name, scene in done],
        "failed": failed,
        "seconds": run.seconds,
    }
    say.result(result | ({} if detections is None else {"detections": detections, "targets": counts}))
    if failed:
        raise failures(summary, failed)


def _check_detections(path: Path, maps: Mapping[str, list[Path]], decision: Decision) -> None:
    """Refuse, before anything is fused, a file of detections that could not be written."""
    if decision.threshold is None:
        raise InvalidInputError(
            "The model has no threshold to find targets by. Pass one (--threshold), or train with --decision.",
            code="threshold-missing",
        )
    pictures = [files[0] for files in maps.values() if files[0].suffix.lower() == ".png"]
    if pictures:
        raise InvalidInputError(
            f"{pictures[0]} has 8 bits, too few for a threshold. With --detections, write the map as .tif; --png adds "
            "a picture.",
            code="detections-bits",
        )
    output_file(path, SUFFIXES)


def _write_detections(path: Path, maps: Mapping[str, Path], decision: Decision, many: bool) -> dict[str, int]:
    """Find targets in maps, smoothed already, and write them; return how many there are in each scene."""
    by_image: dict[str, Detections] = {}
    places: dict[str, Georeference] = {}
    for name, file in maps.items():
        scene, image = open_scenes(file)[0], name if many else ""
        by_image[image] = detect(scene.read()[0], replace(decision, smooth=None))
        if scene.transform is not None:
            places[image] = Georeference(tuple(scene.transform)[:6], scene.crs)
    write_detections(path, by_image, places)
    return {name: len(targets) for name, targets in zip(maps, by_image.values(), strict=True)}
