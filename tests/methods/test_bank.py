from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from sources_of_raw import BOXES, raw_scene

from bimichi import BankFusion, FusionRule, InvalidInputError, Scene
from bimichi.fit.average import fit_additive, learn_signs


@pytest.fixture(scope="module")
def scenes():
    return [raw_scene(seed, f"s{seed}") for seed in range(4)]


@pytest.fixture(scope="module")
def model(scenes):
    return BankFusion().fit(scenes)


def inside(scene):
    x, y, w, h = BOXES[0].astype(int)
    return scene[y + 3 : y + h - 3, x + 3 : x + w - 3]


def test_targets_of_new_scenes_are_found(model):
    fused = model.fuse(raw_scene(9, "new").sources)
    assert inside(fused).mean() > 10 * fused.mean()
    assert 0 <= fused.min() <= fused.max() <= 1
    assert model.selection_.winner.score.mean >= model.selection_.best_source.score.mean


def test_the_dark_image_is_inverted(model):
    signs = dict(zip(model.rule_.groups, model.rule_.polarity, strict=True))
    values = dict(zip(model.rule_.source_names, model.rule_.polarity, strict=True))
    assert set(signs) <= {"thermal", "radar", "thermal and radar"}
    assert values.get("radar", -1) == -1
    assert values.get("thermal", 1) == 1


def test_inverting_an_image_changes_nothing(model, scenes):
    flipped = [replace(scene, sources=scene.sources * np.array([-1, 1], np.float32)) for scene in scenes]
    new = raw_scene(9, "new").sources
    other = BankFusion().fit(flipped).fuse(new * np.array([-1, 1], np.float32))
    np.testing.assert_allclose(other, model.fuse(new), atol=2e-3)


def test_units_change_nothing(model, scenes):
    scaled = [replace(scene, sources=scene.sources * 100 + 7) for scene in scenes]
    new = raw_scene(9, "new").sources
    np.testing.assert_allclose(BankFusion().fit(scaled).fuse(new * 100 + 7), model.fuse(new), atol=2e-3)


def test_results_do_not_depend_on_the_number_of_jobs(model, scenes, tmp_path):
    other = BankFusion(n_jobs=2).fit(scenes)
    for name, rule in (("one", BankFusion(n_jobs=1).fit(scenes).rule_), ("two", other.rule_)):
        rule.save(tmp_path / f"{name}.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_the_model_file_holds_the_bank(model, tmp_path):
    model.rule_.save(tmp_path / "m.json")
    rule = FusionRule.load(tmp_path / "m.json")
    assert rule.bank == model.rule_.bank
    assert rule.raw_names == ("thermal", "radar")
    new = raw_scene(9, "new").sources
    planes = rule.bank.planes([new[..., 0], new[..., 1]])
    np.testing.assert_array_equal(rule.fuse(planes), model.fuse(new))
    assert (tmp_path / "m.json").stat().st_size < 60_000  # no zeros of pairs


def test_a_rule_refuses_a_bank_of_other_sources(model):
    with refused("bank-sources"):
        replace(model.rule_, bank=model.bank_.chosen([0]))
    with refused("bank-names"):
        model.rule_.renamed(["a"] * model.rule_.n_sources)


def test_one_scene_is_divided_into_strips(scenes):
    model = BankFusion().fit(scenes[0])
    assert len(model.selection_.scenes) >= 2
    assert inside(model.fuse(raw_scene(9, "new").sources)).mean() > 0.1


def test_one_box_is_enough_with_a_warning_or_scores():
    scene = raw_scene(3, "one", boxes=BOXES[:1])
    model = BankFusion().fit([scene])
    fused = model.fuse(scene.sources)
    assert inside(fused).mean() > fused.mean()


def test_scenes_without_targets_help(scenes):
    empty = raw_scene(20, "empty", boxes=np.empty((0, 4)))
    empty = replace(empty, pixels=np.full(empty.shape, -1, np.int8))
    model = BankFusion().fit([*scenes[:2], empty])
    assert set(model.selection_.scenes) == {"s0", "s1"}
    with refused("one-class"):
        BankFusion().fit([empty])


def test_a_constant_source_and_boxes_beyond_the_image(scenes):
    def changed(scene):
        sources = np.concatenate([scene.sources, np.full((*scene.shape, 1), 3, np.float32)], axis=-1)
        return Scene(sources, scene.name, (*scene.source_names, "flat"), boxes=scene.boxes)

    model = BankFusion().fit([changed(scene) for scene in scenes])
    assert not any("flat" in name for name in model.rule_.source_names)


def test_noise_separates_nothing():
    """Of random boxes in noise, the sources that get a direction are few."""
    rng = np.random.default_rng(5)
    counts, codes, claimed = [], [], 0
    for _ in range(6):
        noise = [
            Scene(
                rng.normal(size=(60, 80, 1)).astype(np.float32),
                f"n{k}",
                ("noise",),
                boxes=np.column_stack([*rng.integers(0, (66, 46), (3, 2)).T, [12] * 3, [12] * 3]).astype(float),
            )
            for k in range(5)
        ]
        try:
            model = BankFusion().fit(noise)
        except InvalidInputError as error:
            codes.append(error.code)
            continue
        counts.append(int((model.rule_.polarity < 0).sum()))
        claimed += not model.selection_.warning()
        assert model.selection_.winner.score.mean < 0.35
    assert sum(counts) <= 6
    assert claimed <= 1
    assert set(codes) <= {"nothing-separates"}


def test_directions_need_proof(rng):
    rows = rng.normal(size=(4000, 3)).astype(np.float32)
    y = np.arange(4000) < 400
    rows[y, 0] += 1.5
    rows[y, 1] -= 1.5
    signs = learn_signs([rows], [y], [np.where(y, np.arange(4000) // 100, -1)])
    assert signs.tolist() == [1, -1, 0]


def test_weights_are_those_of_logistic_regression(rng):
    X = rng.uniform(-1, 1, (6000, 2)).astype(np.float32)
    f = (
        2 * np.maximum(X[:, 0], 0)
        + 1 * np.minimum(X[:, 0], 0)
        + 1 * np.maximum(X[:, 1], 0)
        + 2 * np.minimum(X[:, 1], 0)
    )
    y = rng.random(6000) < 1 / (1 + np.exp(-f + 0.5))
    up, down, offset = fit_additive(X, y, np.ones(6000), np.zeros(6000, int))
    np.testing.assert_allclose(np.concatenate([up, down]), [2, 1, 1, 2], atol=0.5)
    assert offset == pytest.approx(-0.5, abs=0.25)
    assert up.sum() == pytest.approx(down.sum(), rel=1e-6)


def test_boosting_is_scored_if_asked_for(scenes):
    names = [contender.name for contender in BankFusion(boosting=True).fit(scenes[:2]).selection_.contenders]
    assert names == ["fusion", "source thermal", "source radar", "boosting on the same pixels"]
