"""What all solvers have in common, their options and names."""

import numpy as np
import pytest
import um
from problems import check_solution, tiny
from refusals import refused, warned

from bimichi import BiCapacity, ConvexSolver, EvolutionarySolver
from bimichi.fit.objectives import OBJECTIVES, get_objective
from bimichi.fit.problem import InMemory
from bimichi.fit.solvers import SOLVERS, get_solver
from bimichi.fit.spaces.base import Program

BAGS, IMAGE, TRUTH = um.um()


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("solver", [ConvexSolver(n_starts=2), EvolutionarySolver(max_iter=60, population_size=6)])
def test_every_solver_keeps_the_contract_for_every_objective(name, solver):
    for seed in range(4):
        problem = InMemory(tiny(seed, 3), get_objective(name))
        if problem.objective.links and isinstance(solver, EvolutionarySolver):
            with refused("solver-free-scale"):
                solver.solve(problem, np.random.default_rng(seed))
            continue
        solution = solver.solve(problem, np.random.default_rng(seed))
        check_solution(problem, solution)
        again = solver.solve(problem, np.random.default_rng(seed), n_jobs=1)
        assert np.array_equal(again.values, solution.values)
        assert np.array_equal(again.history, solution.history)
        assert (np.diff(solution.history) <= 1e-9).all()
        assert solution.n_iter == len(solution.history) > 0


def test_many_sources():
    for name in OBJECTIVES:
        problem = InMemory(tiny(5, 9), get_objective(name))
        check_solution(problem, ConvexSolver(n_starts=2).solve(problem, np.random.default_rng(0)))


class TestUM:
    def test_bags_are_what_the_closed_form_assumes(self):
        assert len(BAGS) == 48
        assert len(BAGS.X) == 8000
        assert {tuple(x) for x in BAGS.X.tolist()} == {(1, 1, -1), (-1, -1, -1), (-1, 1, 1)}

    def test_convex_bipolar_is_the_closed_form(self):
        problem = InMemory(BAGS, OBJECTIVES["bipolar"])
        solution = ConvexSolver().solve(problem, np.random.default_rng(0))
        x, J = um.bipolar_optimum(BAGS)
        g = BiCapacity(solution.values, zero_bound=False)
        assert solution.objective_value == pytest.approx(J, abs=1e-6)
        assert g[{1, 2}, {0}] == pytest.approx(x, abs=1e-6)
        assert g[{0, 1}, {2}] == pytest.approx(1, abs=1e-6)

    def test_convex_magnitude_is_perfect(self):
        problem = InMemory(BAGS, OBJECTIVES["magnitude"])
        solution = ConvexSolver().solve(problem, np.random.default_rng(0))
        g = BiCapacity(solution.values)
        assert solution.objective_value == pytest.approx(0, abs=1e-6)
        assert abs(g[{0, 1}, {2}]) == pytest.approx(1, abs=1e-3)
        assert g[{1, 2}, {0}] == pytest.approx(0, abs=1e-3)

    @pytest.mark.parametrize("choice", ["weighted", "touched"])
    def test_evolutionary_comes_close_for_ten_seeds(self, choice):
        _, J = um.bipolar_optimum(BAGS)
        for seed in range(10):
            solver = EvolutionarySolver(element_choice=choice)
            one = solver.solve(InMemory(BAGS, OBJECTIVES["bipolar"]), np.random.default_rng(seed))
            two = solver.solve(InMemory(BAGS, OBJECTIVES["magnitude"]), np.random.default_rng(seed))
            assert J - 1e-9 <= one.objective_value <= 1.01 * J
            assert two.objective_value < 0.05


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConvexSolver(n_starts=0), "whole-number:n_starts"),
        (lambda: ConvexSolver(max_rounds=True), "whole-number:max_rounds"),
        (lambda: ConvexSolver(tolerance=0), "number-range:tolerance"),
        (lambda: EvolutionarySolver(population_size=0.5), "whole-number:population_size"),
        (lambda: EvolutionarySolver(patience=0), "whole-number:patience"),
        (lambda: EvolutionarySolver(small_mutation_probability=2), "number-range:small_mutation_probability"),
        (lambda: EvolutionarySolver(tolerance=-1), "number-range:tolerance"),
        (lambda: EvolutionarySolver(tolerance=None), "number-range:tolerance"),
        (
            lambda: EvolutionarySolver(small_mutation_probability="x"),
            "number-range:small_mutation_probability",
        ),
        (lambda: EvolutionarySolver(element_choice="all"), "choice:element_choice"),
        (lambda: EvolutionarySolver(sampling="depth"), "choice:sampling"),
        (
            lambda: get_solver("simplex"),
            "solver-unknown:solver",
        ),
        (lambda: get_objective("best"), "choice:objective"),
    ],
)
def test_bad_options(make, message):
    with refused(message):
        make()


def test_solvers_by_name():
    assert {name: type(get_solver(name)) for name in SOLVERS} == SOLVERS


def test_trouble_in_the_qp_is_said_and_survived(monkeypatch):
    problem = InMemory(tiny(1, 3), OBJECTIVES["bipolar"])
    monkeypatch.setattr(Program, "solve", lambda *args, **kwargs: None)
    with warned("solver-ended-early"):
        solution = ConvexSolver(n_starts=3).solve(problem, np.random.default_rng(0))
    check_solution(problem, solution)
    mean = InMemory(tiny(1, 3), OBJECTIVES["mean"])
    with warned("solver-failed"):
        check_solution(mean, ConvexSolver().solve(mean, np.random.default_rng(0)))


def test_an_objective_without_convex_form_is_refused():
    objective = type(OBJECTIVES["mean"])(**vars(OBJECTIVES["mean"]) | {"convex": None, "name": "odd"})
    problem = InMemory(tiny(1, 3), objective)
    with refused("solver-objective", "solver='evol", "'odd'"):
        ConvexSolver().solve(problem, np.random.default_rng(0))
