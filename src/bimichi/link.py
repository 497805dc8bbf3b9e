"""`Link`: from the output of a rule to the probability of a target."""

from dataclasses import dataclass
from typing import Any, Self

from scipy.special import expit

from bimichi._checks import check_number
from bimichi.errors import InvalidInputError


@dataclass(frozen=True)
class Link:
    """Log-odds of a target as a line over the output of a rule: f = slope * output + offset.

    Parameters
    ----------
    slope : float
        Not negative: a larger output never means a less likely target. With 0, every instance is as likely.
    offset : float
        The log-odds where the output is 0.
    base_rate : float, optional
        The share of targets among the instances that the two were learned from, between 0 and 1.

    Examples
    --------
    >>> Link(slope=2.0, offset=-1.0).probability(0.5)
    0.5
    """

    slope: float
    offset: float
    base_rate: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "slope", check_number(self.slope, "slope", 0.0))
        object.__setattr__(self, "offset", check_number(self.offset, "offset"))
        if self.base_rate is not None:
            rate = check_number(self.base_rate, "base_rate", 0.0, 1.0, exclusive=True)
            object.__setattr__(self, "base_rate", rate)

    def log_odds(self, output: Any) -> Any:
        """Return slope * output + offset, in the type of the output."""
        return output * self.slope + self.offset

    def probability(self, output: Any) -> Any:
        """Return the probability of a target, 1 / (1 + exp(-log-odds)); it rounds to 0 or 1 far out."""
        return probability_of(self.log_odds(output))

    def pack(self) -> dict[str, Any]:
        """Return the header field of a model file."""
        return {"slope": self.slope, "offset": self.offset, "base_rate": self.base_rate}

    @classmethod
    def unpack(cls, header: Any) -> Self:
        """Return the link in a model file; the inverse of `pack`."""
        if not isinstance(header, dict):
            raise InvalidInputError(f"its link must have a slope and an offset, got {header!r}.")
        return cls(header["slope"], header["offset"], header.get("base_rate"))


def probability_of(log_odds: Any) -> Any:
    """Return 1 / (1 + exp(-log_odds)) without overflow, for numbers, arrays, and those of xarray."""
    found = expit(log_odds)
    return float(found) if isinstance(log_odds, float) else found
