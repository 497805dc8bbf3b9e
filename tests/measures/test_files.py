import io as stdio
import json
import tracemalloc
import zipfile

import numpy as np
import pytest
from mutation import check_mutated
from refusals import refused

from bimichi import BiCapacity, BimichiError, Capacity, ModelFileError
from bimichi.measures import files as io

SMALL = BiCapacity.random(2, random_state=0, source_names=["ir", "rgb"])
LARGE = BiCapacity.random(8, zero_bound=False, random_state=0)


def written(measure, path):
    measure.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("m", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("zero_bound", [True, False])
def test_round_trip_is_exact(m, zero_bound, tmp_path):
    g = BiCapacity.random(m, zero_bound, m, source_names=[f"söurce {k} <&>" for k in range(m)])
    g.save(tmp_path / "g.json")
    assert BiCapacity.load(tmp_path / "g.json") == g
    c = Capacity.random(m, m)
    c.save(str(tmp_path / "c.json"))
    assert Capacity.load(str(tmp_path / "c.json")) == c


def test_small_models_are_json_and_large_ones_are_archives(tmp_path):
    document = json.loads(written(SMALL, tmp_path / "a"))
    assert document["format"] == "bimichi-model"
    assert document["version"] == 1
    assert document["kind"] == "bicapacity"
    assert document["source_names"] == ["ir", "rgb"]
    assert document["arrays"]["values"] == SMALL.values.tolist()
    LARGE.save(tmp_path / "b.npz")
    with np.load(tmp_path / "b.npz", allow_pickle=False) as archive:
        assert np.array_equal(archive["values"], LARGE.values)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "g.json"
    before = written(SMALL, path)

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with refused("output-unwritable", "g.json", kind=BimichiError):
        LARGE.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        SMALL.save(tmp_path / "g.json")
    assert list(tmp_path.iterdir()) == []


def test_unwritable_and_unreadable_places(tmp_path):
    with refused("output-unwritable", kind=BimichiError):
        SMALL.save(tmp_path / "none" / "g.json")
    with refused("model-unreadable", kind=ModelFileError):
        BiCapacity.load(tmp_path / "none.json")
    with refused("model-unreadable", kind=ModelFileError):
        BiCapacity.load(tmp_path)
    with refused("model-unreadable", kind=ModelFileError):
        BiCapacity.load("a\0b")


def changed(**changes):
    document = {
        "format": "bimichi-model",
        "version": 1,
        "kind": "bicapacity",
        "source_names": ["ir", "rgb"],
        "zero_bound": True,
        "arrays": {"values": SMALL.values.tolist()},
    } | changes
    return json.dumps({key: value for key, value in document.items() if value != "gone"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": "bimichi-model", "version": 2, "tables": {}}', "model-version"),
        (changed(version=2), "model-version"),
        (changed(version="1"), "model-version"),
        (changed(version=True), "model-version"),
        (changed(version=0), "model-version"),
        (changed(format="other"), "model-format"),
        (changed(kind="capacity"), "model-of-another"),
        (changed(arrays="gone"), "model-arrays"),
        (changed(arrays={}), "model-incomplete"),
        (changed(arrays={"values": "x"}), "model-array-type"),
        (changed(arrays={"values": [True] * 9}), "model-array-type"),
        (changed(arrays={"values": [0.0] * 9}), "values-boundary"),
        (changed(arrays={"values": [10**400] * 9}), "model-array-type"),
        (changed(source_names=["a"]), "names-number"),
        (changed(source_names=None), ""),
        (changed(source_names=[{}, []]), "names-text"),
        (changed(source_names="gone"), "model-incomplete"),
        (changed(zero_bound="yes"), "flag"),
        (changed(zero_bound="gone"), "model-incomplete"),
        ("", "json"),
        ("[]", "json"),
        ("[" * 100_000, "json"),
        ('{"a": NaN}', "json"),
        ('{"a": 1e999}', "json"),
        ('{"a": ' + "9" * 5000 + "}", "json"),
        ("\ud800", "json"),
    ],
)
def test_wrong_documents(text, message, tmp_path):
    path = tmp_path / "g.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    if not message:
        assert BiCapacity.load(path).source_names == ("1", "2")
        return
    with refused(message, kind=ModelFileError):
        BiCapacity.load(path)


def test_nested_headers_are_refused(tmp_path):
    deep = "gone"
    for _ in range(200):
        deep = [deep]
    path = tmp_path / "g.json"
    path.write_text(changed(training=deep))
    with refused("json-depth", "32", kind=ModelFileError):
        BiCapacity.load(path)


def archive(**members):
    buffer = stdio.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name.replace("_", "."), content)
    return buffer.getvalue()


def npy(array):
    buffer = stdio.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


