"""A studio for tests without a browser: small scenes as files, and its server within this process."""

import json
from contextlib import contextmanager
from http.client import HTTPConnection
from threading import Event, Thread

import numpy as np
from websockets.sync.client import connect

from bimichi.io import write_image
from bimichi.studio.app import make_app
from bimichi.studio.open import Options, open_workspace
from bimichi.studio.session import Session
from bimichi.studio.start import serve

SIZE = (40, 56)
BOXES = {"one": [(8, 6, 12, 16), (34, 10, 10, 18)], "two": [(20, 12, 12, 20)]}


def write_scenes(folder, names=("one", "two"), suffix=".png"):
    """Write scenes of two sources, in which targets are bright in the first and dark in the second."""
    rng = np.random.default_rng(5)
    for name in names:
        warm, grey = rng.normal(90, 25, (2, *SIZE))
        for x, y, w, h in BOXES[name]:
            warm[y + 2 : y + h - 2, x + 2 : x + w - 2] += 80
            grey[y + 2 : y + h - 2, x + 2 : x + w - 2] -= 30
        for kind, image in (("warm", warm), ("grey", grey)):
            (folder / kind).mkdir(parents=True, exist_ok=True)
            write_image(folder / kind / f"{name}{suffix}", np.clip(image, 0, 255).astype(np.uint8))
    return [str(folder / "warm"), str(folder / "grey")]


def shapes(name="one", n=None, label="target"):
    """The boxes of a scene as the page would draw them."""
    return [
        {"id": f"{name}-{k}", "kind": "box", "label": label, "points": [[x, y], [x + w, y + h]]}
        for k, (x, y, w, h) in enumerate(BOXES[name][:n])
    ]


def opened(folder, **options):
    """A workspace of both scenes, with a project in the folder."""
    work = open_workspace(write_scenes(folder), Options(**options))
    work.project = folder / "bimichi.toml"
    return work


class Answer:
    """What the server answered."""

    def __init__(self, response):
        self.status_code, self.headers, self.content = response.status, response.headers, response.read()

    @property
    def text(self):
        return self.content.decode()

    def json(self):
        return json.loads(self.content)


class Client:
    """Asks a server, as its own page would unless told otherwise."""

    def __init__(self, url, session):
        self.session, self.host, self.base = session, url.split("/")[2], "/" + url.split("/", 3)[3]

    @property
    def origin(self):
        return f"http://{self.host}"

    def ask(self, method, path, body=None, headers=None):
        name, port = self.host.split(":")
        connection = HTTPConnection(name, int(port), timeout=60)
        try:
            given = {"origin": self.origin} | (headers or {})
            connection.request(method, path, body, {k: v for k, v in given.items() if v is not None})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, headers=None):
        return self.ask("GET", path, headers=headers)

    def post(self, path, body=None, headers=None):
        return self.ask("POST", path, json.dumps(body) if isinstance(body, dict) else body, headers)

    def connect(self, origin=None, path=None, host=None):
        headers = {"Host": host} if host else None
        place = f"ws://{self.host}{path or self.base + 'socket'}"
        return connect(place, origin=origin or self.origin, additional_headers=headers, max_size=None, open_timeout=60)


@contextmanager
def served(work, **options):
    """The server of a workspace, on a port of this machine."""
    session, started, urls = Session(work, 1), Event(), []

    def make(token):
        app = make_app(session, token, **options)
        apps.append(app)
        return app

    def ready(url):
        urls.append(url)
        started.set()

    apps = []
    thread = Thread(target=serve, args=(make, "127.0.0.1", 0, False, ready))
    thread.start()
    try:
        assert started.wait(60)
        client = Client(urls[0], session)
        client.server = thread
        yield client
    finally:
        apps[0].end()
        thread.join(60)


class Tab:
    """A tab that is connected."""

    def __init__(self, socket):
        self.socket = socket
        self.send(type="hello", tab="t")
        self.hello = self.until("hello")

    def send(self, **message):
        self.socket.send(json.dumps(message))

    def draw(self, scene, revision, some):
        self.send(type="labels", scene=scene, revision=revision, shapes=some)

    def next(self):
        message = self.socket.recv(timeout=60)
        return message if isinstance(message, bytes) else json.loads(message)

    def until(self, kind):
        """Read messages up to one of a kind; "map" is a binary one."""
        while True:
            message = self.next()
            if isinstance(message, bytes):
                if kind == "map":
                    return message
            elif message["type"] == kind:
                return message
            elif message["type"] == "problem" and kind != "problem":
                raise AssertionError(message["text"])


@contextmanager
def tab_of(client):
    with client.connect() as socket:
        yield Tab(socket)
