"""Secrets of a home: made once, for their owner only, the same for all who ask at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from connect_core.stack import secret


def test_it_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "made" / "token"
    first = secret.kept(path)
    assert len(first) > 40
    assert secret.kept(path) == first


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    secret.kept(tmp_path / "token")
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


def test_all_who_come_at_the_same_time_get_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as threads:
        got = set(threads.map(lambda _: secret.kept(tmp_path / "token"), range(64)))
    assert len(got) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


def test_what_somebody_wrote_there_is_taken(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("given\n")
    assert secret.kept(tmp_path / "token") == "given"
