"""A running studio: tabs that are connected, learning in the background, and the messages to each."""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event
from typing import Any, TypeVar

from starlette.websockets import WebSocket, WebSocketDisconnect

from bimichi._files import plain
from bimichi._progress import Stopped, stopping
from bimichi.errors import BimichiError, InvalidInputError
from bimichi.studio.labels import collected_warnings
from bimichi.studio.learning import Learner, Trained, map_bytes, material_of, model_json, warm_up
from bimichi.studio.project import ProjectLock, remember
from bimichi.studio.scenes import StudioScene
from bimichi.studio.security import Roots
from bimichi.studio.windows import learner_of
from bimichi.studio.workspace import Workspace

T = TypeVar("T")
log = logging.getLogger(__name__)
SAVE_AFTER, RETRY = 0.3, 5.0  # seconds after an edit, and after saving failed
GRACE = 4.0  # seconds in which a page may be loaded again before the server ends with its last tab
WAITING = 200  # messages that a tab may leave unread before it is disconnected
DRAWING = 0.08  # seconds that the page has to draw a map before the processor is busy with what is said about it
FIRST_TAB = 3.0  # seconds to wait for one before preparing to learn, which would slow down serving the page


@dataclass(eq=False)
class Tab:
    """A page that is connected; what it is sent waits in its queue."""

    name: str = ""
    view: int = 0
    queue: "asyncio.Queue[str | bytes | None]" = field(default_factory=lambda: asyncio.Queue(WAITING))

    def send(self, message: dict[str, Any] | bytes) -> None:
        """Queue a message; a tab that has stopped reading is dropped."""
        try:
            self.queue.put_nowait(message if isinstance(message, bytes) else json.dumps(plain(message)))
        except asyncio.QueueFull:
            while not self.queue.empty():
                self.queue.get_nowait()
            self.queue.put_nowait(None)


