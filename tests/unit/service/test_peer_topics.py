"""Topics of RocketMQ Connect: which record of several counts, and nothing is passed over without a word."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import ConfigError
from connect_core.sdk.whole_topic import TopicRecord, WholeTopic
from connect_core.service.peer_topics import configurations, positions, with_positions
from connect_core.service.peer_workers import CONFIG_TOPIC, POSITION_TOPIC, Named, workers_of, workers_of_file
from tests.unit.service.peer_records import Record, configured, deleted, positioned, record, wished

FILE = {"connector.class": "FileSourceConnector", "filename": "in.txt"}


def topic(*records: Record, lacking: Sequence[str] = ()) -> WholeTopic:
    stored = [TopicRecord("t/broker-a/0", n, n, key, value) for n, (key, value) in enumerate(records)]
    return WholeTopic(stored, lacking)


def test_the_newest_configuration_and_state_of_each_counts() -> None:
    kept = configurations(
        topic(
            configured("a", 10, {**FILE, "filename": "old.txt"}),
            record("task-a-0", None, {"epoch": 10, "properties": {}}),
            record("start-signal", None, ""),
            configured("a", 30, FILE, "PAUSED"),
            wished("a", 20, "PAUSED"),
            wished("a", 40, "STARTED"),
            configured("b", 10, FILE),
            wished("b", 50, "PAUSED"),
        )
    )
    assert [(one.name, one.state, one.config) for one in kept.connectors.values()] == [
        ("a", "running", FILE),
        ("b", "paused", FILE),
    ]
    assert kept.lacking == []


def test_by_its_epoch_and_not_by_its_place() -> None:
    kept = configurations(topic(configured("a", 30, FILE), configured("a", 10, {}), deleted("a", 20)))
    assert kept.connectors["a"].config == FILE


@pytest.mark.parametrize(
    "last", [deleted("a", 20), record("delete-a", None, {"epoch": 20}), (configured("a", 1, {})[0], b"")]
)
def test_what_was_deleted_is_not_there_until_it_is_made_again(last: Record) -> None:
    assert configurations(topic(configured("a", 10, FILE), last)).connectors == {}
    assert list(configurations(topic(configured("a", 10, FILE), last, configured("a", 99, FILE))).connectors) == ["a"]


def test_a_record_that_cannot_be_read_is_named_and_its_connector_is_left_out() -> None:
    kept = configurations(
        topic(
            configured("a", 10, FILE),
            (configured("a", 10, FILE)[0], b"{"),
            ("?", b"{}"),
            record("other", None, {}),
            wished("gone", 10, "PAUSED"),
            lacking=["t/broker-a/0: its first 3 records have expired"],
        )
    )
    assert kept.connectors["a"].problems == ["t/broker-a/0 at 1: this is not what RocketMQ Connect has written"]
    expired, *others = kept.lacking
    assert "have expired" in expired
    assert [one.partition(":")[0] for one in others] == [
        "t/broker-a/0 at 2",
        "t/broker-a/0 at 3",
        "the configuration of gone, which is paused there",
    ]


def test_a_broken_record_before_a_good_one_does_not_matter() -> None:
    kept = configurations(topic((configured("a", 10, FILE)[0], b"{"), configured("a", 10, FILE)))
    assert kept.connectors["a"].problems == []


def test_the_last_position_of_each_partition_counts() -> None:
    one, two = {"filename": "in.txt"}, {"filename": "other.txt"}
    there, lacking = positions(
        topic(
            positioned("a", one, {"nextPosition": "3"}),
            positioned(None, {}, {}, "ONLINE"),
            positioned("a", two, {"nextPosition": "5"}),
            positioned("a", one, {"nextPosition": "9"}),
            positioned("a", two, {}),
            positioned("nobody", one, {"nextPosition": "9"}),
        )
    )
    kept = configurations(topic(configured("a", 1, FILE)))
    [found] = with_positions(kept.connectors, there)
    assert (found.positions, lacking) == ([(one, {"nextPosition": "9"})], [])


def test_a_position_that_cannot_be_read_leaves_its_connector_out() -> None:
    one = {"filename": "in.txt"}
    there, lacking = positions(
        topic(
            positioned("a", one, {"nextPosition": "3"}),
            (positioned("a", one, {})[0], b"["),
            (b64encode(b"[]").decode(), b"{}"),
            positioned("a", one, {}, "SOMETHING"),
        )
    )
    [found] = with_positions(configurations(topic(configured("a", 1, FILE))).connectors, there)
    assert found.positions == []
    assert "t/broker-a/0 at 1: its position cannot be read" in found.problems[0]
    assert [one.partition(":")[0] for one in lacking] == ["t/broker-a/0 at 2", "t/broker-a/0 at 3"]


KEYS = st.binary(max_size=4).flatmap(lambda end: st.sampled_from([end, b"connector-" + end, b"target-state-" + end]))
VALUES = st.sampled_from([None, b"[]", b"{}", b'{"payload": {"epoch": 1}}', b"[" * 9_999]) | st.binary(min_size=1)


@given(KEYS, VALUES)
def test_whatever_a_record_holds_is_named(key: bytes, value: bytes | None) -> None:
    found = WholeTopic([TopicRecord("t/b/0", 7, 1, b64encode(key).decode(), value)], ())
    kept = configurations(found)
    told = [*kept.lacking, *(text for one in kept.connectors.values() for text in one.problems)]
    assert any("t/b/0 at 7" in one for one in told)
    assert "t/b/0 at 7" in positions(found)[1][0]


# ----------------------------------------------------------------------------------------------------- where they are

CONF = """workerId=DEFAULT_WORKER_1
storePathRootDir=/srv/storeRoot
namesrvAddr=one:9876;two:9876
aclEnable=true
accessKey=rocketmq
secretKey=12345678
"""
MANAGED = "org.apache.rocketmq.connect.runtime.service.rocketmq.RocketMq"


def test_a_worker_s_file_says_the_folder(tmp_path: Path) -> None:
    (tmp_path / "worker.conf").write_text(CONF)
    found = workers_of_file(tmp_path / "worker.conf", Named())
    assert (found.store, found.configs, found.positions) == (Path("/srv/storeRoot"), "", "")
    (tmp_path / "worker.conf").write_text("workerId=1\n")
    assert workers_of_file(tmp_path / "worker.conf", Named()).store == Path.home() / "connectorStore"
    other = workers_of_file(tmp_path / "worker.conf", Named(tmp_path))
    assert other.store == tmp_path


def test_a_worker_s_file_says_topics_and_access(tmp_path: Path) -> None:
    managed = f"configManagementService={MANAGED}ConfigManagementServiceImpl\nconfigStoreTopic=their-configs\n"
    managed += f"positionManagementService={MANAGED}PositionManagementServiceImpl\n"
    (tmp_path / "worker.conf").write_text(CONF + managed)
    found = workers_of_file(tmp_path / "worker.conf", Named())
    assert (found.configs, found.positions) == ("their-configs", POSITION_TOPIC)
    assert found.cluster == {"name_servers": "one:9876;two:9876", "user": "rocketmq", "password": "12345678"}
    (tmp_path / "worker.conf").write_text(managed)
    with pytest.raises(ConfigError, match="names no namesrvAddr"):
        workers_of_file(tmp_path / "worker.conf", Named())


@pytest.mark.parametrize("text", ["nothing\n", None])
def test_what_is_no_file_of_a_worker_is_told(text: str | None, tmp_path: Path) -> None:
    if text:
        (tmp_path / "worker.conf").write_text(text)
    with pytest.raises(ConfigError):
        workers_of_file(tmp_path / "worker.conf", Named())


def test_options_say_one_place_and_no_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KEY_OF_TEST", "not-shown")
    found = workers_of(Named(namesrv="h:1"))
    assert (found.configs, found.positions, found.cluster) == (CONFIG_TOPIC, POSITION_TOPIC, {"name_servers": "h:1"})
    signed = Named(namesrv="h:1", user="a", password="${env:KEY_OF_TEST}")
    assert workers_of(signed).cluster == {"name_servers": "h:1", "user": "a", "password": "not-shown"}
    assert "not-shown" not in repr(workers_of(signed))
    (tmp_path / "worker.conf").write_text(f"{CONF}configManagementService={MANAGED}ConfigManagementServiceImpl")
    assert workers_of_file(tmp_path / "worker.conf", signed).cluster == workers_of(signed).cluster
    for wrong in (
        Named(),
        Named(Path("x"), namesrv="h:1"),
        Named(Path("x"), config_topic="t"),
        Named(namesrv="h:1", user="a"),
        Named(namesrv="h:1", user="a", password="plain"),
    ):
        with pytest.raises(ConfigError):
            workers_of(wrong)
