"""`bimichi compare`: all methods of the paper on the user's own scenes."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import bimichi
from bimichi._files import atomic_write, plain
from bimichi.cli.console import Output, Run, keep_inputs, output_file, rich_table, run_path
from bimichi.cli.options import Jobs, LabelOptions, Seed, SourceOptions, Sources, listed, output_option, value
from bimichi.errors import InvalidInputError

TABLES = (".md", ".csv", ".tex")


def compare(
    ctx: typer.Context,
    *,
    sources: Sources,
    truth: Annotated[str, value("Mask of targets, above 0, to score against.", "MASK")],
    output: Annotated[Path | None, output_option("The table: .md, .csv or .tex.")] = None,
    methods: Annotated[
        str | None, value("Only these, by their names in the table, separated by commas.", "A,B,C")
    ] = None,
    labelled: LabelOptions,
    made: SourceOptions,
    seed: Seed = 0,
    jobs: Jobs = None,
    say: Output,
) -> None:
    """Compare the methods of the paper on your own scenes, each under the kind of label it needs.

    Methods are trained and scored on the same scenes, as in the paper. Those that need the label of every pixel take it
    from the truth; the others see bags only.

    ```
    bimichi compare ir.png vi.png --boxes boxes.csv --truth mask.png -o t.md
    ```
    """
    from bimichi.io.labelled import LabelledDataset, label_files

    labelling, collection = labelled.labelling(), made.open(sources)
    masks = collection.companions(truth, "truth").values()
    inputs = [*collection.files, *label_files(labelling, collection), *masks]
    if output is not None:
        keep_inputs([output_file(output, TABLES), run_path(output)], inputs)
    with Run("compare", ctx.params, inputs, seed) as run:
        with run.timed("read"):
            data = LabelledDataset(collection, labelling, recipes=made.recipes, truth=truth)
            say.notes(data.notes)
            scenes = list(data)
            data.check_both()
            data.warn_of_inputs()
        with run.timed("compare"):
            chosen = _chosen(bimichi.paper_methods(scenes[0].source_names, random_state=seed), listed(methods))
            comparison = bimichi.compare(chosen, scenes, n_jobs=jobs, verbose=say.verbose)
        rows = [_row(result) for result in comparison.results]
        result: dict[str, Any] = {"methods": rows, "seconds": run.seconds}
        if output is not None:
            text = _written(comparison, rows, output.suffix.lower())
            atomic_write(output, lambda file: file.write(text.encode(errors="backslashreplace")))
            result |= {"table": output, "run": run.write(run_path(output), [output])}
    say.result(result, rich_table(comparison.table()))
    if output is not None:
        say.note(f"Wrote {output}.")


def _chosen(methods: dict[str, Any], names: Sequence[str] | None) -> dict[str, Any]:
    unknown = [name for name in names or [] if name not in methods]
    if unknown:
        raise InvalidInputError(
            f"There is no method {unknown[0]!r}; --methods takes {', '.join(methods)}.", code="method-unknown"
        )
    return methods if names is None else {name: methods[name] for name in names}


def _row(result: Any) -> dict[str, Any]:
    scores = ("auc", "average_precision", "best_f1", "rmse", "calibration_error")
    reached = {score: result.mean(score) for score in scores}
    times = {"fit_seconds": result.fit_seconds, "fuse_seconds": result.fuse_seconds}
    return {"method": result.name} | reached | times | {"problem": result.problem}


def _written(comparison: "bimichi.Comparison", rows: list[dict[str, Any]], suffix: str) -> str:
    if suffix != ".csv":
        return (comparison.to_markdown() if suffix == ".md" else comparison.to_latex()) + "\n"
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(plain(rows))
    return text.getvalue()
