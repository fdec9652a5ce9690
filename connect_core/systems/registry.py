"""The systems there are, by name: our own, one row each, and those of other packages, found by the entry point group
`waybill.systems`, each entry a `sdk.plugin.Plugin`.

Importing this module imports option models only; entry points are looked up at the first use. One that is broken is no
system: whoever names it is told why, and all others are as they are without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from pydantic import BaseModel

from connect_core import __version__, packages
from connect_core.errors import ContractBroken
from connect_core.packages import Brought, Replaced
from connect_core.sdk.plugin import ROLES, Plugin
from connect_core.systems.file.plugin import PLUGIN as FILE
from connect_core.systems.mqtt.plugin import PLUGIN as MQTT
from connect_core.systems.mysql.binlog.plugin import PLUGIN as MYSQL_CHANGES
from connect_core.systems.mysql.plugin import PLUGIN as MYSQL
from connect_core.systems.postgresql.changes.plugin import PLUGIN as POSTGRESQL_CHANGES
from connect_core.systems.postgresql.plugin import PLUGIN as POSTGRESQL
from connect_core.systems.rocketmq.plugin import PLUGIN as ROCKETMQ
from connect_core.systems.sql.plugin import PLUGIN as SQL

_OWN = {one.name: one for one in (FILE, MQTT, MYSQL, MYSQL_CHANGES, POSTGRESQL, POSTGRESQL_CHANGES, ROCKETMQ, SQL)}


class _Found(NamedTuple):
    plugins: dict[str, Plugin]
    broken: dict[str, ContractBroken]


class Systems(Mapping[str, Plugin]):
    @cached_property
    def _found(self) -> _Found:
        found = _Found({}, {})
        for name, one in packages.brought(packages.SYSTEMS).items():
            try:
                found.plugins[name] = _outside(one)
            except ContractBroken as error:
                found.broken[name] = error
        return found

    @cached_property
    def _plugins(self) -> dict[str, Plugin]:
        return self._found.plugins | _OWN

    @property
    def broken(self) -> Mapping[str, ContractBroken]:
        """Why what a package brings is no system, by the name of its entry."""
        return self._found.broken

    def release(self, name: str) -> str:
        """Package and version of a system, as `waybill-kafka 1.0`; of our own too."""
        return f"waybill {__version__}" if name in _OWN else packages.releases(packages.SYSTEMS)[name]

    def reload(self) -> list[Replaced]:
        """Looks up packages anew: those that were replaced, and those that came or went."""
        replaced = packages.reload()
        for kept in ("_found", "_plugins"):
            vars(self).pop(kept, None)
        return replaced

    def __getitem__(self, name: str) -> Plugin:
        return self._plugins[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plugins)

    def __len__(self) -> int:
        return len(self._plugins)


def _outside(one: Brought) -> Plugin:
    """Raises ContractBroken."""
    if one.name in _OWN:
        raise one.broken(f"{one.name} is a system of Waybill itself; it needs another name")
    return packages.loaded(one, Plugin, lambda plugin: _wrong(one.name, plugin))


def _wrong(name: str, plugin: Plugin) -> str:
    """What keeps it from being used at all."""
    if plugin.name != name:
        return f"its Plugin has the name {plugin.name}"
    for role in ROLES:
        options: Any = plugin.options(role)
        opens = plugin.open_source if role == "source" else plugin.open_sink
        if (options is None) != (opens is None):
            return f"its {role} needs both {role}_options and open_{role}"
        if options is not None and not (isinstance(options, type) and issubclass(options, BaseModel)):
            return f"{role}_options is no model of pydantic"
        if options is not None:
            options.model_rebuild()  # a model that is not whole raises
    return ""


SYSTEMS = Systems()
