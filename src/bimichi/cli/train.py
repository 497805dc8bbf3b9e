"""`bimichi train`: learn a model from images and labels of regions."""

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

import bimichi
import bimichi.cli.options as opt
from bimichi.cli.console import Output, Run, keep_inputs, output_file, rich_table, run_path
from bimichi.decision import Decision
from bimichi.errors import InvalidInputError
from bimichi.io.dataset import MAX_ADDITIVE_SOURCES, MAX_SOURCES
from bimichi.io.open import SUFFIXES

if TYPE_CHECKING:
    from bimichi.fit.choose import Selection
    from bimichi.io.labelled import LabelledDataset


AUTO = "auto"
SHOWN = 6  # inverted sources that are named


def _registered(package: str, *tables: str) -> list[str]:
    """Return the names in tables of learning, for completion; imported when asked for, since that is slow."""
    module = import_module(f"bimichi.fit.{package}")
    return [name for table in tables for name in getattr(module, table)]


def _wanted(text: str) -> dict[str, float]:
    """Return the arguments of `choose_threshold` that --decision stands for."""
    goal, _, share = text.partition("=")
    if text == "f1":
        return {}
    try:
        if goal in ("recall", "precision") and 0 < float(share) <= 1:
            return {goal: float(share)}
    except ValueError:
        pass
    raise typer.BadParameter(f"{text!r} must be f1, recall=R or precision=P with a share in (0, 1], such as recall=0.9")


