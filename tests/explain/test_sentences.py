import re
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused

from bimichi import BiCapacity, BiMIChI, Capacity, FusionRule
from bimichi.explain import contributions, data_indices, identifiability, sentences, summary
from bimichi.record import Status

NAMES = ["thermal", "bright", "texture"]


def with_measure(g, polarity=None, objective="bipolar"):
    """A rule as if g had been learned."""
    m = g.n_sources
    X = np.concatenate([np.eye(m), -np.eye(m)])
    learned = BiMIChI(objective, source_names=g.source_names).fit(X, np.arange(2 * m) < m).rule_
    return FusionRule(g, polarity=polarity, output=learned.output, training=learned.training)


@pytest.fixture
def scene(rng):
    bags = np.repeat(np.arange(60), 50)
    y = (bags % 3 == 0).astype(int)
    X = rng.normal([-0.5, 0.4, 0.0], 0.2, (len(bags), 3))
    targets = (y == 1) & (rng.random(len(bags)) < 0.2)
    X[targets] = rng.normal([0.7, -0.6, 0.0], 0.2, (int(targets.sum()), 3))
    return np.clip(X, -1, 1), y, bags


def kinds(found):
    return [fact.kind for fact in found.facts]


@pytest.mark.parametrize("objective", ["bipolar", "mean", "magnitude"])
def test_every_sentence_is_backed_by_its_numbers(objective, scene):
    X, y, bags = scene
    model = BiMIChI(objective, polarity="learn", source_names=NAMES, random_state=0).fit(X, y, bags=bags)
    found = summary(model, X)
    assert found.sentences == [fact.sentence for fact in found.facts] == str(found).splitlines()
    for fact in found.facts:
        assert re.fullmatch(r"[A-Z].*\.", fact.sentence)
        assert set(fact.sources) <= set(NAMES)
        assert fact.numbers
        assert np.isfinite(list(fact.numbers.values())).all()
        for percent in re.findall(r"(\d+) %", fact.sentence):
            assert any(f"{100 * number:.0f}" == percent for number in fact.numbers.values())
    shares = {fact.sources[0]: fact.numbers["share"] for fact in found.facts[:3]}
    expected = data_indices(model, X).share
    assert [shares[name] for name in NAMES] == pytest.approx(expected)
    assert list(shares.values()) == sorted(expected, reverse=True)
    open_, search = found.facts[-2:]
    assert open_.numbers == {"open": identifiability(model).open.sum(), "free": 24}
    assert search.numbers["J"] == model.objective_value_
    assert search.numbers["lower bound"] == model.solution_.lower_bound
    assert "The search converged" in search.sentence
    inverted = [fact.sources[0] for fact in found.facts if fact.kind == "inverted"]
    assert inverted == [name for name, sign in zip(NAMES, model.polarity_, strict=True) if sign < 0]
    assert ("target" in str(found)) == (objective != "magnitude")


def test_who_decides_and_who_hardly_matters(rng):
    X = rng.uniform(-1, 1, (500, 3))
    found = summary(with_measure(BiCapacity.additive([0.8, 0.17, 0.03], NAMES)), X)
    assert kinds(found)[:3] == ["decides", "carries", "hardly"]
    assert re.match(r"Thermal decides: it carries \d\d % of the fused confidence.", found.sentences[0])
    assert found.sentences[2].startswith("Texture hardly matters")
    even = summary(with_measure(BiCapacity.additive([0.35, 0.35, 0.3])), X)
    assert kinds(even)[0] == "leads"
    assert re.match(r"No source decides alone: source [12] carries \d\d %", even.sentences[0])
    assert not {"complements", "substitutes", "dampened", "heightened", "against"} & set(kinds(even))


def test_many_sources_that_hardly_matter_are_one_sentence(rng):
    found = summary(BiCapacity.additive([0.9, 0.03, 0.03, 0.02, 0.02]), rng.uniform(-1, 1, (500, 5)))
    assert kinds(found)[:2] == ["decides", "hardly"]
    assert set(found.facts[1].sources) == set("2345")
    assert re.match(r"Source \d, source \d, source \d and source \d hardly matter: together", found.sentences[1])
    assert found.facts[0].numbers["share"] + found.facts[1].numbers["share"] == pytest.approx(1)


def test_nothing_to_tell_of_silence():
    found = summary(with_measure(BiCapacity.additive([0.5, 0.5])), np.zeros((5, 2)))
    assert kinds(found) == ["silent", "open", "search"]


@pytest.mark.parametrize(
    ("elements", "signs", "kind", "sentence"),
    [
        ({((0,), ()): 0.0, ((1,), ()): 0.0}, (1, 1), "complements", "High a and high b confirm each other"),
        ({((0,), ()): 1.0, ((1,), ()): 1.0}, (1, 1), "substitutes", "High a and high b replace each other"),
        ({((), (0,)): 0.0, ((), (1,)): 0.0}, (-1, -1), "complements", "Low a and low b confirm each other"),
        ({((), (0,)): -1.0, ((), (1,)): -1.0}, (-1, -1), "substitutes", "Low a and low b replace each other"),
        ({((0,), (1,)): -0.5, ((0,), ()): 0.5}, (1, -1), "dampened", "High a counts less for a target when b is low"),
        ({((0,), (1,)): 0.5, ((), (1,)): -0.5}, (1, -1), "heightened", "High a counts more for a target when b is low"),
    ],
)
def test_interactions_in_words(elements, signs, kind, sentence, rng):
    g = BiCapacity.from_elements(elements, ["a", "b"])
    X = rng.uniform(0.2, 1, (50, 2)) * signs
    fact = next(fact for fact in summary(with_measure(g), X).facts if "interaction" in fact.numbers)
    assert fact.kind == kind
    assert fact.sentence.startswith(sentence)
    assert fact.numbers["share"] == pytest.approx(abs(fact.numbers["interaction"]) / data_indices(g, X).magnitude)
    inverted, level = summary(with_measure(g, (1, -1)), X * (1, -1)), "low" if signs[1] > 0 else "high"
    assert any(re.search(f"{level} b|b is {level}", s) for s in inverted.sentences)


