import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import um
from hypothesis import given, settings, strategies as st

from bimichi import Bags, BiCapacity, ConvexSolver, EvolutionarySolver, InvalidInputError, ModelFileError
from bimichi.learning.objectives import OBJECTIVES, get_objective
from bimichi.learning.problem import InMemory
from bimichi.learning.solvers import SOLVERS, get_solver
from bimichi.learning.spaces.quadratic import Program
from bimichi.learning.training import BagsInMemory

BAGS, IMAGE, TRUTH = um.um()


def tiny(seed, m, positive=2):
    rng = np.random.default_rng(seed)
    n_bags = int(rng.integers(positive + 1, 7))
    parts = [rng.uniform(-1, 1, (int(rng.integers(1, 5)), m)) for _ in range(n_bags)]
    return Bags.from_list(parts, np.arange(n_bags) < positive)


def brute_force(problem):
    """Minimum over all choices of witnesses, each by a QP over all elements and all rows."""
    form, lattice, data = problem.objective.convex, problem.space.lattice, problem.table
    size, n_bags = lattice.size, len(problem.labels)
    rows = sp.csr_array(
        (data.weights.ravel(), data.codes.ravel(), np.arange(0, data.codes.size + 1, data.codes.shape[1])),
        shape=(len(data.codes), size),
    ).toarray()
    bag = np.repeat(np.arange(n_bags), np.diff(data.offsets))
    lower, upper = lattice.covers()
    order = np.zeros((len(lower), size))
    order[np.arange(len(lower)), lower] = 1
    order[np.arange(len(lower)), upper] -= 1
    fixed = {code: value for code, value in lattice.fixed.items() if code or lattice.zero_bound}
    boundary = np.zeros((len(fixed), size))
    boundary[np.arange(len(fixed)), list(fixed)] = 1
    negative = [
        (sign * rows[i], -np.eye(n_bags)[bag[i]], -offset)
        for i in range(len(rows))
        if not problem.labels[bag[i]]
        for sign, offset in form.negative
    ]
    choices = [
        [(i, sign) for i in np.flatnonzero(bag == b) for sign in form.positive] for b in np.flatnonzero(problem.labels)
    ]
    best = np.inf
    for chosen in itertools.product(*choices):
        equal = [np.hstack([boundary, np.zeros((len(fixed), n_bags))])]
        targets = list(fixed.values())
        for i, sign in chosen:
            equal.append(np.hstack([sign * rows[i], np.eye(n_bags)[bag[i]]])[None])
            targets.append(1.0)
        below = [np.hstack([order, np.zeros((len(order), n_bags))])]
        below += [np.hstack([left, right])[None] for left, right, _ in negative]
        limits = [*np.zeros(len(order)), *(limit for *_, limit in negative)]
        program = Program(size + n_bags)
        for add, parts, right in ((program.equal, equal, targets), (program.below, below, limits)):
            block = np.vstack(parts)
            add(np.array(right), (*np.nonzero(block), block[np.nonzero(block)]))
        P = sp.csc_matrix(np.diag(np.concatenate([np.zeros(size), 2 * problem.weights])))
        answer = program.solve(P, np.zeros(size + n_bags))
        best = min(best, answer[1])
    return best


def check_solution(problem, solution):
    g = BiCapacity(solution.values, zero_bound=problem.objective.zero_bound)
    assert g.is_monotone(1e-9)
    assert np.abs(solution.values).max() <= 1
    link = [] if solution.link is None else [solution.link]
    assert problem.value(solution.values, *link) == pytest.approx(solution.objective_value, abs=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("solver", [ConvexSolver(n_starts=2), EvolutionarySolver(max_iter=60, population_size=6)])
def test_every_solver_keeps_the_contract_for_every_objective(name, solver):
    for seed in range(4):
        problem = InMemory(tiny(seed, 3), get_objective(name))
        if problem.objective.links and isinstance(solver, EvolutionarySolver):
            with pytest.raises(InvalidInputError, match=r"no slope and offset\. Use solver="):
                solver.solve(problem, np.random.default_rng(seed))
            continue
        solution = solver.solve(problem, np.random.default_rng(seed))
        check_solution(problem, solution)
        again = solver.solve(problem, np.random.default_rng(seed), n_jobs=1)
        assert np.array_equal(again.values, solution.values)
        assert np.array_equal(again.history, solution.history)
        assert (np.diff(solution.history) <= 1e-9).all()
        assert solution.n_iter == len(solution.history) > 0


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("name", ["bipolar", "magnitude"])
@pytest.mark.parametrize("seed", range(5))
def test_convex_equals_brute_force(name, m, seed):
    problem = InMemory(tiny(seed, m), get_objective(name))
    solution = ConvexSolver(n_starts=40).solve(problem, np.random.default_rng(seed))
    assert solution.objective_value == pytest.approx(brute_force(problem), abs=1e-6)
    check_solution(problem, solution)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["bipolar", "magnitude"]), st.integers(1, 4))
