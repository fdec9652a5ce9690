"""Plugins: what they say of their systems is sound, and what they do not say has a default."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from connect_core.sdk.plugin import ROLES, ConfiguredEnd, Plugin, RuleTarget, TypedRecord
from connect_core.systems import SYSTEMS


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_a_plugin_is_sound(name: str) -> None:
    plugin = SYSTEMS[name]
    assert plugin.name == name
    assert [bool(plugin.source_options), bool(plugin.sink_options)] == [
        bool(plugin.open_source),
        bool(plugin.open_sink),
    ]
    assert all(plugin.options(role) for role in plugin.lasting)
    assert all(find_spec(module) for module in plugin.preload)
    assert all(plugin.options(one.role) for one in plugin.flat)


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
    assert (plugin.expiry({}), plugin.files_written({}), plugin.files_read({}), plugin.rules_conflict({})) == (
        None,
    ) * 4
    assert not plugin.feeds({}, {})
    assert not plugin.rule_target(RuleTarget("t", lambda topic: topic), end, end)
    assert not [*plugin.advice("sink", {}), *plugin.probe("sink", {})]
    typed = TypedRecord(b"", None, None, None)
    assert plugin.typed(typed) is typed