def test_only_the_strongest_interactions_are_reported(rng):
    all_or_nothing = Capacity.binary([(0, 1, 2, 3)], 4)
    g = BiCapacity.from_capacities(all_or_nothing, all_or_nothing)
    found = summary(with_measure(g), rng.uniform(0.2, 1, (50, 4)))
    shares = [fact.numbers["share"] for fact in found.facts if "interaction" in fact.numbers]
    assert len(shares) == sentences.MOST
    assert shares == sorted(shares, reverse=True)


def test_a_high_source_may_count_against(rng):
    g = BiCapacity.from_elements({((1,), ()): -0.6, ((1,), (0,)): -0.8, ((0,), (1,)): 0.2}, ["thermal", "rgb"], False)
    X = rng.uniform(0.3, 0.9, (400, 2)) * [-1, 1]
    fact = next(fact for fact in summary(with_measure(g), X).facts if fact.kind == "against")
    assert fact.sentence.startswith("High rgb counts against a target when thermal is low: -0.")
    assert fact.sources == ("rgb", "thermal")
    assert fact.numbers["mean"] == pytest.approx(contributions(g, X)[:, 1].mean())
    assert fact.numbers["share of instances"] == 1
    mirrored = BiCapacity.from_elements({((), (1,)): 0.6, ((0,), (1,)): 0.8}, ["thermal", "rgb"], False)
    fact = next(fact for fact in summary(with_measure(mirrored), -X).facts if fact.kind == "for")
    assert fact.sentence.startswith("Low rgb counts for a target when thermal is high: +0.")


def test_what_the_training_left_open_is_reported(rng):
    X = np.where(rng.random((40, 3)) < 0.5, 1.0, -1.0)
    y = (X[:, 0] > 0) & (X[:, 1] > 0)
    model = BiMIChI(source_names=NAMES, random_state=0).fit(X, y)
    scene = rng.uniform(-1, 1, (200, 3))
    found = summary(model, scene)
    known = identifiability(model)
    fact = next(fact for fact in found.facts if fact.kind == "completion")
    low = BiCapacity(known.lower, NAMES, zero_bound=False)
    first = NAMES.index(fact.sources[0])
    assert fact.numbers["lowest"] == pytest.approx(data_indices(low, scene).share[first])
    assert f"No training instance uses {known.open.sum()} of the 24 elements" in found.sentences[-2]


def test_training_is_not_said_to_determine_what_it_only_uses(rng):
    X = rng.uniform(-1, 1, (400, 2))
    model = BiMIChI(random_state=0).fit(X, X.sum(axis=1) > 0)
    sentence = summary(model, X).sentences[-2]
    assert sentence == "Training instances use all 6 elements, or the order fixes them."


@pytest.mark.parametrize(("sign", "word"), [(1.0, "and on this data its low values count for"), (-1.0, "but")])
def test_an_inverted_source_is_checked_with_the_data(sign, word, rng):
    """Without the zero bound an inverted source may count against a target where it is low."""
    g = BiCapacity.from_elements({((1,), ()): -0.6, ((1,), (0,)): -0.8, ((0,), (1,)): 0.2}, ["thermal", "rgb"], False)
    X = rng.uniform(0.3, 0.9, (400, 2)) * [-1, -1]
    if sign > 0:
        g = BiCapacity.additive([0.5, 0.5], ["thermal", "rgb"])
    model = with_measure(g, (1, -1))
    fact = next(fact for fact in summary(model, X).facts if fact.kind == "inverted")
    expected = contributions(model, X)[:, 1].mean()
    assert fact.numbers["mean"] == pytest.approx(expected)
    assert np.sign(expected) == sign
    assert fact.sentence.startswith(f"Rgb enters inverted, {word}")
    assert f"{expected:+.2f} on average" in fact.sentence
    none = next(fact for fact in summary(model, X * [1, -1]).facts if fact.kind == "inverted")
    assert none.sentence == "Rgb enters inverted; this data has no low values of it."


def test_a_search_that_ended_early_is_reported(rng):
    rule = with_measure(BiCapacity.random(3, False, 0))
    record = replace(rule.training, status=Status.MAX_ROUNDS, lower_bound=None)
    fact = summary(replace(rule, training=record), rng.uniform(-1, 1, (9, 3))).facts[-1]
    assert f"did not converge ({record.ending})" in fact.sentence
    assert set(fact.numbers) == {"J", "rounds"}


def test_layouts_nan_and_bad_input(rng):
    g = BiCapacity.random(3, False, 3)
    model = with_measure(g)
    image = rng.uniform(-1, 1, (20, 30, 3))
    image[0, 0, 0] = np.nan
    assert summary(model, image).sentences == summary(model, list(np.moveaxis(image, -1, 0)), n_jobs=1).sentences
    with refused("not-fitted"):
        summary(BiMIChI(), image)


def test_a_bare_measure_has_no_training(rng):
    found = summary(BiCapacity.random(3, False, 3), rng.uniform(-1, 1, (50, 3)))
    assert kinds(found)[-1] == "unlearned"
    assert found.sentences[-1] == "This measure was not learned here; nothing is known about training data."
    assert not {"open", "search", "completion"} & set(kinds(found))
