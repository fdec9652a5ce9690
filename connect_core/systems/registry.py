"""The systems there are, by name: our own, one row each, and those of other packages, found by the entry point group
`waybill.systems`, each entry a `sdk.plugin.Plugin`.

Importing this module imports option models only; entry points are looked up at the first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points

from connect_core.origin import know_package
from connect_core.sdk.plugin import Plugin
from connect_core.systems.file.plugin import PLUGIN as FILE
from connect_core.systems.mqtt.plugin import PLUGIN as MQTT
from connect_core.systems.mysql.plugin import PLUGIN as MYSQL
from connect_core.systems.postgresql.changes.plugin import PLUGIN as POSTGRESQL_CHANGES
from connect_core.systems.postgresql.plugin import PLUGIN as POSTGRESQL
from connect_core.systems.rocketmq.plugin import PLUGIN as ROCKETMQ
from connect_core.version import PLUGINS

_OWN = (FILE, MQTT, MYSQL, POSTGRESQL, POSTGRESQL_CHANGES, ROCKETMQ)


def _loaded(entry: EntryPoint) -> Plugin:
    plugin: Plugin = entry.load()
    know_package(entry.module, entry.name)
    return plugin


class _Registry(Mapping[str, Plugin]):
    @cached_property
    def _plugins(self) -> dict[str, Plugin]:
        outside = {entry.name: _loaded(entry) for entry in entry_points(group=PLUGINS)}
        return {**outside, **{one.name: one for one in _OWN}}

    def __getitem__(self, name: str) -> Plugin:
        return self._plugins[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plugins)

    def __len__(self) -> int:
        return len(self._plugins)


SYSTEMS: Mapping[str, Plugin] = _Registry()