def test_J_never_rises_and_meets_its_bound(seed, name, m):
    problem = InMemory(tiny(seed, m), get_objective(name))
    solution = ConvexSolver(n_starts=2).solve(problem, np.random.default_rng(seed))
    assert (np.diff(solution.history) <= 1e-8).all()
    assert solution.status == "converged"
    assert solution.objective_value == pytest.approx(solution.lower_bound, abs=1e-6)
    assert solution.objective_value <= solution.starts.min() + 1e-12
    check_solution(problem, solution)


def test_starts_that_meet_each_other_in_turn_still_end(rng):
    """Bags like those of examples/learn_from_bags.py, where two starts once stopped for one another."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        ids = np.repeat(np.arange(30), 20)
        X = np.clip(rng.normal([-0.5, 0.4, 0.0], 0.2, (len(ids), 3)), -1, 1)
        hits = (ids % 3 == 0) & (rng.random(len(ids)) < 0.2)
        X[hits] = np.clip(rng.normal([0.7, -0.6, 0.0], 0.2, (int(hits.sum()), 3)), -1, 1)
        problem = InMemory(Bags.from_instances(X, ids % 3 == 0, ids), OBJECTIVES["bipolar"])
        solution = ConvexSolver().solve(problem, rng)
        assert solution.status == "converged"
        assert solution.objective_value == pytest.approx(solution.lower_bound, abs=1e-6)
        assert solution.objective_value <= solution.starts.min() + 1e-9


def random_bags(seed, weight=1.0):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(12), 6)
    return Bags.from_instances(rng.uniform(-1, 1, (72, 3)), ids % 3 == 0, ids, np.full(72, weight))


@pytest.mark.slow
def test_starts_do_not_stand_in_each_others_way():
    """Where about a third of the starts reach the best J alone, many together must."""
    problem = InMemory(random_bags(2), OBJECTIVES["bipolar"])
    found = [ConvexSolver(n_starts=40).solve(problem, np.random.default_rng(s)).objective_value for s in range(5)]
    evolved = EvolutionarySolver(patience=None).solve(problem, np.random.default_rng(0)).objective_value
    assert np.ptp(found) < 1e-6
    assert max(found) <= evolved + 1e-9


@pytest.mark.parametrize("name", OBJECTIVES)
def test_scale_of_the_weights_does_not_matter(name):
    def relative(weight):
        problem = InMemory(random_bags(0, weight), get_objective(name))
        solution = ConvexSolver().solve(problem, np.random.default_rng(0))
        assert solution.lower_bound == pytest.approx(solution.objective_value, rel=1e-6)
        return solution.objective_value / weight

    assert relative(1e-9) == pytest.approx(relative(1.0), rel=1e-6)
    assert relative(1e9) == pytest.approx(relative(1.0), rel=1e-6)


def test_no_bound_is_claimed_before_convergence():
    solution = ConvexSolver(n_starts=1, max_rounds=1).solve(
        InMemory(random_bags(1), OBJECTIVES["bipolar"]), np.random.default_rng(0)
    )
    assert solution.status == "reached max_rounds"
    assert solution.lower_bound is None


def test_many_sources():
    for name in OBJECTIVES:
        problem = InMemory(tiny(5, 9), get_objective(name))
        check_solution(problem, ConvexSolver(n_starts=2).solve(problem, np.random.default_rng(0)))


def test_witnesses_are_numbered_as_the_user_does(rng):
    X = rng.uniform(-0.4, 0.4, (40, 2))
    ids, y = np.arange(40) % 4, (np.arange(40) % 4 == 1).astype(int)
    X[21] = [0.9, 0.8]
    solution = ConvexSolver().solve(InMemory(Bags.from_instances(X, y, ids), OBJECTIVES["bipolar"]), rng)
    assert solution.witnesses.tolist() == [21]


def test_mean_is_one_exact_qp(rng):
    parts = [rng.uniform(-1, 1, (20, 3)) for _ in range(8)]
    problem = InMemory(Bags.from_list(parts, np.arange(8) < 3), OBJECTIVES["mean"])
    solution = ConvexSolver().solve(problem, rng)
    assert solution.objective_value == pytest.approx(solution.lower_bound, abs=1e-7)
    for _ in range(200):
        other = BiCapacity.random(3, False, rng).values
        for step in (1.0, 0.1, 0.01):
            assert problem.value(solution.values + step * (other - solution.values)) >= solution.objective_value - 1e-9


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


class TestEvolutionary:
    problem = InMemory(tiny(3, 3), OBJECTIVES["bipolar"])

    def run(self, seed=0, n_jobs=None, **options):
        solver = EvolutionarySolver(**{"max_iter": 400, "population_size": 5, "patience": None} | options)
        return solver.solve(self.problem, np.random.default_rng(seed), n_jobs)

    def test_same_seed_same_result_for_any_number_of_jobs(self):
        one, two = self.run(n_jobs=1), self.run(n_jobs=2)
        assert np.array_equal(one.values, two.values)
        assert np.array_equal(one.history, two.history)
        assert not np.array_equal(one.history, self.run(seed=1).history)

    @pytest.mark.parametrize("sampling", ["breadth-first", "ranks"])
    def test_samplings(self, sampling):
        solution = self.run(sampling=sampling, small_mutation_probability=0.5)
        check_solution(self.problem, solution)
        assert solution.history[-1] < solution.history[0]

    def test_breadth_first_is_refused_for_many_sources(self):
        problem = InMemory(tiny(0, 7), OBJECTIVES["magnitude"])
        with pytest.raises(InvalidInputError, match="Use sampling='ranks'"):
            EvolutionarySolver(sampling="breadth-first").solve(problem, np.random.default_rng(0))
        check_solution(problem, EvolutionarySolver(max_iter=5).solve(problem, np.random.default_rng(0)))

    def test_large_mutations_alone_and_small_ones_alone_improve(self):
        for eta in (0.0, 1.0):
            history = self.run(small_mutation_probability=eta).history
            assert history[-1] < history[0]

    def test_never_below_the_convex_optimum(self):
        best = ConvexSolver(n_starts=40).solve(self.problem, np.random.default_rng(0)).objective_value
        assert self.run(max_iter=3000).objective_value >= best - 1e-8

    def test_stops_when_nothing_improves(self):
        solution = self.run(max_iter=5000, patience=100, tolerance=1e9)
        assert solution.status == "converged"
        assert solution.n_iter == 101  # the first at which J 100 generations before is known
        assert self.run().status == "reached max_iter"

    @pytest.mark.parametrize("patience", [1, 37, 100, 130])
    def test_patience_is_tested_at_every_generation(self, patience):
        whole = self.run().history
        tolerance = 0.2
        stalled = [t for t in range(patience + 1, 401) if whole[t - 1 - patience] - whole[t - 1] <= tolerance]
        solution = self.run(patience=patience, tolerance=tolerance)
        assert solution.n_iter == stalled[0]
        assert np.array_equal(solution.history, whole[: stalled[0]])
        assert solution.objective_value == pytest.approx(whole[stalled[0] - 1])  # the measure of that generation

    def test_use_counts_merged_singletons(self):
        """Eq. 7 for 900 and 100 equal instances, each its own bag; those were one each."""
        X = np.array([[0.5, 0.9]] * 900 + [[0.5, -0.9]] * 100)
        training = BagsInMemory(Bags.from_instances(X, np.arange(1000) % 2))
        problem = training.problem(OBJECTIVES["bipolar"])
        free = np.delete(problem.usage_counts(True), list(problem.space.lattice.fixed))
        assert sorted((free[free > 0] / free.sum()).round(2)) == [0.09, 0.09, 0.82]
        assert problem.usage_counts(False).sum() == 2000

    def test_callback_sees_progress_and_can_stop(self):
        seen = []

        def callback(generation, J, values):
            seen.append((generation, J, BiCapacity(values, zero_bound=False)))
            return generation >= 200

        solution = self.run(callback=callback)
        assert solution.status == "stopped by the callback"
        assert [generation for generation, *_ in seen] == [100, 200]
        assert seen[-1][1] == pytest.approx(solution.objective_value)

    def test_interrupted_and_resumed_equals_uninterrupted(self, tmp_path):
        def stop(generation, J, values):
            if generation >= 200:
                raise KeyboardInterrupt

        path = tmp_path / "search.npz"
        with pytest.raises(KeyboardInterrupt):
            self.run(checkpoint=path, callback=stop)
        resumed = self.run(seed=99, checkpoint=path)
        whole = self.run()
        assert np.array_equal(resumed.values, whole.values)
        assert np.array_equal(resumed.history, whole.history)

    @pytest.mark.parametrize("stop", [1, 50, 99, 100, 101, 250])
    @pytest.mark.parametrize("objective", ["bipolar", "magnitude"])
    def test_stopped_by_max_iter_and_resumed_equals_uninterrupted(self, stop, objective, tmp_path):
        problem, path = InMemory(tiny(5, 3), OBJECTIVES[objective]), tmp_path / "search.npz"

        def run(seed, **options):
            solver = EvolutionarySolver(population_size=4, patience=None, small_mutation_probability=0.9, **options)
            return solver.solve(problem, np.random.default_rng(seed))

        part = run(0, max_iter=stop, checkpoint=path)
        resumed, whole = run(99, max_iter=330, checkpoint=path), run(0, max_iter=330)
        assert np.array_equal(part.history, whole.history[:stop])
        assert resumed.status == whole.status
        for name in ("values", "history", "starts", "objective_value"):
            assert np.array_equal(getattr(resumed, name), getattr(whole, name))

    @pytest.mark.parametrize(
        ("name", "array"),
        [
            ("values", np.zeros((5, 3))),
            ("values", np.zeros((2**20, 27))),
            ("values", np.full((5, 27), np.nan)),
            ("values", np.full((5, 27), 0.5)),
            ("values", np.zeros((5, 27), np.float32)),
            ("values", np.zeros(())),
            ("state", np.zeros(0, np.uint64)),
            ("state", np.zeros(5)),
            ("J", np.full(5, np.nan)),
            ("J", np.zeros(3)),
            ("history", np.array(["a"])),
            ("history", np.zeros((3, 3))),
            ("history", np.array([1.0, 2.0])),
        ],
    )
    def test_crafted_checkpoints_are_refused(self, name, array, tmp_path):
        path = tmp_path / "search.npz"
        self.run(max_iter=100, checkpoint=path)
        with np.load(path) as file:
            arrays = dict(file)
        np.savez(path, **arrays | {name: array})
        with pytest.raises(ModelFileError, match=r"checkpoint .* is damaged"):
            self.run(checkpoint=path)

    def test_compressed_or_foreign_checkpoints_are_refused(self, tmp_path):
        path = tmp_path / "search.npz"
        self.run(max_iter=100, checkpoint=path)
        with np.load(path) as file:
            arrays = dict(file)
        np.savez_compressed(path, **arrays)
        with pytest.raises(ModelFileError, match=r"Cannot read the checkpoint .*compressed"):
            self.run(checkpoint=path)
        np.savez(path, **arrays, more=np.zeros(3))
        with pytest.raises(ModelFileError, match="members are not those of a checkpoint"):
            self.run(checkpoint=path)

    @pytest.mark.slow
    def test_killed_and_resumed_equals_uninterrupted(self, tmp_path):
        script = f"""
