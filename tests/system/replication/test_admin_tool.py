"""RocketMQ's own Java admin tool sees what Waybill made, wrote and told: topics, queues, the progress of a group."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from connect_core.stack import jars, java
from tests.faults.kit.topics import fill
from tests.servers import RocketMQ
from tests.site import Site

pytestmark = pytest.mark.server

NAME = "watched"
LIMIT_S = 180
SILENT = '<configuration><root level="OFF"/></configuration>'


@pytest.fixture
def lines(bare_site: Site, rocketmq: RocketMQ) -> Any:
    """What a command of the tool prints, as words by line; headings left out."""
    folder = bare_site.folder / "admin"
    folder.mkdir()
    (folder / "logback.xml").write_text(SILENT)
    command = [
        str(java.find(jars.cache_folder())),
        *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", f"-Duser.home={folder}"),
        f"-Drmq.logback.configurationFile={folder / 'logback.xml'}",
        *("-cp", f"{jars.fetch(rocketmq.version)}/*", "org.apache.rocketmq.tools.command.MQAdminStartup"),
    ]

    def ask(*words: str) -> list[list[str]]:
        told = subprocess.run(
            [*command, *words, "-n", rocketmq.name_servers[0]],
            env={**os.environ, "ROCKETMQ_HOME": str(folder)},
            capture_output=True,
            text=True,
            check=True,
            timeout=LIMIT_S,
        )
        assert told.stdout, told.stderr
        return [line.split() for line in told.stdout.splitlines() if line and not line.startswith("#")]

    return ask


def test_it_shows_the_topics_queues_and_lag_that_waybill_tells(
    bare_site: Site, rocketmq: RocketMQ, lines: Any, tmp_path: Path
) -> None:
    site, origin, group = bare_site, f"{bare_site.topic}-origin", f"WAYBILL-{bare_site.topic}"
    site.settings["WAYBILL_ENGINE"] = "inline"
    cluster = {"name_servers": rocketmq.name_servers[0]}
    fill(rocketmq.name_servers, origin, [[b"%d" % n for n in range(count)] for count in (30, 20)])
    site.apply(
        NAME,
        {
            "source": {"rocketmq": {**cluster, "topics": origin, "group": group}},
            "sink": {"rocketmq": {**cluster, "topic": site.topic, "queues": 3}},
        },
    )
    site.waybill("run", NAME)
    fill(rocketmq.name_servers, origin, [[b"more"] * 7, []])

    assert {(site.topic,), (origin,), (f"%RETRY%{group}",)} <= {tuple(line) for line in lines("topicList")}

    written = {
        (words[0], int(words[1])): (int(words[2]), int(words[3]))
        for words in lines("topicStatus", "-t", site.topic)
        if words[0] == "broker-a"
    }
    told = {("broker-a", number): (0, 0) for number in range(3)}
    for receipt in site.json("receipts", NAME)["receipts"]:
        for place, spans in receipt["where"].items():
            told["broker-a", int(place.rpartition("/")[2])] = (0, spans[-1][1])
    assert written == told

    progress = {
        f"{words[0]}/{words[1]}/{words[2]}": {"committed": int(words[4]), "end": int(words[3])}
        for words in lines("consumerProgress", "-g", group)
        if words[0] == origin
    }
    (lag,) = site.json("lag", NAME)["connectors"]
    assert progress == {
        part["partition"]: {"committed": part["committed"], "end": part["end"]} for part in lag["partitions"]
    }
    assert sum(part["end"] - part["committed"] for part in progress.values()) == lag["lag"] == 7