HEADER = changed(arrays="gone")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (archive(values_npy=npy(SMALL.values)), "model-archive"),
        (archive(header_json=HEADER), "model-incomplete"),
        (archive(header_json=HEADER, values_npy=npy(SMALL.values.astype(">f4"))), "model-array-type"),
        (archive(header_json=HEADER, values_npy=npy(np.array([print], object))), "model-array-type"),
        (archive(header_json=HEADER, values_npy=npy(SMALL.to_matrix())), "model-array-type"),
        (archive(header_json=HEADER, values_npy=b"x"), "model-archive"),
        (archive(header_json=HEADER, values_npy=b"0" * (io.SIZE_LIMIT + 1)), "model-large"),
        (b"PK", "model-archive"),
        (
            archive(header_json=HEADER, values_npy=npy(SMALL.values), extra_npy=npy(SMALL.values)),
            "model-member",
        ),
        (archive(header_json=HEADER, values_npy=npy(SMALL.values), readme="hello"), "model-member"),
        (archive(header_json=HEADER, values_npy=npy(SMALL.values)[:-8]), "model-array-size"),
        (archive(header_json=HEADER, values_npy=npy(SMALL.values) + b"0" * 8), "model-array-size"),
        (archive(header_json=HEADER, **{f"m{k}": b"" for k in range(100)}), "model-archive"),
        (archive(header_json=HEADER, values_npy=npy(SMALL.values)) + b"more", "model-archive"),
    ],
)
def test_wrong_archives(content, message, tmp_path):
    path = tmp_path / "g.npz"
    path.write_bytes(content)
    with refused(message, kind=ModelFileError):
        BiCapacity.load(path)


def test_files_that_are_too_large(tmp_path):
    path = tmp_path / "g.json"
    path.write_bytes(b" " * (io.DOCUMENT_LIMIT + 1))
    with refused("model-large", "1,048,576", kind=ModelFileError):
        BiCapacity.load(path)
    with path.open("wb") as file:
        file.write(b"PK")
        file.truncate(io.SIZE_LIMIT + 1)
    with refused("model-large", "268,435,456", kind=ModelFileError):
        BiCapacity.load(path)


def test_an_archive_cannot_lie_about_its_size(tmp_path, monkeypatch):
    """A member that claims 100 bytes and holds far more is not unpacked beyond the limit."""
    monkeypatch.setattr(io, "SIZE_LIMIT", 2**20)
    content = bytearray(archive(header_json=HEADER, values_npy=b"0" * 2**26))
    at = content.rindex(b"PK\1\2")
    content[at + 24 : at + 28] = (100).to_bytes(4, "little")
    path = tmp_path / "g.npz"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError):
            BiCapacity.load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


def peak_of_refusal(path, *rule):
    tracemalloc.start()
    try:
        with refused(*rule, kind=ModelFileError):
            BiCapacity.load(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_header_of_an_archive_is_bounded_as_a_document_is(tmp_path):
    path = tmp_path / "g.npz"
    path.write_bytes(archive(header_json="[" + "0," * 2**23 + "0]"))
    assert peak_of_refusal(path, "model-large", "header.json", "1,048,576") < 2**23


def test_all_members_share_one_budget(tmp_path, monkeypatch):
    monkeypatch.setattr(io, "SIZE_LIMIT", 2**20)
    names = [name for name in io.ARRAYS if name != "values"]
    path = tmp_path / "g.npz"
    path.write_bytes(archive(header_json=HEADER, **{f"{name}_npy": npy(np.zeros(2**15)) for name in names}))
    assert peak_of_refusal(path, "model-large", "1,048,576") < 2**23


def test_many_entries_of_one_member_are_refused(tmp_path):
    """Each entry of the directory would be unpacked on its own."""
    content = archive(header_json=HEADER, values_npy=npy(np.zeros(2**20)))
    start = content.index(b"PK\1\2")
    entry = content[content.rindex(b"PK\1\2") : content.rindex(b"PK\5\6")]
    end = bytearray(content[content.rindex(b"PK\5\6") :])
    directory = content[start : content.rindex(b"PK\5\6")] + entry * 40
    end[8:12] = (42).to_bytes(2, "little") * 2
    end[12:16] = len(directory).to_bytes(4, "little")
    path = tmp_path / "g.npz"
    path.write_bytes(content[:start] + directory + bytes(end))
    assert peak_of_refusal(path, "model-archive") < 2**22


def test_other_compressions_are_refused(tmp_path):
    path = tmp_path / "g.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as file:
        file.writestr("header.json", HEADER)
    with refused("model-compression", kind=ModelFileError):
        BiCapacity.load(path)


@pytest.mark.parametrize("path", ["", "a\0b", 123.5])
def test_paths_that_are_none(path):
    with refused("output-unwritable", kind=BimichiError):
        SMALL.save(path)
    with refused("model-unreadable", kind=ModelFileError):
        BiCapacity.load(path)


@pytest.mark.slow
@pytest.mark.parametrize("measure", [SMALL, LARGE], ids=["json", "archive"])
def test_no_mutated_file_gives_anything_but_a_measure_or_our_error(measure, tmp_path):
    path = tmp_path / "fuzzed"
    original = written(measure, path)
    check_mutated(BiCapacity.load, path, original, 1500)