def train(
    ctx: typer.Context,
    *,
    sources: opt.Sources,
    output: Annotated[Path, opt.output_option("The model file.", metavar="MODEL")],
    labelled: opt.LabelOptions,
    objective: Annotated[
        str,
        opt.value(
            "What to minimise. auto compares several on scenes that are left out, and each source alone, and "
            "learns the chosen one; or bipolar or magnitude (objectives 1 and 2 of the paper), mean, logistic, or "
            "another that is registered.",
            "NAME",
            autocompletion=lambda: [AUTO, *_registered("objectives", "OBJECTIVES")],
        ),
    ] = AUTO,
    solver: Annotated[
        str,
        opt.value(
            "How to minimise it: convex; evolutionary, the search of the paper (paper, with its own settings); or "
            "another that is registered.",
            "NAME",
            autocompletion=lambda: _registered("solvers", "SOLVERS", "SOLVER_PRESETS"),
        ),
    ] = "convex",
    polarity: Annotated[
        Literal["given", "learn"] | None,
        opt.value(
            "Whether to learn which sources to invert: those for which that clearly helps on scenes that are left "
            "out. By default learn with auto, else given.",
            show_default=False,
        ),
    ] = None,
    additivity: Annotated[
        int | None,
        opt.value(
            "1 learns weights of single sources, 2 also of pairs: for few scenes or many sources, with the "
            "objectives auto, magnitude, mean and logistic.",
            "1|2",
            min=1,
            max=2,
        ),
    ] = None,
    free_scale: Annotated[
        bool,
        opt.flag(
            "--free-scale",
            "For the objective mean: learn a slope and an offset of the labels over the output as well, which "
            "lets the measure rank more freely.",
        ),
    ] = False,
    made: opt.SourceOptions,
    made_by: Annotated[
        Literal["bank", "raw"] | None,
        typer.Option(
            "--sources",
            help="bank makes sources of the raw images (means, blobs, edges, rarity, differences), in sizes that suit "
            "the boxes, and averages rules over them; raw learns from the images alone, each a source by its recipe. "
            "By default bank with auto, unless options are given that are about single sources or bags: --recipe, "
            "--scale, --additivity, --polarity, --bags, --superpixels, --min-overlap.",
            metavar="bank|raw",
            show_default=False,
        ),
    ] = None,
    boosting: Annotated[
        bool,
        opt.flag(
            "--boosting",
            "With a bank: also score gradient boosting on the same pixels, to see what is given up for a rule that can "
            "be explained.",
        ),
    ] = False,
    scale: Annotated[
        Literal["minmax", "maxabs"] | None,
        opt.value("Learn a map of each source to [-1, 1], for floats outside it; the model keeps it."),
    ] = None,
    certify: Annotated[
        bool,
        opt.flag("--certify", "Prove how far J is above the least possible, at most 0.1 % if it can be shown in time."),
    ] = False,
    decision: Annotated[
        str | None,
        opt.value(
            "Also choose the threshold by which targets are found in fused maps, on scenes left out of learning "
            "in turn: f1, for the best F1, recall=0.9 or precision=0.8, of pixels. The model keeps it.",
            "f1|recall=R|precision=P",
            callback=opt.checked(_wanted),
        ),
    ] = None,
    min_size: opt.MinSize = None,
    smooth: opt.Smooth = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    say: Output,
) -> None:
    """Learn a model from co-registered images and labels of regions.

    Without --objective, several settings are compared on scenes that are left out in turn, and the chosen one is
    learned from all of them; the fused map is then the probability of a target.

    One scene with one file per source, and boxes around the targets:

    ```
    bimichi train thermal.png grey.png --boxes boxes.csv -o model.json
    ```

    Many scenes with one folder per source, whose files are paired by name; or with quoted patterns:

    ```
    bimichi train ir/ vi/ --recipe to_bipolar --labels masks/ -o model.json
    bimichi train '*_ir.png' '*_vi.png' --boxes boxes.csv -o model.json
    ```

    Bands of one file, by the paper's first objective:

    ```
    bimichi train bands.tif --labels mask.png --objective bipolar -o model.json
    ```
    """
    from bimichi.io.labelled import LabelledDataset, label_files
    from bimichi.methods.cross_validated import scene_rule

    options = {"n_jobs": jobs, "random_state": seed, "verbose": say.verbose}
    single: dict[str, Any] = {"recipe": made.recipe, "scale": scale, "additivity": additivity, "polarity": polarity}
    single |= {"bags": labelled.bags, "superpixels": None if labelled.superpixels == opt.SUPERPIXELS else True}
    single |= {"min-overlap": labelled.min_overlap or None}
    banked = _uses_bank(made_by, objective, [name for name, given in single.items() if given is not None])
    if certify and objective == AUTO:
        raise typer.BadParameter("needs an objective of your choice, by --objective", param_hint="'--certify'")
    if certify and solver != "convex":
        raise typer.BadParameter(f"only the convex solver can certify, not {solver!r}", param_hint="'--certify'")
    how = bimichi.ConvexSolver(certify=True) if certify else solver
    chosen = {"additivity": additivity, "free_scale": free_scale}
    if boosting and not banked:
        raise typer.BadParameter("only with sources of a bank", param_hint="'--boosting'")
    model = _model(objective, how, polarity, scale, chosen, options)  # checked before anything is read
    if banked:
        model = bimichi.BankFusion(boosting=boosting, n_jobs=jobs)
    labelling = replace(labelled.labelling(), by_pixel=objective == "mean")
    many_sources = additivity is not None or objective == AUTO
    files = made.open(sources, MAX_ADDITIVE_SOURCES if many_sources else MAX_SOURCES)
    inputs = [*files.files, *label_files(labelling, files)]
    keep_inputs([output_file(output), run_path(output)], inputs)
    if output.suffix.lower() in SUFFIXES and output.suffix.lower() != ".npz":
        raise InvalidInputError(
            f"The output of train is a model, not an image: name it .json or .npz, got {output}.",
            code="model-suffix",
            value=output,
        )
    with Run("train", ctx.params, inputs, seed) as run:
        with run.timed("read"):  # many scenes are read while learning
            data = LabelledDataset(files, labelling, recipes=made.recipes, scaled=scale is not None, raw=banked)
            say.notes(data.notes)
            scenes = data if files.many else list(data)
        named = {"raws": data.raws} if banked else {"source_names": data.source_names}
        model.set_params(**named)
        with run.timed("train"):
            _learn(model, scenes, data, say)
        data.warn_of_inputs()
        with run.timed("decide"):
            decided = _decided(model, scenes, decision, min_size, smooth)
        if banked:
            rule = replace(model.rule_, inputs=data.inputs, decision=decided)
        else:
            rule = scene_rule(model, data.recipes, data.inputs, decided)
        rule.save(output)
        record = run.write(run_path(output), [output])
    counts = {
        kind: sum(getattr(scene_counts, kind) for scene_counts in data.counts.values())
        for kind in ("positive", "negative")
    }
    recorded = rule.training
    assert recorded is not None  # as it was learned just now
    result = {
        "model": output,
        "run": record,
        "sources": dict(zip(rule.source_names, rule.groups if banked else rule.recipes or (), strict=True)),
        "scenes": len(data),
        "bags": counts,
        "objective": recorded.objective,
        "objective_value": recorded.objective_value,
        "status": recorded.status,
        "ending": recorded.ending,
        "proof": recorded.proof,
        "decision": None if decided is None else decided.pack(),
        "polarity": dict(zip(rule.source_names, rule.polarity.astype(int).tolist(), strict=True)),
        "seconds": run.seconds,
    }
    shown: list[Any] = []
    if hasattr(model, "selection_"):
        result["selection"] = model.selection_.to_dict()
        shown = _chosen(model.selection_, say)
    if banked:
        shown.append(escape(_made_sources(rule)))
    say.result(result, *shown, _sentence(result))


