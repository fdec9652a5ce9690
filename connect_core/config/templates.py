"""A commented document to start from, made from the option models. Called by `waybill init`. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from connect_core.config import option_models
from connect_core.config.document import check_name
from connect_core.config.faults import nearest
from connect_core.config.option_pages import Option, described
from connect_core.errors import ConfigError
from connect_core.sdk.plugin import ROLES, Role

_INDENT = "    "
_COMMENT = f"{_INDENT}# "


def template(source: str, sink: str, name: str) -> str:
    """YAML that `waybill check` accepts: required options with their example, the others as comments.

    Raises ConfigError for a system that cannot be a source or a sink, and for an illegal name.
    """
    try:
        check_name(name)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    systems: dict[Role, str] = {"source": source, "sink": sink}
    for role in ROLES:
        known = option_models.systems(role)
        if systems[role] not in known:
            raise ConfigError(f'No system "{systems[role]}" can be a {role}{nearest(systems[role], known)}')
    ends = "\n".join(line for role in ROLES for line in _end(role, systems[role]))
    plugin = option_models.plugin(sink)
    fields = _FIELDS if plugin is not None and plugin.takes_rows else ""
    return _TEMPLATE.format(name=name, ends=ends, fields=fields)


_TEMPLATE = """\
version: 1
name: {name}
description: ""
{ends}
{fields}tasks: 1                       # how many tasks share the partitions
schedule: {{manual: true}}       # or every: 30s | cron: "*/5 * * * *" | continuous: true | on_change: true
# limits: {{range_records: 1000000, range_bytes: 1GiB}}
# errors: {{tolerance: none, on_data_loss: fail}}      # tolerance: none, all or a number; on_data_loss: fail or skip
# alerts: {{lag: 5m, silent: 15m}}
# verify: {{every: 1d, share: 5%}}                     # read the target again and compare it with the receipts
# airflow: {{queue: default, pool: default_pool}}      # where Airflow runs the tasks
"""
_FIELDS = """\
parse:                         # the fields of records become columns
  format: json
  fields: {id: int64, name: text}
"""


def _end(role: Role, system: str) -> Iterator[str]:
    yield f"{role}:"
    yield f"  {system}:"
    options = [option for option in described(system) if option.role == role]
    plugin = option_models.plugin(system)
    name, said = next(iter(plugin.connections.items()), ("", {})) if plugin else ("", {})
    if name:
        yield f"{_INDENT}connection: {name}         # conf/connections/{name}.yaml, else the local stack"
    for option in options:
        if option.name in said:
            continue
        yield from textwrap.wrap(option.description, 110, initial_indent=_COMMENT, subsequent_indent=_COMMENT)
        yield f"{_INDENT}{'' if option.required else '# '}{option.name}: {_value(option)}"


def _value(option: Option) -> str:
    """The default, else the first example: written so that YAML reads it back as it is."""
    value = option.default or (option.examples[0] if option.examples else "")
    value = value.lstrip("/") if option.path else value  # relative: below the first of files_roots
    plain = value.replace(".", "").isdecimal() or value in ("true", "false") or value.startswith(("[", "{"))
    return value if plain else f'"{value}"'
