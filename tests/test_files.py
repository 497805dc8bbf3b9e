import errno
import os
import stat
import sys
import time

import pytest
from refusals import refused

from bimichi._files import _SWEPT, atomic_write, replacing
from bimichi.errors import BimichiError

posix = pytest.mark.skipif(sys.platform == "win32", reason="permissions, links and locks of POSIX")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_whole_or_as_before(tmp_path):
    path = tmp_path / "a.txt"
    atomic_write(path, lambda file: file.write(b"first"))
    assert path.read_bytes() == b"first"

    def fail(file):
        file.write(b"half")
        raise KeyError("reason")

    with pytest.raises(KeyError):
        atomic_write(path, fail)
    assert path.read_bytes() == b"first"
    assert names(tmp_path) == ["a.txt"]


def test_another_library_may_write_to_the_path(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with replacing(path) as temporary:
        temporary.unlink()
        temporary.write_bytes(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a.txt"]


def test_temporary_names_differ(tmp_path):
    with replacing(tmp_path / "a") as one, replacing(tmp_path / "a") as two:
        assert one != two
        one.write_bytes(b"one")
        two.write_bytes(b"two")
    assert (tmp_path / "a").read_bytes() == b"one"  # the last to end


@posix
def test_the_mode_of_an_old_file_is_kept_and_its_content_hidden_meanwhile(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with replacing(path) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@posix
def test_new_files_have_the_mode_that_the_user_set(tmp_path):
    old = os.umask(0o027)
    try:
        atomic_write(tmp_path / "a", lambda file: file.write(b""))
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@posix
@pytest.mark.parametrize("exists", [True, False])
def test_links_are_followed(tmp_path, exists):
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    if exists:
        (there / "a").write_bytes(b"old")
    (here / "link").symlink_to("../there/a")
    atomic_write(here / "link", lambda file: file.write(b"new"))
    assert (here / "link").is_symlink()
    assert (there / "a").read_bytes() == b"new"
    assert names(there) == ["a"]


def test_folders_are_refused(tmp_path):
    with refused("output-kind", kind=BimichiError):
        atomic_write(tmp_path, lambda file: file.write(b""))


@posix
def test_pipes_and_links_in_a_circle_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to("circle")
    for name, code in (("pipe", "output-kind"), ("circle", "output-unwritable")):
        with refused(code, name, kind=BimichiError):
            atomic_write(tmp_path / name, lambda file: file.write(b""))
    assert names(tmp_path) == ["circle", "pipe"]


@posix
class TestStale:
    def part(self, folder, age, token="0123456789abcdef", name="old.tif"):
        path = folder / f".{name}.{token}.part"
        path.write_bytes(b"left")
        os.utime(path, (time.time() - age,) * 2)
        return path

    def test_what_killed_runs_left_is_removed(self, tmp_path):
        stale, recent = self.part(tmp_path, 7200), self.part(tmp_path, 60, "f" * 16)
        mine = [self.part(tmp_path, 7200, "mine"), self.part(tmp_path, 7200, "0" * 15)]
        (tmp_path / "kept").write_bytes(b"kept")
        (tmp_path / f".link.{'a' * 16}.part").symlink_to("kept")
        atomic_write(tmp_path / "new", lambda file: file.write(b""))
        assert not stale.exists()
        assert all(path.exists() for path in (recent, *mine, tmp_path / "kept"))

    def test_what_another_run_is_writing_stays(self, tmp_path):
        (tmp_path / "sub").mkdir()
        with replacing(tmp_path / "sub" / "a") as temporary:
            os.utime(temporary, (1, 1))
            _SWEPT.clear()
            atomic_write(tmp_path / "sub" / "b", lambda file: file.write(b""))
            assert temporary.exists()
        assert names(tmp_path / "sub") == ["a", "b"]


@posix
class TestAlone:
    def test_two_runs_do_not_write_one_file(self, tmp_path):
        out = tmp_path / "out.tif"
        with replacing(out, alone=True) as temporary:
            temporary.write_bytes(b"first")
            with refused("output-busy", kind=BimichiError), replacing(out, alone=True):
                raise AssertionError("not reached")
        assert out.read_bytes() == b"first"
        assert names(tmp_path) == ["out.tif"]

    def test_what_a_killed_run_left_is_removed(self, tmp_path):
        token = "0123456789abcdef"
        (tmp_path / ".out.tif.lock").write_text(token)
        (tmp_path / f".out.tif.{token}.part").write_bytes(b"left")
        with replacing(tmp_path / "out.tif", alone=True):
            assert not (tmp_path / f".out.tif.{token}.part").exists()
        assert names(tmp_path) == ["out.tif"]

    def test_no_other_file_is_removed(self, tmp_path):
        (tmp_path / "mine").write_bytes(b"")
        (tmp_path / ".out.tif.lock").write_text("/../mine")
        with replacing(tmp_path / "out.tif", alone=True):
            pass
        assert names(tmp_path) == ["mine", "out.tif"]

    def test_a_link_under_the_name_of_the_lock_is_not_followed(self, tmp_path):
        (tmp_path / "mine").write_bytes(b"kept")
        (tmp_path / ".out.tif.lock").symlink_to("mine")
        with refused("output-unwritable", kind=BimichiError), replacing(tmp_path / "out.tif", alone=True):
            raise AssertionError("not reached")
        assert (tmp_path / "mine").read_bytes() == b"kept"

    def test_disks_without_locks_are_written_to_as_well(self, tmp_path, monkeypatch):
        def refuse(*arguments):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        monkeypatch.setattr("fcntl.flock", refuse)
        with replacing(tmp_path / "out.tif", alone=True) as temporary:
            temporary.write_bytes(b"whole")
        assert names(tmp_path) == ["out.tif"]
