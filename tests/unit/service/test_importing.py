"""Connectors of RocketMQ Connect taken over from the folder of a worker. The files beside this test were written by its
own classes (FileBaseKeyValueStore and its serdes)."""

from __future__ import annotations

import json
import shutil
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.config.flat import class_named
from connect_core.errors import ConfigError
from connect_core.sdk.groups import GroupStanding, QueueStanding
from connect_core.service.group_standing import _said
from connect_core.service.peer_workers import PeerWorkers, connectors_of
from connect_core.service.stored_connectors import StoredConnector
from connect_core.systems.file.flat_keys import _bytes_before

WRITTEN = Path(__file__).with_name("rocketmq_connect_store")


def connectors_in(folder: Path) -> list[StoredConnector]:
    return connectors_of(PeerWorkers(folder))[0]


def test_what_its_own_classes_have_written_is_read() -> None:
    sink, source, jdbc = connectors_in(WRITTEN)
    assert (sink.name, sink.state, sink.config["connect.topicnames"]) == ("fileSinkConnector", "paused", "fileTopic")
    assert (source.name, source.state, source.config["max.tasks"]) == ("fileSourceConnector", "running", "1")
    assert source.positions == [({"filename": "in.txt"}, {"nextPosition": "13"})]
    assert (jdbc.name, jdbc.positions) == ("jdbc", [])


def test_the_folder_or_its_parent_is_named_and_an_empty_file_is_read_from_before(tmp_path: Path) -> None:
    shutil.copytree(WRITTEN, tmp_path / "config")
    assert connectors_in(tmp_path) == connectors_in(WRITTEN)
    for name in ("connectorConfig.json", "position.json"):
        (tmp_path / "config" / name).rename(tmp_path / "config" / f"{name}.bak")
        (tmp_path / "config" / name).touch()
    assert connectors_in(tmp_path) == connectors_in(WRITTEN)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("connectorConfig.json", "{"),
        ("connectorConfig.json", "[]"),
        ("connectorConfig.json", '{"a": "!"}'),
        ("connectorConfig.json", '{"YQ==": 1}'),
        ("connectorConfig.json", '{"YQ==": "YQ=="}'),
        ("position.json", '{"YQ==": "YQ=="}'),
        ("position.json", '{"YQ=="'),
        pytest.param("connectorConfig.json", "[" * 100_000, id="deep"),
    ],
)
def test_what_it_has_not_written_is_refused_with_the_file(name: str, text: str, tmp_path: Path) -> None:
    shutil.copytree(WRITTEN, tmp_path, dirs_exist_ok=True)
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError) as refused:
        connectors_in(tmp_path)
    assert name in refused.value.where


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["properties", "namespace", "partition", "offset"]) | st.text(), inner)
    ),
    max_leaves=6,
)


@given(st.sampled_from(["connectorConfig.json", "position.json"]), VALUES, VALUES)
def test_whatever_an_entry_holds_is_read_or_refused_by_its_name(name: str, key: Any, value: Any) -> None:
    with TemporaryDirectory() as folder:
        shutil.copytree(WRITTEN, folder, dirs_exist_ok=True)
        entry = [b64encode(json.dumps(one).encode()).decode() for one in (key, value)]
        (Path(folder) / name).write_text(json.dumps(dict([entry])))
        where = f"{name}, entry "
        try:
            connectors_in(Path(folder))
        except ConfigError as refused:
            where = refused.where
    assert f"{name}, entry " in where


def test_a_folder_without_connectors_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="connectorConfig"):
        connectors_in(tmp_path)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r")), max_size=8), st.integers(0, 8))
def test_a_count_of_characters_is_a_place_in_the_file(lines: list[str], many: int) -> None:
    before = "".join(f"{line}\n" for line in lines[:many])
    data = "".join(f"{line}\n" for line in lines).encode()
    characters = sum(2 if ord(sign) > 0xFFFF else 1 for sign in before)
    assert _bytes_before(BytesIO(data), characters) == len(before.encode())


@pytest.mark.parametrize(
    ("options", "position", "words"),
    [
        ({"path": "in.txt"}, {"nextPosition": "3"}, "not where a line of the file begins"),
        ({"path": "in.txt"}, {"nextPosition": "99"}, "not where a line of the file begins"),
        ({"path": "in.txt"}, {"nextPosition": "many"}, "'many' is no number"),
        ({"path": "in.txt"}, {}, "'' is no number"),
        ({"path": "gone.txt"}, {"nextPosition": "0"}, "gone.txt cannot be read"),
    ],
)
def test_a_position_that_is_no_place_in_the_file_is_said(
    options: dict[str, Any], position: dict[str, Any], words: str, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("one\ntwo\nopen")
    kind = class_named("FileSource")
    assert kind is not None
    with pytest.raises(ValueError, match=words):
        kind.reached({"path": tmp_path / options["path"]}, {}, position)
    assert kind.reached({"path": tmp_path / "in.txt"}, {}, {"nextPosition": "8"}).offset == 8


def test_positions_of_other_classes_are_not_known() -> None:
    kind = class_named("org.apache.rocketmq.connect.mqtt.connector.MqttSourceConnector")
    assert kind is not None
    with pytest.raises(ValueError, match="not known here"):
        kind.reached({}, {}, {})


def test_messages_that_expired_unread_are_told_and_no_offset_hides_them() -> None:
    places = [QueueStanding("t/broker-a/0", 3, 3, 10, 20), QueueStanding("t/broker-a/1", None, 15, 10, 20)]
    told = _said(GroupStanding("connect-out", False, (), places), [])
    assert told["offsets"] == [{"partition": "t/broker-a/1", "offset": 15}]
    expired, none = told["notes"]
    assert "is at 3, and 7 messages that it had not read have expired" in expired
    assert "goes on at 10 with --accept-gaps" in expired
    assert "has no offset; reading begins at 15, and leaves out 5 older messages" in none


def test_a_group_that_is_at_work_and_a_topic_that_is_not_there_are_told() -> None:
    places = [QueueStanding("t/broker-a/0", 3, 3, 0, 20)]
    assert "stop its workers first" in _said(GroupStanding("g", True, (), places), [])["problems"][0]
    [unknown] = _said(GroupStanding("g", None, (), places), [])["notes"]
    assert "see that its workers are stopped" in unknown
    told = _said(GroupStanding("g", False, ["other"], places), ["before"])
    assert told == {"notes": ["before", "there is no topic other yet: it begins where g is then"]}


def stored(folder: Path, connectors: dict[str, dict[str, str]], positions: dict[str, tuple[str, int]]) -> None:
    """The files of a worker."""

    def encoded(value: Any) -> str:
        return b64encode(value.encode() if isinstance(value, str) else json.dumps(value).encode()).decode()

    configs = {
        encoded(name): encoded({"epoch": 1, "properties": config, "targetState": "STARTED"})
        for name, config in connectors.items()
    }
    places = {
        encoded({"namespace": name, "partition": {"filename": file}}): encoded({"offset": {"nextPosition": str(place)}})
        for name, (file, place) in positions.items()
    }
    (folder / "config").mkdir(parents=True)
    (folder / "config" / "connectorConfig.json").write_text(json.dumps(configs))
    (folder / "config" / "position.json").write_text(json.dumps(places))
