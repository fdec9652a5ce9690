"""Operations by Waybill's own API: begun, followed, cancelled, and what is said of those that nobody works on."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from connect_core.ledger import Ledger, Operation
from connect_core.replication.host import host_identity
from connect_core.service import callers, operations
from connect_core.service.callers import Caller, NotAllowed
from connect_core.service.visible import NotFound
from tests.faults.kit.processes import wait_for
from tests.unit.api.native import JSON, client, create, got, moved, places, problem, server

__all__ = ["client", "server"]
ONE = "/connectors/copy"


def begin(client: httpx.Client, path: str, body: Any = None, **headers: str) -> str:
    """Where the operation is, below `/api/v1`."""
    answer = client.post(f"{ONE}/{path}", json=body, headers=headers)
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == f"/api/v1/operations/{answer.json()['id']}"
    return f"/operations/{answer.json()['id']}"


def ended(client: httpx.Client, at: str) -> JSON:
    wait_for(lambda: got(client, at)["ended_at"], "the operation ends")
    told: JSON = got(client, at)
    return told


def done(client: httpx.Client, path: str, body: Any = None) -> JSON:
    return ended(client, begin(client, path, body))


@pytest.fixture
def stored(client: httpx.Client, folder: Path) -> Operation:
    """A verification of `copy` that this process works on, as the ledger says."""
    create(client)
    return add(folder, operations.this_process(folder / ".waybill"))


def add(folder: Path, process: str, kind: str = "verification", asked: JSON | None = None) -> Operation:
    with Ledger.open(f"sqlite:///{folder / '.waybill' / 'ledger.db'}") as ledger:
        uid = ledger.connector("copy").uid
        return ledger.add_operation(uid, kind, asked or {}, who="ann", server=process)


def test_a_run_and_its_verification(client: httpx.Client, folder: Path) -> None:
    create(client)
    run = done(client, "runs")
    assert (run["kind"], run["state"], run["who"], run["problem"]) == ("run", "succeeded", "ann", None)
    assert (run["result"]["delivered"], run["progress"]["records"]) == (3, 3)
    verified = done(client, "verifications", {"share": "100%"})
    assert (verified["state"], verified["result"]["same"], verified["progress"]) == (
        "succeeded",
        1,
        {"done": 1, "planned": 1},
    )
    (folder / "out" / "copy.txt").write_text("one\nTWO\nthree\n")
    assert done(client, "verifications")["result"]["differs"] == 1
    assert [one["id"] for one in got(client, "/operations", limit=1)["operations"]] != [run["id"]]


def test_a_backfill_goes_on_by_the_id_of_its_operation(client: httpx.Client, folder: Path) -> None:
    create(client)
    moved()
    partition = got(client, f"{ONE}/offsets")["offsets"][0]["partition"]
    told = done(client, "backfills", {"ranges": [f"{partition}:0-8"], "sink": {"path": str(folder / "out" / "b")}})
    assert (told["state"], told["result"]["state"], told["result"]["delivered"]) == ("succeeded", "done", 2)
    assert told["result"]["stream"] == f"backfill-{told['id']}"
    assert (folder / "out" / "b").read_text() == "one\ntwo\n"
    again = done(client, "backfills", {"id": told["id"]})
    assert (again["state"], again["result"]["stream"]) == ("succeeded", told["result"]["stream"])
    assert (folder / "out" / "b").read_text() == "one\ntwo\n"


def test_why_one_failed_is_told(client: httpx.Client) -> None:
    create(client)
    told = done(client, "backfills", {"from": "2h"})
    assert (told["state"], told["result"]) == ("failed", None)
    assert told["problem"]["detail"] == "A file does not say when its lines were written"
    assert "waybill plan" in told["problem"]["next_step"]


def test_dead_letters_are_sent_again(client: httpx.Client, folder: Path) -> None:
    (folder / "logs" / "a.log").write_text('{"a": 1}\nno json\n')
    parse = {"format": "json", "fields": {"a": "int64"}}
    create(client, parse=parse, encode={"format": "json"}, errors={"tolerance": "all"})
    moved()
    [letter] = got(client, f"{ONE}/dead-letters")["dead_letters"]
    told = done(client, "dead-letters/replays", {"ids": [letter["id"]], "sink": {"path": str(folder / "out" / "c")}})
    assert (told["kind"], told["state"], len(told["result"]["replays"])) == ("replay", "succeeded", 1)


@pytest.mark.parametrize(
    ("path", "body", "status", "found"),
    [
        ("backfills", {}, 422, ["from"]),
        ("backfills", {"from": "2h", "ranges": ["a:0-1"]}, 422, [""]),
        ("backfills", {"ranges": ["x"]}, 422, ["range"]),
        ("backfills", {"from": 2}, 400, ["from"]),
        ("backfills", None, 400, ["body"]),
        ("backfills", {"begin_": "2h"}, 400, ["begin_"]),
        ("verifications", {"share": "x", "since": "soon"}, 422, ["since", "share"]),
        ("dead-letters/replays", {"since": "soon"}, 422, ["since"]),
        ("dead-letters/replays", {"ids": [0]}, 400, ["ids[0]"]),
        ("runs", {"accept_gaps": "perhaps"}, 400, ["accept_gaps"]),
    ],
)
def test_words_that_cannot_be_followed_begin_nothing(
    client: httpx.Client, path: str, body: Any, status: int, found: list[str]
) -> None:
    create(client)
    answer = client.post(f"{ONE}/{path}", json=body)
    assert places(answer, status, {400: "malformed", 422: "invalid"}[status]) == found
    assert got(client, "/operations")["operations"] == []


def test_of_what_is_not_there_nothing_begins(client: httpx.Client) -> None:
    create(client, "other")
    for path in ("runs", "verifications", "dead-letters/replays"):
        problem(client.post(f"{ONE}/{path}"), 404, "not-found")
    problem(client.post(f"{ONE}/backfills", json={"from": "2h"}), 404, "not-found")
    problem(client.get("/operations/none"), 404, "not-found")
    problem(client.get("/operations/none/events"), 404, "not-found")
    problem(client.delete("/operations/none"), 404, "not-found")


def test_operations_are_listed_in_pages(client: httpx.Client, folder: Path, stored: Operation) -> None:
    create(client, "other")
    ids = [stored.id, *(add(folder, stored.server).id for _ in range(2))]
    ids.sort(reverse=True)
    first = got(client, "/operations", limit=2)
    assert [one["id"] for one in first["operations"]] == ids[:2]
    rest = got(client, "/operations", limit=2, after=first["after"])
    assert ([one["id"] for one in rest["operations"]], rest["after"]) == (ids[2:], None)
    assert got(client, "/operations", connector="other")["operations"] == []


def test_one_that_waits_is_cancelled_for_good(client: httpx.Client, stored: Operation, folder: Path) -> None:
    told = client.delete(f"/operations/{stored.id}").json()
    assert (told["state"], told["ended_at"] is not None) == ("cancelled", True)
    with Ledger.open(f"sqlite:///{folder / '.waybill' / 'ledger.db'}") as ledger:
        assert not ledger.begin_operation(stored.id)
    assert client.delete(f"/operations/{stored.id}").json() == told


def test_one_whose_server_is_gone_is_interrupted_and_says_how_to_continue(client: httpx.Client, folder: Path) -> None:
    create(client)
    home = folder / ".waybill"
    gone = f"{socket.gethostname()} {host_identity(home)} 000000000000"
    backfill = add(folder, gone, "backfill", {"from": "2h"})
    told = got(client, f"/operations/{backfill.id}")
    assert (told["state"], told["problem"]["detail"]) == ("interrupted", "The server that worked on it has ended")
    assert f'POST /api/v1{ONE}/backfills with {{"id": "{backfill.id}"}}' in told["problem"]["next_step"]
    before_the_boot = f"{socket.gethostname()} other-boot:{host_identity(home).partition(':')[2]} 000000000000"
    assert got(client, f"/operations/{add(folder, before_the_boot).id}")["state"] == "interrupted"
    for elsewhere in (f"other {host_identity(home)}x 0", f"other other-boot:{host_identity(home).partition(':')[2]} 0"):
        assert got(client, f"/operations/{add(folder, elsewhere).id}")["state"] == "queued"


def test_one_whose_process_dies_is_interrupted(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    create(client)
    monkeypatch.setattr(operations, "_command", lambda number: ("false",))
    told = done(client, "runs")
    assert (told["state"], "without reporting" in told["problem"]["detail"]) == ("interrupted", True)
    assert "the next run continues" in told["problem"]["next_step"]


def test_only_so_many_wait(client: httpx.Client, stored: Operation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "MOST_WAITING", 1)
    assert "1 operations wait" in problem(client.post(f"{ONE}/runs"), 409, "try-again")["detail"]


def events(text: str) -> list[tuple[str, str, JSON]]:
    """Number, kind, and what it tells."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            found.append((lines["id"], lines["event"], json.loads(lines["data"])))
    return found


