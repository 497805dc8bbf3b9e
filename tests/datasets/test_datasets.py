"""Drawn scenes are what they say; readers take the layouts of public data sets, made small here, and refuse damage."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import roc_auc_score

from bimichi import BiMIChI, InvalidInputError
from bimichi.datasets import Scenes, kaist, msrs, street, um, um_optimum
from bimichi.learning.scene import Scene, join_bags


def auc(scene, fused):
    return roc_auc_score(scene.truth.ravel(), fused.ravel())


# The letters


def test_um_has_the_papers_patterns_and_counts():
    scene = um()
    assert scene.shape == (100, 80)
    letters = scene.truth
    u = letters & (np.arange(100) < 50)[:, None]
    m = letters & ~u
    expected = np.stack([np.where(u, 1, -1), np.where(m, -1, 1), np.where(letters, -1, 1)], axis=-1)
    np.testing.assert_array_equal(scene.sources, expected)
    np.testing.assert_array_equal(letters, letters[:, ::-1])
    assert len(scene.boxes) == 2
    for segment, positive in scene.labels.items():
        assert positive == letters[scene.segments == segment].any()
    best = um_optimum(scene)
    assert (best.negative, best.mixed, best.missed) == (38, 4, 1)
    assert best.background == pytest.approx(-0.8095, abs=1e-4)
    assert best.objective_value == pytest.approx(18.476, abs=1e-3)


@pytest.mark.parametrize("arguments", [{}, {"height": 60, "width": 60, "n_segments": 30}, {"compactness": 10.0}])
def test_um_optimum_is_what_learning_finds(arguments):
    scene = um(**arguments)
    best = um_optimum(scene)
    model = BiMIChI("bipolar", random_state=0).fit(scene.bags())
    assert model.objective_value_ == pytest.approx(best.objective_value, abs=1e-6)
    g = model.bicapacity_
    assert g[("1", "2"), ("3",)] == pytest.approx(best.letter, abs=1e-5)
    assert g[("2", "3"), ("1",)] == pytest.approx(best.background, abs=1e-5)
    model = BiMIChI("magnitude", random_state=0).fit(scene.bags())
    assert model.objective_value_ == pytest.approx(0, abs=1e-6)
    assert auc(scene, model.fuse(scene.sources)) == 1


def test_um_optimum_is_the_least_on_a_grid():
    scene = um(compactness=10.0)
    best = um_optimum(scene)
    values = {(1, 1, -1): 1.0, (-1, -1, -1): -1.0}
    grid = np.linspace(-1, 1, 2001)
    cost = np.zeros_like(grid)
    for segment, positive in scene.labels.items():
        patterns = {tuple(map(int, x)) for x in scene.sources[scene.segments == segment]}
        fused = np.stack([np.broadcast_to(values.get(pattern, grid), grid.shape) for pattern in patterns])
        cost += ((fused - 1) ** 2).min(axis=0) if positive else ((fused + 1) ** 2).max(axis=0)
    assert grid[cost.argmin()] == pytest.approx(best.background, abs=1e-3)
    assert cost.min() == pytest.approx(best.objective_value, abs=1e-3)


def test_um_noise_is_seeded_and_stays_in_range():
    noisy = um(noise=0.3, random_state=1)
    np.testing.assert_array_equal(noisy.sources, um(noise=0.3, random_state=1).sources)
    assert np.abs(noisy.sources - um(noise=0.3, random_state=2).sources).max() > 0.1
    assert np.abs(noisy.sources).max() == 1
    np.testing.assert_array_equal(noisy.segments, um().segments)
    with pytest.raises(InvalidInputError, match="without noise"):
        um_optimum(noisy)


def test_um_optimum_refuses_letters_in_negative_bags():
    scene = um()
    wrong = scene.with_bags(scene.segments, scene.labels | {max(scene.labels, key=scene.labels.get): False})
    with pytest.raises(InvalidInputError, match="negative bag that holds a letter"):
        um_optimum(wrong)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: um(height=10), "height must be a whole number of at least 20, got 10"),
        (lambda: um(width=80.0), "width must be"),
        (lambda: um(noise=-1), "noise must be"),
        (lambda: um(noise=1, random_state="a"), "random_state must be"),
        (lambda: street(height=32), "height must be a whole number of at least 64"),
        (lambda: street(n_people=-1), "n_people must be"),
        (lambda: street(64, 64, n_sources=4), "n_sources must be one of 3, 6"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


# The street


@pytest.fixture(scope="module")
def streets():
    return [street(240, 320, random_state=seed, n_segments=150) for seed in range(4)]


def test_street_is_complete_and_in_range(streets):
    for scene in streets:
        assert scene.sources.shape == (240, 320, 3)
        assert np.abs(scene.sources).max() <= 1
        assert scene.rgb.shape == (240, 320, 3)
        assert scene.thermal.shape == (240, 320)
        assert scene.rgb.dtype == scene.thermal.dtype == np.uint8
        assert scene.truth_from == "pixels"
        assert len(scene.boxes) == 4
        assert 0.005 < scene.truth.mean() < 0.06
        inside = np.zeros_like(scene.truth)
        for x, y, width, height in scene.boxes.astype(int):
            part = scene.truth[y : y + height, x : x + width]
            assert part.any(axis=0).all()
            assert part.any(axis=1).all()
            assert height > width
            inside[y : y + height, x : x + width] = True
        assert not (scene.truth & ~inside).any()
        for segment, positive in scene.labels.items():
            assert positive == inside[scene.segments == segment].any()


def test_street_depends_on_its_seed_alone(streets):
    again = street(240, 320, random_state=1, n_segments=150)
    for what in ("sources", "segments", "truth", "boxes", "rgb", "thermal"):
        np.testing.assert_array_equal(getattr(again, what), getattr(streets[1], what))
    assert again.name == "street-1"
    assert (street(64, 64, random_state=np.random.default_rng(3)).name) == "street"
    assert (streets[0].truth != streets[1].truth).any()


def test_street_is_dark_and_people_are_warm_but_not_alone_so(streets):
    for scene in streets:
        assert np.median(scene.rgb) < 60
        assert scene.rgb.max() == 255
        people, others = scene.thermal[scene.truth], scene.thermal[~scene.truth]
        assert np.median(people) > np.percentile(others, 85)
        assert np.percentile(others, 99.5) > np.percentile(people, 10)
        assert scene.rgb[scene.truth].mean() < 60


def test_learned_on_two_streets_fusion_beats_the_best_source_on_two_others(streets):
    signs = np.float32([1, -1, 1])  # of all that is warm, people are the darkest
    model = BiMIChI("bipolar", random_state=0).fit(join_bags(streets[:2]).with_signs(signs))
    fused = np.mean([auc(scene, model.fuse(scene.sources * signs)) for scene in streets[2:]])
    single = [np.mean([auc(scene, scene.sources[..., k]) for scene in streets[2:]]) for k in range(3)]
    assert fused > max(single)
    assert 0.85 < max(single) < 0.995


@pytest.mark.parametrize("n_people", [0, 1, 12])
def test_street_takes_any_number_of_people(n_people):
    scene = street(96, 128, n_people=n_people, n_segments=60, n_sources=6)
    assert scene.n_sources == 6
    assert (n_people > 0) == scene.truth.any() == any(scene.labels.values())
    assert len(scene.boxes) <= n_people


# Readers


def images(rng, height=48, width=64):
    rgb = rng.integers(0, 255, (height, width, 3), dtype=np.uint8)
    return rgb, rng.integers(0, 255, (height, width), dtype=np.uint8)


def write(path, image):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(path)


BOXES = """% bbGt version=3
person 10 5 12 20 0 0 0 0 0 0 0
people -3 30 10 30 0 0 0 0 0 0 0
person? 40 8 10 12 0 0 0 0 0 0 0
cyclist 52 30 8 10 0 0 0 0 0 1 0
"""


@pytest.fixture
def kaist_root(tmp_path, rng):
    for name in ("set00/V000/I00001", "set09/V000/I00019", "set09/V001/I00039"):
        video, frame = name.rsplit("/", 1)
        rgb, thermal = images(rng)
        end = ".jpg" if frame == "I00001" else ".png"
        write(tmp_path / "images" / video / "visible" / f"{frame}{end}", rgb)
        write(tmp_path / "images" / video / "lwir" / f"{frame}{end}", np.repeat(thermal[..., None], 3, axis=2))
        path = tmp_path / "annotations" / video / f"{frame}.txt"
        path.parent.mkdir(parents=True)
        path.write_text("% bbGt version=3\n" if frame == "I00039" else BOXES)
    return tmp_path


def test_kaist_lists_and_reads(kaist_root):
    scenes = kaist(kaist_root, n_segments=30)
    assert scenes.names == ("set00/V000/I00001", "set09/V000/I00019", "set09/V001/I00039")
    assert kaist(kaist_root, night=True).names == scenes.names[1:]
    assert kaist(kaist_root, night=False).names == scenes.names[:1]
    assert kaist(kaist_root, "set09/V000").names == kaist(kaist_root, [scenes.names[1]]).names == scenes.names[1:2]
    scene = scenes["set09/V000/I00019"]
    assert scene.name == "set09/V000/I00019"
    assert scene.boxes.tolist() == [[10, 5, 12, 20], [-3, 30, 10, 30]]
    assert scene.truth_from == "boxes"
    people, unsure = np.zeros((2, 48, 64), dtype=bool)
    people[5:25, 10:22] = people[30:48, 0:7] = True
    unsure[8:20, 40:50] = unsure[30:40, 52:60] = True
    np.testing.assert_array_equal(scene.truth, people)
    np.testing.assert_array_equal(scene.ignore, unsure)
    for segment in np.unique(scene.segments):
        where = scene.segments == segment
        expected = True if people[where].any() else None if unsure[where].any() else False
        assert scene.labels.get(int(segment)) is expected
    assert scene.thermal.shape == (48, 64)
    assert "NC" in scene.licence
    assert "CVPR 2015" in scene.citation
    assert set(scenes[2].labels.values()) == {False}


def test_kaist_counts_the_people_that_are_asked_for(kaist_root):
    scene = kaist(kaist_root, person_labels="person", n_segments=30)[0]
    assert scene.boxes.tolist() == [[10, 5, 12, 20]]
    assert scene.ignore[35, 3]
    assert scene.ignore[10, 45]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("person 10 5 12", "is expected"),
        ("person ten 5 12 20", "is expected"),
        ("person", "is expected"),
        ("person 10 5 0 20", "must be above 0"),
        ("person 10 5 nan 20", "finite"),
        ("person 64 5 10 20", "outside the image of 64 x 48 pixels"),
    ],
)
def test_damaged_annotations_are_named_by_line(kaist_root, line, message):
    path = kaist_root / "annotations" / "set00" / "V000" / "I00001.txt"
    path.write_text(f"{BOXES}\n{line}\n")
    with pytest.raises(InvalidInputError, match=rf"I00001\.txt, line 7: '{line}' is damaged: .*{message}.*rgbt-ped"):
        kaist(kaist_root)[0]


def test_an_annotation_that_cannot_be_read_is_named(kaist_root):
    scenes = kaist(kaist_root)
    (kaist_root / "annotations" / "set00" / "V000" / "I00001.txt").unlink()
    with pytest.raises(InvalidInputError, match=r"Cannot read .*I00001\.txt: No such file"):
        scenes[0]


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("images", r"has no folder 'images'.*KAIST Multispectral.*github.com"),
        ("annotations", r"has no folder 'annotations'"),
        ("annotations/set00/V000/I00001.txt", r"annotations/set00/V000/I00001 .*is missing.*github.com"),
        ("images/set00/V000/lwir/I00001.jpg", r"lwir/I00001 .*is missing"),
        ("images/set09/V000/lwir", r"lwir/I00019 .*is missing"),
    ],
)
def test_missing_files_are_found_before_reading(kaist_root, gone, message):
    (kaist_root / gone).rename(kaist_root / "elsewhere")
    with pytest.raises(InvalidInputError, match=message):
        kaist(kaist_root)


def test_frames_that_are_not_there(kaist_root, tmp_path):
    with pytest.raises(InvalidInputError, match=r"names has 'set0', .* the first of 3 there is 'set00/V000/I00001'"):
        kaist(kaist_root, ["set09", "set0"])
    with pytest.raises(InvalidInputError, match="names has 'set00'"):
        kaist(kaist_root, "set00", night=True)
    (tmp_path / "images" / "set09").rename(tmp_path / "elsewhere")
    with pytest.raises(InvalidInputError, match="holds no such frame"):
        kaist(kaist_root, night=True)
    with pytest.raises(InvalidInputError, match="nowhere has no folder"):
        kaist(tmp_path / "nowhere")


@pytest.fixture
def msrs_root(tmp_path, rng):
    classes = np.zeros((48, 64), dtype=np.uint8)
    classes[10:30, 8:16] = classes[30:34, 16] = classes[5:12, 40:44] = 2
    classes[30:40, 30:60] = 1
    for name in ("00001D", "00002N", "00003N"):
        rgb, thermal = images(rng)
        write(tmp_path / "vi" / f"{name}.png", rgb)
        write(tmp_path / "ir" / f"{name}.png", thermal)
        write(tmp_path / "label" / f"{name}.png", classes if name != "00003N" else np.minimum(classes, 1))
    return tmp_path


def test_msrs_lists_and_reads(msrs_root):
    scenes = msrs(msrs_root, n_segments=30)
    assert scenes.names == ("00001D", "00002N", "00003N")
    for night, names in ((True, ("00002N", "00003N")), (False, ("00001D",))):
        assert msrs(msrs_root, night=night).names == names
    scene = scenes["00002N"]
    assert scene.boxes.tolist() == [[40, 5, 4, 7], [8, 10, 9, 24]]
    assert scene.truth.sum() == 20 * 8 + 4 + 7 * 4
    assert scene.truth_from == "pixels"
    assert "Tang" in scene.citation
    inside = np.zeros((48, 64), dtype=bool)
    inside[5:12, 40:44] = inside[10:34, 8:17] = True
    assert scene.labels == {int(s): bool(inside[scene.segments == s].any()) for s in np.unique(scene.segments)}


def test_msrs_without_people_has_negative_bags_alone(msrs_root):
    scenes = msrs(msrs_root, n_segments=30)
    assert not any(scenes[2].labels.values())
    assert not scenes[2].truth.any()
    assert scenes[2].boxes.shape == (0, 4)
    joined = join_bags(scenes[1:])
    assert len(joined) == len(scenes[1].labels) + len(scenes[2].labels)


def test_msrs_in_its_own_layout(msrs_root, tmp_path):
    own = tmp_path / "own"
    for part in ("train", "test"):
        (own / part).mkdir(parents=True)
    for folder, name in (("vi", "vi"), ("ir", "ir"), ("label", "Segmentation_labels")):
        (own / "test" / name).mkdir()
        path = msrs_root / folder / "00001D.png"
        path.rename(own / "test" / name / path.name)
        (msrs_root / folder).rename(own / "train" / name)
    scenes = msrs(own, n_segments=30)
    assert scenes.names == ("train/00002N", "train/00003N", "test/00001D")
    assert msrs(own, "test").names == ("test/00001D",)
    assert msrs(own / "train").names == ("00002N", "00003N")
    assert scenes["test/00001D"].truth.any()


def test_msrs_refuses_what_does_not_fit(msrs_root, rng):
    write(msrs_root / "label" / "00001D.png", np.zeros((48, 64, 3), dtype=np.uint8))
    write(msrs_root / "ir" / "00002N.png", np.zeros((40, 64), dtype=np.uint8))
    (msrs_root / "vi" / "00003N.png").write_bytes(b"no image")
    scenes = msrs(msrs_root)
    with pytest.raises(InvalidInputError, match=r"label/00001D\.png must hold one class"):
        scenes[0]
    with pytest.raises(InvalidInputError, match=r"vi/00002N\.png and .*ir/00002N\.png must be of one size"):
        scenes[1]
    with pytest.raises(InvalidInputError, match=r"vi/00003N\.png"):
        scenes[2]
    (msrs_root / "label").rename(msrs_root / "elsewhere")
    with pytest.raises(InvalidInputError, match=r"has no folder 'label' or 'Segmentation_labels'.*Linfeng-Tang/MSRS"):
        msrs(msrs_root)
    with pytest.raises(InvalidInputError, match="nowhere has no folder 'vi'"):
        msrs(msrs_root / "nowhere")


def test_scenes_are_read_when_asked_for():
    read = []

    def load(name):
        read.append(name)
        return Scene(np.zeros((2, 1)), name)

    scenes = Scenes(["a", "b", "c", "d"], load)
    assert (len(scenes), "b" in scenes, "e" in scenes) == (4, True, False)
    assert scenes[1:][1:].names == ("c", "d")
    assert repr(scenes) == "Scenes(4: a, b, c, ...)"
    assert read == []
    assert [scene.name for scene in (scenes[-1], scenes["b"], *scenes[2:])] == read == ["d", "b", "c", "d"]
    with pytest.raises(InvalidInputError, match="No scene is named 'e'"):
        scenes["e"]
    with pytest.raises(IndexError):
        scenes[4]


# Bags of several scenes


def test_joined_bags_are_those_of_each_scene(rng):
    scenes = []
    for name in ("a", "b", "c"):
        segments = rng.integers(3, 9, (10, 12))
        labels = {int(s): bool(s % 2) and name != "b" for s in np.unique(segments) if s != 5}
        scenes.append(Scene(rng.uniform(-1, 1, (10, 12, 2)), name, segments=segments, labels=labels))
    joined = join_bags(iter(scenes))
    assert sorted(joined.ids) == sorted((scene.name, segment) for scene in scenes for segment in scene.labels)
    everything = np.concatenate([scene.sources.reshape(-1, 2) for scene in scenes])
    np.testing.assert_array_equal(everything[joined.instance], joined.X)
    for k, (name, segment) in enumerate(joined.ids):
        scene = scenes["abc".index(name)]
        rows = joined.X[joined.offsets[k] : joined.offsets[k + 1]]
        np.testing.assert_array_equal(rows, scene.sources[scene.segments == segment])
        assert joined.labels[k] == scene.labels[segment]


def test_scene_is_shown_on_a_line():
    scene = Scene(np.zeros((4, 6, 2)), "a", ("warm", "bright"), segments=np.arange(24).reshape(4, 6))
    assert repr(scene) == "Scene('a', 4 x 6; warm, bright)"
    assert repr(scene.with_bags(scene.segments, {0: True, 3: False})).endswith("bright; 2 bags, 1 positive)")


def test_scenes_that_cannot_be_joined():
    scene = Scene(np.zeros((2, 2)), "a", segments=np.array([0, 1]), labels={0: True, 1: False})
    other = Scene(np.zeros((2, 2)), "b", ("left", "right"), segments=np.array([0, 1]), labels={0: True})
    for scenes, message in (
        ([], "scenes is empty"),
        ([scene, scene], "Two scenes are named 'a'"),
        ([scene, other], "Scene 'b' has sources left, right, but scene 'a' has 1, 2"),
        ([Scene(np.zeros((2, 2)), "c")], "Scene 'c' has no bags"),
        ([scene.with_bags(scene.segments, {7: True})], "labels of scene 'a' name segment 7"),
        ([scene.with_bags(scene.segments, {0: True})], "All 1 bags are positive"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            join_bags(scenes)


# Real data, where there are some


def real(folder):
    root = os.environ.get("BIMICHI_DATA")
    if root is None or not (Path(root) / folder).is_dir():
        pytest.skip(f"no folder {folder} in the folder that the environment variable BIMICHI_DATA names")
    return Path(root) / folder


def test_real_kaist_frames():
    for scene in kaist(real("kaist_night"), night=True):
        assert scene.shape == (512, 640)
        assert scene.bags().labels.sum() >= len(scene.boxes) > 0


def test_real_msrs_scenes():
    scenes = msrs(real("msrs_night"), night=True)
    assert len(scenes) > 0
    scene = next(scene for scene in scenes if scene.truth.any())
    assert auc(scene, scene.sources[..., 2]) > 0.8
    assert scene.bags().labels.any()
