"""What made one instance's fused value: the steps of its integral, and the contribution of each source."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi._checks import is_xarray
from bimichi._tables import Cell, Table, number
from bimichi.errors import InvalidInputError
from bimichi.explain.parts import prepare
from bimichi.explain.results import Explanation
from bimichi.integral.labelled import relabelled, unlabelled
from bimichi.integral.planes import check_n_jobs, run_chunks
from bimichi.link import Link, probability_of
from bimichi.rule import FusionRule, as_rule


class Step(NamedTuple):
    """One step: the element or term, its code, its weight, its value, and what it adds to the total."""

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
        What the table calls element, weight, value and product.
    link : Link, optional
        That of the rule.
    """

    steps: tuple[Step, ...]
    inverted: tuple[str, ...] = ()
    columns: tuple[str, str, str, str] = ("element", "weight", "value", "product")
    link: Link | None = None

    @property
    def turned(self) -> tuple[str, ...]:
        """Deprecated: `inverted` by its earlier name."""
        warnings.warn("Chain.turned is now named Chain.inverted.", DeprecationWarning, stacklevel=2)
        return self.inverted

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
    given = np.asarray(x)
    if given.ndim != 1:
        raise InvalidInputError(f"x must be one instance, 1-D with one value per source, got shape {given.shape}.")
    rule, parts, planes = prepare(model, given)
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
        found = unlabelled(X, rule)
        made = contributions(rule, found.planes, n_jobs=n_jobs)
        return relabelled(made, found.like, "contribution", rule.source_names)  # type: ignore[return-value]
    rule, parts, planes = prepare(model, X)
    contribute = parts.contributor()
    out = np.empty((planes.size, planes.n_sources), planes.dtype)

    def run(chunk: slice) -> None:
        made = out[planes.instances(chunk)]
        contribute(planes.stacked(chunk), made)
        if rule.link is not None:
            made *= _factor(rule, made.sum(axis=1, keepdims=True))

    run_chunks(run, planes.chunks(stacked=True), jobs)
    return out.reshape(*planes.shape, planes.n_sources)


def _factor(rule: FusionRule, integral: Any) -> Any:
    """Return what a part of the integral C is multiplied by to be a part of the log-odds; 1 without a link."""
    if rule.link is None:
        return 1.0
    return rule.link.slope * (np.where(integral < 0, -1.0, 1.0) if rule.output == "magnitude" else 1.0)
