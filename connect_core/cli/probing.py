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


def name_servers_of(options: Json) -> tuple[str, ...]:
    """The name servers that the options of a RocketMQ side give, in whatever form; references are revealed."""
    from connect_core.config import reveal
    from connect_core.systems.rocketmq.options import RocketMQSinkOptions

    given = reveal({"name_servers": options.get("name_servers")})
    return RocketMQSinkOptions.model_validate({**given, "topic": "any"}).name_servers


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
    from connect_core.rocketmq import Client, ClientOptions
    from connect_core.systems.rocketmq.options import RocketMQSourceOptions

    servers = name_servers_of(options)
    with Client(ClientOptions(name_servers=servers)) as client:
        topics = set(client.topics.all_names())
    yield _seen(True, f"{role}: the name server answers ({', '.join(servers)})")
    if role == "source":
        for topic in RocketMQSourceOptions.model_validate(options).topics:
            yield _seen(topic in topics, f"source: topic {topic} {'is there' if topic in topics else 'does not exist'}")
        return
    topic, there = options["topic"], options["topic"] in topics
    made = options.get("create", True)
    words = "is there" if there else "will be created" if made else "does not exist"
    yield _seen(there or made, f"sink: topic {topic} {words}")


def _seen(ok: bool, what: str) -> Seen:
    return {"ok": ok, "what": what}
