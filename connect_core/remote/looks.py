"""Looks that move nothing: plans, logs, the newest records, what records would become; and where groups go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from connect_core.remote.client import ServerClient
from connect_core.remote.documents import tried
from connect_core.remote.values import at, held, is_name, refuse, timed
from connect_core.sdk.values import Json
from connect_core.service.trying import MOST, TryRequest


def plan(client: ServerClient, name: str, sample: int) -> Json:
    query = {"sample": sample} if sample else {}
    told: Json = timed(client.get(f"{at(name)}/plan", **query), "since")
    return told | {"sample": held(told["sample"], "value")} if sample else told


def log(client: ServerClient, name: str, run: str) -> Json:
    """Of that run, or of the newest."""
    from connect_core.service.logs import no_run

    if not run:
        newest = client.listed(f"{at(name)}/runs", "runs", 1)
        if not newest:
            raise no_run(name)
        run = newest[0]["id"]
    return client.get(f"{at(name, 'runs', run)}/log")


def newest(client: ServerClient, name: str, last: int, *, is_topic: bool, connection: str) -> Json:
    """In the target of the connector of that name; where there is none, or it `is_topic`, in that topic."""
    refuse(last > MOST, f"--last {last}")
    if not is_topic and is_name(name) and client.is_there(at(name)):
        told = client.get(f"{at(name)}/newest", last=last)
    else:
        told = client.get("/topics/newest", topic=name, connection=connection, last=last)
    found: Json = held(timed(told, "stored_at"), "value")
    return found


def suggested(client: ServerClient, where: str, last: int, connection: str) -> Json:
    """Of a file of this machine, or of a topic."""
    from connect_core.service import fields

    def messages(topic: str, last: int) -> Sequence[bytes]:
        return [one["value"] for one in newest(client, topic, last, is_topic=True, connection=connection)["messages"]]

    return fields.suggested(where, last, messages)


def try_document(client: ServerClient, path: Path, asked: TryRequest) -> Json:
    """Of a file of this machine."""
    told: Json = held(tried(client, path, _said(asked)), "value")
    return told


def try_rules(client: ServerClient, name: str, asked: TryRequest) -> Json:
    told: Json = held(client.judged(f"{at(name)}/rules/try", _said(asked)), "value")
    return told


def group(client: ServerClient, name: str, group: str, *, apply: bool) -> Json:
    path = at(name, "groups", group)
    return client.post(f"{path}/apply") if apply else client.get(path)


def _said(asked: TryRequest) -> Json:
    return {key: value for key, value in asdict(asked).items() if value is not None}
