"""Commands by a server, beside the same commands on its ledger: looks at records, and what is given up or put back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest

from connect_core.errors import Unreachable
from connect_core.ledger import Backfill, Ledger
from connect_core.remote.letters import export, give_up
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Part
from connect_core.service import groups
from connect_core.service.dead_letters import Words
from tests.unit.cli.conftest import DOCUMENT, Waybill
from tests.unit.cli.moves import moved
from tests.unit.remote.test_refused import client

RULES = 'rules: [{name: hot, when: "$.n > 30"}]\n'


def same(waybill: Waybill, remote: Waybill, *words: object, code: int = 0) -> str:
    """What both print, as text."""
    for form in ((), ("--json",)):
        here, there = waybill(*words, *form), remote(*words, *form)
        assert (there.code, there.out) == (here.code, here.out), there.err
        assert (here.code, there.err) == (code, here.err)
    return waybill(*words).out + waybill(*words).err


@pytest.fixture
def ran(waybill: Waybill, applied: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`copy` has moved three lines, and a fourth waits, which is no text."""
    monkeypatch.setenv("WAYBILL_ENGINE", "inline")
    with Ledger.open(f"sqlite:///{applied}/.waybill/ledger.db") as ledger:
        moved(ledger, "copy", applied, records=3)
    with (applied / "logs" / "a.log").open("ab") as file:
        file.write(b"thr\xffee\n")
    (applied / "out" / "copy.txt").write_bytes(b"one\ntwo\nthr\xffee\n")
    return applied


# --------------------------------------------------------------------------------------------------------------- looks


def test_what_the_next_run_would_move_and_what_steps_make_of_it(waybill: Waybill, remote: Waybill, ran: Path) -> None:
    assert "thr\\xffee" in same(waybill, remote, "plan", "copy", "--sample", 1)
    assert remote("plan", "other").code == waybill("plan", "other").code == 2


def test_what_a_run_has_logged(waybill: Waybill, remote: Waybill, ran: Path) -> None:
    assert "begun by hand" in same(waybill, remote, "logs", "copy")
    number = waybill("runs", "copy", "--json").json["runs"][0]["id"]
    same(waybill, remote, "logs", "copy", "--run", number)
    (ran / "b.yaml").write_text(DOCUMENT.format(name="b"))
    assert waybill("apply", "b.yaml").code == 0
    for words in (("copy", "--run", "nothing"), ("b",)):
        here, there = waybill("logs", *words), remote("logs", *words)
        assert (there.code, there.err) == (here.code, here.err) == (2, here.err)


def test_the_newest_records_of_a_target_and_of_a_topic(waybill: Waybill, remote: Waybill, ran: Path) -> None:
    assert same(waybill, remote, "peek", "copy", "--last", 2) == "two\nthr\\xffee\n"
    for topic in ("some-topic", "site/1/temp"):
        for command in ("peek", "fields"):
            if command == "peek" or "/" not in topic:
                here, there = waybill(command, topic), remote(command, topic)
                assert (here.code, there.code, there.err) == (3, 3, here.err)
    here, there = waybill("peek", "copy", "--topic"), remote("peek", "copy", "--topic")
    assert (here.code, there.code, there.err) == (3, 3, here.err)
    far = remote("peek", "copy", "--last", "1001")
    assert (far.code, "--last 1001 is not there for another host" in far.err) == (2, True)


def test_what_a_document_would_make_of_records(waybill: Waybill, remote: Waybill, ran: Path) -> None:
    (ran / "ruled.yaml").write_text(DOCUMENT.format(name="ruled") + RULES)
    assert "hot" in same(waybill, remote, "try", "ruled.yaml", "--payload", '{"n": 31}', "--header", "a=b")
    assert "thr\\xffee\n  filtered" in same(waybill, remote, "try", "ruled.yaml", "--last", 2)
    (ran / "wrong.yaml").write_text("version: 1\nname: c\nsource: {file: {path: c}}\nsink:\n  file: {pth: x}\n")
    assert "wrong.yaml: sink.file.pth: line 5" in same(waybill, remote, "try", "wrong.yaml", code=2)
    (ran / "none.yaml").write_text("a: [")
    same(waybill, remote, "try", "none.yaml", code=2)
    other = DOCUMENT.format(name="b").replace("logs/*.log", "logs/b.log")
    (ran / "two.yaml").write_text(f"{DOCUMENT.format(name='a')}---\n{other}")
    assert "There are 2 documents: a, b" in same(waybill, remote, "try", "two.yaml", code=2)
    assert "has no rules" in same(waybill, remote, "rules", "try", "copy", code=2)
    assert waybill("rules", "add", "copy", "hot", "--when", "$.n > 30").code == 0
    assert "filtered" in same(waybill, remote, "rules", "try", "copy", "--payload", '{"n": 3}')


