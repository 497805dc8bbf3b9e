"""`bimichi show`: a model as tables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.markup import escape

from bimichi._tables import Cell, Table
from bimichi._types import Ints
from bimichi.cli.console import Json, Output, rich_table
from bimichi.cli.options import Model

if TYPE_CHECKING:
    from bimichi.rule import FusionRule


def show(
    model: Model,
    elements: Annotated[
        int, typer.Option(min=1, help="How many elements to list, for more than 3 sources.", metavar="N")
    ] = 20,
    json: Json = False,
) -> None:
    """Show a model: what it was trained for, its sources, and its bi-capacity.

    Elements that training instances used are bold, as in the paper's tables. The others follow from the order alone.
    Of an additive bi-capacity, the largest terms are listed.

    ```
    bimichi show model.json
    bimichi show model.json --json
    ```
    """
    from bimichi.rule import FusionRule

    rule = FusionRule.load(model)
    touched = rule.usage.get("touched", np.zeros(len(rule.measure.values), np.int64))[: rule.measure.n_parts]
    used = f"{np.count_nonzero(touched):,} of {len(touched):,} {rule.measure.parts} are used."
    Output(json=json).result(
        _data(rule, touched),
        _head(rule),
        rich_table(_sources(rule)),
        rich_table(rule.measure.overview(touched, elements)),
        *([used] if rule.usage else []),
        *_selection(rule),
    )


def _selection(rule: "FusionRule") -> list[Any]:
    """Show what the model was chosen from, if it was."""
    from bimichi.learning.selection import selection_of

    found = selection_of(rule.training)
    if found is None:
        return []
    return [
        rich_table(found.table()),
        escape(found.sentence()),
        *([escape(found.warning())] if found.warning() else []),
    ]


def _data(rule: "FusionRule", touched: Ints) -> dict[str, Any]:
    record = rule.training
    keys = ("method", "objective", "objective_value", "lower_bound", "status", "n_iter", "classes", "solver")
    listed = [
        dict(zip("AB", rule.measure.sets(k), strict=True)) | {"value": float(value), "used_by": int(touched[k])}
        for k, value in enumerate(rule.measure.values[: len(touched)])
    ]
    return {key: getattr(record, key, None) for key in keys} | {
        "additivity": getattr(record, "parameters", {}).get("additivity"),
        "scale": rule.scale,
        "bimichi": getattr(record, "version", None),
        "selection": getattr(record, "selection", None),
        "sources": [
            {"name": name, "polarity": int(sign), "centre": centre, "factor": factor, "recipe": recipe}
            for name, sign, centre, factor, recipe in zip(
                rule.source_names, rule.polarity, rule.centre, rule.factor, _recipes(rule), strict=True
            )
        ],
        rule.measure.parts: listed,
    }


def _head(rule: "FusionRule") -> str:
    record, kind = rule.training, rule.measure.describe()
    if record is None:
        return escape(f"{kind} of {rule.n_sources} sources, not learned.")
    bound = "" if record.lower_bound is None else f", lower bound {record.lower_bound:.4f}"
    return escape(
        f"{record.method} ({kind}), objective {record.objective}, solver {record.solver}: J = "
        f"{record.objective_value:.4f}{bound}, {record.status} after {record.n_iter} iterations."
    )


def _sources(rule: "FusionRule") -> Table:
    rows = [
        [Cell(name), Cell(recipe or "–"), Cell(rule.scale or "none"), Cell("as it is" if sign > 0 else "inverted")]
        for name, sign, recipe in zip(rule.source_names, rule.polarity, _recipes(rule), strict=True)
    ]
    return Table(["source", "recipe", "scale", "polarity"], rows)


def _recipes(rule: "FusionRule") -> Sequence[str | None]:
    return [None] * rule.n_sources if rule.recipes is None else rule.recipes
