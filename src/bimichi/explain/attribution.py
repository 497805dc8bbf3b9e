"""The steps of the integral of one instance or pixel, and the contribution of each source to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi import _html
from bimichi._checks import is_integer, is_xarray
from bimichi._html import Cell, Table, number
from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.explain.parts import Explanation, prepare
from bimichi.integral.labelled import own_names, relabelled, unlabelled
from bimichi.integral.planes import check_n_jobs, run_chunks, split_planes
from bimichi.link import Link, probability_of
from bimichi.rule import FusionRule, as_rule
from bimichi.scenes.scene import Scene


class Step(NamedTuple):
    """An element or term, its code, its weight, its value, and their product, which is added to the total."""

    element: str
    code: int
    weight: float
    value: float
    product: float


@dataclass(frozen=True, repr=False)
class Chain(Explanation):
    """The integral of one instance, step by step; of a rule with a link, its log-odds.

    Attributes
    ----------
    steps : tuple of Step
        Elements, from all sources to the largest alone; each weighs how much |x| rises on it. Of an additive measure,
        terms, those of sources first, then the largest; each weighs |x|, or the smaller |x| of its two sources. With a
        link, the first step is its offset (code -1), and products are those of weight, value and slope.
    inverted : tuple of str
        Sources that the model inverts before the integral; elements and terms are about the inverted sources.
    columns : tuple of str
        Headings of the table.
    link : Link, optional
        That of the rule.
    """

    steps: tuple[Step, ...]
    inverted: tuple[str, ...] = ()
    columns: tuple[str, str, str, str] = ("element", "weight", "value", "product")
    link: Link | None = None

    @property
    def total(self) -> float:
        """The integral C, or with a link the log-odds: the sum of the products."""
        return float(sum(step.product for step in self.steps))

    @property
    def probability(self) -> float | None:
        """The probability of a target; None without a link."""
        return None if self.link is None else float(probability_of(self.total))

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        return {name: [step[k] for step in self.steps] for name, k in zip(self.columns, (0, 2, 3, 4), strict=True)}

    def to_table(self) -> Table:
        """Return the steps and their sum as a table."""
        ends = {"C" if self.link is None else "log-odds": self.total}
        if self.probability is not None:
            ends["probability"] = self.probability
        rows = [[Cell(name), Cell(""), Cell(""), Cell(number(end), bold=True)] for name, end in ends.items()]
        return Table(self.columns, [*super().to_table().rows, *rows])

    def _head(self) -> str:
        return f"{'C' if self.link is None else 'log-odds'} = {number(self.total)}"

    def __repr__(self) -> str:
        shown = self.to_table().to_text() if self._fits() else f"{self._head()}, {len(self.steps)} terms"
        return "\n".join(filter(None, [shown, self._note]))

    @property
    def _note(self) -> str:
        return f"Inverted before the integral: {', '.join(self.inverted)}." if self.inverted else ""


def chain(model: Any, x: ArrayLike) -> Chain:
    """Return the steps that add up to the integral of one instance, or with a link to its log-odds.

    Parameters
    ----------
    model : FusionRule, Measure, or fitted estimator that has a measure
        What to explain. A rule scales and inverts `x` as it does when fusing.
    x : array-like of shape (n_sources,)
        The instance, without NaN.

    Examples
    --------
    >>> from bimichi import BiCapacity
    >>> chain(BiCapacity.additive([0.7, 0.3], ["thermal", "rgb"]), [0.5, -0.2])
    element          weight  value  product
    g_{thermal,rgb}    0.20   0.40     0.08
    g_{thermal,∅}      0.30   0.70     0.21
    C                                  0.29
    """
    if is_xarray(x):  # of a dataset, a pixel has variables without dimensions, which are no sources
        rows = x.expand_dims("instance")  # type: ignore[union-attr]
        x = np.stack(unlabelled(rows, as_rule(model)).planes, axis=-1)[0]
    instance = np.asarray(x)
    if instance.ndim != 1:
        raise InvalidInputError(
            f"x must be one instance, 1-D with one value per source, got shape {instance.shape}.",
            code="instance-shape",
            argument="x",
        )
    rule, parts, planes = prepare(model, instance)
    planes.check_nan()
    codes, weights = parts.steps(planes.stacked(slice(0, 1))[:, 0])
    arrays = list(zip(codes.tolist(), weights.tolist(), parts.values[codes].tolist(), strict=True))
    factor = float(_factor(rule, sum(weight * value for _, weight, value in arrays)))
    steps = [Step(parts.label(code), code, weight, value, weight * value * factor) for code, weight, value in arrays]
    if rule.link is not None:
        steps.insert(0, Step("offset", -1, 1.0, rule.link.offset, rule.link.offset))
    return Chain(tuple(steps), rule.inverted, parts.columns, rule.link)


def contributions(model: Any, X: ArrayLike | Sequence[ArrayLike], *, n_jobs: int | None = None) -> NDArray[Any]:
    """Split the integral of every instance among the sources, or with a link its log-odds.

    Parameters
    ----------
    model : FusionRule, Measure, or fitted estimator that has a measure
        What to explain. A rule scales and inverts the sources as it does when fusing.
    X : array-like of shape (..., n_sources), or list or tuple of n_sources equally shaped arrays
        Rows, an image or planes, as in `choquet`; also an array or a dataset of xarray. An instance with NaN in any
        source gives NaN.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.

    Returns
    -------
    contributions : ndarray of shape (..., n_sources)
        The Shapley value of each source in the game v(S) = C(x with the sources outside S set to 0); they add up
        to C, also for a "magnitude" model, whose output is |C|. With a link they are in log-odds: the offset of the
        link and the contributions add up to `FusionRule.log_odds`. float32 if all sources are, else float64. Of xarray,
        an array with the coordinates of X and a last dimension "source".

    Notes
    -----
    O(n m^2), and O(m 3^m) once for a measure on a lattice. There, the value without a source depends on elements that
    the instance does not use, and perhaps none of the training data: see `identifiability`.

    Examples
    --------
    >>> from bimichi import BiCapacity
    >>> contributions(BiCapacity.additive([0.75, 0.25]), [[1.0, -1.0], [0.0, 0.5]])
    array([[ 0.75 , -0.25 ],
           [ 0.   ,  0.125]])
    """
    jobs = check_n_jobs(n_jobs)
    if is_xarray(X):
        rule = as_rule(model)
        arrays = unlabelled(X, rule)
        values = contributions(rule, arrays.planes, n_jobs=n_jobs)
        return relabelled(values, arrays.like, "contribution", rule.source_names)  # type: ignore[return-value]
    rule, parts, planes = prepare(model, X)
    contribute = parts.contributor()
    out = np.empty((planes.size, planes.n_sources), planes.dtype)

    def run(chunk: slice) -> None:
        part = out[planes.instances(chunk)]
        contribute(planes.stacked(chunk), part)
        if rule.link is not None:
            part *= _factor(rule, part.sum(axis=1, keepdims=True))

    run_chunks(run, planes.chunks(stacked=True), jobs)
    return out.reshape(*planes.shape, planes.n_sources)


def _factor(rule: FusionRule, integral: Any) -> Any:
    """Return the factor that makes a part of the integral C a part of the log-odds; 1 without a link."""
    if rule.link is None:
        return 1.0
    return rule.link.slope * (np.where(integral < 0, -1.0, 1.0) if rule.output == "magnitude" else 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class PixelExplanation(Explanation):
    """An explanation of one pixel's fused value; in a notebook, a table with bars and the steps of the integral.

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
        numbers = {"value": self.values, "enters as": self.entered, "contributes": self.contributions}
        return {"source": self.source_names} | {name: array.tolist() for name, array in numbers.items()}

    @property
    def _note(self) -> str:
        unmet = f"Not met in training, so that the value follows from others: {', '.join(self.unmet)}."
        return " ".join(filter(None, [self.chain._note, unmet if self.unmet else ""]))

    def __repr__(self) -> str:
        steps = self.chain.to_table().to_text() if self.chain._fits() else repr(self.chain)
        return "\n".join(filter(None, [super().__repr__() + "\n", steps, self._note]))

    def _repr_html_(self) -> str:
        columns = self._columns()
        rows = [
            (name, [number(value), number(entered), f"{contributed:+.2f}"], contributed)
            for name, value, entered, contributed in zip(*columns.values(), strict=True)
        ]
        parts = [_html.bars(list(columns), rows)]
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
    row, column = _position(row, height, "row"), _position(column, width, "column")
    values = np.array([plane[row, column] for plane in planes])
    if np.isnan(values).any():
        raise InvalidInputError(
            f"The pixel in row {row}, column {column} has no data; choose another.", code="pixel-no-data"
        )
    steps, rows = chain(rule, values), values[None]
    touched = rule.usage.get("touched")
    unmet = () if touched is None else tuple(s.element for s in steps.steps if s.code >= 0 and not touched[s.code])
    return PixelExplanation(
        row,
        column,
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
                f"are {', '.join(rule.source_names)}. Give a scene with these sources, in this order.",
                code="sources-differ",
            )
        sources = sources.sources
    planes = unlabelled(sources, rule).planes if is_xarray(sources) else split_planes(sources, rule.n_sources)[1]
    if planes[0].ndim != 2:
        raise InvalidInputError(
            f"sources must be an image, so that each source has two axes; here they have {planes[0].ndim}. "
            "For one instance, use bimichi.explain.chain.",
            code="sources-not-image",
            argument="sources",
        )
    return planes


def _position(number: Any, size: int, name: str) -> int:
    if not is_integer(number) or not -size <= number < size:
        raise InvalidInputError(
            f"{name} must be a whole number in {-size}..{size - 1}, got {number!r}.",
            code="pixel-outside",
            argument=name,
            value=number,
        )
    return int(number) % size