def _uses_bank(made_by: str | None, objective: str, single: Sequence[str]) -> bool:
    """Return whether sources are made by a bank; raise if that does not go with the options about single sources."""
    if made_by == "bank" and (objective != AUTO or single):
        other = "--objective" if objective != AUTO else f"--{single[0]}"
        said = f"bank does not go with {other}, which is about single sources"
        raise typer.BadParameter(said, param_hint="'--sources'")
    return made_by == "bank" or (made_by is None and objective == AUTO and not single)


def _made_sources(rule: "bimichi.FusionRule") -> str:
    """Return how many sources were made of each image."""
    assert rule.bank is not None
    counts = {name: sum(name in group.split(" and ") for group in rule.groups) for name in rule.raw_names}
    each = ", ".join(f"{name} {count}" for name, count in counts.items())
    return f"{rule.n_sources} sources, of targets of about {rule.bank.size:.0f} px: {each} (differences count twice)."


def _decided(
    model: Any, scenes: "Sequence[bimichi.Scene]", wanted: str | None, size: int | None, smooth: str | None
) -> Decision | None:
    """Return how targets are found in the maps of this model, if any of it was asked for."""
    kept: dict[str, Any] = {"min_size": size or 1, "smooth": opt.widths_of(smooth)}
    if wanted is not None:
        from bimichi.evaluate.thresholds import decide

        return decide(model, scenes, **(kept | _wanted(wanted)))
    return Decision(**kept) if size is not None or smooth is not None else None


def _model(
    objective: str, solver: Any, polarity: Any, scale: Any, chosen: dict[str, Any], options: dict[str, Any]
) -> Any:
    """Return what to fit, or raise if its options do not go together."""
    from bimichi.fit.objectives import get_objective
    from bimichi.fit.solvers import get_solver
    from bimichi.fit.train import check_training

    if objective == AUTO:
        if solver != "convex":
            raise typer.BadParameter("only with an objective of your choice, by --objective", param_hint="'--solver'")
        if chosen["free_scale"]:
            raise typer.BadParameter("only with --objective mean", param_hint="'--free-scale'")
        return bimichi.BiMIChICV(polarity=polarity or "learn", scale=scale, additivity=chosen["additivity"], **options)
    signs = polarity or "given"
    check_training(get_objective(objective, **chosen), get_solver(solver), signs)
    return bimichi.BiMIChI(objective, solver, signs, scale, **chosen, **options)


def _chosen(selection: "Selection", say: Output) -> list[Any]:
    """Return the table and the sentence of a choice; what warns of it goes to standard error."""
    from bimichi.scenes.labels import COUNTED

    warning = selection.warning()
    if warning:
        say.note(f"Warning: {warning}")
    if selection.weak:
        say.note(f"Warning: {selection.weakness()}")
    return [rich_table(selection.table()), COUNTED, escape(selection.sentence())]


def _learn(model: Any, scenes: "Sequence[bimichi.Scene]", data: "LabelledDataset", say: Output) -> None:
    """Fit to one scene, or to many that are read one after another."""
    say.note(f"Learning from {len(scenes)} scene{'s' * (len(scenes) > 1)} of {', '.join(data.source_names)}.")
    from bimichi.methods.cross_validated import fit_scenes

    try:
        fit_scenes(model, scenes)
    except InvalidInputError:
        if len(data.counts) == len(scenes):
            data.check_both()  # whose message says more if all bags are of one class
        raise


def _sentence(result: dict[str, Any]) -> str:
    inverted = [name for name, sign in result["polarity"].items() if sign < 0]
    value, decision, decided = result["objective_value"], result["decision"], ""
    if decision is not None and decision["threshold"] is not None:
        decided = f"Threshold {decision['threshold']:.4g}, {decision['chosen']}.\n"
    more = f" and {len(inverted) - SHOWN} more" if len(inverted) > SHOWN else ""
    listed = ", ".join(inverted[:SHOWN]) + more
    return escape(
        f"{'' if isnan(value) else f'J = {value:.4f} '}({result['objective']}, {result['ending']}) after "
        f"{result['seconds']['train']:.1f} s; "
        f"{'inverted: ' + listed if inverted else 'no source is inverted'}.\n"
        f"{result['proof'] + chr(10) if result['proof'] else ''}"
        f"{decided}"
        f"Wrote {result['model']}, and {result['run']} to repeat it. Show it with: bimichi show {result['model']}"
    )
