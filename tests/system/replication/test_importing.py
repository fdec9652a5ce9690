"""`waybill import rocketmq-connect`: a worker's connectors go on here where they were there."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect_core.rocketmq import Client, ClientOptions
from connect_core.stack import jars, java
from tests.faults.kit.topics import fill
from tests.servers import RocketMQ
from tests.site import Site
from tests.unit.service.peer_records import Record, configured, deleted, positioned
from tests.unit.service.test_importing import stored

pytestmark = [pytest.mark.server]

PACKAGE = "org.apache.rocketmq.connect."
SILENT = '<configuration><root level="OFF"/></configuration>'


class PeerWorker:
    """RocketMQ's own client in a process of its own, that does what a worker of RocketMQ Connect does with it."""

    def __init__(self, rocketmq: RocketMQ, folder: Path) -> None:
        folder.mkdir()
        (folder / "logback.xml").write_text(SILENT)
        command = [
            str(java.find(jars.cache_folder())),
            *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", f"-Duser.home={folder}"),
            f"-Drmq.logback.configurationFile={folder / 'logback.xml'}",
            *("-cp", f"{jars.fetch(rocketmq.version)}/*", str(Path(__file__).with_name("PeerWorker.java"))),
            ";".join(rocketmq.name_servers),
        ]
        self.log = folder / "log"
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder
            )

    def told(self, *words: str) -> list[bytes]:
        """What it prints for a command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(*words, file=self._process.stdin, flush=True)
        lines = []
        while (line := self._process.stdout.readline().strip()) != ".":
            assert line, self.log.read_text()
            lines.append(base64.b64decode(line))
        return lines

    def put(self, topic: str, record: Record) -> None:
        key, value = record
        self.told("put", topic, key, base64.b64encode(value).decode())

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def peer(rocketmq: RocketMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeerWorker]:
    worker = PeerWorker(rocketmq, tmp_path_factory.mktemp("peer") / "worker")
    yield worker
    worker.close()


def test_a_worker_s_connectors_go_on_where_they_were(sqlite_site: Site) -> None:
    site = sqlite_site
    lines = [f"line {number} für 😀" for number in range(1_000)]
    text = "".join(f"{line}\n" for line in lines)
    (site.folder / "in.txt").write_text(text)
    sent = "".join(f"{line}\n" for line in lines[:400])
    connectors = {
        "in": {
            "connector.class": f"{PACKAGE}file.FileSourceConnector",
            "filename": "in.txt",
            "connect.topicname": site.topic,
        },
        "redis": {"connector.class": f"{PACKAGE}elasticsearch.ElasticsearchSinkConnector"},
    }
    stored(site.folder / "store", connectors, {"in": ("in.txt", len(sent.encode("utf-16-le")) // 2)})
    words = ("import", "rocketmq-connect", "--store", str(site.folder / "store"), "--json")
    seen = json.loads(site.waybill(*words))
    place = {"partition": str(site.folder / "in.txt"), "offset": len(sent.encode())}
    assert [(one["connector"], one["offsets"]) for one in seen["connectors"]] == [
        ("in", [place]),
        ("redis", []),
    ]
    assert "there is no" in seen["connectors"][1]["problems"][0]
    assert site.json("connectors", "list")["connectors"] == []
    _is_stopped_where_its_offsets_cannot_be_set(site, words)
    assert json.loads(out_of(site, *words, "--apply"))["applied"]
    site.waybill("run", "in")
    assert sorted(site.messages()) == sorted(line.encode() for line in lines[400:])
    [again, _] = json.loads(out_of(site, *words, "--apply"))["connectors"]
    assert (again["done"], again["problems"]) == (True, [])
    [change] = [one for one in site.json("offsets", "history", "in")["history"] if one["kind"] == "set"]
    assert (change["after"]["offset"], change["why"]) == (len(sent.encode()), "taken over from RocketMQ Connect")


def test_a_sink_goes_on_where_its_real_group_stood(sqlite_site: Site, rocketmq: RocketMQ, peer: PeerWorker) -> None:
    site, group = sqlite_site, f"group-{sqlite_site.topic}"
    fill(rocketmq.name_servers, site.topic, [[b"%d/%d" % (queue, n) for n in range(40)] for queue in range(3)])
    config = {"connector.class": "FileSinkConnector", "filename": "out.txt", "connect.topicnames": site.topic}
    stored(site.folder / "store", {"out": {**config, "task.group.id": group}}, {})
    words = ("import", "rocketmq-connect", "--store", str(site.folder / "store"), "--json")
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        client.groups.create(group)
        taken = peer.told("take", group, site.topic, "70")
        [seen] = site.json(*words[:-1])["connectors"]
        assert seen["problems"] == [f"consumers of its group {group} are connected: stop its workers first"]
        peer.told("leave")
        queues = client.topics.read_queues(site.topic)
        committed = {str(queue): client.groups.committed(group, queue) for queue in queues}
        [seen] = json.loads(site.waybill(*words))["connectors"]
        assert ({one["partition"]: one["offset"] for one in seen["offsets"]}, seen["notes"]) == (committed, [])
        assert sum(offset or 0 for offset in committed.values()) == 70
        killed_at("offsets.set_offsets", site, *words, "--apply")
        killed_at("connectors.set_state", site, *words, "--apply")
        [made] = site.json("connectors", "list")["connectors"]
        assert (made["name"], made["state"]) == ("out", "stopped")
        site.waybill(*words, "--apply")
        for queue in queues:  # they are its own now
            client.groups.commit(group, queue, 0)
    fill(rocketmq.name_servers, site.topic, [[b"new"], [b"new"], [b"new"]])
    site.waybill("run", "out")
    written = (site.folder / "out.txt").read_bytes().splitlines()
    every = [b"%d/%d" % (queue, n) for queue in range(3) for n in range(40)] + [b"new"] * 3
    assert sorted(taken + written) == sorted(every)


def test_connectors_and_positions_of_a_cluster_s_topics_go_on(
    sqlite_site: Site, rocketmq: RocketMQ, peer: PeerWorker
) -> None:
    """Written by RocketMQ's own client, in the form of RocketMQ Connect."""
    site, (configs, places) = sqlite_site, (f"{sqlite_site.topic}-{kind}" for kind in ("configs", "positions"))
    lines = [f"line {number} für 😀\n" for number in range(200)]
    (site.folder / "in.txt").write_text("".join(lines))
    sent = len("".join(lines[:80]).encode("utf-16-le")) // 2
    kind = f"{PACKAGE}file.FileSourceConnector"
    config = {"connector.class": kind, "filename": "in.txt", "connect.topicname": site.topic}
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        for name in (configs, places):
            client.topics.create(name, 1)
    for record in (
        configured("in", 10, {**config, "filename": "old.txt"}),
        configured("in", 20, config),
        configured("gone", 20, config),
        deleted("gone", 30),
        configured("broken", 20, config),
        (configured("broken", 20, config)[0], b"{"),
    ):
        peer.put(configs, record)
    for position in (sent - 1, sent):
        peer.put(places, positioned("in", {"filename": "in.txt"}, {"nextPosition": str(position)}))
    worker = site.folder / "connect-distributed.conf"
    service = f"{PACKAGE}runtime.service.rocketmq.RocketMq"
    worker.write_text(
        f"namesrvAddr={site.name_servers[0]}\nconfigStoreTopic={configs}\npositionStoreTopic={places}\n"
        f"configManagementService={service}ConfigManagementServiceImpl\n"
        f"positionManagementService={service}PositionManagementServiceImpl\n"
    )
    words = ("import", "rocketmq-connect", "--worker-config", str(worker))
    named = ("--namesrv", site.name_servers[0], "--config-topic", configs, "--position-topic", places)
    seen = site.json(*words)
    assert seen == site.json("import", "rocketmq-connect", *named)
    broken, one = seen["connectors"]
    assert broken["problems"] == [
        f"{configs}/{rocketmq.broker_name}/0 at 5: this is not what RocketMQ Connect has written"
    ]
    before = len("".join(lines[:80]).encode())
    assert one["offsets"] == [{"partition": str(site.folder / "in.txt"), "offset": before}]
    out_of(site, *words, "--apply")
    site.waybill("run", "in")
    assert sorted(site.messages()) == sorted(line.rstrip("\n").encode() for line in lines[80:])


