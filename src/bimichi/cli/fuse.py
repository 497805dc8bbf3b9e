"""`bimichi fuse`: fuse images by a model."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bimichi.cli.console import Output
from bimichi.cli.options import Jobs, Model, Names, Sources, listed, output_option
from bimichi.cli.outputs import keep_inputs, output_files
from bimichi.cli.runs import Run, run_path
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.imaging.collecting import MAX_ADDITIVE_SOURCES, collect_scenes
from bimichi.imaging.reading import has_geotags

if TYPE_CHECKING:
    from bimichi.rule import FusionRule


MAPS = (".tif", ".tiff", ".png")


def fuse(
    ctx: typer.Context,
    *,
    model: Model,
    sources: Sources,
    output: Annotated[
        Path, output_option("The map: .tif (float32) or .png (8 bits: -1 is 0, +1 is 255); a folder for many scenes.")
    ],
    png: Annotated[bool, typer.Option("--png", help="Also write a PNG beside each TIFF; not for GeoTIFFs.")] = False,
    names: Names = None,
    resume: Annotated[bool, typer.Option("--resume", help="Skip scenes whose map exists already.")] = False,
    align: Annotated[bool, typer.Option("--align", help="Warp GeoTIFFs on other grids to that of the first.")] = False,
    overviews: Annotated[bool, typer.Option("--overviews", help="Add overviews to fused GeoTIFFs.")] = False,
    prior_shift: Annotated[
        bool,
        typer.Option(
            "--prior-shift",
            help="Estimate on each scene how frequent targets are, and shift its probabilities; for models with "
            "probabilities, such as those of --objective logistic.",
        ),
    ] = False,
    base_rate: Annotated[
        float | None,
        typer.Option(
            "--base-rate",
            help="The share of targets in the scenes, between 0 and 1, if you know it: shifts probabilities to it.",
            metavar="SHARE",
        ),
    ] = None,
    jobs: Jobs = None,
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
    """
    from bimichi.imaging.fusing import FusedScene, fuse_scene
    from bimichi.rule import FusionRule

    if prior_shift and base_rate is not None:
        raise InvalidInputError("--prior-shift estimates the share of targets that --base-rate gives; leave out one.")
    rule, scenes, called = FusionRule.load(model), collect_scenes(sources, MAX_ADDITIVE_SOURCES), listed(names)
    if base_rate is not None:
        rule = rule.shifted(base_rate=base_rate)
    inputs = [model, *scenes.files]
    outputs = {
        scene: [path, path.with_suffix(".png")] if png else [path]
        for scene, path in zip(scenes.names, output_files(output, scenes.names, scenes.many, MAPS), strict=True)
    }
    keep_inputs([path for paths in outputs.values() for path in paths], inputs)
    by_name, threads = {scene.name: scene for scene in scenes.scenes}, 1 if scenes.many else jobs
    fused: dict[str, FusedScene] = {}
    failed: dict[str, str] = {}

    def fuse_one(name: str) -> None:
        files, path = by_name[name].files, outputs[name][0]
        if path.suffix.lower() != ".png" and _are_georeferenced(files):
            if png:
                raise InvalidInputError(f"{files[0]} is georeferenced and fused to a GeoTIFF only; leave out --png.")
            if prior_shift:
                raise InvalidInputError(
                    f"{files[0]} is georeferenced and fused in windows, so that its share of targets is not known "
                    "beforehand; give it with --base-rate, or estimate it in Python on some pixels: FusionRule.shifted."
                )
            pixels = _fuse_raster(rule, files, path, names=called, align=align, overviews=overviews, n_jobs=threads)
            fused[name] = FusedScene([path], pixels)
        else:
            fused[name] = fuse_scene(rule, by_name[name], scenes, path, called, png, threads, prior_shift)

    with Run("fuse", ctx.params, inputs) as run:
        with run.timed("fuse"):
            if scenes.many:
                from bimichi.scale.frames import fuse_each

                failed = fuse_each(fuse_one, outputs, resume=resume, n_jobs=jobs, verbose=say.verbose).failed
            elif not (resume and all(path.exists() for path in outputs[scenes.names[0]])):
                fuse_one(scenes.names[0])  # whose errors are those of the command
        done = [(name, fused[name]) for name in outputs if name in fused]
        record = run.write(run_path(output), [path for _, one in done for path in one.files])
    for name, one in done:
        if one.missing:
            say.note(f"Scene {name!r} has NaN in {one.missing:,} pixels, which are 0 in the PNG.")
        if not scenes.many:
            say.note(f"Wrote {' and '.join(map(str, one.files))}.")
    skipped = len(outputs) - len(done) - len(failed)
    counts = f"{len(done):,} fused, {skipped:,} existed already, {len(failed):,} failed"
    if scenes.many:
        say.note(f"{counts}; in {output}.")
    found = [{"scene": name, "files": one.files, "pixels": one.pixels} for name, one in done]
    say.result({"model": model, "run": record, "scenes": found, "failed": failed, "seconds": run.seconds})
    if failed:
        raise BimichiError("\n".join([f"{counts}:", *(f"{name}: {problem}" for name, problem in failed.items())]))


def _are_georeferenced(files: Sequence[Path]) -> bool:
    """Whether all files are TIFFs and one of them is georeferenced."""
    if not all(file.suffix.lower() in (".tif", ".tiff") for file in files) or find_spec("rasterio") is None:
        return False
    tagged = [file for file in files if has_geotags(file)]
    if not tagged:  # rasterio would take longer to import than the images to fuse
        return False
    from bimichi.scale.gdal import is_georeferenced

    return any(is_georeferenced(file) for file in tagged)


def _fuse_raster(rule: "FusionRule", files: Sequence[Path], output: Path, **options: Any) -> int:
    """Fuse a GeoTIFF; return the number of pixels."""
    from bimichi.scale.gdal import open_source
    from bimichi.scale.rasters import fuse_raster, with_default_recipes

    with open_source(fuse_raster(with_default_recipes(rule, files), files, output, **options)) as written:
        return int(written.width * written.height)
