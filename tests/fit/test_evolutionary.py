"""The evolutionary search: seeds, stopping, checkpoints."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from problems import check_solution, tiny
from refusals import refused

from bimichi import Bags, BiCapacity, ConvexSolver, EvolutionarySolver, ModelFileError
from bimichi.fit.objectives import OBJECTIVES
from bimichi.fit.problem import InMemory
from bimichi.fit.train import problem_in_memory


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
        with refused("sampling-sources", "sampling='ranks'"):
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
        assert self.run().status == "max_iter"

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
        problem = problem_in_memory(Bags.from_instances(X, np.arange(1000) % 2), OBJECTIVES["bipolar"])
        free = np.delete(problem.usage_counts(True), list(problem.space.lattice.fixed))
        assert sorted((free[free > 0] / free.sum()).round(2)) == [0.09, 0.09, 0.82]
        assert problem.usage_counts(False).sum() == 2000

    def test_callback_sees_progress_and_can_stop(self):
        seen = []

        def callback(generation, J, values):
            seen.append((generation, J, BiCapacity(values, zero_bound=False)))
            return generation >= 200

        solution = self.run(callback=callback)
        assert solution.status == "stopped"
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
        ("name", "array", "code"),
        [
            ("values", np.zeros((5, 3)), "checkpoint-array"),
            ("values", np.zeros((2**20, 27)), "checkpoint-array"),
            ("values", np.full((5, 27), np.nan), "values-nan"),
            ("values", np.full((5, 27), 0.5), "values-boundary"),
            ("values", np.zeros((5, 27), np.float32), "checkpoint-array"),
            ("values", np.zeros(()), "checkpoint-array"),
            ("state", np.zeros(0, np.uint64), "checkpoint-array"),
            ("state", np.zeros(5), "checkpoint-array"),
            ("J", np.full(5, np.nan), "checkpoint-history"),
            ("J", np.zeros(3), "checkpoint-array"),
            ("history", np.array(["a"]), "checkpoint-history"),
            ("history", np.zeros((3, 3)), "checkpoint-history"),
            ("history", np.array([1.0, 2.0]), "checkpoint-history"),
        ],
    )
    def test_crafted_checkpoints_are_refused(self, name, array, code, tmp_path):
        path = tmp_path / "search.npz"
        self.run(max_iter=100, checkpoint=path)
        with np.load(path) as file:
            arrays = dict(file)
        np.savez(path, **arrays | {name: array})
        with refused(code, "search.npz", kind=ModelFileError):
            self.run(checkpoint=path)

    def test_compressed_or_foreign_checkpoints_are_refused(self, tmp_path):
        path = tmp_path / "search.npz"
        self.run(max_iter=100, checkpoint=path)
        with np.load(path) as file:
            arrays = dict(file)
        np.savez_compressed(path, **arrays)
        with refused("checkpoint-unreadable", kind=ModelFileError):
            self.run(checkpoint=path)
        np.savez(path, **arrays, more=np.zeros(3))
        with refused("checkpoint-unreadable", kind=ModelFileError):
            self.run(checkpoint=path)

    @pytest.mark.slow
    def test_killed_and_resumed_equals_uninterrupted(self, tmp_path):
        script = f"""
import os, signal, numpy as np, test_evolutionary as t
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
        with refused("checkpoint-of-another", kind=ModelFileError):
            EvolutionarySolver(checkpoint=path, population_size=5).solve(other, np.random.default_rng(0))
        with refused("checkpoint-of-another", kind=ModelFileError):
            self.run(checkpoint=path, small_mutation_probability=0.5)
        with refused("checkpoint-folder"):
            self.run(checkpoint=tmp_path / "none" / "s.npz")
        path.write_bytes(b"nonsense")
        with refused("checkpoint-unreadable", kind=ModelFileError):
            self.run(checkpoint=path)
