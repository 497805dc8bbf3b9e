"""Large measures in few numbers: exact, small, and harmless when hostile."""

import json

import numpy as np
import pytest
from mutation import check_mutated
from refusals import refused

from bimichi import Bags, BiCapacity, BiMIChI, Capacity, ConvexSolver, FusionRule, ModelFileError
from bimichi.fit.spaces.base import completion_of
from bimichi.measures.files import COMPACT_FROM, COMPLETIONS, pack_counts, pack_values, unpack_counts, unpack_values
from bimichi.measures.lattice import pair_lattice, sample, subset_lattice
from bimichi.measures.on_lattice import complete

RULES = ("lowest", "highest", "nearest-zero")


def known_part(lattice, n_known, rng):
    """Monotone values at few elements, NaN elsewhere."""
    weights = rng.dirichlet(np.ones(lattice.n_sources))
    up, down = lattice.masks(np.arange(lattice.size))
    bit = np.arange(lattice.n_sources)
    values = (up[:, None] >> bit & 1) @ weights - (down[:, None] >> bit & 1) @ weights
    partial = np.full(lattice.size, np.nan)
    codes = rng.integers(1, lattice.size, n_known)
    partial[codes] = values[codes]
    return partial


def lattices(sizes):
    for m in sizes:
        yield pair_lattice(m)
        yield pair_lattice(m, zero_bound=False)


@pytest.mark.parametrize("rule", [*COMPLETIONS, "random"])
@pytest.mark.parametrize("lattice", [*lattices((3, 4, 5, 7, 8)), subset_lattice(11), subset_lattice(13)], ids=str)
def test_values_come_back_bit_for_bit(lattice, rule, rng):
    if rule == "random":
        values = sample(lattice, rng)
    else:
        values = complete(lattice, known_part(lattice, 25, rng), rule, [str(k) for k in range(lattice.n_sources)])
    kind = Capacity(values) if lattice.base == 2 else BiCapacity(values, None, lattice.zero_bound)
    header, arrays = pack_values(lattice, kind.values)
    names = {"source_names": list(kind.source_names)}
    back = unpack_values(lambda _: lattice, header | names, arrays)
    np.testing.assert_array_equal(back.view(np.int64), kind.values.view(np.int64))
    if rule in RULES and lattice.size >= COMPACT_FROM:
        assert header["completion"] in RULES
        assert len(arrays["values"]) <= 25
    if lattice.size < COMPACT_FROM or rule == "random":
        assert header == {}
        assert arrays["values"] is kind.values


@pytest.mark.parametrize("m", [3, 7, 10])
@pytest.mark.parametrize("zero_bound", [True, False])
@pytest.mark.parametrize("rule", ["lowest", "nearest-zero"])
def test_files_of_what_a_solver_leaves(m, zero_bound, rule, rng, tmp_path):
    """With the rounding that solvers leave behind, too."""
    lattice = pair_lattice(m, zero_bound)
    partial = known_part(lattice, 200, rng)
    partial = np.clip(partial + rng.normal(0, 1e-10, lattice.size), -1, 1)
    g = BiCapacity(completion_of(lattice, partial, rule).values, None, zero_bound)
    g.save(tmp_path / "g")
    assert BiCapacity.load(tmp_path / "g") == g
    if m == 10:
        assert (tmp_path / "g").stat().st_size < 12_000  # all of it would be 300 kB and more


def test_measures_that_break_the_order_within_tolerance_stay_exact(tmp_path, rng):
    lattice = pair_lattice(8)
    values = completion_of(lattice, known_part(lattice, 40, rng), "lowest").values
    inner = np.flatnonzero((np.abs(values) < 0.9) & (values != 0))
    values[rng.choice(inner, 500)] += rng.choice([-4e-10, 4e-10], 500)
    g = BiCapacity(values)
    assert not g.is_monotone()
    g.save(tmp_path / "g")
    assert BiCapacity.load(tmp_path / "g") == g


