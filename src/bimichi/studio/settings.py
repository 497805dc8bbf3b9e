"""What a studio learns, and by which settings: the options of `bimichi train` that its page offers.

Estimators are imported when they are needed: the page is served without them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from bimichi._checks import check_choice
from bimichi.errors import InvalidInputError
from bimichi.fit.objectives import OBJECTIVES, get_objective
from bimichi.io.labelled import Labelling
from bimichi.scenes.superpixels import CORE
from bimichi.sources.recipes import AS_IS
from bimichi.studio.labels import Shapes

if TYPE_CHECKING:
    from bimichi.methods.bimichi import BiMIChI

MODES = ("live", "once", "off")
SOURCES = ("given", "rarity")
ADDITIVITIES = (1, 2, None)


@dataclass(frozen=True)
class Settings:
    """How labels become bags, and what is minimised; `BiMIChI` and `Labelling` describe the fields."""

    objective: str = "logistic"
    additivity: int | None = 1
    sources: str = "given"
    rest: str = "negative"
    core: tuple[float, float] = CORE
    polarity: str = "given"
    seed: int = 0
    inverted: tuple[int, ...] = ()
    """Sources that are inverted before their values are ranked, with ``sources="rarity"``."""

    def __post_init__(self) -> None:
        check_choice(self.objective, "objective", tuple(OBJECTIVES))
        check_choice(self.additivity, "additivity", ADDITIVITIES)
        check_choice(self.sources, "sources", SOURCES)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < 2**31:
            raise InvalidInputError(
                f"seed must be a whole number from 0, got {self.seed!r}.",
                code="whole-number",
                argument="seed",
                value=self.seed,
            )
        if not isinstance(self.inverted, tuple) or not all(isinstance(k, int) for k in self.inverted):
            raise InvalidInputError(
                f"inverted must be numbers of sources, got {self.inverted!r:.40}.",
                code="inverted",
                argument="inverted",
                value=self.inverted,
            )
        shares = self.core if isinstance(self.core, tuple) else ()
        if len(shares) != 2 or not all(isinstance(one, int | float) and 0 < one <= 1 for one in shares):
            raise InvalidInputError(
                f"core must be two shares in (0, 1], of the width and the height, got {self.core!r:.40}.",
                code="core",
                argument="core",
                value=self.core,
            )
        self.labelling  # noqa: B018  # raises if rest is another word
        if (self.objective, self.additivity, self.polarity) != ("logistic", 1, "given"):  # which go together
            from bimichi.fit.solvers import get_solver
            from bimichi.fit.train import check_training

            objective = get_objective(self.objective, additivity=self.additivity)
            check_training(objective, get_solver("convex"), self.polarity)

    @property
    def labelling(self) -> Labelling:
        """How labels of the studio become bags, by the options of `bimichi train`."""
        given: Any = {"rest": self.rest, "core": self.core, "by_pixel": self.objective == "mean"}
        return Labelling(bags="boxes", target="target", negative="not", **given)

    def recipes(self, given: Sequence[str]) -> tuple[str, ...]:
        """Return the recipes of the sources, of which those are given that the user asked for."""
        if self.sources == "given":
            return tuple(given)
        from bimichi.methods.cross_validated import followed

        own = ["inverted|rarity" if k in self.inverted else "rarity" for k in range(len(given))]
        return tuple(followed(recipe, f"{AS_IS}|{more}") for recipe, more in zip(given, own, strict=True))

    def model(self, names: Any) -> "BiMIChI":
        """Return what is fitted."""
        from bimichi.methods.bimichi import BiMIChI

        given: Any = {"polarity": self.polarity, "additivity": self.additivity}
        return BiMIChI(self.objective, source_names=list(names), random_state=self.seed, **given)

    def changed(self, given: Mapping[str, Any]) -> "Settings":
        """Return the same settings with some changed, as the page sends them."""
        if not isinstance(given, Mapping):
            raise InvalidInputError(
                f"settings must be an object, got {type(given).__name__}.",
                code="settings-object",
                argument="settings",
                value=given,
            )
        known = {key: value for key, value in given.items() if key in asdict(self)}
        known |= {key: tuple(known[key]) for key in ("core", "inverted") if isinstance(known.get(key), list)}
        try:
            return replace(self, **known)
        except (TypeError, OverflowError) as error:
            raise InvalidInputError(f"A setting is not as it must be: {error}.", code="settings") from error

    def to_json(self) -> dict[str, Any]:
        """Return them as the page and project files take them."""
        return asdict(self) | {"core": list(self.core), "inverted": list(self.inverted)}


@dataclass(frozen=True)
class Task:
    """What is learned: the shapes of the labelled scenes, with their revisions, under some settings."""

    settings: Settings
    labels: tuple[tuple[int, int, Shapes], ...]
    """Number of the scene, revision, shapes."""

    @property
    def revisions(self) -> dict[str, int]:
        """The revision of each scene, by its number as text, as JSON has it."""
        return {str(scene): revision for scene, revision, _ in self.labels}