def test_an_operation_is_followed_to_its_end(client: httpx.Client, folder: Path) -> None:
    create(client)
    at = begin(client, "runs")
    with client.stream("GET", f"{at}/events", timeout=60) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        seen = events(stream.read().decode())
    steps = [int(number) for number, _, _ in seen]
    assert steps == sorted(set(steps))
    assert (seen[0][1], seen[-1][1], seen[-1][2]["state"]) == ("state", "state", "succeeded")
    assert seen[-1][2] == got(client, at)
    last = {"Last-Event-ID": str(steps[-1])}
    assert client.get(f"{at}/events", headers=last).status_code == 204
    again = client.get(f"{at}/events", headers={"Last-Event-ID": str(steps[-1] - 1)})
    assert [one[0] for one in events(again.text)] == [str(steps[-1])]


def test_who_follows_hears_that_nothing_is_new(
    client: httpx.Client, stored: Operation, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from connect_core.api import native_operations

    monkeypatch.setattr(native_operations, "_BEAT_EVERY_S", 0.1)
    monkeypatch.setattr(native_operations, "_LOOK_EVERY_S", 0.05)
    with client.stream("GET", f"/operations/{stored.id}/events", timeout=60) as stream:
        lines = stream.iter_lines()
        assert any(line.startswith(": nothing new") for line in lines)
        client.delete(f"/operations/{stored.id}")
        assert '"cancelled"' in "".join(lines)


def test_an_operation_of_another_team_is_not_there(client: httpx.Client, stored: Operation) -> None:
    with callers.calling(Caller("ci", "admin", ("team-a-*",), "192.0.2.7")):
        for call in (operations.shown, operations.cancel):
            with pytest.raises(NotFound, match=f"no operation {stored.id}"):
                call(stored.id)
        assert operations.listed(limit=9).items == []


def test_who_may_not_begin_it_may_not_cancel_it(client: httpx.Client, folder: Path, stored: Operation) -> None:
    backfill = add(folder, stored.server, "backfill")
    with callers.calling(Caller("ci", "operator", ("*",), "192.0.2.7")):
        with pytest.raises(NotAllowed, match="needs admin"):
            operations.cancel(backfill.id)
        with pytest.raises(NotAllowed, match="needs admin"):
            operations.begin("copy", "run", {"accept_gaps": True})
        assert operations.cancel(stored.id)["state"] == "cancelled"


def test_no_secret_is_shown(client: httpx.Client, folder: Path, stored: Operation) -> None:
    made = add(folder, stored.server, "backfill", {"sink": {"password": "geheim"}})
    assert "geheim" not in client.get(f"/operations/{made.id}").text


def test_why_it_failed_names_no_connector_of_another_team(
    client: httpx.Client, folder: Path, stored: Operation
) -> None:
    create(client, "other")
    told = "b.log is also written by connector other"
    with Ledger.open(f"sqlite:///{folder / '.waybill' / 'ledger.db'}") as ledger:
        faults = [{"path": "sink", "message": told}]
        ledger.end_operation(stored.id, "failed", problem={"detail": told, "errors": faults})
    assert got(client, f"/operations/{stored.id}")["problem"]["detail"] == told
    with callers.calling(Caller("ci", "viewer", ("copy",), "192.0.2.7")):
        problem_told = operations.shown(stored.id)["problem"]
    hidden = "b.log is also written by another connector"
    assert problem_told == {"detail": hidden, "errors": [{"path": "sink", "message": hidden}]}
