"""Rejected records that are exported, and that are given up, by Waybill's own API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from connect_core.service import dead_letters
from tests.unit.api.native import client, create, got, moved, places, problem, server

__all__ = ["client", "server"]
ONE = "/connectors/copy/dead-letters"


@pytest.fixture
def rejected(client: httpx.Client, folder: Path) -> httpx.Client:
    """After a run that has rejected two records."""
    (folder / "logs" / "a.log").write_text('{"a": 1}\nno json\nneither\n')
    parse = {"format": "json", "fields": {"a": "int64"}}
    create(client, parse=parse, encode={"format": "json"}, errors={"tolerance": "all"})
    moved()
    return client


def posted(client: httpx.Client, verb: str, **asked: Any) -> Any:
    answer = client.post(f"{ONE}/{verb}", json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_letters_are_discarded_and_then_erased(rejected: httpx.Client) -> None:
    newest, oldest = got(rejected, ONE)["dead_letters"]
    seen = posted(rejected, "discard", preview=True)
    assert (seen["applied"], seen["letters"], seen["counts"][0]["stage"]) == (False, 2, "parse")
    assert len(got(rejected, ONE)["dead_letters"]) == 2
    done = posted(rejected, "discard", ids=[oldest["id"]], until=seen["until"], why="of no use")
    assert done == {"applied": True, "connector": "copy", "discarded": 1}
    assert got(rejected, ONE)["dead_letters"] == [newest]
    assert posted(rejected, "erase", preview=True)["letters"] == 1
    assert got(rejected, f"{ONE}/{oldest['id']}")["original"] == "no json"
    assert posted(rejected, "erase", stage="write")["erased"] == 0
    assert posted(rejected, "erase")["erased"] == 1
    assert got(rejected, f"{ONE}/{oldest['id']}")["original"] == ""
    assert got(rejected, f"{ONE}/{newest['id']}")["original"] == "neither"
    assert posted(rejected, "discard", until="2h")["discarded"] == 0


def test_nothing_is_on_its_way_to_a_former_target(rejected: httpx.Client) -> None:
    assert posted(rejected, "redirect", preview=True)["letters"] == 0
    assert posted(rejected, "redirect", why="it is gone")["redirected"] == 0


def test_words_that_choose_no_letters_are_refused(rejected: httpx.Client) -> None:
    for verb in ("discard", "erase"):
        assert places(rejected.post(f"{ONE}/{verb}", json={"since": "soon"}), 422, "invalid") == ["since"]
        assert places(rejected.post(f"{ONE}/{verb}", json={"state": "all"}), 400, "malformed") == ["state"]
        problem(rejected.post(f"{ONE}/{verb}"), 400, "malformed")
        problem(rejected.post(f"{ONE}/{verb}", json={"ids": [99], "preview": True}), 422, "invalid")
    assert len(got(rejected, ONE)["dead_letters"]) == 2


def test_letters_are_exported_whole_the_oldest_first(rejected: httpx.Client) -> None:
    newest, oldest = got(rejected, ONE)["dead_letters"]
    answer = rejected.get(f"{ONE}/export")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-ndjson")
    *lines, end = [json.loads(line) for line in answer.text.splitlines()]
    assert end == {"exported": 2}
    assert [one["payload"] for one in lines] == [{"text": "no json"}, {"text": "neither"}]
    assert [one["id"] for one in lines] == [oldest["id"], newest["id"]]
    assert lines[0].items() >= oldest.items()
    one = rejected.get(f"{ONE}/export", params={"id": newest["id"]}).text.splitlines()
    assert [json.loads(line) for line in one] == [lines[1], {"exported": 1}]
    assert rejected.get(f"{ONE}/export", params={"state": "discarded"}).text == '{"exported": 0}\n'
    wrong = rejected.get(f"{ONE}/export", params={"since": "soon", "state": "lost"})
    assert places(wrong, 422, "invalid") == ["since", "state"]
    problem(rejected.get(f"{ONE}/export", params={"id": 99}), 422, "invalid")
    problem(rejected.get("/connectors/b/dead-letters/export"), 404, "not-found")


def test_an_export_that_breaks_off_has_no_last_line(rejected: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = dead_letters._line
    first = got(rejected, ONE)["dead_letters"][-1]["offset"]
    monkeypatch.setattr(dead_letters, "_line", lambda one, opened: whole(one, opened) if one.offset == first else 1 / 0)
    lines: list[str] = []
    with pytest.raises(httpx.RemoteProtocolError), rejected.stream("GET", f"{ONE}/export") as answer:
        lines += answer.iter_lines()
    assert not any("exported" in line for line in lines)
