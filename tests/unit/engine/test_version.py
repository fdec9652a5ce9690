from pathlib import Path

from connect_core import __version__
from connect_core.version import code_version, fingerprint


def test_a_version_names_the_package_and_its_content() -> None:
    package, _, content = code_version().partition("+")
    assert package == __version__
    assert len(content) == 16


def test_every_change_of_a_file_changes_the_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "a.py").write_text("x = 1\n")
    seen = {fingerprint(tmp_path)}
    (tmp_path / "room" / "a.py").write_text("x = 2\n")
    seen.add(fingerprint(tmp_path))
    (tmp_path / "room" / "a.py").rename(tmp_path / "room" / "b.py")
    seen.add(fingerprint(tmp_path))
    (tmp_path / "room" / "c.py").write_text("")
    seen.add(fingerprint(tmp_path))
    assert len(seen) == 4


def test_what_is_no_code_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    before = fingerprint(tmp_path)
    (tmp_path / "a.pyc").write_bytes(b"1")
    assert fingerprint(tmp_path) == before
