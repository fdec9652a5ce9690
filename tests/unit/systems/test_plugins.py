"""Plugins: what they say of their systems is sound, and what they do not say has a default."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from pydantic import BaseModel

from connect_core.config import Written, check, load_settings
from connect_core.errors import ConfigError
from connect_core.sdk.plugin import (
    ROLES,
    ConfiguredEnd,
    Conflict,
    FilesWritten,
    Plugin,
    ProbeResult,
    Role,
    RuleTarget,
    TypedRecord,
)
from connect_core.sdk.values import Json
from connect_core.service.probing import probe_side
from connect_core.systems import SYSTEMS
from connect_core.work import Side

GUARANTEES = Path(__file__).parents[3] / "docs" / "guarantees.md"


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_a_plugin_is_sound(name: str) -> None:
    plugin = SYSTEMS[name]
    assert plugin.name == name
    assert [bool(plugin.source_options), bool(plugin.sink_options)] == [
        bool(plugin.open_source),
        bool(plugin.open_sink),
    ]
    assert all(plugin.options(role) for role in plugin.remote_state)
    assert all(find_spec(module) for module in plugin.preload)
    assert all(plugin.options(one.role) for one in plugin.flat)


@pytest.mark.parametrize(
    ("name", "role", "options", "delivery"),
    [
        ("file", "source", {}, "exactly once"),
        ("file", "sink", {}, "exactly once"),
        ("file", "sink", {"on_replaced": "continue"}, "exactly once"),
        ("rocketmq", "source", {}, "exactly once"),
        ("rocketmq", "sink", {}, "exactly once"),
        ("rocketmq", "sink", {"on_unknown": "redeliver", "on_replaced": "continue"}, "exactly once"),
        ("rocketmq", "sink", {"client": "native"}, "exactly once"),
        ("mqtt", "source", {"filters": "a/#"}, "exactly once"),
        ("mqtt", "source", {"filters": "a/#", "failover": ["b"]}, "exactly once"),
        ("mqtt", "source", {"filters": "a/#", "packet_ids": "used_again"}, "at least once"),
        ("mqtt", "source", {"filters": ["a/#", "$share/all/b"]}, "at least once"),
        ("mqtt", "source", {"filters": ["a/#"], "qos": 0}, "at most once"),
        ("postgresql", "source", {"query": "SELECT id FROM t", "incrementing": "id"}, "exactly once"),
        ("mysql", "source", {"query": "SELECT id FROM t", "incrementing": "id"}, "exactly once"),
        ("mqtt", "sink", {}, "at least once"),
        ("mqtt", "sink", {"failover": ["b"]}, "at least once"),
        ("mqtt", "sink", {"qos": 0}, "may be lost or repeated"),
    ],
)
def test_what_a_system_promises_stands_with_its_conditions_on_the_page(
    name: str, role: Role, options: Json, delivery: str
) -> None:
    promised = SYSTEMS[name].guarantee(role, options)
    assert promised is not None
    assert promised.delivery == delivery
    page = " ".join(GUARANTEES.read_text().split())
    assert [one for one in promised.conditions if f"*{one.removesuffix('.')}" not in page] == []


@pytest.mark.parametrize(
    ("name", "option", "stopping"),
    [
        ("file", {"on_replaced": "continue"}, {"on_replaced": "fail"}),
        ("rocketmq", {"on_replaced": "continue"}, {"on_replaced": "fail"}),
        ("rocketmq", {"on_unknown": "redeliver"}, {"on_unknown": "fail"}),
        ("rocketmq", {"client": "native"}, {"client": "own"}),
    ],
)
def test_an_option_that_risks_more_adds_one_condition(name: str, option: Json, stopping: Json) -> None:
    plain, risky = SYSTEMS[name].guarantee("sink", stopping), SYSTEMS[name].guarantee("sink", option)
    assert plain is not None
    assert risky is not None
    assert plain == SYSTEMS[name].guarantee("sink", {})
    assert (risky.delivery, risky.conditions[:-1]) == (plain.delivery, plain.conditions)


@pytest.mark.parametrize("more", [{}, {"packet_ids": "used_again"}, {"filters": ["$share/all/b"]}])
def test_mqtt_depends_on_how_long_and_how_much_the_broker_keeps(more: Json) -> None:
    promised = SYSTEMS["mqtt"].guarantee("source", {"filters": ["a/#"], **more})
    assert promised is not None
    assert all(any(word in one for one in promised.conditions) for word in ("`session_expiry_s`", "queue"))


def test_one_system_is_the_hub_of_flat_documents_and_has_the_connection_main() -> None:
    assert [name for name, plugin in SYSTEMS.items() if plugin.flat_hub] == [
        name for name, plugin in SYSTEMS.items() if "main" in plugin.connections
    ]


def test_bytes_that_a_file_sink_has_set_aside_are_found(tmp_path: Path) -> None:
    (tmp_path / "out.task1.txt.unsettled-3").write_bytes(b"four")
    options = {"path": str(tmp_path / "out.txt"), "tasks": 2}
    assert SYSTEMS["file"].set_aside(options) == [(str(tmp_path / "out.task1.txt.unsettled-3"), 4)]
    assert not SYSTEMS["rocketmq"].set_aside({"topic": "t"})


def test_a_plugin_that_says_nothing_stands_in_nobodys_way() -> None:
    plugin = Plugin("silent", "Silent")
    end = ConfiguredEnd(plugin, {})
    assert [plugin.options(role) for role in ROLES] == [None, None]
    assert plugin.conflict(end, end) is None
    assert [plugin.guarantee(role, {}) for role in ROLES] == [None, None]
    assert (plugin.expiry({}), plugin.files_written({}), plugin.files_read({}), plugin.rules_conflict({})) == (
        None,
    ) * 4
    assert not plugin.feeds({}, {})
    assert not plugin.rule_target(RuleTarget("t", lambda topic: topic), end, end)
    assert not [*plugin.advice("sink", {}), *plugin.probe("sink", {})]
    typed = TypedRecord(b"", None, None, None)
    assert plugin.typed(typed) is typed


class _Table(BaseModel):
    path: str
    rows: int = 1


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> str:
    """A sink of another package: it writes files that are no lines."""

    def conflict(source: ConfiguredEnd, sink: ConfiguredEnd) -> Conflict | None:
        missing = "queues" not in source.plugin.abilities
        return Conflict(("sink", "table", "rows"), f"{source.name} has no queues") if missing else None

    plugin = Plugin(
        "table",
        "Table",
        sink_options=_Table,
        conflict=conflict,
        files_written=lambda sink: FilesWritten("path", [sink["path"]]),
        advice=lambda role, options: iter([f"{role} of {options['rows']}"]),
        probe=lambda role, options: iter([ProbeResult(False, f"{options['path']} is full")]),
    )
    monkeypatch.setitem(vars(SYSTEMS)["_plugins"], plugin.name, plugin)
    return plugin.name


def _document(source: Json, sink: Json) -> Written:
    return Written({"version": 1, "name": "a", "source": source, "sink": sink}, "x")


def test_a_system_of_another_package_is_asked_like_ours(table: str, tmp_path: Path) -> None:
    settings = load_settings(None)
    topics = {"rocketmq": {"name_servers": "a:1", "topics": "t"}}
    sink = {table: {"path": "/out", "rows": 2}}
    assert check(_document(topics, sink), None, settings).notices == ("sink of 2",)
    assert probe_side("sink", Side(table, sink[table])) == [{"ok": False, "what": "sink: /out is full"}]
    with pytest.raises(ConfigError) as told:
        check(_document({"file": {"path": "in.log"}}, sink), None, settings)
    assert [str(fault) for fault in told.value.faults] == ["sink.table.rows: file has no queues"]


def test_what_another_system_writes_our_files_do_not_read(table: str) -> None:
    ends = ConfiguredEnd(SYSTEMS["file"], {"path": "/a/*"}), ConfiguredEnd(SYSTEMS[table], {"path": "/a/b"})
    assert SYSTEMS["file"].conflict(*ends) == (
        ("sink", table, "path"),
        "is one of the files that the source reads (/a/*)",
    )


def test_what_pushes_does_not_feed_what_stores_by_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its numbers are given to other records after a kill, and a newer value would count as stored already."""
    latest = Plugin("latest", "Latest", sink_options=_Table, abilities=frozenset({"by_offset"}))
    monkeypatch.setitem(vars(SYSTEMS)["_plugins"], latest.name, latest)
    pushed = _document({"mqtt": {"host": "a", "filters": ["t"]}}, {"latest": {"path": "/out"}})
    with pytest.raises(ConfigError) as refused:
        check(pushed, None, load_settings(None))
    assert [(fault.path, "pushes" in fault.message) for fault in refused.value.faults] == [("sink.latest", True)]
    check(
        _document({"rocketmq": {"name_servers": "a:1", "topics": "t"}}, {"latest": {"path": "/out"}}),
        None,
        load_settings(None),
    )
