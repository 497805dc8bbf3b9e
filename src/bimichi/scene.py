"""`Scene`: co-registered sources with whatever is known about them; what data sets give and comparisons take."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bimichi.bags import Bags
from bimichi.errors import InvalidInputError
from bimichi.measure import check_names

__all__ = ["Scene"]


@dataclass(frozen=True)
class Scene:
    """Sources of one image (or of any set of instances), and what is known about them.

    Parameters
    ----------
    sources : ndarray of shape (..., n_sources)
        The sources, usually (height, width, n_sources), in [-1, 1].
    name : str
        What to call it.
    source_names : sequence of str, optional
        Names of the sources; "1", "2", ... by default.
    segments : ndarray of int, shape (...), optional
        To which bag each instance belongs.
    labels : mapping of int to bool, optional
        Whether a bag is positive; bags that are not named are left out of learning.
    truth : ndarray of bool, shape (...), optional
        Whether each instance is a target.
    ignore : ndarray of bool, shape (...), optional
        Instances that no score counts.
    boxes : ndarray of shape (n_boxes, 4)
        Boxes (x, y, width, height) around targets, in pixels.
    rgb : ndarray of uint8, shape (height, width, 3), optional
        For display, and for detectors.
    thermal : ndarray of shape (height, width), optional
        For display.
    truth_from : str, default="pixels"
        What `truth` was made from: "pixels", or "boxes" where nothing better exists.
    licence, citation : str
        Of the data.
    """

    sources: NDArray[Any]
    name: str = "scene"
    source_names: tuple[str, ...] = ()
    segments: NDArray[np.integer[Any]] | None = None
    labels: Mapping[int, bool] | None = None
    truth: NDArray[np.bool_] | None = None
    ignore: NDArray[np.bool_] | None = None
    boxes: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 4)))
    rgb: NDArray[np.uint8] | None = None
    thermal: NDArray[Any] | None = None
    truth_from: str = "pixels"
    licence: str = ""
    citation: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.sources, np.ndarray) or self.sources.ndim < 2:
            raise InvalidInputError(
                f"sources of scene {self.name!r} must be an array of shape (..., n_sources), "
                f"got {np.shape(self.sources)}."
            )
        object.__setattr__(self, "source_names", check_names(self.source_names or None, self.n_sources))
        for what in ("segments", "truth", "ignore"):
            given = getattr(self, what)
            if given is not None and np.shape(given) != self.shape:
                raise InvalidInputError(
                    f"{what} of scene {self.name!r} has shape {np.shape(given)}; "
                    f"it must be that of a source, {self.shape}."
                )

    @property
    def n_sources(self) -> int:
        """Number of sources, m."""
        return int(self.sources.shape[-1])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one source."""
        return self.sources.shape[:-1]

    def bags(self) -> Bags:
        """Return the labelled bags, for learning."""
        if self.segments is None or self.labels is None:
            raise InvalidInputError(
                f"Scene {self.name!r} has no bags; add them with scene.with_bags(segments, labels)."
            )
        return Bags.from_image(self.sources, self.segments, self.labels)

    def with_bags(self, segments: NDArray[np.integer[Any]], labels: Mapping[int, bool]) -> "Scene":
        """Return the same scene with these bags."""
        return replace(self, segments=segments, labels=labels)
