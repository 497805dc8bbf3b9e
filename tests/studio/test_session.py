"""How a studio starts, is tried, filled and closed."""

import asyncio
import warnings
from threading import Thread

import numpy as np
import pytest
from studio_server import SIZE, opened, served, tab_of, write_scenes
from typer.testing import CliRunner

from bimichi.cli.app import app
from bimichi.io import write_image
from bimichi.studio import open as samples, session
from bimichi.studio.labels import Shape, annotations_of, collected_warnings, shapes_of, stroke_mask
from bimichi.studio.open import Options, open_workspace
from bimichi.studio.start import Start
from bimichi.studio.workspace import Workspace


@pytest.fixture(autouse=True)
def no_state_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def test_a_start_page_offers_recent_projects_and_a_street_to_try(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "SIZE", (64, 96))
    monkeypatch.setattr(samples, "STREETS", 1)
    with served(Workspace()) as client:
        state = client.get(f"{client.base}state").json()
        assert (state["scenes"], state["recent"], state["model"]) == ([], [], None)
        assert client.get(f"{client.base}scenes/0/thumbnail").status_code == 404
        tried = client.post(f"{client.base}try").json()
        assert [one["name"] for one in tried["sources"]] == ["thermal", "grey", "dark"]
        assert tried["scenes"][0]["truth"]
        assert tried["scenes"][0]["rgb"]
        truth = np.frombuffer(client.get(f"{client.base}scenes/0/truth").content, np.uint8)
        assert set(np.unique(truth)) <= {0, 1}
        assert client.get(f"{client.base}scenes/0/rgb").content.startswith(b"\x89PNG")
        with tab_of(client) as tab:
            tab.draw(0, 1, [{"id": "a", "kind": "box", "label": "target", "points": [[40, 20], [52, 50]]}])
            tab.until("saved")
        assert len(client.get(f"{client.base}state").json()["recent"]) == 1


def test_files_that_are_dragged_in_are_opened(tmp_path):
    write_scenes(tmp_path / "elsewhere", ("one",))
    with served(Workspace()) as client:
        paths = []
        for kind in ("warm", "grey"):
            content = (tmp_path / "elsewhere" / kind / "one.png").read_bytes()
            paths.append(client.post(f"{client.base}upload?name={kind}/one.png", content).json()["path"])
        state = client.post(f"{client.base}open", {"paths": paths}).json()
        assert [one["name"] for one in state["sources"]] == ["warm", "grey"]
        assert (state["scenes"][0]["height"], state["scenes"][0]["width"]) == SIZE


def test_typed_paths_are_opened_in_the_folder_of_the_start_and_in_allowed_ones(tmp_path, monkeypatch):
    here, allowed, other = (tmp_path / name for name in ("here", "allowed", "other place"))
    for folder in (here, allowed, other):
        write_scenes(folder / "night", ("one",))
    monkeypatch.chdir(here)
    start = Start([], Options(), allow=[allowed])
    with served(Workspace()) as client:
        for folder in start.readable():
            client.session.roots.add(folder)
        client.session.roots.add(here / "night")
        assert client.get(f"{client.base}state").json()["folders"] == [str(here), str(allowed)]
        for path in ("night", str(here / "night"), str(allowed / "night")):
            state = client.post(f"{client.base}open", {"paths": [path]}).json()
            assert [one["name"] for one in state["sources"]] == ["grey", "warm"]
        refused = client.post(f"{client.base}open", {"paths": [str(other / "night")]})
        assert refused.status_code == 400
        said = refused.json()["problem"]
        assert f"start `bimichi studio '{other / 'night'}'`, or add --allow FOLDER" in said
        assert str(here) in said


def test_a_typed_project_does_not_lead_to_files_elsewhere(tmp_path, monkeypatch):
    here, other = tmp_path / "here", tmp_path / "other"
    here.mkdir()
    monkeypatch.chdir(here)
    write_scenes(here)
    (other / "truth").mkdir(parents=True)
    write_image(other / "truth" / "one.png", np.eye(*SIZE, dtype=np.uint8))
    mixed = open_workspace([str(here / "warm"), str(here / "grey")], Options(truth=str(other / "truth")))
    mixed.project = here / "mixed.toml"
    mixed.save()
    outside = open_workspace(write_scenes(other), Options())
    outside.project = here / "outside.toml"
    outside.save()
    (here / "linked").symlink_to(other)
    with served(Workspace()) as client:
        client.session.roots.add(here)
        for path in ("mixed.toml", "outside.toml", "linked"):
            assert "--allow" in client.post(f"{client.base}open", {"paths": [path]}).json()["problem"]
        assert client.session.workspace.store is None
        client.session.roots.add(other)
        for path in ("mixed.toml", "outside.toml"):
            assert len(client.post(f"{client.base}open", {"paths": [path]}).json()["scenes"]) == 2


