"""What a flat document becomes: the native one, with where each part is from and what a person is told. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from connect_core.config.written import Place
from connect_core.errors import Fault
from connect_core.sdk.plugin import Role
from connect_core.sdk.values import Json


@dataclass
class TranslatedDocument:
    """`origins` says from which flat key a native place came. Faults carry the flat key as their path. `given` are the
    flat keys, `system` is that of their class and `role` which end it is. `gives_json`, `schemas_option`
    and `takes_rows`: see `sdk.flat.FlatClass`."""

    name: str
    data: Json = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    origins: dict[Place, str] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    system: str = ""
    role: Role | None = None
    gives_json: bool = False
    schemas_option: str = ""
    takes_rows: bool = False

    def put(self, key: str, place: tuple[str, ...], value: Any) -> None:
        *outer, last = place
        holder = self.data
        for part in outer:
            holder = holder.setdefault(part, {})
        holder[last] = value
        self.origins[place] = key

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def ignore(self, key: str, why: str) -> None:
        self.notices.append(f"{key}: accepted without effect: {why}")

    def refuse(self, key: str, why: str) -> None:
        self.faults.append(Fault(key, why))
