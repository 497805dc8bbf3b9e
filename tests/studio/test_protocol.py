"""What the server of the studio answers, and how it learns from what is drawn."""

import asyncio
import threading
from threading import Event

import numpy as np
import pytest
from refusals import refused
from studio_server import BOXES, SIZE, opened, served, shapes, tab_of, write_scenes

from bimichi._progress import Stopped, checkpoint, stopping
from bimichi.io import write_image
from bimichi.studio.learning import Learner
from bimichi.studio.open import Options, open_workspace
from bimichi.studio.workspace import Settings


@pytest.fixture
def client(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with served(opened(tmp_path)) as made:
        yield made


def state_of(client):
    return client.get(f"{client.base}state").json()


def map_of(message):
    """Number of the model, scene, and the map in steps."""
    number, width, height, scene = np.frombuffer(message[:16], "<u4")
    return int(number), int(scene), np.frombuffer(message[16:], "<u2").reshape(height, width)


def test_the_state_describes_sources_and_scenes(client):
    state = state_of(client)
    assert [one["name"] for one in state["sources"]] == ["warm", "grey"]
    assert [one["recipe"] for one in state["sources"]] == ["to_bipolar", "to_bipolar"]
    assert [(one["name"], one["height"], one["width"]) for one in state["scenes"]] == [("one", *SIZE), ("two", *SIZE)]
    assert state["model"] is None
    assert state["project"] == "bimichi.toml"
    assert state["settings"]["objective"] == "logistic"


def test_planes_are_what_the_rule_takes(client):
    meanings = client.get(f"{client.base}scenes/1/planes").json()
    scene = client.session.workspace.store.load(1)
    for k, meaning in enumerate(meanings):
        indices = np.frombuffer(client.get(f"{client.base}scenes/1/sources/{k}").content, "<u2").reshape(SIZE)
        assert np.array_equal(np.array(meaning["levels"])[indices], scene.sources[..., k])


@pytest.mark.parametrize("path", ["scenes/7/sources/0", "scenes/0/sources/9", "scenes/0/truth", "scenes/0/fused"])
def test_what_is_not_there_is_not_found(client, path):
    assert client.get(f"{client.base}{path}").status_code == 404


def test_thumbnails_and_superpixels(client):
    assert client.get(f"{client.base}scenes/0/thumbnail").content.startswith(b"\x89PNG")
    found = client.get(f"{client.base}scenes/0/superpixel?x=14.5&y=12").json()
    assert len(found["points"]) >= 4
    assert client.get(f"{client.base}scenes/0/superpixel?x=a").status_code == 400


def test_an_edit_gives_the_model_and_the_map_that_python_gives(client):
    with tab_of(client) as tab:
        assert tab.hello["primary"] is True
        tab.send(type="view", scene=1)
        tab.draw(0, 1, shapes())
        model, (number, scene, steps) = tab.until("model"), map_of(tab.until("map"))
        score = tab.until("score")
    assert (model["number"], model["revision"], scene) == (number, {"0": 1}, 1)
    session = client.session
    rule = session.model.rule
    sources = session.workspace.store.load(1).sources
    assert np.abs(steps / 65534 - rule.fuse(sources)).max() < 1e-5
    assert model["J"] == rule.training.objective_value
    assert model["rule"]["measure"]["parts"] == "terms"
    assert score["best_source"]["name"] == "warm"
    assert 0.5 < score["ap"] <= 1
    assert session.model_message["sentences"]
    assert map_of(client.get(f"{client.base}scenes/0/fused").content)[:2] == (number, 0)


def test_too_few_labels_are_said_to_be_too_few(client):
    with tab_of(client) as tab:
        tab.draw(0, 1, shapes(n=1))
        tab.until("model")
        score = tab.until("score")
        assert score["ap"] is None
        assert score["sentence"].startswith("Too few labels")
        assert "one class only" in score["sentence"]  # why nothing could be left out
        tab.draw(0, 2, [])
        assert tab.until("model")["number"] == 0
    assert client.session.model is None


def test_only_what_is_no_target_is_not_enough(client):
    with tab_of(client) as tab:
        tab.draw(0, 1, shapes(label="not"))
        assert tab.until("problem")["code"] == "labels-missing"


def test_without_any_label_of_either_class_a_target_is_asked_for(client):
    client.session.workspace.settings = Settings(rest="unknown")
    with tab_of(client) as tab:
        tab.draw(0, 1, shapes(label="ignore"))
        assert tab.until("problem")["code"] == "labels-missing"
        tab.draw(0, 2, shapes())
        assert tab.until("problem")["code"] == "labels-missing"


def test_shapes_that_are_not_as_they_must_be_are_refused_in_words(client):
    wrong = [
        ({"id": "a", "kind": "circle", "label": "target", "points": []}, "shape-kind"),
        ({"id": "a", "kind": "box", "label": "target", "points": [[1, 1], [1, 5]]}, "box-size"),
        ({"id": "a", "kind": "box", "label": "target", "points": [[900, 1], [950, 5]]}, "shape-outside"),
        ({"id": "a", "kind": "polygon", "label": "not", "points": [[1, 1], ["<b>", 5], [3, 3]]}, "number"),
        ({"id": "a", "kind": "stroke", "label": "not", "points": [[1, 1]], "width": -1}, "stroke-width"),
    ]
    with tab_of(client) as tab:
        for shape, code in wrong:
            tab.draw(0, 1, [shape])
            assert tab.until("problem")["code"] == code
        tab.draw(5, 1, [])
        assert tab.until("problem")["code"] == "scene-unknown"
        tab.send(type="sing")
        assert tab.until("problem")["code"] == "message-unknown"
    assert state_of(client)["scenes"][0]["revision"] == 0


def test_an_older_revision_is_answered_with_the_newer_state(client):
    with tab_of(client) as tab:
        tab.send(type="mode", mode="off")
        tab.draw(0, 4, shapes())
        tab.draw(0, 4, [])
        found = tab.until("labels")
        assert (found["revision"], len(found["shapes"])) == (4, 2)


def test_a_second_tab_only_watches_until_it_takes_over(client):
    with tab_of(client) as first, tab_of(client) as second:
        assert second.hello["primary"] is False
        second.draw(0, 1, shapes())
        assert second.until("problem")["code"] == "watching"
        first.send(type="mode", mode="off")
        first.draw(0, 1, shapes())
        assert len(second.until("labels")["shapes"]) == 2
        second.send(type="take_over")
        assert second.until("hello")["primary"] is True
        first.until("taken_over")
        second.draw(0, 2, shapes(n=1))
        assert len(first.until("labels")["shapes"]) == 1
    assert client.session.tabs == []


def test_a_tab_that_connects_later_is_sent_the_model_before_it_asks(client):
    with tab_of(client) as tab:
        tab.draw(0, 1, shapes())
        number = tab.until("score")["number"]  # after which no model is sent to all
    with tab_of(client) as later:
        found = later.next()
    assert (found["type"], found["number"]) == ("model", number)


def test_modes_decide_when_to_learn(client):
    with tab_of(client) as tab:
        tab.until("idle")
        tab.send(type="mode", mode="once")
        tab.draw(0, 1, shapes())
        tab.send(type="threshold", value=0.4)
        tab.send(type="train")
        assert tab.until("model")["revision"] == {"0": 1}
        tab.send(type="mode", mode="sometimes")
        assert "mode" in tab.until("problem")["text"]
    assert state_of(client)["threshold"] == 0.4


def test_settings_change_what_is_learned(client):
    with tab_of(client) as tab:
        tab.draw(0, 1, shapes())
        tab.until("score")
        tab.send(type="settings", objective="mean", additivity=2, rest="negative")
        assert tab.until("settings")["settings"]["objective"] == "mean"
        assert tab.until("model")["setting"]["additivity"] == 2
        tab.send(type="settings", sources="rarity")
        tab.until("state")
        assert tab.until("model")["rule"]["recipes"] == ["to_bipolar|rarity"] * 2
        tab.send(type="settings", objective="<script>")
        assert "objective" in tab.until("problem")["text"]


def test_auto_chooses_settings_and_goes_on_with_them(client):
    with tab_of(client) as tab:
        tab.send(type="mode", mode="off")
        tab.draw(0, 1, shapes())
        tab.draw(1, 1, shapes("two"))
        tab.send(type="auto")
        model = tab.until("model")
        assert model["auto"]["sentence"].startswith("Chose")
        assert model["score"]["ap"] is not None


def wait_for_a_stop():
    while not Event().wait(0.005):
        checkpoint()


def test_a_newer_edit_stops_a_fit_and_is_learned_next(client, monkeypatch):
    fits = []

    def slow(self, task):
        fits.append(task.revisions)
        if len(fits) == 1:
            wait_for_a_stop()
        return original(self, task)

    original = Learner.fit
    monkeypatch.setattr(Learner, "fit", slow)
    with tab_of(client) as tab:
        tab.draw(0, 1, shapes())
        while not fits:
            tab.next()
        tab.draw(0, 2, shapes(n=1))
        told = []
        while not told or told[-1]["type"] != "model":
            told.append(tab.next())
        assert told[-1]["revision"] == {"0": 2}
        assert "stopped" not in [one["type"] for one in told]  # as learning went on at once
    assert fits == [{"0": 1}, {"0": 2}]


def test_cancelling_ends_a_fit_without_another(client, monkeypatch):
    monkeypatch.setattr(Learner, "fit", lambda self, task: wait_for_a_stop())
    with tab_of(client) as tab:
        tab.draw(0, 1, shapes())
        while tab.until("working")["what"] != "Learning":
            pass
        tab.send(type="cancel")
        tab.until("stopped")
        tab.until("idle")
    assert client.session.model is None


def test_the_score_is_that_of_the_fusion_even_if_a_source_is_better(tmp_path):
    sources = write_scenes(tmp_path)
    for name, sign in (("one", -1), ("two", 1)):  # so that what is learned from one scene misleads in the other
        image = np.full(SIZE, 128.0)
        for x, y, w, h in BOXES[name]:
            image[y : y + h, x : x + w] += 100 * sign
        noise = np.random.default_rng(0).normal(0, 10, SIZE)
        write_image(tmp_path / "grey" / f"{name}.png", (image + noise).clip(0, 255).astype(np.uint8))
    work = open_workspace(sources, Options())
    work.draw(0, 1, shapes())
    work.draw(1, 1, shapes("two"))
    score = Learner(work.store, 1).score(work.task())
    assert score["best_source"]["name"] == "warm"
    assert score["ap"] < score["best_source"]["ap"] - 0.05


def test_a_bug_in_learning_is_told_and_learning_goes_on(client, monkeypatch, caplog):
    monkeypatch.setattr(Learner, "fit", lambda self, task: 1 / 0)
    with tab_of(client) as tab:
        tab.draw(0, 1, shapes())
        assert "ZeroDivisionError" in tab.until("problem")["text"]
        monkeypatch.undo()
        tab.draw(0, 2, shapes())
        tab.until("model")


def test_checkpoints_stop_work_only_where_it_was_asked_for():
    checkpoint()
    with stopping(lambda: True), pytest.raises(Stopped):
        checkpoint()
    checkpoint()


def test_tabs_that_come_and_go_leave_nothing_behind(client):
    def counted():
        """Tasks of the server, asked for in its own thread."""

        async def count():
            return len(asyncio.all_tasks()) - 1

        return asyncio.run_coroutine_threadsafe(count(), client.session.loop).result(60)

    state_of(client)  # which waits until the server has started
    before = counted()
    for visit in range(4):
        with tab_of(client) as first, tab_of(client):
            for edit in range(3):
                first.draw(0, 10 * visit + edit + 1, shapes(n=1 + edit % 2))
            while first.until("model")["revision"] != {"0": 10 * visit + 3}:
                pass
    client.get(f"{client.base}state")
    limit = 200
    while counted() > before and limit:
        limit -= 1
    assert counted() <= before
    assert client.session.tabs == []


def test_a_thread_that_learns_ends_with_the_server(tmp_path):
    before = {thread.name for thread in threading.enumerate()}
    with served(opened(tmp_path)) as client, tab_of(client) as tab:
        tab.draw(0, 1, shapes())
        tab.until("model")
    assert not [t for t in threading.enumerate() if t.name.startswith("bimichi-learning") and t.name not in before]


def test_settings_refuse_what_train_would_refuse():
    assert Settings().changed({"additivity": None, "objective": "bipolar", "unknown": 1}).objective == "bipolar"
    with refused("objective-additive"):
        Settings(objective="bipolar", additivity=1)
    with refused("core:core"):
        Settings().changed({"core": [2, 1]})
