"""`explain_pixel`: one pixel of an image, its sources, what each contributed, and the steps of its integral."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi import _html
from bimichi._checks import is_integer, is_xarray
from bimichi._tables import number
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.explain.attribution import Chain, chain, contributions
from bimichi.explain.results import Explanation
from bimichi.integral.labelled import unlabelled
from bimichi.integral.matching import own_names
from bimichi.integral.planes import split_planes
from bimichi.learning.scene import Scene
from bimichi.rule import FusionRule, as_rule


@dataclass(frozen=True, eq=False, repr=False)
class PixelExplanation(Explanation):
    """What made the fused value of one pixel; in a notebook, a table with bars and the steps of the integral.

    Attributes
    ----------
    row, column : int
        The pixel.
    fused : float
        Its value in the fused map.
    source_names : tuple of str
        The sources.
    values, entered : ndarray of shape (n_sources,)
        Their values in the image, and as they enter the integral: scaled, and inverted if the rule does so.
    contributions : ndarray of shape (n_sources,)
        Their Shapley values, which add up to the total of `chain` (without the offset of a link).
    chain : Chain
        The steps that add up to the integral, or with a link to the log-odds.
    unmet : tuple of str
        Elements or terms among the steps that no training instance touched; their values follow from others.
    """

    row: int
    column: int
    fused: float
    source_names: tuple[str, ...]
    values: Floats
    entered: Floats
    contributions: Floats
    chain: Chain
    unmet: tuple[str, ...] = ()

    def _head(self) -> str:
        return f"Pixel in row {self.row}, column {self.column}: {number(self.fused)}"

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        names = ("value", "enters as", "contributes")
        numbers = (self.values, self.entered, self.contributions)
        return {"source": self.source_names} | {name: part.tolist() for name, part in zip(names, numbers, strict=True)}

    @property
    def _note(self) -> str:
        unmet = f"Not met in training, so that the value follows from others: {', '.join(self.unmet)}."
        return " ".join(filter(None, [self.chain._note, unmet if self.unmet else ""]))

    def __repr__(self) -> str:
        steps = self.chain.to_table().to_text() if self.chain._fits() else repr(self.chain)
        whole = f"{self._head()}\n{self.to_table().to_text()}\n\n{steps}"
        return f"{whole}\n{self._note}" if self._note else whole

    def _repr_html_(self) -> str:
        rows = zip(self.source_names, self.values, self.entered, self.contributions, strict=True)
        listed = [(name, [number(v), number(e), f"{c:+.2f}"], float(c)) for name, v, e, c in rows]
        parts = [_html.bars(list(self._columns()), listed)]
        if self.chain._fits():
            parts.append(_html.table(self.chain.to_table()))
        return _html.view(self._head(), *parts, note=self._note)


def explain_pixel(model: Any, sources: Any, row: int, column: int) -> PixelExplanation:
    """Explain one pixel of an image: what each source contributed, and the steps of the integral.

    Parameters
    ----------
    model : FusionRule, Measure, or fitted estimator that has a measure
        What to explain.
    sources : ndarray of shape (height, width, n_sources), list of n_sources planes, or Scene
        The image; also an array or a dataset of xarray.
    row, column : int
        The pixel, counted from 0 at the upper left; below 0 from the other end.

    Examples
    --------
    >>> import numpy as np
    >>> from bimichi import BiCapacity
    >>> image = np.full((2, 2, 2), [0.5, -0.2])
    >>> explain_pixel(BiCapacity.additive([0.7, 0.3], ["thermal", "rgb"]), image, 0, 1)
    Pixel in row 0, column 1: 0.29
    source   value  enters as  contributes
    thermal   0.50       0.50         0.35
    rgb      -0.20      -0.20        -0.06
    <BLANKLINE>
    element          weight  value  product
    g_{thermal,rgb}    0.20   0.40     0.08
    g_{thermal,∅}      0.30   0.70     0.21
    C                                  0.29
    """
    rule = as_rule(model)
    planes = _planes(rule, sources)
    height, width = planes[0].shape
    at = [_place(where, size, name) for where, size, name in ((row, height, "row"), (column, width, "column"))]
    values = np.array([plane[at[0], at[1]] for plane in planes])
    if np.isnan(values).any():
        raise InvalidInputError(f"The pixel in row {at[0]}, column {at[1]} has no data; choose another.")
    steps, rows = chain(rule, values), values[None]
    touched = rule.usage.get("touched")
    unmet = () if touched is None else tuple(s.element for s in steps.steps if s.code >= 0 and not touched[s.code])
    return PixelExplanation(
        at[0],
        at[1],
        float(rule.fuse(rows)[0]),
        rule.source_names,
        values.astype(np.float64),
        np.array([float(plane[0]) for plane in rule.enter(rows)]),
        contributions(rule, rows)[0].astype(np.float64),
        steps,
        unmet,
    )


def _planes(rule: FusionRule, sources: Any) -> list[NDArray[Any]]:
    if isinstance(sources, Scene):
        if own_names(rule) is not None and sources.source_names != rule.source_names:
            raise InvalidInputError(
                f"The sources of scene {sources.name!r} are {', '.join(sources.source_names)}, but those of the model "
                f"are {', '.join(rule.source_names)}. Give a scene with these sources, in this order."
            )
        sources = sources.sources
    planes = unlabelled(sources, rule).planes if is_xarray(sources) else split_planes(sources, rule.n_sources)[1]
    if planes[0].ndim != 2:
        raise InvalidInputError(
            f"sources must be an image, so that each source has two axes; here they have {planes[0].ndim}. "
            "For one instance, use bimichi.explain.chain."
        )
    return planes


def _place(where: Any, size: int, name: str) -> int:
    if not is_integer(where) or not -size <= where < size:
        raise InvalidInputError(f"{name} must be a whole number in {-size}..{size - 1}, got {where!r}.")
    return int(where) % size
