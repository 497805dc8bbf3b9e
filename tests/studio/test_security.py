"""Who may ask the server of the studio, and what it may be asked to read and write."""

import pytest
from refusals import refused
from studio_server import opened, served, shapes, tab_of
from websockets.exceptions import ConnectionClosed, InvalidStatus

from bimichi.errors import InvalidInputError
from bimichi.studio import file_views
from bimichi.studio.file_views import safe_name
from bimichi.studio.security import Roots, new_token
from bimichi.studio.start import address, bind


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("security") / "images"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder.parent / "state"))
        with served(opened(folder)) as made:
            yield made


def test_nothing_is_answered_without_the_token(client):
    for path in ("/", "/state", "/wrong/state", f"{client.base[:-2]}/state", "//state", f"/x{client.base}state"):
        answer = client.get(path)
        assert answer.status_code == 403
        assert "token" in answer.text
    assert client.get(f"{client.base}state").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1:8000", ""])
def test_other_hosts_are_refused(client, host):
    assert client.get(f"{client.base}state", {"host": host, "origin": None}).status_code == 403


@pytest.mark.parametrize("host", ["localhost:1", "LOCALHOST", "[::1]:9", "127.0.0.1"])
def test_names_of_this_machine_are_answered(client, host):
    assert client.get(f"{client.base}state", {"host": host, "origin": None}).status_code == 200


def test_only_the_page_itself_may_change_anything(client):
    path = f"{client.base}export"
    assert client.post(path, {"kind": "coco"}, {"origin": "http://evil.example"}).status_code == 403
    assert client.post(path, {"kind": "coco"}, {"origin": "null"}).status_code == 403
    assert client.post(path, {"kind": "coco"}, {"origin": None}).status_code == 403
    assert client.post(path, {"kind": "coco"}, {"origin": "http://127.0.0.1:1"}).status_code == 403
    assert client.get(f"{client.base}state", {"origin": "http://evil.example"}).status_code == 403
    assert client.ask("DELETE", f"{client.base}state").status_code == 405


@pytest.mark.parametrize("wrong", [{"origin": "http://evil.example"}, {"path": "/wrong/socket"}])
def test_sockets_are_refused_like_requests(client, wrong):
    with pytest.raises((InvalidStatus, ConnectionClosed)), client.connect(**wrong) as socket:
        socket.recv(timeout=60)


def test_answers_have_strict_headers(client):
    for path in ("", "state", "static/index.html", "scenes/0/thumbnail"):
        headers = client.get(f"{client.base}{path}").headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "static/../session.py",
        "static/..%2fsession.py",
        "static/%2e%2e/session.py",
        "static/report/write.py",
        "static/report/templates/page.html",
        "static/report/..%2freport%2fwrite.py",
        "static/report/..%2f..%2frule.py",
        "exports/../bimichi.toml",
        "exports/..%2fbimichi.toml",
        "exports/%2fetc%2fpasswd",
        "exports/..%5cbimichi.toml",
    ],
)
def test_paths_lead_nowhere_else(client, path):
    client.session.workspace.save()
    assert client.get(f"{client.base}{path}").status_code == 404


def test_only_files_under_the_opened_folders_are_opened(client, tmp_path):
    (tmp_path / "secret.csv").write_text("x,y,w,h\n1,1,2,2\n")
    link = client.session.workspace.project.parent / "link.csv"
    link.symlink_to(tmp_path / "secret.csv")
    for path in (
        "/etc/passwd",
        str(tmp_path / "secret.csv"),
        "../../secret.csv",
        str(link),
        "link.csv",
        "",
        7,
        "a\0b",
        "9" * 3000,
    ):
        for where, body in (("open", {"paths": [path]}), ("import", {"path": path})):
            found = client.post(f"{client.base}{where}", body)
            assert found.status_code == 400
            assert found.json()["problem"]
    link.unlink()


@pytest.mark.parametrize(
    "name",
    [
        *("", "../a.png", "a/../../b.png", "/etc/a.png", ".hidden.png", "a\x00.png", "a\n.png", "c:/a.png", "a.exe"),
        *("a.png ", "x/" * 9 + "a.png", "a" * 300 + ".png", "..\\a.png"),
    ],
)
def test_names_of_added_files_are_checked(name):
    with pytest.raises(InvalidInputError):
        safe_name(name)


def test_names_with_markup_are_kept_as_text():
    assert safe_name("<img src=x onerror=alert(1)>.png").name == "<img src=x onerror=alert(1)>.png"
    assert safe_name("ir/7.png").as_posix() == "ir/7.png"


def test_added_files_are_limited(client, monkeypatch):
    content = b"x" * 5000
    path = f"{client.base}upload?name=ir/7.png"
    kept = client.post(path, content).json()
    assert kept["name"] == "ir/7.png"
    monkeypatch.setattr(file_views, "FILE_LIMIT", 4000)
    answer = client.post(f"{client.base}upload?name=ir/8.png", content)
    assert answer.status_code == 400
    assert answer.json()["code"] == "upload-large"
    folder = client.session.workspace.project.parent / "added" / "ir"
    assert [file.name for file in folder.iterdir()] == ["7.png"]
    monkeypatch.setattr(file_views, "FILES_LIMIT", 1)
    assert client.post(f"{client.base}upload?name=9.png", b"x").json()["code"] == "upload-many"


def test_requests_are_limited_and_must_be_json(client, monkeypatch):
    assert client.post(f"{client.base}export", b"{").status_code == 400
    assert client.post(f"{client.base}export", b"[1]").status_code == 400
    assert client.post(f"{client.base}export", {"kind": "<script>"}).status_code == 400
    monkeypatch.setattr(file_views, "JSON_LIMIT", 10)
    assert client.post(f"{client.base}export", {"kind": "coco"}).status_code == 400


def test_damaged_messages_do_no_harm(client):
    with tab_of(client) as tab:
        for text in ("", "{", "[1]", '"a"', "[" * 5000, '{"type": {"a": 1}}', '{"type": "labels", "scene": "0"}'):
            tab.socket.send(text)
            assert tab.until("problem")["text"]
        tab.draw(0, 1, shapes())
        tab.until("model")


def test_another_host_is_answered_if_it_was_asked_for(tmp_path):
    with served(opened(tmp_path), hosts=("studio.example",)) as client:
        given = {"host": "studio.example:80", "origin": None}
        assert client.get(f"{client.base}state", given).status_code == 200
        assert client.get(f"{client.base}state", {"host": "other.example", "origin": None}).status_code == 403


def test_the_page_of_a_notebook_may_frame_it_if_it_was_asked_to(tmp_path):
    with served(opened(tmp_path), frames=("http://127.0.0.1:8888",)) as client:
        policy = client.get(client.base).headers["content-security-policy"]
        assert policy.endswith("frame-ancestors http://127.0.0.1:8888")


def test_tokens_and_addresses():
    assert new_token() != new_token()
    assert len(new_token()) >= 32
    assert address("127.0.0.1", 80, "t") == "http://127.0.0.1:80/t/"
    assert address("::1", 80, "t") == "http://[::1]:80/t/"
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with refused("port", "--port", kind=Exception):
            bind("127.0.0.1", port)


def test_roots_follow_links(tmp_path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "a.png").touch()
    (inside / "link").symlink_to(outside)
    roots = Roots([inside])
    with refused("folder-forbidden"):
        roots.allowed("link/a.png")
    roots.add(outside)
    assert roots.allowed("link/a.png") == (outside / "a.png").resolve()
