"""What the world says of one end of a document, for `check --probe`: are the servers and paths there? Reads only."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connect_core.errors import WaybillError

if TYPE_CHECKING:
    from connect_core.config.option_models import Role
    from connect_core.contracts import Json, Side
    from connect_core.rocketmq import Client

Seen = dict[str, Any]
"""`ok` and, in words, `what` was seen."""


def probe_side(role: Role, side: Side) -> list[Seen]:
    """A line for each thing looked at; an end whose system nothing is known of has none."""
    from connect_core.config import reveal

    looks = {"file": _files, "rocketmq": _rocketmq}
    look = looks.get(side.system)
    try:
        return list(look(role, reveal(side.options))) if look else []
    except WaybillError as error:
        return [_seen(False, f"{role}: {error}")]


def client_of(options: Json) -> Client:
    """A RocketMQ client for the options of a side, references included."""
    from connect_core.config import reveal
    from connect_core.rocketmq import Client, ClientOptions
    from connect_core.systems import SYSTEMS

    model = SYSTEMS["rocketmq"].sink_options
    known = {key: value for key, value in reveal(options).items() if model and key in model.model_fields}
    checked: Any = model.model_validate({"topic": "any", **known}) if model else None
    return Client(ClientOptions(name_servers=checked.name_servers))


def _files(role: Role, options: Json) -> Iterator[Seen]:
    path = options["path"]
    if role == "source":
        matches = glob.glob(path, recursive=True)
        yield _seen(bool(matches), f"source: {len(matches)} files match {path}")
        for match in matches:
            if not os.access(match, os.R_OK):
                yield _seen(False, f"source: {match} cannot be read")
        return
    folder = Path(path).parent
    writable = os.access(path if os.path.exists(path) else folder, os.W_OK)
    yield _seen(writable, f"sink: {path} can {'' if writable else 'not '}be written")


def _rocketmq(role: Role, options: Json) -> Iterator[Seen]:
    with client_of(options) as client:
        topics = set(client.topics.all_names())
    servers = options["name_servers"]
    shown = servers if isinstance(servers, str) else ", ".join(servers)
    yield _seen(True, f"{role}: the name server answers ({shown})")
    if role == "source":
        wanted = options["topics"]
        for topic in wanted.replace(",", ";").split(";") if isinstance(wanted, str) else wanted:
            yield _seen(topic in topics, f"source: topic {topic} {'is there' if topic in topics else 'does not exist'}")
        return
    topic, there = options["topic"], options["topic"] in topics
    made = options.get("create", True)
    words = "is there" if there else "will be created" if made else "does not exist"
    yield _seen(there or made, f"sink: topic {topic} {words}")


def _seen(ok: bool, what: str) -> Seen:
    return {"ok": ok, "what": what}