def test_only_folders_can_be_allowed(tmp_path):
    done = CliRunner().invoke(app, ["studio", "--no-browser", "--allow", str(tmp_path / "nowhere")])
    assert done.exit_code != 0
    assert "--allow" in done.output


def test_a_studio_is_closed_when_asked_to(tmp_path):
    with served(opened(tmp_path)) as client:
        assert client.post(f"{client.base}close", {}).json() == {"closed": True}
        assert client.session.ended.is_set()


def test_a_studio_may_close_with_its_last_tab(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "GRACE", 0.01)
    with served(opened(tmp_path)) as client:
        with tab_of(client):
            client.post(f"{client.base}close", {"after": "tabs"})
            assert not client.session.ended.is_set()
        client.server.join(60)
        assert not client.server.is_alive()
        assert client.session.ended.is_set()


def test_a_tab_that_comes_later_learns_what_is_being_done(tmp_path):
    async def check():
        made = session.Session(opened(tmp_path), 1)
        made.broadcast({"type": "working", "what": "Preparing to learn", "share": None})
        tab = made.connect("a")
        found = [tab.queue.get_nowait() for _ in range(2)]
        await made.end()
        return found

    first, second = asyncio.run(check())
    assert "hello" in first
    assert "Preparing to learn" in second


def test_a_tab_that_does_not_read_is_let_go():
    async def check():
        tab = session.Tab()
        for _ in range(session.WAITING + 1):
            tab.send({"type": "idle"})
        return tab.queue.get_nowait()

    assert asyncio.run(check()) is None


def test_the_command_reports_what_it_cannot_open(tmp_path):
    runner = CliRunner()
    missing = runner.invoke(app, ["studio", str(tmp_path / "none.png"), "--no-browser"])
    assert missing.exit_code == 1
    assert "[file-missing]" in missing.output
    both = runner.invoke(app, ["studio", "a.png", "--boxes", "a.csv", "--labels", "b.csv"])
    assert both.exit_code == 2


def test_sources_labels_and_truth_may_be_given_at_the_start(tmp_path, monkeypatch):
    from bimichi.studio.open import Options

    monkeypatch.chdir(tmp_path)
    sources = write_scenes(tmp_path / "images")
    (tmp_path / "boxes.csv").write_text("image,x,y,w,h\none,8,6,12,16\n")
    work = Start(sources, Options(annotations=str(tmp_path / "boxes.csv"))).workspace()
    assert [len(one.shapes) for one in work.labels] == [1, 0]
    assert work.project == tmp_path / "bimichi.toml"
    assert not work.project.exists()  # until something is drawn


def test_warnings_of_threads_are_kept_apart():
    found = {}

    def warn(name):
        with collected_warnings() as told:
            warnings.warn(f"about {name}", stacklevel=1)
            warnings.warn(f"about {name}", stacklevel=1)
        found[name] = told

    before = (warnings.filters[:], warnings.showwarning)
    threads = [Thread(target=warn, args=(str(k),)) for k in range(8)]
    with collected_warnings() as own:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert own == []
    assert found == {str(k): [f"about {k}"] for k in range(8)}
    assert (warnings.filters[:], warnings.showwarning) == before


def test_strokes_become_outlines_of_the_same_pixels():
    rng = np.random.default_rng(1)
    for _ in range(40):
        points = tuple(
            (round(float(x), 3), round(float(y), 3)) for x, y in rng.uniform(-3, 45, (rng.integers(1, 6), 2))
        )
        stroke = Shape("a", "stroke", "target", ((10.0, 10.0), *points), float(rng.choice([0.4, 1, 3, 9])))
        painted = np.zeros(SIZE, bool)
        outlined = annotations_of((stroke,), SIZE)
        outlined.outlines[0].paint(painted)
        assert np.array_equal(painted, whole(stroke))
        again = np.zeros(SIZE, bool)
        for one in annotations_of(shapes_of(outlined, SIZE, "f"), SIZE).outlines:
            one.paint(again)
        assert np.array_equal(again, painted)


def whole(stroke):
    mask = np.zeros(SIZE, bool)
    part = stroke_mask(stroke, SIZE)
    mask[: part.shape[0], : part.shape[1]] = part
    return mask


def test_shapes_keep_their_class_on_the_way_through_files():
    classes = ("target", "not", "ignore")
    drawn = [Shape(label, "box", label, ((1.0, 2.0), (5.0, 9.0))) for label in classes]
    assert [one.label for one in shapes_of(annotations_of(drawn, SIZE), SIZE, "f")] == list(classes)
