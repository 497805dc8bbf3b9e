"""Sources and scenes by files, folders and patterns."""

from pathlib import Path

from refusals import refused

from bimichi.io.dataset import collect_scenes


def test_sources_and_scenes_are_named_by_files_folders_and_patterns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("ir/1.png", "ir/2.jpg", "ir/.hidden.png", "ir/notes.txt", "a1/t.npy", "b2/t.npy", "x_ir.png"):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).touch()

    def found(*sources):
        scenes = collect_scenes(sources)
        return scenes.source_names, scenes.names

    assert found("ir") == (["ir"], ["1", "2"])
    assert found("./ir/", "ir/[0-9]*") == (["ir", "ir 2"], ["1", "2"])
    assert found("*r/*.*g") == (["r"], ["i_1", "i_2"])
    assert found("ir/?.png") == (["ir"], ["1"])
    assert found("*/t.npy") == (["t"], ["a1", "b2"])
    assert found("[ab]?/t.npy") == (["t"], ["a1", "b2"])
    assert found("*_ir.png") == (["ir"], ["x"])
    assert found("ir/1.png") == (["1"], ["1"])
    assert found("ir/1.png", "ir/1.png") == (["1", "1 2"], ["ir"])
    assert found("a1/t.npy", "b2/t.npy") == (["a1", "b2"], ["t"])
    with refused("pattern"):
        collect_scenes(["**/t.npy"])
    with refused("sources-unquoted", "15"):
        collect_scenes(["ir/1.png"] * 15)
    Path("ir/1.tif").touch()
    with refused("scene-file-twice", "'1'"):
        collect_scenes(["ir"])