def test_a_queue_without_an_offset_and_a_place_that_is_no_more_are_told(sqlite_site: Site, rocketmq: RocketMQ) -> None:
    """And then they are what was told, though the others are set: nothing is passed over without a word."""
    site, group = sqlite_site, f"connect-{sqlite_site.topic}"
    fill(rocketmq.name_servers, site.topic, [[b"%d/%d" % (queue, n) for n in range(10)] for queue in range(3)])
    config = {"connector.class": "FileSinkConnector", "filename": "out.txt", "connect.topicnames": site.topic}
    stored(site.folder / "store", {site.topic: config}, {})
    words = ("import", "rocketmq-connect", "--store", str(site.folder / "store"))
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        client.groups.create(group)
        first, second, _ = client.topics.read_queues(site.topic)
        client.groups.commit(group, first, 4)
        client.groups.commit(group, second, 500)
    [seen] = site.json(*words)["connectors"]
    assert seen["offsets"] == [
        {"partition": str(first), "offset": 4},
        {"partition": f"{site.topic}/{first.broker}/2", "offset": 0},
    ]
    beyond, none = seen["notes"]
    assert f"{second}: the group {group} is at 500, beyond the end at 10" in beyond
    assert f"the group {group} has no offset; reading begins at 0, and leaves out 0 older messages" in none
    site.waybill(*words, "--apply")
    assert "--accept-gaps" in site.waybill("run", site.topic, code=5)
    site.waybill("run", site.topic, "--accept-gaps")
    written = (site.folder / "out.txt").read_bytes().splitlines()
    first_left = [b"0/%d" % n for n in range(4, 10)]
    assert sorted(written) == sorted([*first_left, *(b"%d/%d" % (queue, n) for queue in (1, 2) for n in range(10))])


def _is_stopped_where_its_offsets_cannot_be_set(site: Site, words: tuple[str, ...]) -> None:
    """Else it would be run from the beginning. The next call finishes it."""
    stack = site.home / "stack.json"
    stack.rename(site.home / "away.json")
    assert "The local stack is not running" in site.waybill(*words, "--apply", code=3)
    [made] = site.json("connectors", "list")["connectors"]
    assert (made["name"], made["state"]) == ("in", "stopped")
    (site.home / "away.json").rename(stack)


def killed_at(step: str, site: Site, *words: str) -> None:
    """The command, which is killed when it calls that function of `service.importing`."""
    code = (
        "import os, sys; from connect_core.service import importing; "
        f"importing.{step} = lambda *given, **named: os.kill(os.getpid(), 9); "
        "from connect_core.cli.app import app; app()"
    )
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, cwd=site.folder, env=site.environment(), capture_output=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr


def out_of(site: Site, *words: str) -> str:
    """It ends with 2 where something is left out."""
    with site.start(*words) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 2, err
    return out
