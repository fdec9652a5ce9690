"""`waybill import kafka-connect`: from a server of its REST API, ours, and from what a worker's API answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.servers import RocketMQ
from tests.site import Site, new_site
from tests.system.replication.test_importing import killed_at, out_of
from tests.system.replication.test_rest import served

pytestmark = [pytest.mark.server]

SOURCE = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": "in.txt"}


def test_connectors_of_a_server_go_on_where_they_were(sqlite_site: Site, rocketmq: RocketMQ, tmp_path: Path) -> None:
    """One Waybill is moved to another, by the API of Kafka Connect; killed on the way."""
    site = sqlite_site
    lines = [f"line {number} für 😀\n" for number in range(120)]
    (site.folder / "in.txt").write_text("".join(lines[:70]))
    (site.folder / "login").write_text("somebody:secret")
    (tmp_path / "other").mkdir()
    other = new_site(tmp_path / "other", f"sqlite:///{tmp_path}/other/.waybill/ledger.db", rocketmq)
    path = str(site.folder / "in.txt")
    other.settings["WAYBILL_FILES_ROOTS"] = str(site.folder)
    with served(site) as (client, _):
        source = {**SOURCE, "file": path, "topic": site.topic}
        sink = {"connector.class": "FileStreamSink", "file": "out.txt", "topics": site.topic}
        for name, config in (("in", source), ("out", sink), ("es", {"connector.class": "ElasticsearchSink"})):
            client.post("/kc/connectors", json={"name": name, "config": config})
        for name in ("in", "out"):
            site.waybill("run", name)
            assert client.put(f"/kc/connectors/{name}/pause").status_code == 202
        (site.folder / "in.txt").write_text("".join(lines))
        words = ("import", "kafka-connect", "--url", f"{client.base_url}/kc", "--auth-file", str(site.folder / "login"))
        seen = {one["connector"]: one for one in other.json(*words)["connectors"]}
        assert seen["in"]["offsets"] == [{"partition": path, "offset": len("".join(lines[:70]).encode())}]
        assert {one["state"] for one in seen.values()} == {"paused"}
        assert sum(one["offset"] for one in seen["out"]["offsets"]) == 70
        assert other.json("connectors", "list")["connectors"] == []
        killed_at("offsets.set_offsets", other, *words, "--apply")
        other.waybill(*words, "--apply")
        again = json.loads(other.waybill(*words, "--apply", "--json"))
        assert [one["done"] for one in again["connectors"]] == [True, True]
    for name in ("in", "out"):
        other.waybill("connectors", "resume", name)
        other.waybill("run", name)
    assert sorted(site.messages()) == sorted(line.strip().encode() for line in lines)
    written = (site.folder / "out.txt").read_text().splitlines()  # the one file, written on by the other
    assert sorted(written) == sorted(line.strip() for line in lines)


def test_what_a_worker_answers_is_taken_over_from_files(sqlite_site: Site) -> None:
    site = sqlite_site
    lines = [f"line {number} für 😀\n" for number in range(100)]
    (site.folder / "in.txt").write_text("".join(lines))
    position = len("".join(lines[:40]).encode("utf-16-le")) // 2
    folder = site.folder / "answers"
    folder.mkdir()
    source = {**SOURCE, "topic": site.topic}
    jdbc = {"connector.class": "io.aiven.connect.jdbc.JdbcSourceConnector", "connection.password": "plain-secret"}
    status = {"connector": {"state": "STOPPED"}, "tasks": []}
    all_of_it = {"in": {"info": {"config": source}, "status": status}, "jdbc": {"info": {"config": jdbc}}}
    (folder / "connectors.json").write_text(json.dumps(all_of_it))
    places = [
        {"partition": {"filename": "in.txt"}, "offset": {"position": position}},
        {"partition": {"filename": "former.txt"}, "offset": {"position": 7}},
    ]
    (folder / "in.offsets.json").write_text(json.dumps({"offsets": places}))
    words = ("import", "kafka-connect", "--from", str(folder))
    assert "plain-secret" not in site.waybill(*words)
    told = {one["connector"]: one for one in json.loads(out_of(site, *words, "--apply", "--json"))["connectors"]}
    assert told["in"]["offsets"] == [
        {"partition": str(site.folder / "in.txt"), "offset": len("".join(lines[:40]).encode())}
    ]
    assert told["in"]["notes"] == ["its position in former.txt is left out: it reads that no more"]
    assert told["jdbc"]["problems"]
    [made] = site.json("connectors", "list")["connectors"]
    assert (made["name"], made["state"]) == ("in", "stopped")
    site.waybill("connectors", "resume", "in")
    site.waybill("run", "in")
    assert sorted(site.messages()) == sorted(line.strip().encode() for line in lines[40:])
