"""Whether a file could be written, as a person is told before the first run."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from connect_core.systems.file.probing import hindrance

NOBODY = 65534


def test_what_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "there.txt").write_text("1\n")
    (tmp_path / "linked.txt").symlink_to("new.txt")
    for name in ("there.txt", "new.txt", "linked.txt"):
        assert hindrance(str(tmp_path / name)) == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["linked.txt", "there.txt"], "nothing was made"
    assert (tmp_path / "there.txt").read_text() == "1\n"


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def _pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _socket(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))
    return path


def _loop(path: Path) -> Path:
    path.symlink_to(path)
    return path


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_folder, "it is a folder"),
        (_pipe, "it is a pipe"),
        (_socket, "it is a socket"),
        (_loop, "symbolic links"),
        (lambda path: Path("/dev/null"), "it is a device"),
        (lambda path: path / "x.txt", "is missing"),
        (lambda path: Path(__file__) / "x.txt", "is no folder"),
        (lambda path: path.with_name("x" * 300), "name too long"),
    ],
)
def test_what_cannot_be_written(make: Callable[[Path], Path], words: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert words in hindrance(str(make(Path(folder) / "x"))).replace("File name", "name")


@pytest.fixture
def of_root() -> Iterator[Path]:
    if os.getuid():
        pytest.skip("only root can be another user")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def _seen_by_nobody(path: Path) -> str:
    """In a process of its own, which has given up its rights."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        try:
            os.setuid(NOBODY)
            os.write(writing, hindrance(str(path)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as told:
        return told.read()


def test_a_file_and_a_folder_of_another_owner(of_root: Path) -> None:
    (of_root / "mine.txt").write_text("1\n")
    (of_root / "for-all.txt").write_text("1\n")
    os.chmod(of_root / "for-all.txt", 0o666)
    file, beside, new = (_seen_by_nobody(of_root / name) for name in ("mine.txt", "for-all.txt", "new.txt"))
    assert file == "Permission denied: it belongs to root (-rw-r--r--), and this is nobody"
    for one in (beside, new):
        assert one == f"its folder {of_root} belongs to root (drwxr-xr-x), and nobody may make no file in it"
    os.chmod(of_root, 0o777)
    assert _seen_by_nobody(of_root / "new.txt") == _seen_by_nobody(of_root / "for-all.txt") == ""


def test_a_file_system_that_is_mounted_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = list(os.statvfs(tmp_path))
    values[8] |= os.ST_RDONLY
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result(values))
    assert "mounted read-only" in hindrance(str(tmp_path / "x.txt"))
