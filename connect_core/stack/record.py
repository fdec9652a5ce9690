"""`stack.json`: what of the local stack of one home was started, and what its clients need to know.

Written by the lifecycle and the supervisor only, under the home's lock and by rename; read by everybody. It holds paths
and ports, never a secret: the engine's token and Airflow's password stay in files of their own, which only their owner
can read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from connect_core.errors import Unreachable
from connect_core.stack.parts import API_SERVER, BROKER, ENGINE, MQTT_BROKER, NAME_SERVER, POSTGRESQL, Options
from connect_core.stack.processes import Process

_FORMAT = 1
_FILE = "stack.json"
_WANTED_FILE = "stack.wanted"


@dataclass(frozen=True)
class StackPart:
    """One started server; `since` is wall-clock seconds, for people only."""

    name: str
    process: Process
    ports: Mapping[str, int]
    version: str
    facts: Mapping[str, str]
    since: float
    restarts: int = 0
    told: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The ports of other parts that it was started with."""


@dataclass(frozen=True)
class Stack:
    """What is known of the stack of `home`. That a part stands here does not mean that it still runs."""

    home: Path
    options: Options
    parts: Mapping[str, StackPart] = field(default_factory=dict)
    supervisor: Process | None = None
    last_ports: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Of every part since the first one was started: one that is started again is found where it was."""

    @property
    def name_servers(self) -> str:
        """RocketMQ's notation: `host:port`."""
        return f"127.0.0.1:{self.part(NAME_SERVER).ports['remoting']}"

    @property
    def mqtt_port(self) -> int:
        """Of the MQTT broker, on 127.0.0.1."""
        return self.part(MQTT_BROKER).ports["mqtt"]

    @property
    def broker_name(self) -> str:
        return self.part(BROKER).facts["broker_name"]

    @property
    def database_url(self) -> str:
        """SQLAlchemy's notation, for the ledger."""
        return self.database("waybill")

    def database(self, name: str) -> str:
        """The SQLAlchemy URL of any database of the embedded server (Airflow has one of its own)."""
        return postgresql_url(self.part(POSTGRESQL).facts["socket_folder"], name)

    @property
    def spark_remote(self) -> str:
        """The Spark Connect URL with its token: a secret, never to be logged. The host must be this word."""
        token = self.engine_token_file.read_text().strip()
        return f"{self.engine_address}/;token={token}"

    @property
    def airflow_url(self) -> str:
        """Of Airflow's page and its REST API. Who logs in is `airflow_user`, with `airflow_password`."""
        return f"http://127.0.0.1:{self.part(API_SERVER).ports['http']}"

    @property
    def airflow_user(self) -> str:
        return self.part(API_SERVER).facts["user"]

    @property
    def airflow_password_file(self) -> Path:
        """User name -> password, as JSON; only its owner can read it."""
        return self.home / self.part(API_SERVER).facts["password_file"]

    @property
    def airflow_password(self) -> str:
        """A secret, never to be logged."""
        found: str = json.loads(self.airflow_password_file.read_text())[self.airflow_user]
        return found

    @property
    def engine_log(self) -> Path:
        return self.home / "logs" / f"{ENGINE}.log"

    def part(self, name: str) -> StackPart:
        """`Unreachable` when that part was never started or was stopped."""
        found = self.parts.get(name)
        if found is None:
            step = f"Run `waybill dev up --only {name}`" if name == MQTT_BROKER else "Run `waybill dev up`"
            raise Unreachable(f"The local {name} is not running", where=str(self.home), next_step=step)
        return found

    @property
    def engine_address(self) -> str:
        """The Spark Connect URL without its token: for people."""
        return f"sc://localhost:{self.part(ENGINE).ports['grpc']}"

    @property
    def engine_token_file(self) -> Path:
        """Only its owner can read it."""
        return self.home / self.part(ENGINE).facts["token_file"]

    def having(self, part: StackPart) -> Stack:
        ports = {**self.last_ports, part.name: part.ports}
        return replace(self, parts={**self.parts, part.name: part}, last_ports=ports)

    def without(self, *names: str) -> Stack:
        return replace(self, parts={name: part for name, part in self.parts.items() if name not in names})


def postgresql_url(socket_folder: str, database: str) -> str:
    """With its port: else libpq takes the one of PGPORT, which names another server."""
    return f"postgresql+psycopg2://postgres@/{database}?host={quote(socket_folder, safe='/')}&port=5432"


def load(home: Path) -> Stack | None:
    """The stack recorded in `home`; None when nothing of it was started."""
    path = home / _FILE
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    try:
        return _decode(home, json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        raise Unreachable(
            f"The record of the local stack cannot be read: {error!r}",
            where=str(path),
            next_step="It was written by another version: stop the stack with that version, or end its processes by "
            "hand and remove the file",
        ) from error


def wanted(home: Path) -> tuple[str, ...]:
    """The parts that ran when the stack was stopped as a whole, or died with its machine."""
    try:
        return tuple(json.loads((home / _WANTED_FILE).read_text()))
    except (FileNotFoundError, ValueError):
        return ()


def want(home: Path, names: Collection[str]) -> None:
    """Replaces what `wanted` gives."""
    _write(home / _WANTED_FILE, sorted(names))


def save(stack: Stack) -> None:
    """Replaces the record at once; removes it when nothing is left to remember."""
    path = stack.home / _FILE
    if not stack.parts and stack.supervisor is None:
        path.unlink(missing_ok=True)
        return
    _write(path, _encode(stack))


def _write(path: Path, content: object) -> None:
    """At once: whoever reads it finds the old one or the new one."""
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    fresh.replace(path)


def _encode(stack: Stack) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "options": asdict(stack.options),
        "parts": {name: asdict(part) for name, part in stack.parts.items()},
        "supervisor": asdict(stack.supervisor) if stack.supervisor else None,
        "last_ports": {name: dict(ports) for name, ports in stack.last_ports.items()},
    }


def _decode(home: Path, document: dict[str, Any]) -> Stack:
    if document["format"] != _FORMAT:
        raise ValueError(f"format {document['format']}")
    parts = {
        name: StackPart(**{**part, "process": Process(**part["process"])}) for name, part in document["parts"].items()
    }
    supervisor = Process(**document["supervisor"]) if document["supervisor"] else None
    options = document["options"]
    options |= {name: tuple(options.get(name, ())) for name in ("rocketmq_jvm", "engine_jvm")}
    ports = {name: part.ports for name, part in parts.items()} | document.get("last_ports", {})
    return Stack(home, Options(**options), parts, supervisor, ports)