def test_where_a_group_goes_on(waybill: Waybill, remote: Waybill, ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "has consumer groups" in same(waybill, remote, "groups", "translate", "copy", "billing", code=2)
    asked: list[bool] = []

    def translated(opened: object, name: str, group: str, *, apply: bool = False) -> dict[str, Any]:
        asked.append(apply)
        queue = {"source": "a/0", "committed": 5, "target": "b/0", "offset": 7, "behind": 0}
        move = {"target": "b/0", "offset": 7, "repeats": 0}
        told = {"connector": name, "group": group, "applied": apply, "queues": [queue], "offsets": [move]}
        return told | {"retry_backlog": {"%RETRY%billing": 2}}

    monkeypatch.setattr(groups, "translate", translated)
    assert "add --apply" in same(waybill, remote, "groups", "translate", "copy", "billing")
    assert set(asked) == {False}
    assert "written for billing" in same(waybill, remote, "groups", "translate", "copy", "billing", "--apply")
    assert asked.count(True) == 6


# ----------------------------------------------------------------------------------------------------------- backfills


def begun(folder: Path, stream: str) -> None:
    with Ledger.open(f"sqlite:///{folder}/.waybill/ledger.db") as ledger:
        part = Part(Partition(f"{folder}/logs/a.log"), 0, 0, 8)
        sink = {"path": f"{folder}/out/again.txt"}
        uid = ledger.connector("copy").uid
        ledger.begin_backfill(Backfill(uid, stream, "backfill", 1, {"from": "2h"}, (part,), sink, "ann"))


def test_a_backfill_is_resumed_and_another_is_cancelled(waybill: Waybill, remote: Waybill, ran: Path) -> None:
    begun(ran, "backfill-one")
    begun(ran, "backfill-two")
    told = remote("backfills", "resume", "copy", "one")
    assert (told.code, told.out.endswith("copy: backfill-one is done\n")) == (0, True), told.err
    assert (ran / "out" / "again.txt").read_text() == "one\ntwo\n"
    assert remote("backfills", "resume", "copy", "one").out == waybill("backfills", "resume", "copy", "one").out
    cancelled = remote("backfills", "cancel", "copy", "two", "--why", "of no use")
    assert (cancelled.code, cancelled.out) == (0, "copy: backfill-two: cancelled\n")
    same(waybill, remote, "backfills", "cancel", "copy", "two")
    assert "of no use" in waybill("offsets", "show", "copy", "--json").out + json.dumps(_audit(ran))
    for words in (("show",), ("cancel",), ("resume",)):
        unknown = remote("backfills", *words, "copy", "three")
        assert (unknown.code, "has no backfill 'three'" in unknown.err) == (2, True)
        assert "waybill backfills list copy" in unknown.err
    assert remote("backfills", "resume", "copy", "one", "--engine", "inline").code == 2
    assert remote("backfills", "show", "copy", "../x").code == 2


def _audit(folder: Path) -> list[str]:
    with Ledger.open(f"sqlite:///{folder}/.waybill/ledger.db") as ledger:
        return [str(one) for one in ledger.audit(ledger.connector("copy").uid)]


# -------------------------------------------------------------------------------------------------------- dead letters


def test_letters_are_given_up_once_somebody_agrees(waybill: Waybill, remote: Waybill, rejected: Path) -> None:
    for verb in ("discard", "erase"):
        if verb == "erase":
            assert same(waybill, remote, "dead-letters", verb, "copy") == "copy: 0 dead letters erased\n"
            assert waybill("dead-letters", "discard", "copy", "2", "--yes").code == 0
        here, there = waybill("dead-letters", verb, "copy"), remote("dead-letters", verb, "copy")
        assert (there.code, there.err, "This needs a confirmation" in here.err) == (2, here.err, True)
    erased = remote("dead-letters", "erase", "copy", "--yes", "--why", "it is private")
    assert (erased.code, erased.out) == (0, "copy: 1 dead letter erased\n")
    discarded = remote("dead-letters", "discard", "copy", "--yes", "--json")
    assert discarded.json == {"connector": "copy", "discarded": 2}
    assert same(waybill, remote, "dead-letters", "redirect", "copy", "--yes").endswith(
        "0 dead letters to errors.sink\n"
    )
    assert "it is private" in str(_audit(rejected))


def test_what_comes_while_somebody_thinks_is_not_meant() -> None:
    """It is stored behind the time of the preview."""
    asked: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        count = {"partition": "a", "stage": "parse", "letters": 2, "bytes": 8}
        return httpx.Response(200, json={"letters": 2, "until": "now", "counts": [count], "discarded": 2, "erased": 2})

    for words in (Words(), Words(until="2h"), Words(ids=(7,))):
        told = give_up(client(answer), "copy", "discard", words, lambda _: None, "of no use")
        assert told == {"connector": "copy", "discarded": 2}
    assert [one.get("until") for one in asked] == [None, "now", "2h", "2h", None, None]


def test_letters_are_exported_to_a_file_of_this_machine(waybill: Waybill, remote: Waybill, rejected: Path) -> None:
    here, there = (
        typed("dead-letters", "export", "copy", "--to", f"{name}.jsonl")
        for typed, name in ((waybill, "a"), (remote, "b"))
    )
    assert (there.code, there.out) == (0, here.out.replace("a.jsonl", "b.jsonl"))
    assert (rejected / "b.jsonl").read_bytes() == (rejected / "a.jsonl").read_bytes() != b""
    again = remote("dead-letters", "export", "copy", "--to", "b.jsonl")
    assert (again.code, "There is a file of this name already" in again.err) == (2, True)
    same(waybill, remote, "dead-letters", "export", "copy", "--to", "-", "--since", "soon", code=2)


NDJSON = {"content-type": "application/x-ndjson"}
LETTERS = b'{"id": 1}\n{"id": 2, "payload": {"text": "a\xe2\x80\xa8b"}}\n'


class Broken(httpx.SyncByteStream):
    """A connection that is lost behind what it has given."""

    def __iter__(self) -> Iterator[bytes]:
        yield LETTERS
        raise httpx.RemoteProtocolError("peer closed connection without sending complete message body")


@pytest.mark.parametrize("cut", [b"", b'{"exported": 1}\n', b'{"exported": 2}', b'{"id": 3'])
def test_an_export_that_breaks_off_leaves_no_file(tmp_path: Path, cut: bytes) -> None:
    """Where a proxy ends an answer that was cut as if it were whole, too."""
    given = client(lambda _: httpx.Response(200, headers=NDJSON, content=LETTERS + cut))
    with pytest.raises(Unreachable, match="The answer broke off"):
        export(given, "copy", Words(), str(tmp_path / "letters"), StringIO())
    assert list(tmp_path.iterdir()) == []


def test_a_connection_that_is_lost_is_told(tmp_path: Path) -> None:
    lost = client(lambda _: httpx.Response(200, headers=NDJSON, stream=Broken()))
    with pytest.raises(Unreachable, match="peer closed connection"):
        export(lost, "copy", Words(), str(tmp_path / "letters"), StringIO())
    assert list(tmp_path.iterdir()) == []
    whole = client(lambda _: httpx.Response(200, headers=NDJSON, content=LETTERS + b'{"exported": 2}\n'))
    assert export(whole, "copy", Words(), str(tmp_path / "letters"), StringIO()) == 2
    assert (tmp_path / "letters").read_bytes() == LETTERS


# ------------------------------------------------------------------------------------------------------------- offsets


def test_a_move_is_undone_once_somebody_agrees(waybill: Waybill, remote: Waybill, ran: Path) -> None:
    partition = waybill("offsets", "show", "copy", "--json").json["offsets"][0]["partition"]
    nothing = [typed("offsets", "undo", "copy", partition) for typed in (waybill, remote)]
    assert (nothing[0].code, nothing[1].err) == (2, nothing[0].err)
    assert waybill("connectors", "pause", "copy").code == 0
    assert waybill("offsets", "set", "copy", partition, "14").code == 0
    assert waybill("offsets", "set", "copy", partition, "0", "--yes").code == 0
    assert remote("offsets", "undo", "copy", partition).out == f"copy: {partition}: 0 -> 14\n"
    refused = [typed("offsets", "undo", "copy", partition) for typed in (waybill, remote)]
    assert (refused[1].code, refused[1].err) == (2, refused[0].err)
    assert "delivers 3 records of 1 receipt" in refused[0].err
    undone = remote("offsets", "undo", "copy", partition, "--yes", "--json").json
    assert (undone["before"]["offset"], undone["after"]["offset"], undone["repeats"]["records"]) == (14, 0, 3)


def test_offsets_of_another_ledger_are_taken_over(waybill: Waybill, remote: Waybill, ran: Path) -> None:
    exported = remote("offsets", "export", "copy").out
    assert exported == waybill("offsets", "export", "copy").out
    (ran / "offsets.json").write_text(exported)
    partition = waybill("offsets", "show", "copy", "--json").json["offsets"][0]["partition"]
    assert waybill("connectors", "pause", "copy").code == 0
    assert waybill("offsets", "set", "copy", partition, "0", "--yes").code == 0
    taken = remote("offsets", "import", "copy", "offsets.json", "--why", "moved house", "--json")
    assert (taken.code, taken.json["after"]) == (0, {partition: 14}), taken.err
    assert taken.json == {
        **waybill("offsets", "import", "copy", "offsets.json", "--json").json,
        "before": {partition: 0},
    }
    assert "moved house" in str(_audit(ran))
    told = json.loads((ran / "offsets.json").read_text())
    told["offsets"][0]["offset"] = 4
    (ran / "offsets.json").write_text(json.dumps(told))
    refused = [typed("offsets", "import", "copy", "offsets.json") for typed in (waybill, remote)]
    assert (refused[1].code, refused[1].err) == (2, refused[0].err)
