"""`bimichi show`: a model as tables."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.markup import escape

from bimichi._tables import Cell, Table, number
from bimichi.cli.console import Json, Output, rich_table

if TYPE_CHECKING:
    from bimichi.cli.model import FusionModel
    from bimichi.measures.bicapacity import BiCapacity

__all__ = ["show"]

MATRIX_LIMIT = 3
"""Sources up to which the table of the paper, 2^m columns wide, fits a terminal; above, elements are listed."""


def show(
    model: Annotated[Path, typer.Argument(metavar="MODEL", show_default=False, help="What `bimichi train` wrote.")],
    elements: Annotated[
        int, typer.Option(min=1, help="How many elements to list, for more than 3 sources.", metavar="N")
    ] = 20,
    json: Json = False,
) -> None:
    """Show a model: what it was trained for, its sources, and its bi-capacity.

    Elements that training instances used are bold, as in the paper's tables. The others follow from the order alone.
    Of a 2-additive bi-capacity, the largest terms are listed.

    ```
    bimichi show model.json
    bimichi show model.json --json
    ```
    """
    from bimichi.cli.model import FusionModel
    from bimichi.measures.additive import TwoAdditive

    found = FusionModel.load(model)
    g = found.bicapacity
    if isinstance(g, TwoAdditive):
        table, touched, what = g.to_table(min(elements, _n_terms(found))), found.touched[: _n_terms(found)], "terms"
    else:
        table = g._table(found.touched > 0) if g.n_sources <= MATRIX_LIMIT else _most_used(found, g, elements)
        touched, what = found.touched, "elements"
    used = f"{np.count_nonzero(touched):,} of {len(touched):,} {what} are used."
    Output(json=json).result(_data(found), _head(found), rich_table(_sources(found)), rich_table(table), used)


def _data(model: "FusionModel") -> dict[str, Any]:
    header, g = model.header, model.bicapacity
    keys = ("objective", "additivity", "objective_value", "lower_bound", "status", "n_iter", "scale", "classes")
    return {key: header.get(key) for key in (*keys, "bimichi")} | {
        "solver": header["solver"]["name"],
        "sources": [
            {"name": name, "polarity": int(sign), "centre": centre, "factor": factor, "recipe": recipe}
            for name, sign, centre, factor, recipe in zip(
                g.source_names, model.polarity, model.centre, model.factor, _recipes(model), strict=True
            )
        ],
        **_parts(model),
    }


def _parts(model: "FusionModel") -> dict[str, Any]:
    """All elements, or all terms."""
    from bimichi.measures.additive import TwoAdditive

    g = model.bicapacity
    if isinstance(g, TwoAdditive):
        named = [(term, g.sets(term)) for term in range(_n_terms(model))]
        values, what = g.terms, "terms"
    else:
        named = list(_pairs(g, range(g.lattice.size)))
        values, what = g.values, "elements"
    listed = [
        {"A": up, "B": down, "value": values[code], "used_by": int(model.touched[code])} for code, (up, down) in named
    ]
    return {what: listed}


def _n_terms(model: "FusionModel") -> int:
    """How many terms may differ from zero: all, or, of an additive measure, those of single sources."""
    return 2 * len(model.source_names) if model.header["additivity"] == 1 else len(model.touched)


def _head(model: "FusionModel") -> str:
    header = model.header
    bound, additivity = header.get("lower_bound"), header.get("additivity")
    kind = f", {additivity}-additive" if additivity else ""
    return escape(
        f"Bi-MIChI{kind}, objective {header['objective']}, solver {header['solver']['name']}: J = "
        f"{header['objective_value']:.4f}{'' if bound is None else f', lower bound {bound:.4f}'}, {header['status']} "
        f"after {header['n_iter']} iterations."
    )


def _sources(model: "FusionModel") -> Table:
    scale = model.header.get("scale") or "none"
    rows = [
        [Cell(name), Cell(recipe or "–"), Cell(str(scale)), Cell("as it is" if sign > 0 else "turned over")]
        for name, sign, recipe in zip(model.source_names, model.polarity, _recipes(model), strict=True)
    ]
    return Table(["source", "recipe", "scale", "polarity"], rows)


def _most_used(model: "FusionModel", g: "BiCapacity", limit: int) -> Table:
    """List the elements that most training instances used."""
    touched = model.touched
    codes = [int(code) for code in np.argsort(-touched, kind="stable")[:limit] if touched[code]]
    rows = [
        [
            Cell(", ".join(up) or "∅"),
            Cell(", ".join(down) or "∅"),
            Cell(number(g.values[code]), True),
            Cell(f"{touched[code]:,.0f}"),
        ]
        for code, (up, down) in _pairs(g, codes)
    ]
    return Table(["A", "B", "g(A, B)", "used by"], rows)


def _pairs(g: "BiCapacity", codes: Iterable[int]) -> Iterator[tuple[int, tuple[list[str], list[str]]]]:
    """Yield codes with the names in A and in B."""
    names = g.source_names
    for code in codes:
        up, down = g.lattice.sets(code)
        yield code, ([names[k] for k in up], [names[k] for k in down])


def _recipes(model: "FusionModel") -> list[str | None]:
    return [None] * model.bicapacity.n_sources if model.recipes is None else list(model.recipes)
