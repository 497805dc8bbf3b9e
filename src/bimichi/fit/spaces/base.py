"""`Space`: what is searched when a measure is learned, and what learning asks of it; see docs/design.md."""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from numpy.random import Generator
from numpy.typing import NDArray

from bimichi._types import Codes, Floats, Ints
from bimichi.measures.lattice import Lattice
from bimichi.scenes.bags import Bags


class Completion(NamedTuple):
    """Valid values, and for each code the known codes whose values bound its own."""

    values: Floats
    lower: Codes  # in every valid measure, the value here is no more than that of the code itself
    upper: Codes  # and here no less


class QuadraticRows(NamedTuple):
    """The rows of a program: linear functions ``weights @ v[codes] + constant`` of the values v."""

    codes: Codes
    weights: Floats
    constant: Floats
    alone: Ints  # rows that cost their square
    share: Floats  # how much each of them counts
    tied: Ints  # rows that bound a slack from below
    slack: Ints  # which
    slack_weight: Floats  # how much the square of each slack counts


class Minimum(NamedTuple):
    """The minimum of a program."""

    values: Floats  # NaN for those that no row uses
    costs: Floats  # the value of each row there
    slacks: Floats
    bound: float  # no valid values have a smaller sum of squares


class Usage(Protocol):
    """Counts of how often instances use each code, with sources as they are or with any of them inverted."""

    def __add__(self, other: Any) -> Self:
        """Return the usage by the instances of both."""

    def counts(self, weighted: bool, signs: Any = None) -> Ints:
        """Return how many instances touch each code, or give it weight, sources multiplied by these signs."""


class Order(Protocol):
    """As much of the order of the values as programs were found to need; never changed, so threads may share it."""

    def with_violated(self, values: Floats, tolerance: float) -> tuple[Any, bool]:
        """Return the order with what these values (NaN where unknown) violate, and whether any of it is new."""

    def joined(self, other: Any) -> Any:
        """Return the order that has all of both."""


class Instances(Protocol):
    """The instances of bags, ready to be fused; each space asks its own for further sums in `least_squares`."""

    def fuse(self, values: Floats) -> Floats:
        """Return the integral of every instance."""

    def rows(self, which: Ints) -> tuple[Codes, Floats]:
        """Return codes and weights of some instances, each of shape (len(which), row_length)."""

    def gram(self, targets: Any) -> Any:
        """Return the mean over each bag of squared distances to these targets, as a form that can be added up."""

    def with_signs(self, signs: Floats, bags: Bags) -> Self:
        """Return the instances with sources multiplied by these signs, as those of `bags` already are."""


class Sums(Protocol):
    """Labelled bags that can be asked for sums over all instances."""

    labels: NDArray[Any]
    weights: Floats

    def total(self, question: str, **arguments: Any) -> Any:
        """Add up what all instances, wherever they are, answer to a question: a method of the space's instances."""


class Space(Protocol):
    """The values that make up a measure."""

    offers: ClassVar[frozenset[str]]  # what a solver may count on; see `bimichi.fit.problem`
    lattice: Lattice | None  # the elements and their order; None for terms
    n_sources: int
    size: int  # how many values there are
    row_length: int  # how many of them an instance uses at most
    zero_bound: bool  # whether g(empty, empty) = 0 is part of the order
    polishes: bool  # whether a program of the highest precision is quick enough to end a search with

    def instances(self, bags: Bags, n_jobs: int | None = None) -> Instances:
        """Prepare the instances of bags."""

    def count_usage(self, X: NDArray[Any], n_jobs: int | None = None) -> Usage:
        """Count how often instances use each code."""

    def middle(self) -> Floats:
        """Return the values in the middle of all valid ones."""

    def sample(self, rng: Generator) -> Floats:
        """Draw valid values at random."""

    def known_at(self, values: Floats, codes: Codes) -> Floats:
        """Return the values from which the others can be completed if these codes alone matter; NaN elsewhere."""

    def complete(self, partial: Floats, completion: str) -> Completion:
        """Return valid values from those that a program found: NaN is filled by a rule, rounding undone."""

    def snapped(self, values: Floats, near: float) -> Floats:
        """Return valid values in which what lies within `near` of a bound, or of each other, is equal."""

    def order(self) -> Order:
        """Return the order that programs start with."""

    def minimise(self, rows: QuadraticRows, order: Any, precision: float, near: Floats) -> Minimum | None:
        """Minimise a sum of squares of rows and slacks over values in an `Order`; None if that fails.

        `near` are values that the minimum may be near to.
        """

    def least_squares(
        self, data: Sums, targets: tuple[float, float], completion: str, precisions: Sequence[float]
    ) -> tuple[Floats, float] | None:
        """Minimise the mean over each bag of squared distances to the targets of negative and positive bags.

        Values without weight follow by the rule `completion`. Returns the values and a lower bound of the minimum, with
        the first of `precisions` that succeeds; None if none does.
        """

    def lines(self, use: Floats) -> Any:
        """Return the programs over slope * C + offset of this space, a `LineProgram`; `use` is the weight of codes."""

    def measure(self, values: Floats, names: Sequence[str] | None = None) -> Any:
        """Return the `Measure` that these values make up."""