class Session:
    """The state that all tabs share; its methods are called in the thread of the event loop."""

    def __init__(self, workspace: Workspace, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs
        self.tabs: list[Tab] = []
        self.primary: Tab | None = None
        self.model: Trained | None = None
        self.model_message: dict[str, Any] | None = None
        self.stale = False
        self._doing: dict[str, Any] = {"type": "idle"}
        self._pool = ThreadPoolExecutor(1, "bimichi-learning")
        self._wanted, self._job, self._stop = asyncio.Event(), "train", Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._learner: Learner | None = None
        self._visited = asyncio.Event()
        self._dirty, self._lock = asyncio.Event(), ProjectLock()
        self.roots = Roots()
        self.ended = asyncio.Event()
        self.end_with_tabs = False
        self._take(workspace)

    def _take(self, workspace: Workspace) -> None:
        if workspace.project is not None:
            self._lock.move(workspace.project)
            self.roots.add(workspace.project.parent)
        if workspace.store is not None:
            for file in workspace.store.collection.files:
                self.roots.add(file.parent)
        self.workspace = workspace
        self._learner = self.model = self.model_message = None

    @property
    def learner(self) -> Learner | None:
        """The learner of the scenes that are open."""
        if self._learner is None and self.workspace.store is not None:
            self._learner = learner_of(self.workspace.store, self.n_jobs)
        return self._learner

    async def open(self, workspace: Workspace) -> None:
        """Work on other scenes from now on; what was drawn before is saved first."""
        self.stop_learning()
        await self.save()
        self._take(workspace)
        for tab in self.tabs:
            tab.view = 0
        if workspace.project is not None and workspace.project.exists():
            remember(workspace.project)
        self.broadcast({"type": "state"})
        if workspace.task().labels and workspace.mode == "live":
            self.learn("auto" if workspace.auto else "train")

    def add(self, scenes: Sequence[StudioScene], notes: Sequence[str] = ()) -> None:
        """Add scenes; the model stays, as nothing is drawn on them yet."""
        work = self.workspace
        work.add(scenes, notes)
        for scene in scenes:
            for file in scene.files.files:
                self.roots.add(file.parent)
        if any(scene.tiled for scene in scenes) and self._learner is not None and work.store is not None:
            self._learner = learner_of(work.store, self.n_jobs, self._learner)
        self.changed()
        self.broadcast({"type": "state"})

    async def start(self) -> None:
        """Begin to learn in the background."""
        self.loop = asyncio.get_running_loop()
        self._tasks = [asyncio.create_task(self._learn_forever()), asyncio.create_task(self._save_forever())]
        self.loop.run_in_executor(None, self.workspace.prepare)  # while the browser fetches the page
        if self.workspace.project is not None and self.workspace.project.exists():
            remember(self.workspace.project)
        if self.workspace.task().labels and self.workspace.mode == "live":
            self.learn("auto" if self.workspace.auto else "train")

    async def end(self) -> None:
        """Stop all work, and close all tabs."""
        self._stop.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(BimichiError):
            await self.save()
        self.release()
        for tab in self.tabs:
            tab.send({"type": "closed"})
        self._pool.shutdown(wait=True, cancel_futures=True)

    def release(self) -> None:
        """Let others open the project; nothing is saved any more."""
        self._lock.release()

    # Tabs

    def connect(self, name: str) -> Tab:
        """Add a tab; it may draw if there is no other that does."""
        tab = Tab(name)
        self.tabs.append(tab)
        self._visited.set()
        if self.primary is None:
            self.primary = tab
        tab.send(self._hello(tab))
        if self.model_message is not None:  # it may be newer than the state that the page has asked for
            tab.send(self.model_message | {"type": "model"})
        if self._doing["type"] == "working":
            tab.send(self._doing)
        return tab

    def disconnect(self, tab: Tab) -> None:
        """Forget a tab."""
        self.tabs = [other for other in self.tabs if other is not tab]
        if self.primary is tab:
            self.primary = None
        if not self.tabs and self.end_with_tabs:
            asyncio.get_running_loop().call_later(GRACE, self._end_if_alone)

    def _end_if_alone(self) -> None:
        if not self.tabs and self.end_with_tabs:
            self.ended.set()

    def take_over(self, tab: Tab) -> None:
        """Let this tab draw from now on, and no other."""
        if self.primary is not None and self.primary is not tab:
            self.primary.send({"type": "taken_over"})
        self.primary = tab
        tab.send(self._hello(tab))

    def _hello(self, tab: Tab) -> dict[str, Any]:
        """Return what a tab is greeted with; by the revisions it knows whether its newest edits have arrived."""
        revisions = {str(k): drawn.revision for k, drawn in enumerate(self.workspace.labels)}
        return {"type": "hello", "primary": tab is self.primary, "revisions": revisions}

    def broadcast(self, message: dict[str, Any], but: Tab | None = None) -> None:
        """Send a message to all tabs; tabs that connect later are also sent what is being done."""
        if message["type"] in ("working", "idle"):
            self._doing = message
        for tab in self.tabs:
            if tab is not but:
                tab.send(message)

    def labels_message(self, k: int) -> dict[str, Any]:
        """Return what is drawn on a scene, as it is sent to tabs."""
        drawn = self.workspace.labels[k]
        shapes = [shape.to_json() for shape in drawn.shapes]
        return {"type": "labels", "scene": k, "revision": drawn.revision, "shapes": shapes}

    def change_settings(self, values: dict[str, Any]) -> None:
        """Learn by other settings."""
        self._settle({key: value for key, value in values.items() if key != "type"})
        self.workspace.auto = False
        self.changed()
        if self.workspace.mode == "live":
            self.learn()

    def changed(self) -> None:
        """Remember that there is something to save."""
        self._dirty.set()

    async def save(self) -> None:
        """Write the project file if anything has changed."""
        if not self._dirty.is_set() or self.workspace.project is None or self.workspace.store is None:
            return
        self._dirty.clear()
        new = not self.workspace.project.exists()
        try:
            at = await asyncio.to_thread(self.workspace.save)
        except (BimichiError, OSError) as error:
            self._dirty.set()
            raise BimichiError(
                f"What is drawn could not be saved: {error}", code=getattr(error, "code", "unsaved")
            ) from error
        if new:
            remember(self.workspace.project)
        self.broadcast({"type": "saved", "at": at})

    async def _save_forever(self) -> None:
        while True:
            await self._dirty.wait()
            await asyncio.sleep(SAVE_AFTER)
            try:
                await self.save()
            except BimichiError as error:
                self.broadcast({"type": "problem", "text": str(error), "code": error.code, "where": "saving"})
                await asyncio.sleep(RETRY)

    # Learning

    def learn(self, job: str = "train") -> None:
        """Learn from what is drawn now; what is being learned is out of date."""
        self._job, self.stale = job, True
        self._stop.set()
        self._wanted.set()

    def stop_learning(self) -> None:
        """End what is being learned, without learning again."""
        self._wanted.clear()
        self._stop.set()

    async def _learn_forever(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._visited.wait(), FIRST_TAB)
        self.broadcast({"type": "working", "what": "Preparing to learn", "share": None, "stops": False})
        await asyncio.get_running_loop().run_in_executor(self._pool, warm_up)  # to its end, whatever is drawn
        self.broadcast({"type": "idle"})
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            job, self._job = self._job, "train"
            try:
                await self._learn_once(job)
            except Stopped:
                if not self._wanted.is_set():  # else what is newer follows at once
                    self.broadcast({"type": "stopped"})
            except BimichiError as error:
                self.broadcast({"type": "problem", "text": str(error), "code": error.code, "where": "learning"})
            except MemoryError:
                text = "There is not enough memory to learn from all of this; label fewer scenes."
                self.broadcast({"type": "problem", "text": text, "where": "learning"})
            except Exception as error:  # a bug, which must not end learning for good
                log.exception("Learning failed.")
                text = f"Learning failed: {type(error).__name__}. The terminal of the studio shows more."
                self.broadcast({"type": "problem", "text": text, "where": "learning"})
            if not self._wanted.is_set():
                self.broadcast({"type": "idle"})

    async def _learn_once(self, job: str) -> None:
        """Learn, show the map, and then work out what is to be said about it, unless something newer is wanted."""
        learner, task = self.learner, self.workspace.task()
        if learner is None:
            return
        if not task.labels:
            self._forget()
            return
        self._stop = Event()
        work = "Comparing settings on left-out scenes" if job == "auto" else "Learning"
        self.broadcast({"type": "working", "what": work, "share": None})
        trained = await self._in_thread(learner.auto if job == "auto" else learner.fit, task)
        if self._wanted.is_set():
            return
        await self._show(learner, trained)
        await asyncio.sleep(DRAWING)
        if self._wanted.is_set():
            return
        await self._in_thread(self._describe, learner, trained)
        if self._wanted.is_set() or self.model is not trained:
            return
        self._send_model(trained)
        self.broadcast({"type": "suggestions"})
        if trained.score is None:
            self.broadcast({"type": "working", "what": "Scoring on what is left out in turn", "share": None})
            trained.score = await self._in_thread(learner.score, task)
        self._send_model(trained, {"type": "score", "number": trained.number} | (trained.score or {}))

    def _forget(self) -> None:
        self.model = self.model_message = None
        self.stale = False
        self.broadcast({"type": "model", "number": 0})

    async def _show(self, learner: Learner, trained: Trained) -> None:
        views = sorted({tab.view for tab in self.tabs})
        maps = await self._in_thread(lambda: {k: learner.fused(trained, k) for k in views})
        self.model_message = await self._in_thread(lambda: self._message(learner, trained))
        self.model, self.stale = trained, False
        if self.workspace.auto != (trained.auto is not None) and self.workspace.task().labels == trained.task.labels:
            self.workspace.auto = trained.auto is not None
            self.changed()
        if trained.auto is not None and "objective" in trained.auto:
            self._settle(trained.auto)
        for tab in self.tabs:
            tab.send(self.model_message | {"type": "model"})
            values = maps.get(tab.view)
            if values is not None:
                tab.send(map_bytes(trained.number, tab.view, values))

    def _settle(self, winner: dict[str, Any]) -> None:
        """Go on with the settings that were chosen."""
        before = self.workspace.settings
        self.workspace.settings = before.changed(winner)
        self.broadcast({"type": "settings", "settings": self.workspace.settings.to_json()})
        if before.sources != self.workspace.settings.sources or before.inverted != self.workspace.settings.inverted:
            self.broadcast({"type": "state"})

    def _message(self, learner: Learner, trained: Trained) -> dict[str, Any]:
        k = trained.task.labels[0][0]
        scene = learner.store.load(k, trained.rule.recipes)
        return model_json(trained, material_of(trained, scene))

    def _describe(self, learner: Learner, trained: Trained) -> None:
        k = trained.task.labels[0][0]
        with collected_warnings():
            trained.sentences = material_of(trained, learner.store.load(k, trained.rule.recipes)).summary.sentences

    def _send_model(self, trained: Trained, more: dict[str, Any] | None = None) -> None:
        if self.model is not trained or self.model_message is None:
            return
        self.model_message |= {"sentences": trained.sentences, "score": trained.score}
        self.broadcast(self.model_message | {"type": "model"} if more is None else more)

    async def _in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run in the thread that learns; a newer wish stops it."""
        stop = self._stop

        def run() -> T:
            with stopping(stop.is_set):
                return function(*arguments)

        result = await asyncio.get_running_loop().run_in_executor(self._pool, run)
        if stop.is_set():  # where the work could not be stopped, its result is not wanted any more
            raise Stopped
        return result

    def fused(self, k: int) -> bytes | None:
        """Return the map of a scene by the current model, as the page takes it; computed here if it was not."""
        trained, learner = self.model, self.learner  # once: other scenes may be opened meanwhile
        if trained is None or learner is None:
            return None
        values = learner.fused(trained, k)
        return None if values is None else map_bytes(trained.number, k, values)


DRAWING_FRAME = ("labels", "settings", "mode", "train", "auto", "cancel", "threshold")
"""What only the tab that draws may send."""


async def serve_socket(session: Session, socket: WebSocket) -> None:
    """Serve one tab until it leaves."""
    await socket.accept()
    tab: Tab | None = None
    sending: asyncio.Task[None] | None = None
    try:
        first = await _received(socket)
        tab = session.connect(str(first.get("tab", ""))[:64])
        sending = asyncio.create_task(_send_all(tab, socket))
        while True:
            message = await _received(socket)
            try:
                await _handle(session, tab, message)
            except BimichiError as error:
                tab.send(
                    {
                        "type": "problem",
                        "text": str(error),
                        "code": error.code,
                        "where": str(message.get("type", ""))[:32],
                    }
                )
    except (WebSocketDisconnect, RuntimeError):  # the latter if it was closed from here
        pass
    finally:
        if tab is not None:
            session.disconnect(tab)
        if sending is not None:
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending


async def _received(socket: WebSocket) -> dict[str, Any]:
    """Return the next message; what is none is an empty one.

    `receive_text` would refuse what was sent before a tab left, once sending to it has failed.
    """
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1005))
    try:
        content = json.loads(message.get("text") or "")
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


async def _send_all(tab: Tab, socket: WebSocket) -> None:
    with suppress(WebSocketDisconnect, RuntimeError):
        while True:
            message = await tab.queue.get()
            if message is None:
                await socket.close(1013, "This tab has not read its messages.")
                return
            await (socket.send_bytes(message) if isinstance(message, bytes) else socket.send_text(message))


async def _handle(session: Session, tab: Tab, message: dict[str, Any]) -> None:
    kind, work = message.get("type"), session.workspace
    if kind in DRAWING_FRAME and tab is not session.primary:
        raise InvalidInputError(
            "This tab only watches, since another one draws. Take over here to draw.", code="watching"
        )
    if kind == "labels":
        _draw(session, tab, message)
    elif kind == "view":
        tab.view = work.scene(message.get("scene"))
        fused = await asyncio.to_thread(session.fused, tab.view)
        if fused is not None:
            tab.send(fused)
    elif kind == "settings":
        session.change_settings(message)
    elif kind == "mode":
        work.set_mode(message.get("mode"))
        session.changed()
        if work.mode == "live":
            session.learn()
    elif kind in ("train", "auto"):
        session.learn(str(kind))
    elif kind == "cancel":
        session.stop_learning()
    elif kind == "threshold":
        work.set_threshold(message.get("value"))
        session.changed()
    elif kind == "take_over":
        session.take_over(tab)
    elif kind != "hello":
        raise InvalidInputError(f"There is no message {str(kind)[:40]!r}.", code="message-unknown")


def _draw(session: Session, tab: Tab, message: dict[str, Any]) -> None:
    work, k = session.workspace, message.get("scene")
    if not work.draw(k, message.get("revision"), message.get("shapes")):
        tab.send(session.labels_message(work.scene(k)))
        return
    session.broadcast(session.labels_message(work.scene(k)), but=tab)
    session.changed()
    if work.mode == "live":
        session.learn()
