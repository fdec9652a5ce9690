"""Dead letters that are encrypted: nowhere in plain, opened by whoever has their key, refused where they were changed;
with the real command between real files and topics.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from connect_core.pipeline.key_ids import key_id_of
from connect_core.pipeline.rejecting import MAX_ORIGINAL_BYTES
from connect_core.rocketmq import Client, ClientOptions, encode_batch
from connect_core.rocketmq.wire import properties
from tests.site import Site, new_site

CANARY = "kanarien-4000-1234"
REPLAY = ("--engine", "inline", "--yes")
FIRST, SECOND = "the first key, of 2026", "the second key, of 2027"
LINES = (
    {"n": 1, "text": "well"},
    {"n": CANARY, "text": "parse"},
    {"n": 2, "text": f"{CANARY}\nencode"},
)


def reference(site: Site, name: str) -> str:
    return f"${{file:{site.folder}/keys#{name}}}"


def keys(site: Site, **secrets: str) -> None:
    (site.folder / "keys").write_text("".join(f"{name}={secret}\n" for name, secret in secrets.items()))


def apply(site: Site, name: str = "first", secret: str = FIRST, n: str = "int64", **errors: Any) -> None:
    encrypt = {"encrypt": {"key": reference(site, name), "key_id": key_id_of(secret)}} if name else {}
    site.apply(
        "oven",
        {
            "source": {"file": {"path": "in/*.log"}},
            "sink": {"file": {"path": "out.log"}},
            "parse": {"format": "json", "fields": {"n": n, "text": "text"}},
            "transforms": [{"cast": {"n": "text"}}, {"set": {"line": "{$.n} {$.text}"}}, {"keep": ["line"]}],
            "encode": {"format": "text"},
            "errors": {"tolerance": "all", **encrypt, **errors},
        },
    )


def feed(site: Site, *lines: str) -> None:
    (site.folder / "in").mkdir(exist_ok=True)
    with (site.folder / "in" / "a.log").open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def run(site: Site, code: int = 0) -> str:
    return site.waybill("--debug", "run", "oven", "--engine", "inline", code=code)


def letters(site: Site, *words: str) -> list[Any]:
    found: list[Any] = site.json("dead-letters", "list", "oven", *words)["dead_letters"]
    return found


def fed(site: Site) -> None:
    """A run with two dead letters: one that another document takes, and one that this target can never take."""
    keys(site, first=FIRST)
    apply(site)
    feed(site, *map(json.dumps, LINES))
    run(site)


def exported(site: Site, *words: str) -> list[Any]:
    path = site.folder / "exported.jsonl"
    path.unlink(missing_ok=True)
    site.waybill("dead-letters", "export", "oven", "--to", str(path), *words)
    return [json.loads(line) for line in path.read_text().splitlines()]


def payloads(site: Site, *words: str) -> list[Any]:
    return [json.loads(one["payload"]["text"]) for one in exported(site, *words)]


def swap(site: Site, first: int, second: int) -> None:
    """Whoever may write to the ledger gives each the payload of the other."""
    database = sqlite3.connect(site.home / "ledger.db")
    held = dict(database.execute("SELECT id, original FROM dead_letters").fetchall())
    for id_, original in ((first, held[second]), (second, held[first])):
        database.execute("UPDATE dead_letters SET original = ? WHERE id = ?", (original, id_))
    database.commit()
    database.close()


# ------------------------------------------------------------------------------------------------------------- nowhere


def in_file(site: Site) -> bytes:
    return b"".join(path.read_bytes() for path in site.home.glob("ledger.db*"))


def in_postgresql(site: Site) -> bytes:
    """Every row of every table as text; bytes as they are."""
    found = []
    engine = sa.create_engine(site.database_url)
    with engine.connect() as connection:
        connection.execute(sa.text("SET bytea_output = 'escape'"))
        for table in sa.inspect(connection).get_table_names():
            found += connection.scalars(sa.text(f'SELECT t::text FROM "{table}" t')).all()
    engine.dispose()
    return "\n".join(found).encode()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Site, Callable[[Site], bytes]]:
    """A home, and what its database holds."""
    if request.param == "sqlite":
        return request.getfixturevalue("bare_site"), in_file
    url = request.getfixturevalue("new_database")(request.getfixturevalue("postgres_url"))
    return new_site(tmp_path, url, None), in_postgresql


def test_what_is_rejected_is_nowhere_in_plain(anywhere: tuple[Site, Callable[[Site], bytes]]) -> None:
    site, held = anywhere
    large = CANARY + "x" * MAX_ORIGINAL_BYTES
    keys(site, first=FIRST)
    apply(site)
    feed(site, *map(json.dumps, LINES), large)
    said = run(site) + site.waybill("dead-letters", "list", "oven", "--json")
    found = letters(site)
    assert [(one["stage"], one["encrypted_with"]) for one in found] == [
        ("read", key_id_of(FIRST)),
        ("encode", key_id_of(FIRST)),
        ("parse", key_id_of(FIRST)),
    ]
    said += site.waybill("trace", "oven", "--source", f"{found[0]['partition']}:{found[0]['offset']}")
    for where in (said.encode(), held(site)):
        assert CANARY.encode() not in where
        assert FIRST.encode() not in where
    assert b"waybill sealed letter" in held(site)
    for path in site.home.rglob("*"):
        assert not path.is_file() or CANARY.encode() not in path.read_bytes(), path
    shown = site.json("dead-letters", "show", "oven", "1")
    assert (CANARY in json.dumps(shown), shown["whole"]) == (True, True)
    assert [one["whole"] for one in exported(site)] == [True, True, False]
    kept = exported(site)[2]["payload"]["text"]
    assert kept.startswith(CANARY)
    assert large.startswith(kept)
    apply(site, name="")
    run(site)
    feed(site, json.dumps(LINES[1]))
    run(site)
    assert CANARY.encode() in held(site), "without a key it is in plain, and this test sees it"
    assert letters(site)[0]["encrypted_with"] == ""


# ---------------------------------------------------------------------------------------------------------------- keys


def test_without_its_key_nothing_is_shown_and_nothing_is_half_done(bare_site: Site) -> None:
    site = bare_site
    fed(site)
    keys(site, other=SECOND)
    told = f"The key {key_id_of(FIRST)} of dead letters cannot be read: A secret's file has no such key"
    for words in (["show", "oven", "1"], ["export", "oven", "--to", "x.jsonl"], ["replay", "oven", *REPLAY]):
        said = site.waybill("dead-letters", *words, code=2)
        assert told in said
        assert reference(site, "first") in said
    with site.start("dead-letters", "export", "oven", "--to", "-") as process:
        assert process.communicate()[0] == ""
    assert process.returncode == 2
    assert not (site.folder / "x.jsonl").exists()
    assert [one["state"] for one in letters(site)] == ["open", "open"]
    assert [path.name for path in site.folder.glob("out.log*")] == ["out.log"]
    keys(site, first=FIRST)
    assert payloads(site) == [LINES[1], LINES[2]]
    told = site.json("dead-letters", "replay", "oven", *REPLAY)
    assert [(one["state"], one["rejected"]) for one in told["replays"]] == [("done", 2)], "what was begun goes on"


def test_a_replaced_key_is_noticed_before_anything_is_written(bare_site: Site) -> None:
    site = bare_site
    fed(site)
    before = (site.folder / "out.log").read_bytes()
    keys(site, first=SECOND)
    feed(site, *map(json.dumps, LINES))
    said = run(site, code=2)
    assert f"The key of dead letters has the id {key_id_of(SECOND)}, and {key_id_of(FIRST)} is meant" in said
    assert SECOND not in said
    assert (site.folder / "out.log").read_bytes() == before
    assert len(letters(site)) == 2
    keys(site, first=FIRST)
    run(site)
    assert payloads(site) == [LINES[1], LINES[2]] * 2


def test_letters_of_before_another_key_stay_readable_while_theirs_is_there(bare_site: Site) -> None:
    site = bare_site
    fed(site)
    keys(site, first=FIRST, second=SECOND)
    apply(site, "second", SECOND)
    feed(site, *map(json.dumps, LINES))
    run(site)
    used = [one["encrypted_with"] for one in letters(site)]
    assert used == [key_id_of(SECOND)] * 2 + [key_id_of(FIRST)] * 2
    assert payloads(site) == [LINES[1], LINES[2]] * 2
    keys(site, second=SECOND)
    assert payloads(site, "3", "4") == [LINES[1], LINES[2]]
    assert key_id_of(FIRST) in site.waybill("dead-letters", "show", "oven", "1", code=2)
    keys(site, second=SECOND, archive=FIRST)  # it has moved: a document says where to
    apply(site, "archive", FIRST)
    apply(site, "second", SECOND)
    assert payloads(site) == [LINES[1], LINES[2]] * 2


# -------------------------------------------------------------------------------------------------- where they are sent


def test_a_replay_sends_what_was_read(bare_site: Site) -> None:
    site = bare_site
    fed(site)
    apply(site, n="text")
    told = site.json("dead-letters", "replay", "oven", *REPLAY)
    (path,) = told["replays"][0]["sink"].values()
    assert Path(path).read_text() == f"{CANARY} parse\n"
    (left,) = letters(site)
    assert (left["id"], left["stage"], left["encrypted_with"]) == (2, "parse", key_id_of(FIRST))
    assert CANARY.encode() not in in_file(site)
    assert payloads(site) == [LINES[2]]
    assert site.json("verify", "oven", "--stream", "all")["differs"] == 0


def test_the_second_target_gets_them_as_they_were_read(bare_site: Site) -> None:
    site = bare_site
    keys(site, first=FIRST)
    apply(site, sink={"file": {"path": "rejected.log"}})
    feed(site, *map(json.dumps, LINES))
    run(site)
    assert [json.loads(line) for line in (site.folder / "rejected.log").read_text().splitlines()] == [
        LINES[1],
        LINES[2],
    ]
    assert [one["errors_sink"] for one in letters(site)] == ["sent", "sent"]
    assert CANARY.encode() not in in_file(site)


def test_what_a_backfill_rejects_is_encrypted_as_the_document_of_today_says(bare_site: Site) -> None:
    site = bare_site
    apply(site, name="")
    feed(site, *map(json.dumps, LINES[:1]))
    run(site)
    feed(site, *map(json.dumps, LINES[1:]))
    end = (site.folder / "in" / "a.log").stat().st_size
    partition = site.json("receipts", "oven")["receipts"][0]["partition"]
    site.fault("planned")
    with site.start("backfill", "oven", "--range", f"{partition}:0-{end}", "--engine", "inline") as begun:
        begun.communicate()
    assert begun.returncode == -9
    keys(site, first=FIRST)
    apply(site)
    stream = site.json("backfills", "list", "oven")["backfills"][0]["stream"]
    site.waybill("backfills", "resume", "oven", stream, "--engine", "inline")
    assert [one["encrypted_with"] for one in letters(site)] == [key_id_of(FIRST)] * 2
    assert CANARY.encode() not in in_file(site)


def test_a_letter_that_was_changed_is_refused_by_its_number_and_holds_up_no_other(bare_site: Site) -> None:
    site = bare_site
    fed(site)
    feed(site, json.dumps({**LINES[1], "text": "again"}))
    run(site)
    swap(site, 1, 2)
    for words in (["show", "oven", "2"], ["export", "oven", "--to", "x.jsonl", "2", "3"]):
        said = site.waybill("dead-letters", *words, code=5)
        assert "Dead letter 2 does not open: what the ledger keeps of it was changed since it was encrypted" in said
    assert not (site.folder / "x.jsonl").exists()
    apply(site, n="text")
    told = site.json("dead-letters", "replay", "oven", *REPLAY)
    (path,) = told["replays"][0]["sink"].values()
    assert Path(path).read_text() == f"{CANARY} again\n"
    assert [(one["id"], one["stage"], one["kind"]) for one in letters(site)] == [
        (2, "read", "NotAuthentic"),
        (1, "read", "NotAuthentic"),
    ]


def test_one_that_was_changed_does_not_go_to_the_second_target(bare_site: Site) -> None:
    site = bare_site
    keys(site, first=FIRST)
    target = site.folder / "away" / "rejected.log"
    apply(site, sink={"file": {"path": str(target)}})
    target.parent.mkdir()
    feed(site, json.dumps(LINES[1]), json.dumps(LINES[1]), json.dumps({**LINES[1], "text": "sound"}))
    site.fault("settled")  # the live range is settled, and nothing was sent yet
    with site.start("run", "oven", "--engine", "inline") as process:
        process.communicate()
    swap(site, 1, 2)
    run(site)
    assert [json.loads(line)["text"] for line in target.read_text().splitlines()] == ["sound"]
    assert [one["errors_sink"] for one in letters(site)] == ["sent", "refused", "refused"]
    assert "NotAuthentic" in letters(site)[1]["errors_sink_refused"]


@pytest.mark.server
def test_by_spark_a_message_comes_back_with_key_and_headers_that_the_ledger_never_had_in_plain(site: Site) -> None:
    origin, bad = f"{site.topic}-in", f"{site.topic}-bad"
    keys(site, first=FIRST)
    servers = site.name_servers
    body = json.dumps({"n": CANARY}).encode()
    texts = properties.encode({"KEYS": f"k-{CANARY}", "TAGS": "paid", "region": f"eu-{CANARY}"})

    def applied(n: str) -> None:
        site.apply(
            "oven",
            {
                "source": {"rocketmq": {"name_servers": servers, "topics": [origin]}},
                "sink": {"rocketmq": {"name_servers": [*servers], "topic": site.topic, "queues": 1}},
                "parse": {"format": "json", "fields": {"n": n}},
                "errors": {
                    "tolerance": "all",
                    "encrypt": {"key": reference(site, "first"), "key_id": key_id_of(FIRST)},
                    "sink": {"rocketmq": {"name_servers": [*servers], "topic": bad, "queues": 1}},
                    "headers": "connect",
                },
            },
        )

    with Client(ClientOptions(name_servers=tuple(servers))) as client:
        client.topics.create(origin, 1)
        [queue] = client.topics.write_queues(origin)
        sender, deadline = client.sender(queue), time.monotonic() + 60
        sender.submit(encode_batch([body], [texts]), deadline=deadline)
        sender.finish(deadline=deadline)
        applied("int64")
        assert site.json("run", "oven")["sent_to_errors_sink"] == 1
        applied("text")
        [told] = site.json("dead-letters", "replay", "oven", "--yes")["replays"]
        assert told["delivered"] == 1
        site.messages()
        for topic in (bad, site.topic):
            [target] = client.topics.read_queues(topic)
            pages = client.read(target, 0, 9, deadline=time.monotonic() + 60)
            [found] = [one for page in pages for one in page.messages]
            had = properties.decode(found.properties)
            assert found.body == body
            assert (had["KEYS"], had["TAGS"], had["region"]) == (f"k-{CANARY}", "paid", f"eu-{CANARY}")
            assert ("__connect.errors.stage" in had) == (topic == bad)
    assert CANARY.encode() not in in_postgresql(site)
    assert b"waybill sealed letter" in in_postgresql(site)
    shown = site.json("dead-letters", "show", "oven", "1")
    assert (shown["key"], shown["headers"]) == (f"k-{CANARY}", [["region", f"eu-{CANARY}"]])
