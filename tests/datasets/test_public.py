"""Readers take the layouts of public data sets, made small here or real where there are some, and refuse damage."""

import numpy as np
import pytest
from PIL import Image
from real import real
from refusals import refused
from sklearn.metrics import roc_auc_score

from bimichi.datasets import kaist, msrs
from bimichi.scenes.scene import join_bags


def auc(scene, fused):
    return roc_auc_score(scene.truth.ravel(), fused.ravel())


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
    "line",
    [
        "person 10 5 12",
        "person ten 5 12 20",
        "person",
        "person 10 5 0 20",
        "person 10 5 nan 20",
        "person 64 5 10 20",
    ],
)
def test_damaged_annotations_are_named_by_line(kaist_root, line):
    path = kaist_root / "annotations" / "set00" / "V000" / "I00001.txt"
    path.write_text(f"{BOXES}\n{line}\n")
    with refused("bbgt-line", "I00001.txt", "7", f"'{line}'", "rgbt-ped"):
        kaist(kaist_root)[0]


def test_an_annotation_that_cannot_be_read_is_named(kaist_root):
    scenes = kaist(kaist_root)
    (kaist_root / "annotations" / "set00" / "V000" / "I00001.txt").unlink()
    with refused("bbgt-file"):
        scenes[0]


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("images", "data-folder"),
        ("annotations", "data-folder"),
        ("annotations/set00/V000/I00001.txt", "frame-count"),
        ("images/set00/V000/lwir/I00001.jpg", "frame-count"),
        ("images/set09/V000/lwir", "frame-count"),
    ],
)
def test_missing_files_are_found_before_reading(kaist_root, gone, message):
    (kaist_root / gone).rename(kaist_root / "elsewhere")
    with refused(message):
        kaist(kaist_root)


def test_frames_that_are_not_there(kaist_root, tmp_path):
    with refused("frame-count", "'set0'", "'set00/V000/I00001'"):
        kaist(kaist_root, ["set09", "set0"])
    with refused("frame-count", "'set00'"):
        kaist(kaist_root, "set00", night=True)
    (tmp_path / "images" / "set09").rename(tmp_path / "elsewhere")
    with refused("frame-missing"):
        kaist(kaist_root, night=True)
    with refused("data-folder"):
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
    with refused("frame-image"):
        scenes[0]
    with refused("image-sizes"):
        scenes[1]
    with refused("image-format"):
        scenes[2]
    (msrs_root / "label").rename(msrs_root / "elsewhere")
    with refused("data-folder", "'label'", "'Segmentation_labels'"):
        msrs(msrs_root)
    with refused("data-folder", "'vi'"):
        msrs(msrs_root / "nowhere")


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
