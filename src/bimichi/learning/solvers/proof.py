"""The relaxation of `bimichi.learning.solvers.certificate` at work in the convex search: as a start, and as a proof."""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from bimichi._types import Floats
from bimichi.errors import InvalidInputError
from bimichi.learning.problem import InMemory
from bimichi.learning.solvers.certificate.candidates import Candidates
from bimichi.learning.solvers.certificate.region import Region
from bimichi.learning.solvers.certificate.relaxation import Relaxation, all_measures
from bimichi.learning.solvers.certificate.tree import Certified, Incumbent, Limits, certify
from bimichi.learning.solvers.descent import Descent, begin, descend, polish, take_up_missing
from bimichi.learning.solvers.working_set import WorkingSet
from bimichi.learning.spaces.elements import ElementSpace

MAX_ELEMENTS = 3**7  # tables of the order are quadratic in their number
START_ROWS = 200  # rows of positive bags up to which the relaxation is as quick as a few starts


def relaxed_start(working: WorkingSet, rng: Generator) -> Floats | None:
    """Return the measure that the relaxation of the whole problem finds; None where that would take long."""
    problem, space = working.problem, working.space
    if not isinstance(problem, InMemory) or not isinstance(space, ElementSpace) or space.size > 3**4:
        return None
    if len(working.form.positive) * np.diff(problem.bags.offsets)[problem.labels].sum() > START_ROWS:
        return None
    relaxation = _relaxation(working, rng)
    rows = relaxation.worst_rows(space.middle())
    found = relaxation.solve(all_measures(relaxation.region, relaxation.candidates), rows)
    return None if found is None else found.values


def prove(
    working: WorkingSet,
    best: Descent,
    limits: Limits,
    rng: Generator,
    options: tuple[float, int],
    n_jobs: int,
    report: Callable[[Certified], None],
) -> tuple[Descent, Certified]:
    """Bound J from below over all measures, and return the best measure that was found on the way.

    `options` are `tolerance` and `max_rounds` of the search.
    """
    states = {best.best_value: best}

    def improve(values: Floats) -> Incumbent:
        state = take_up_missing(working, begin(working, values))
        state = polish(working, descend(working, state, *options), options[0])
        states[state.best_value] = state
        return Incumbent(state.best, state.best_value)

    found = certify(_relaxation(working, rng), Incumbent(best.best, best.best_value), improve, limits, n_jobs, report)
    return states[found.best.value], found


def check_provable(problem: object, space: object) -> None:
    """Refuse problems that no certificate can be made for."""
    remedy = "Leave out certify=True."
    if not isinstance(problem, InMemory):
        raise InvalidInputError(f"certify=True needs its data in memory, not in parts on a cluster. {remedy}")
    if not isinstance(space, ElementSpace):
        raise InvalidInputError(
            f"certify=True is for bi-capacities and capacities with all elements, not for additive ones. {remedy}"
        )
    if space.size > MAX_ELEMENTS:
        raise InvalidInputError(
            f"certify=True is for at most {MAX_ELEMENTS:,} elements (seven sources), and {space.n_sources} sources "
            f"have {space.size:,}. Use fewer sources, or leave out certify=True."
        )


def _relaxation(working: WorkingSet, rng: Generator) -> Relaxation:
    problem, space = working.problem, working.space
    assert isinstance(problem, InMemory)
    assert isinstance(space, ElementSpace)
    return Relaxation(working, Candidates(problem, working.form, Region(space.lattice), rng))
