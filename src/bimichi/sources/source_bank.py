"""The bank: sources made from raw images by a few named operators, whose sizes follow those of the targets.

A raw image of one band is one channel; a colour image is three: lightness, red against green, yellow against blue. A
channel is scaled by quantiles of the training scenes: the median becomes 0, which is the neutral point of the integral,
and the extremes -1 and 1. Then each operator makes a source of a channel, or of two.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bimichi.errors import InvalidInputError
from bimichi.integral.planes import in_threads
from bimichi.sources.bands import LUMA, Image
from bimichi.sources.filters import blur

FloatPlane = NDArray[np.float32]

QUANTILES = (0.005, 0.5, 0.995)
"""Of the values in training scenes, which become -1, 0 and 1."""

LOOK = 20_000  # pixels, evenly spaced, from which quantiles are taken
TOP = 0.999  # the quantile of the magnitude in a scene that becomes 1, for operators that compare pixels
LEAST = 1e-3  # a smaller one is rounding, and becomes 0
SMALL, LARGE = 4.0, 512.0  # pixels; sizes of targets beyond are taken for these
FULL = 8  # channels that all operators are applied to, evenly spaced where there are more
PAIRED = 6  # channels whose differences are taken, likewise
MAX_CHANNELS, MAX_SOURCES = 128, 256

COLOURS = {
    "lightness": tuple(LUMA),
    "red-green": (0.5, -0.5, 0.0),
    "yellow-blue": (0.25, 0.25, -0.5),
}


class Raw(NamedTuple):
    """A raw image: its name, and whether it is in colour."""

    name: str
    colour: bool = False


@dataclass(frozen=True)
class Channel:
    """A band of a raw image, or a contrast of its colours; low, middle and high become -1, 0 and 1."""

    raw: str
    colour: str | None
    low: float
    middle: float
    high: float

    def __post_init__(self) -> None:
        if self.colour is not None and self.colour not in COLOURS:
            raise InvalidInputError(
                f"colour must be one of {', '.join(COLOURS)}, got {self.colour!r}.",
                code="bank-colour",
                argument="colour",
                value=self.colour,
            )
        if not -np.inf < self.low <= self.middle <= self.high < np.inf:
            raise InvalidInputError(
                f"A channel needs finite low <= middle <= high, got {self.low!r}, {self.middle!r}, {self.high!r}.",
                code="bank-channel",
            )

    @property
    def name(self) -> str:
        """The name of the image, with that of the contrast of colours."""
        return self.raw if self.colour is None else f"{self.raw} {self.colour}"

    def plane(self, image: Image) -> FloatPlane:
        """Return the channel of an image in [-1, 1], NaN where it has no data."""
        values = _channel_values(image, self.colour) - np.float32(self.middle)
        below = np.float32(1 / (self.middle - self.low) if self.middle > self.low else 0.0)
        above = np.float32(1 / (self.high - self.middle) if self.high > self.middle else 0.0)
        return np.asarray(np.clip(np.where(values < 0, values * below, values * above), -1, 1), np.float32)


class Derived(NamedTuple):
    """A source: an operator, the numbers of its channels, and its sizes in pixels."""

    operator: str
    channels: tuple[int, ...]
    sizes: tuple[float, ...] = ()


class _Blurs:
    """Gaussian means of one plane, each computed once."""

    def __init__(self, plane: FloatPlane) -> None:
        self.plane = plane
        self._done: dict[tuple[float, float], FloatPlane] = {}

    def __call__(self, upright: float, level: float | None = None) -> FloatPlane:
        """Return the mean with standard deviations along columns and rows."""
        sizes = (upright, upright if level is None else level)
        if sizes not in self._done:
            self._done[sizes] = blur(self.plane, *sizes)
        return self._done[sizes]

    def gradient(self, sigma: float, axis: int | None = None) -> FloatPlane:
        """Return the size of the gradient of the mean, or of its part along an axis."""
        down, right = np.gradient(self(sigma))
        found = np.hypot(down, right) if axis is None else np.abs(right if axis else down)
        return np.asarray(found, np.float32)


class Operator(NamedTuple):
    """What makes a source of channels.

    `title` names it, with the sizes; `sizes` are shares of the size of targets; `function` takes the blurs of the
    channels and the sizes. Unless `fixed`, the result is divided by the `TOP` quantile of its magnitude in the scene.
    """

    title: str
    sizes: tuple[float, ...]
    function: Callable[..., FloatPlane]
    fixed: bool = False


def _rarity(plane: FloatPlane) -> FloatPlane:
    """Return how rare values as high as this are: 0 for the commonest, 1 for the highest in a thousand."""
    levels = np.clip(((plane + 1) * 511.5).astype(np.int64), 0, 1023)
    share = np.cumsum(np.bincount(levels.ravel(), minlength=1024)[::-1])[::-1] / plane.size
    return np.clip(-np.log10(np.maximum(share, 1e-9)) / 3, 0, 1).astype(np.float32)[levels]


OPERATORS: dict[str, Operator] = {
    "value": Operator("", (), lambda a: a.plane, fixed=True),
    "rare_high": Operator("rare if high", (), lambda a: _rarity(a.plane), fixed=True),
    "rare_low": Operator("rare if low", (), lambda a: _rarity(-a.plane), fixed=True),
    "mean": Operator("mean of {0:.3g} px", (0.25,), lambda a, s: a(s), fixed=True),
    "spot": Operator("blob of {0:.3g} px", (0.12, 0.5), lambda a, s, t: a(s) - a(t)),
    "blob": Operator("blob of {0:.3g} px", (0.25, 1.0), lambda a, s, t: a(s) - a(t)),
    "patch": Operator("blob of {0:.3g} px", (0.5, 2.0), lambda a, s, t: a(s) - a(t)),
    "edges": Operator("edges within {1:.3g} px", (0.04, 0.3), lambda a, s, t: blur(a.gradient(s), t, t)),
    "upright_edges": Operator(
        "upright edges of {1:.3g} px", (0.04, 0.39, 0.15), lambda a, s, t, u: blur(a.gradient(s, 1), t, u)
    ),
    "level_edges": Operator(
        "level edges of {1:.3g} px", (0.04, 0.39, 0.15), lambda a, s, t, u: blur(a.gradient(s, 0), u, t)
    ),
    "upright_blob": Operator("upright blob of {1:.3g} px", (0.12, 0.3, 0.5), lambda a, s, t, u: a(t, s) - a(t, u)),
    "level_blob": Operator("level blob of {1:.3g} px", (0.12, 0.3, 0.5), lambda a, s, t, u: a(s, t) - a(u, t)),
    "difference": Operator("-", (0.06,), lambda a, b, s: a(s) - b(s)),
    "sum": Operator("+", (0.06,), lambda a, b, s: a(s) + b(s)),
}
"""All operators by name. Sums are what differences are if an image is inverted, so that this changes nothing."""

VALUES = ("value",)
RARITY = ("rare_high", "rare_low")
PAIRS = ("difference", "sum")


@dataclass(frozen=True)
class Bank:
    """How sources are made of the raw images of a scene; a model file keeps it.

    Parameters
    ----------
    raws : sequence of Raw
        The images, in the order in which `planes` takes them.
    channels : sequence of Channel
        What is taken of them, and how it is scaled.
    sources : sequence of Derived
        What is made of the channels.
    size : float
        The size of targets in pixels that the sizes of operators follow.
    """

    raws: tuple[Raw, ...]
    channels: tuple[Channel, ...]
    sources: tuple[Derived, ...]
    size: float

    @property
    def raw_names(self) -> tuple[str, ...]:
        """Names of the raw images."""
        return tuple(raw.name for raw in self.raws)

    @property
    def source_names(self) -> tuple[str, ...]:
        """Names of the sources that it makes."""
        return tuple(map(self._name, self.sources))

    @property
    def groups(self) -> tuple[str, ...]:
        """The raw image of each source, or the names of several."""
        of = ([self.channels[k].raw for k in source.channels] for source in self.sources)
        return tuple(" and ".join(dict.fromkeys(names)) for names in of)

    def _name(self, source: Derived) -> str:
        channels = [self.channels[k].name for k in source.channels]
        if source.operator in PAIRS:
            return f" {OPERATORS[source.operator].title} ".join(channels)
        # A blob is as wide as its inner and outer Gaussians together are: the size at which it responds most.
        title = OPERATORS[source.operator].title.format(*(2 * size for size in source.sizes))
        return ", ".join(filter(None, [channels[0], title]))

    def positions(self, *operators: str) -> list[int]:
        """Return which sources these operators make."""
        return [k for k, source in enumerate(self.sources) if source.operator in operators]

    def chosen(self, which: Sequence[int]) -> Self:
        """Return the bank that makes some of the sources."""
        return replace(self, sources=tuple(self.sources[k] for k in which))

    def planes(self, images: Sequence[Image], n_jobs: int = 1) -> list[FloatPlane]:
        """Return one plane in [-1, 1] per source, NaN where an image has no data.

        Parameters
        ----------
        images : sequence of ndarray
            One per raw image, of shape (height, width), or (height, width, 3) if in colour; in the units of training.
        n_jobs : int, default=1
            Number of threads, each of which takes a channel at a time.
        """
        by_name = dict(zip(self.raw_names, images, strict=True))
        missing = np.logical_or.reduce([_missing(image) for image in images])
        hidden = bool(missing.any())
        used = sorted({k for source in self.sources for k in source.channels})
        blurs: dict[int, _Blurs] = {}

        def channel(k: int) -> dict[int, FloatPlane]:
            plane = self.channels[k].plane(by_name[self.channels[k].raw])
            blurs[k] = _Blurs(np.where(missing, np.float32(0), plane) if hidden else plane)
            own = [j for j, source in enumerate(self.sources) if source.channels == (k,)]
            return {j: self._made(self.sources[j], [blurs[k]]) for j in own}

        made = {j: plane for group in in_threads(channel, used, n_jobs) for j, plane in group.items()}
        for j, source in enumerate(self.sources):
            if j not in made:
                made[j] = self._made(source, [blurs[k] for k in source.channels])
        planes = [made[j] for j in range(len(self.sources))]
        return [np.where(missing, np.float32(np.nan), plane) for plane in planes] if hidden else planes

    def _made(self, source: Derived, blurs: Sequence[_Blurs]) -> FloatPlane:
        operator = OPERATORS[source.operator]
        plane = operator.function(*blurs, *source.sizes)
        if operator.fixed:
            return np.clip(plane, -1, 1)
        top = float(np.quantile(np.abs(_few(plane)), TOP)) if plane.size else 0.0
        return np.clip(plane * np.float32(1 / top), -1, 1) if top > LEAST else np.zeros_like(plane)

    def pack(self) -> dict[str, Any]:
        """Return plain data; `unpack` takes them back."""
        return {
            "raws": [list(raw) for raw in self.raws],
            "channels": [asdict(channel) for channel in self.channels],
            "sources": [[source.operator, list(source.channels), list(source.sizes)] for source in self.sources],
            "size": self.size,
        }

    @classmethod
    def unpack(cls, data: Any) -> Self:
        """Take what `pack` gave, as a model file may hold it; whatever else is an `InvalidInputError`."""
        try:
            raws = tuple(Raw(str(name), bool(colour)) for name, colour in data["raws"])
            channels = tuple(
                Channel(
                    str(one["raw"]),
                    None if one["colour"] is None else str(one["colour"]),
                    *(float(one[end]) for end in ("low", "middle", "high")),
                )
                for one in data["channels"]
            )
            sources = tuple(
                Derived(str(operator), tuple(map(int, of)), tuple(map(float, sizes)))
                for operator, of, sizes in data["sources"]
            )
            bank = cls(raws, channels, sources, float(data["size"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInputError(f"its bank is not what Bank.pack gives: {error!r}.", code="model-bank") from error
        bank._check()
        return bank

    def _check(self) -> None:
        """Raise an error for numbers that cannot be, so that a model file cannot ask for them."""
        n, names = len(self.channels), set(self.raw_names)
        wrong = [
            "raw images" * (not 0 < len(self.raws) <= MAX_CHANNELS or len(names) != len(self.raws)),
            "channels" * (not 0 < n <= MAX_CHANNELS or not {one.raw for one in self.channels} <= names),
            "number of sources" * (not 0 < len(self.sources) <= MAX_SOURCES),
            "size" * (not 0 < self.size <= LARGE),
        ]
        colours = {raw.name: raw.colour for raw in self.raws}
        wrong.append("colours" * any(colours.get(one.raw) != (one.colour is not None) for one in self.channels))
        for source in self.sources:
            operator = OPERATORS.get(source.operator)
            suits = operator is not None and len(source.sizes) == len(operator.sizes)
            suits = suits and len(source.channels) == (2 if source.operator in PAIRS else 1)
            suits = suits and all(0 <= k < n for k in source.channels)
            wrong.append("sources" * (not suits or not all(0 < size <= 4 * LARGE for size in source.sizes)))
        if any(wrong):
            raise InvalidInputError(
                f"its bank has impossible {', '.join(dict.fromkeys(filter(None, wrong)))}.", code="model-bank"
            )


class RangeLook(NamedTuple):
    """Values of the channels of a scene at some pixels, by which channels are scaled."""

    values: list[NDArray[np.float32]]

    @classmethod
    def of(cls, raws: Sequence[Raw], images: Sequence[Image]) -> "RangeLook":
        """Look at the images of a scene."""
        looks = []
        for raw, image in zip(raws, images, strict=True):
            for colour in COLOURS if raw.colour else (None,):
                values = _few(_channel_values(image, colour))
                looks.append(values[np.isfinite(values)])
        return cls(looks)


def learn_bank(raws: Sequence[Raw], looks: Sequence[RangeLook], sizes: ArrayLike) -> Bank:
    """Return the bank for some training scenes.

    Parameters
    ----------
    raws : sequence of Raw
        The raw images.
    looks : sequence of RangeLook
        Of each scene.
    sizes : array-like
        Sizes of the targets in pixels, the root of the area of each; their median counts.
    """
    found = np.asarray(sizes, np.float64).ravel()
    size = float(np.clip(np.median(found) if found.size else 16.0, SMALL, LARGE))
    channels = []
    names = [(raw.name, colour) for raw in raws for colour in (COLOURS if raw.colour else (None,))]
    for k, (name, colour) in enumerate(names):
        values = np.concatenate([look.values[k] for look in looks])
        ends = np.quantile(values, QUANTILES).tolist() if values.size else [0.0, 0.0, 0.0]
        if ends[0] == ends[2] and values.size:  # nearly constant: what differs at all must count
            ends = [float(values.min()), ends[1], float(values.max())]
        channels.append(Channel(name, colour, *ends))
    varied = [k for k, channel in enumerate(channels) if channel.low < channel.high]
    if not varied:
        raise InvalidInputError(
            "All images are constant, so that nothing can be learned from them. Check their files.",
            code="sources-constant",
        )
    full, paired = _spaced(varied, FULL), _spaced(varied, PAIRED)
    sources = [Derived("value", (k,)) for k in varied]
    for name, operator in OPERATORS.items():
        widths = tuple(max(0.5, share * size) for share in operator.sizes)
        if name in PAIRS:
            sources += [Derived(name, pair, widths) for pair in combinations(paired, 2)]
        elif name not in VALUES:
            sources += [Derived(name, (k,), widths) for k in full]
    return Bank(tuple(raws), tuple(channels), tuple(sources), size)


def bank(images: Sequence[Mapping[str, Image]], boxes: Sequence[ArrayLike]) -> Bank:
    """Return the bank of sources for scenes and the boxes around their targets.

    Parameters
    ----------
    images : sequence of mapping
        The raw images of each scene by name: arrays of shape (height, width), or (height, width, 3) in colour.
    boxes : sequence of array-like of shape (n_boxes, 4)
        Boxes (x, y, width, height) in each scene.

    Examples
    --------
    >>> scene = {"thermal": np.random.default_rng(0).normal(280, 9, (48, 64))}
    >>> sources = bank([scene], [[[8, 8, 10, 10]]])
    >>> sources.source_names[:3]
    ('thermal', 'thermal, rare if high', 'thermal, rare if low')
    >>> len(sources.planes([scene["thermal"]])) == len(sources.source_names)
    True
    """
    raws = [Raw(name, np.ndim(image) == 3) for name, image in images[0].items()]
    looks = [RangeLook.of(raws, [np.asarray(scene[raw.name]) for raw in raws]) for scene in images]
    drawn = [np.asarray(some, np.float64).reshape(-1, 4) for some in boxes]
    return learn_bank(raws, looks, np.concatenate([np.sqrt(some[:, 2] * some[:, 3]) for some in drawn]))


def _channel_values(image: Image, colour: str | None) -> NDArray[np.float32]:
    """Return a band, or a contrast of colours, in the units of the image."""
    if colour is None:
        return np.asarray(image, np.float32)
    weights = np.asarray(COLOURS[colour], np.float32)
    return np.asarray(image[..., :3].astype(np.float32, copy=False) @ weights)


def _missing(image: Image) -> NDArray[np.bool_]:
    """Return where an image has no data in one of its bands."""
    if image.dtype.kind != "f":
        return np.zeros(image.shape[:2], np.bool_)
    missing = ~np.isfinite(image)
    return np.asarray(missing if image.ndim == 2 else missing.any(axis=2))


def _few(plane: NDArray[Any]) -> NDArray[Any]:
    """Return about `LOOK` pixels of a plane, evenly spaced."""
    step = max(1, int(np.sqrt(plane.size / LOOK)))
    return plane[step // 2 :: step, step // 2 :: step].ravel()


def _spaced(channels: list[int], most: int) -> list[int]:
    """Return all channels, or as many as wanted, evenly spaced."""
    n = len(channels)
    return channels if n <= most else [channels[k] for k in np.linspace(0, n - 1, most).round().astype(int)]