import os, signal, numpy as np, test_solvers as t
def kill(generation, J, values):
    if generation >= 200:
        os.kill(os.getpid(), signal.SIGKILL)
t.TestEvolutionary().run(checkpoint={str(tmp_path / "s.npz")!r}, callback=kill)
"""
        folder = Path(__file__).parent
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
        done = subprocess.run([sys.executable, "-c", script], env=environment, cwd=folder, capture_output=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert np.array_equal(self.run(checkpoint=tmp_path / "s.npz").history, self.run().history)

    def test_a_finished_search_is_not_taken_further(self, tmp_path):
        first, again = (
            self.run(max_iter=5000, patience=100, tolerance=1e9, checkpoint=tmp_path / "s.npz") for _ in range(2)
        )
        assert again.status == "converged"
        assert np.array_equal(first.history, again.history)

    def test_elements_are_chosen_by_all_instances(self):
        data = np.sign(np.random.default_rng(0).normal(size=(60, 3)))
        bags = Bags.from_instances(data, np.arange(60) % 2, np.arange(60) % 4)
        touched, weighted = map(InMemory(bags, OBJECTIVES["bipolar"]).usage_counts, (False, True))
        assert touched.sum() == 180
        assert weighted.sum() == 60

    def test_checkpoint_of_other_data_or_none_at_all(self, tmp_path):
        path = tmp_path / "search.npz"
        self.run(max_iter=100, checkpoint=path)
        other = InMemory(tiny(4, 3), OBJECTIVES["bipolar"])
        with pytest.raises(ModelFileError, match="is of other data"):
            EvolutionarySolver(checkpoint=path, population_size=5).solve(other, np.random.default_rng(0))
        with pytest.raises(ModelFileError, match="other solver parameters"):
            self.run(checkpoint=path, small_mutation_probability=0.5)
        with pytest.raises(InvalidInputError, match=r"The folder of checkpoint .* does not exist"):
            self.run(checkpoint=tmp_path / "none" / "s.npz")
        path.write_bytes(b"nonsense")
        with pytest.raises(ModelFileError, match="Cannot read the checkpoint"):
            self.run(checkpoint=path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConvexSolver(n_starts=0), "n_starts must be a whole number of at least 1, got 0"),
        (lambda: ConvexSolver(max_rounds=True), "max_rounds"),
        (lambda: ConvexSolver(tolerance=0), "tolerance"),
        (lambda: EvolutionarySolver(population_size=0.5), "population_size"),
        (lambda: EvolutionarySolver(patience=0), "patience"),
        (lambda: EvolutionarySolver(small_mutation_probability=2), "small_mutation_probability"),
        (lambda: EvolutionarySolver(tolerance=-1), "tolerance"),
        (lambda: EvolutionarySolver(tolerance=None), "tolerance must be a finite number"),
        (
            lambda: EvolutionarySolver(small_mutation_probability="x"),
            r"small_mutation_probability must be a number in \[0, 1\]",
        ),
        (lambda: EvolutionarySolver(element_choice="all"), "element_choice"),
        (lambda: EvolutionarySolver(sampling="depth"), "sampling"),
        (
            lambda: get_solver("simplex"),
            "solver must be one of convex, evolutionary, binary, paper, literal or a solver object",
        ),
        (lambda: get_objective("best"), "objective must be one of bipolar, magnitude, mean"),
    ],
)
def test_bad_options(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_solvers_by_name():
    assert {name: type(get_solver(name)) for name in SOLVERS} == SOLVERS


def test_trouble_in_the_qp_is_said_and_survived(monkeypatch):
    problem = InMemory(tiny(1, 3), OBJECTIVES["bipolar"])
    monkeypatch.setattr(Program, "solve", lambda *args, **kwargs: None)
    with pytest.warns(UserWarning, match="the QP of round 1 could not be solved"):
        solution = ConvexSolver(n_starts=3).solve(problem, np.random.default_rng(0))
    check_solution(problem, solution)
    mean = InMemory(tiny(1, 3), OBJECTIVES["mean"])
    with pytest.warns(UserWarning, match="could not be solved"):
        check_solution(mean, ConvexSolver().solve(mean, np.random.default_rng(0)))


def test_an_objective_without_convex_form_is_refused():
    objective = type(OBJECTIVES["mean"])(**vars(OBJECTIVES["mean"]) | {"convex": None, "name": "odd"})
    problem = InMemory(tiny(1, 3), objective)
    with pytest.raises(InvalidInputError, match=r"cannot minimise 'odd': it has no convex form. Use solver='evol"):
        ConvexSolver().solve(problem, np.random.default_rng(0))
