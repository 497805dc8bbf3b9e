"""`FusionRule`: all that was learned, in one frozen object that fuses, and that model files hold."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from bimichi import _html
from bimichi._checks import check_choice, is_xarray
from bimichi._types import Floats, Ints
from bimichi.decision import Decision
from bimichi.errors import InvalidInputError
from bimichi.integral.integrals import integrate
from bimichi.integral.labelled import fuse_array, unlabelled
from bimichi.integral.planes import out_of_range, split_planes
from bimichi.link import Link
from bimichi.measures import files
from bimichi.measures.additive import AdditiveBiCapacity
from bimichi.measures.base import Measure
from bimichi.measures.bicapacity import BiCapacity
from bimichi.measures.capacity import Capacity
from bimichi.record import SourceInput, TrainingRecord
from bimichi.sources.source_bank import Bank

Output = Literal["integral", "magnitude"]

SCALES = ("minmax", "maxabs")
"""Ways to learn how sources are scaled to the range of the integral."""

KIND = "FusionRule"
SHOWN = 30  # values of a large measure that a notebook lists
MEASURES: dict[str, type[Measure]] = {kind.kind: kind for kind in (BiCapacity, Capacity, AdditiveBiCapacity)}


@dataclass(frozen=True, eq=False)
class FusionRule:
    """A measure, how sources enter its integral, what is output, how sources are made from images, and the training.

    A source x enters the integral as ``(x - centre) * factor * polarity``, clipped to the range of the measure if a
    scale was learned.

    Parameters
    ----------
    measure : Measure
        What the integral is over; it names the sources.
    centre, factor, polarity : array-like of shape (n_sources,), optional
        How sources are scaled, and +1, or -1 for inverted sources; 0, 1 and 1 by default.
    scale : {None, "minmax", "maxabs"}
        How `centre` and `factor` were learned. With None, sources outside the range are an error, not clipped.
    output : {"integral", "magnitude"}
        Whether `fuse` returns the integral C or its magnitude |C|.
    low : float, optional
        The least value with which a source enters: that of the measure by default. With 0, outputs lie in [0, 1].
    recipes : sequence of str, optional
        How each source is made from an image.
    training : TrainingRecord, optional
        How the rule was learned.
    inputs : sequence of SourceInput, optional
        Type and range of the images of each source in training.
    decision : Decision, optional
        How targets are found in the map that `fuse` gives of an image; see `bimichi.fuse.detect`.
    link : Link, optional
        How C or |C| becomes a probability: with a link, `fuse` returns 1 / (1 + exp(-f)), where f = slope * output +
        offset are the log-odds of a target.
    bank : Bank, optional
        How the sources are made of raw images, together rather than one by one; instead of `recipes`. `inputs` are then
        those of the raw images.

    Examples
    --------
    >>> rule = FusionRule(BiCapacity.additive([0.75, 0.25]), polarity=[1, -1])
    >>> rule.fuse([[0.4, -0.8]])
    array([0.5])
    """

    measure: Measure
    centre: Floats = None  # type: ignore[assignment]  # filled in below
    factor: Floats = None  # type: ignore[assignment]
    polarity: Floats = None  # type: ignore[assignment]
    scale: str | None = None
    output: Output = "integral"
    low: float = None  # type: ignore[assignment]
    recipes: tuple[str, ...] | None = None
    training: TrainingRecord | None = None
    inputs: tuple[SourceInput, ...] | None = None
    decision: Decision | None = None
    link: Link | None = None
    bank: Bank | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.measure, Measure):
            raise InvalidInputError(
                f"measure must be a Measure, got {type(self.measure).__name__}.",
                code="measure-kind",
                argument="measure",
                value=type(self.measure).__name__,
            )
        m = self.measure.n_sources
        for name, default in (("centre", 0.0), ("factor", 1.0), ("polarity", 1.0)):
            numbers = getattr(self, name)
            array = np.full(m, default) if numbers is None else np.array(numbers, dtype=np.float64)
            if array.shape != (m,) or not np.isfinite(array).all():
                raise InvalidInputError(
                    f"{name} must be {m} finite numbers, one per source, got {numbers!r}.",
                    code="numbers-per-source",
                    argument=name,
                    value=numbers,
                )
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not np.isin(self.polarity, (-1.0, 1.0)).all():
            raise InvalidInputError(
                f"polarity must be +1 or -1 for each source, got {self.polarity.tolist()}.",
                code="polarity",
                argument="polarity",
            )
        check_choice(self.scale, "scale", (None, *SCALES))
        check_choice(self.output, "output", ("integral", "magnitude"))
        object.__setattr__(self, "low", self.measure.low if self.low is None else float(self.low))
        if self.recipes is not None:
            listed = isinstance(self.recipes, list | tuple)
            named = listed and all(isinstance(name, str) and name for name in self.recipes)
            if not named or len(self.recipes) != m:
                raise InvalidInputError(
                    f"recipes must be {m} names, one per source, got {self.recipes!r}.",
                    code="recipes-number",
                    argument="recipes",
                    value=self.recipes,
                )
            object.__setattr__(self, "recipes", tuple(self.recipes))
        if self.bank is not None and (self.bank.source_names != self.source_names or self.recipes is not None):
            raise InvalidInputError(
                "bank must make the sources of the measure, and takes the place of recipes.",
                code="bank-sources",
                argument="bank",
            )
        if self.inputs is not None:
            object.__setattr__(self, "inputs", tuple(self.inputs))
            m = len(self.raw_names)
            if len(self.inputs) != m or not all(isinstance(source, SourceInput) for source in self.inputs):
                raise InvalidInputError(
                    f"inputs must be {m} SourceInput, one per source, got {self.inputs!r}.",
                    code="inputs-number",
                    argument="inputs",
                    value=self.inputs,
                )
        if self.decision is not None and not isinstance(self.decision, Decision):
            raise InvalidInputError(
                f"decision must be a Decision, such as Decision(0.5), got {self.decision!r}.",
                code="decision-kind",
                argument="decision",
                value=self.decision,
            )
        if self.link is not None and not isinstance(self.link, Link):
            raise InvalidInputError(
                f"link must be a Link, such as Link(slope=2, offset=-1), got {self.link!r}.",
                code="link-kind",
                argument="link",
                value=self.link,
            )

    @property
    def source_names(self) -> tuple[str, ...]:
        """Names of the sources, in their order."""
        return self.measure.source_names

    @property
    def raw_names(self) -> tuple[str, ...]:
        """Names of the images that sources are made of, in their order; without a bank, those of the sources."""
        return self.source_names if self.bank is None else self.bank.raw_names

    @property
    def groups(self) -> tuple[str, ...]:
        """The raw image, or images, of each source."""
        return self.source_names if self.bank is None else self.bank.groups

    @property
    def n_sources(self) -> int:
        """Number of sources, m."""
        return self.measure.n_sources

    @property
    def output_range(self) -> tuple[float, float]:
        """Range of `fuse`: (0, 1) or (-1, 1)."""
        unit = self.link is not None or self.output == "magnitude" or self.low == 0
        return (0.0, 1.0) if unit else (-1.0, 1.0)

    @property
    def inverted(self) -> tuple[str, ...]:
        """Names of the sources that are inverted before the integral."""
        return tuple(name for name, sign in zip(self.source_names, self.polarity, strict=True) if sign < 0)

    @property
    def usage(self) -> Mapping[str, Ints]:
        """Counts of how training used each value of the measure; empty if unknown."""
        return {} if self.training is None else self.training.usage

    @property
    def n_instances(self) -> int | None:
        """Number of training instances; None if unknown."""
        touched = self.usage.get("touched")
        return None if touched is None else self.measure.n_instances(touched)

    def enter(self, X: Any) -> list[NDArray[Any]]:
        """Return the sources as they enter the integral: one array per source, scaled and inverted.

        Parameters
        ----------
        X : array-like of shape (..., n_sources), or list of n_sources planes
            Rows, an image, planes, a data frame whose columns are those of the training data, or an array or a dataset
            of xarray, whose names are matched.

        Raises
        ------
        InvalidInputError
            If a source of a rule without a learned scale leaves its range.
        """
        planes = self._planes(X)
        self._check_range(planes)
        return self._entered(planes)

    def integral(self, X: Any, n_jobs: int | None = None) -> NDArray[Any]:
        """Return the integral C of every instance; inputs as in `enter`. NaN in a source gives NaN."""
        if is_xarray(X):
            return fuse_array(self, X, method="integral")  # type: ignore[return-value]  # an array of xarray
        planes = self._planes(X)
        try:
            return integrate(self._entered(planes), self.measure, n_jobs=n_jobs)
        except InvalidInputError:
            self._check_range(planes)  # which reports values as they were given; if they pass, the rest is rounding
            return integrate(self._entered(planes), self.measure, check_range=False, n_jobs=n_jobs)

    def fuse(self, X: Any, n_jobs: int | None = None) -> NDArray[Any]:
        """Return the confidence of every instance: C or |C|, or with a link the probability; inputs as in `enter`."""
        return self.output_of(self.integral(X, n_jobs))

    def output_of(self, integral: NDArray[Any]) -> NDArray[Any]:
        """Return what `fuse` gives where these are the integrals."""
        output = self._unlinked(integral)
        return output if self.link is None else cast(NDArray[Any], self.link.probability(output))

    def _unlinked(self, integral: NDArray[Any]) -> NDArray[Any]:
        return integral if self.output == "integral" else abs(integral)

    def log_odds(self, X: Any, n_jobs: int | None = None) -> NDArray[Any]:
        """Return the log-odds of a target, slope * output + offset, of every instance; inputs as in `enter`.

        Raises
        ------
        InvalidInputError
            If the rule has no link.
        """
        if self.link is None:
            raise _no_link()
        return cast(NDArray[Any], self.link.log_odds(self._unlinked(self.integral(X, n_jobs))))

    def linked(self, slope: float, offset: float, base_rate: float | None = None) -> Self:
        """Return the same rule with another `Link`, whose parameters these are."""
        return replace(self, link=Link(slope, offset, base_rate))

    def shifted(
        self, X: Any = None, base_rate: float | None = None, n_jobs: int | None = None, upward: bool = False
    ) -> Self:
        """Return the rule for scenes in which targets are more, or less, frequent than in training.

        Parameters
        ----------
        X : array-like, optional
            A scene, or a batch of instances, to estimate the new share of targets from; see
            `bimichi.link.Link.adapted`. Inputs as in `enter`; instances with NaN are left out.
        base_rate : float, optional
            The share of targets, if it is known; instead of `X`.
        n_jobs : int, optional
            Number of threads.
        upward : bool, default=False
            Whether an estimate may be above the share in training.

        Notes
        -----
        Only the link changes, and so no ranking. The estimate holds as far as targets, and what is no target, look as
        they did in training: what merely resembles targets is taken for more of them. Where outputs are distributed
        unlike those in training, a gain and an offset of them are removed as well, or, if these do not explain it, the
        rule is returned as it is; both with a warning. Scenes that are alike, such as slices of one volume, are better
        estimated together.
        """
        if (X is None) == (base_rate is None):
            raise InvalidInputError(
                "Give shifted either X, to estimate the share of targets from, or base_rate.", code="shift-by"
            )
        if self.link is None:
            raise _no_link()
        if base_rate is not None:
            return replace(self, link=self.link.shifted(base_rate))
        return replace(self, link=self.link.adapted(self._unlinked(self.integral(X, n_jobs)), upward))

    def renamed(self, source_names: Sequence[str] | None) -> Self:
        """Return the same rule with other names of its sources."""
        if self.bank is not None:
            raise InvalidInputError(
                "The sources of this rule are made by a bank, which names them; rename the images instead.",
                code="bank-names",
            )
        return replace(self, measure=self.measure.renamed(source_names))

    def to_markdown(self) -> str:
        """Write the measure as a table, values used in training bold, and name the inverted sources."""
        touched = self.usage.get("touched")
        table = self.measure.to_markdown(None if touched is None else touched > 0)
        inverted = f"Inverted before the integral: {', '.join(self.inverted)}."
        return f"{table}\n\n{inverted if self.inverted else 'No source is inverted.'}"

    def _repr_html_(self) -> str:
        title = f"FusionRule of {self.n_sources} sources: {', '.join(self.source_names)}"
        return _html.view(title, *self._html_parts())

    def _html_parts(self) -> list[str]:
        """Return what a notebook shows: how it was learned, how sources enter, and the measure, used values bold."""
        record, link, touched = self.training, self.link, self.usage.get("touched")
        facts: dict[str, Any] = {}
        if record is not None:
            facts["learned by"] = " ".join(
                filter(None, [record.method, f"({record.objective})" if record.objective else ""])
            )
            facts["J"] = f"{record.objective_value:.6g}, {record.ending}" if record.status else None
            facts["proof"] = record.proof
            facts["instances"] = None if self.n_instances is None else f"{self.n_instances:,}"
        facts["inverted"] = ", ".join(self.inverted)
        facts["scale"] = self.scale
        facts["recipes"] = ", ".join(self.recipes or ())
        facts["output"] = "{} in [{:g}, {:g}]".format("probability" if link else self.output, *self.output_range)
        facts["threshold"] = None if self.decision is None else f"{self.decision.threshold:.3g}"
        table = self.measure.overview(
            np.zeros(len(self.measure.values), np.int64) if touched is None else touched, SHOWN
        )
        parts: list[str] = [_html.facts(facts), _html.paragraph(self.measure.describe())]
        return parts + ([_html.table(table)] if table.rows else [])

    def save(self, path: str | PathLike[str]) -> None:
        """Write to a model file without pickle (see docs/model-format.md), replacing it only when complete."""
        header, arrays = self.measure.pack()
        header |= {"measure": self.measure.kind, "scale": self.scale, "output": self.output, "low": self.low}
        header["recipes"] = None if self.recipes is None else list(self.recipes)
        header["inputs"] = None if self.inputs is None else [asdict(source) for source in self.inputs]
        header["decision"] = None if self.decision is None else self.decision.pack()
        header["link"] = None if self.link is None else self.link.pack()
        if self.bank is not None:
            header["bank"] = self.bank.pack()
        header["training"], more = (None, {}) if self.training is None else self.training.pack()
        arrays |= {"centre": self.centre, "factor": self.factor, "polarity": self.polarity} | more
        files.write_model(path, KIND, header, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a rule; errors as in `Measure.load`."""
        header, arrays = files.read_model(path, KIND)
        with files.reading(path, KIND):
            measure = MEASURES[header["measure"]].unpack(header, arrays)
            parts = {name: header[name] for name in ("scale", "output", "low", "recipes")}
            parts |= {name: arrays[name] for name in ("centre", "factor", "polarity")}
            parts |= {name: header[name] for name in ("inputs", "decision", "link", "training")}
            if parts["inputs"] is not None:
                parts["inputs"] = tuple(SourceInput(**fields) for fields in parts["inputs"])
            if parts["decision"] is not None:
                parts["decision"] = Decision.unpack(parts["decision"])
            if parts["link"] is not None:
                parts["link"] = Link.unpack(parts["link"])
            if header.get("bank") is not None:
                parts["bank"] = Bank.unpack(header["bank"])
            if parts["training"] is not None:
                parts["training"] = TrainingRecord.unpack(parts["training"], arrays, measure)
            return cls(measure, **parts)

    def _planes(self, X: Any) -> list[NDArray[Any]]:
        if is_xarray(X):
            return unlabelled(X, self).planes
        if hasattr(X, "columns"):
            expected = list((self.training and self.training.feature_names) or self.source_names)
            if list(map(str, X.columns)) != expected:
                raise InvalidInputError(
                    f"The columns of X are {', '.join(map(str, X.columns))}, but those of the training data were "
                    f"{', '.join(expected)}. Select them with X[[...]], in this order.",
                    code="sources-differ",
                )
            X = X.to_numpy()
        return split_planes(X, self.n_sources)[1]

    def _entered(self, planes: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        low = None if self.scale is None else self.low
        return scaled_planes(planes, self.centre, self.factor * self.polarity, low)

    def _check_range(self, planes: Sequence[NDArray[Any]]) -> None:
        """Raise if a source leaves its range; with a learned scale, it is clipped instead."""
        if self.scale is not None:
            return
        for k, plane in enumerate(planes):
            low, high = (float(self.centre[k] + end / self.factor[k]) for end in (self.low, 1.0))
            ends = [float(end.reduce(plane, axis=None)) for end in (np.fmin, np.fmax) if plane.size]
            worst = max(ends, key=lambda end: max(low - end, end - high), default=low)
            if worst < low or worst > high:
                raise out_of_range(k, self.source_names, worst, low, "Rescale it as the training data was.")


def scaled_planes(
    planes: Iterable[NDArray[Any]], centre: Floats, factor: Floats, low: float | None
) -> list[NDArray[Any]]:
    """Return ``(plane - centre) * factor``, clipped to [low, 1] unless `low` is None; what stays is not copied."""
    entered = []
    for plane, middle, times in zip(planes, centre, factor, strict=True):
        if middle == 0 and abs(times) == 1 and low is None:
            entered.append(plane if times > 0 else -plane.astype(np.result_type(plane, np.float32), copy=False))
            continue
        kind = plane.dtype if plane.dtype.kind == "f" else np.dtype(np.float64)
        scaled = np.asarray((plane - kind.type(middle)) * kind.type(times))
        entered.append(scaled if low is None else np.clip(scaled, low, 1, out=scaled))
    return entered


def as_rule(model: Any) -> FusionRule:
    """Return a rule as it is, that of a fitted model, or the plain rule of a measure.

    Parameters
    ----------
    model : FusionRule, Measure, or a fitted estimator (anything with ``rule_``)
        Where the rule comes from.
    """
    if isinstance(model, Measure):
        return FusionRule(model)
    rule = getattr(model, "rule_", model)
    if isinstance(rule, FusionRule):
        return rule
    if hasattr(model, "fit") and not isinstance(model, type):
        raise InvalidInputError(
            f"This {type(model).__name__} is not fitted, or learns no measure: it has no rule_. Call fit first.",
            code="not-fitted",
        )
    raise InvalidInputError(
        "A FusionRule, a fitted model with a measure, a BiCapacity, a Capacity or an AdditiveBiCapacity is needed, got "
        f"{type(model).__name__}.",
        code="rule-kind",
        value=model,
    )


def _no_link() -> InvalidInputError:
    return InvalidInputError(
        "This rule has no link, so that its output is no probability. Learn with objective='logistic', or set a link "
        "with rule.linked(slope, offset).",
        code="link-missing",
    )