@pytest.fixture(scope="module")
def model():
    """Eight sources, few patterns, so that few elements are touched."""
    rng = np.random.default_rng(0)
    patterns = np.clip(rng.normal(0, 0.5, (12, 8)), -1, 1)
    ids = np.repeat(np.arange(30), 10)
    X = patterns[rng.integers(0, 12, len(ids))]
    return BiMIChI("bipolar", ConvexSolver(n_starts=2), random_state=0).fit(Bags.from_instances(X, ids % 3 == 0, ids))


def test_a_fitted_model_is_small_and_the_same(model, tmp_path):
    path = tmp_path / "model"
    model.save(path)
    assert path.stat().st_size < 25_000  # three arrays of 6,561 numbers would be far more
    document = json.loads(path.read_text())
    assert document["version"] == 1
    assert document["completion"] in RULES
    back, plain = BiMIChI.load(path), FusionRule.load(path)
    assert back.bicapacity_ == model.bicapacity_ == plain.measure
    for name in ("touched", "weighted"):
        np.testing.assert_array_equal(back.usage_[name], model.usage_[name])
    np.testing.assert_array_equal(plain.usage["touched"], model.usage_["touched"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, a: d.update(completion="magic"), "choice"),
        (lambda d, a: d.update(completion="middle"), "choice"),
        (lambda d, a: d.update(completion=["lowest"]), "choice"),
        (lambda d, a: d.update(completion=None), "choice"),
        (lambda d, a: d.pop("completion"), "values-length"),
        (lambda d, a: a["codes"].append(6561.0), "model-codes"),
        (lambda d, a: (a["codes"].append(6561.0), a["values"].append(0.0)), "model-codes"),
        (lambda d, a: (a["codes"].append(-1.0), a["values"].append(0.0)), "model-codes"),
        (lambda d, a: (a["codes"].append(1e300), a["values"].append(0.0)), "model-codes"),
        (lambda d, a: (a["codes"].append(5.5), a["values"].append(0.0)), "model-codes"),
        (lambda d, a: (a["codes"].append(a["codes"][0]), a["values"].append(0.0)), "model-codes"),
        (lambda d, a: (a["codes"].append(6560.0), a["values"].append(-1.0)), "model-elements"),
        (lambda d, a: a["values"].__setitem__(0, 7.0), "values-range"),
        (lambda d, a: a.pop("codes"), "model-incomplete"),
        (lambda d, a: a.pop("values"), "model-incomplete"),
        (lambda d, a: d.update(source_names=["a", "b"]), "model-codes"),
        (lambda d, a: d.update(source_names=[str(k) for k in range(40)]), "sources-many"),
        (lambda d, a: d.update(source_names=8), "model-names"),
        (lambda d, a: a["touched_codes"].__setitem__(0, 1e9), "model-codes"),
        (lambda d, a: a["touched_codes"].__setitem__(0, a["touched_codes"][1]), "model-codes"),
        (lambda d, a: a["touched"].append(1.0), "model-codes"),
        (lambda d, a: a["touched"].__setitem__(0, 1e300), "model-counts"),
        (lambda d, a: a.pop("touched_codes"), "model-array-size"),
    ],
)
def test_hostile_files_are_refused(change, message, model, tmp_path):
    path = tmp_path / "model"
    model.save(path)
    document = json.loads(path.read_text())
    change(document, document["arrays"])
    path.write_text(json.dumps(document))
    for load in (BiMIChI.load, FusionRule.load):
        with refused(message, kind=ModelFileError):
            load(path)


def test_counts():
    few, many = np.zeros(5000, np.int64), np.arange(5000)
    few[[3, 4999]] = 7, 2**40
    for counts, entries in ((few, 4), (many, 5000), (np.arange(5), 5)):
        packed = pack_counts("touched", counts)
        assert sum(len(array) for array in packed.values()) == entries
        np.testing.assert_array_equal(unpack_counts("touched", packed, len(counts)), counts)


def test_no_mutated_file_gives_anything_but_a_measure_or_our_error(tmp_path, rng):
    path = tmp_path / "fuzzed"
    lattice = pair_lattice(7)
    BiCapacity(completion_of(lattice, known_part(lattice, 30, rng), "lowest").values).save(path)
    original = path.read_bytes()
    assert b"completion" in original
    check_mutated(BiCapacity.load, path, original, 800)
