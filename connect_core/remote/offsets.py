"""Offsets of a connector behind a server: moved, put back, taken over. What is changed is what somebody agreed to:
where a run has moved an offset since, nothing is."""

from __future__ import annotations

from datetime import datetime

from connect_core.remote.client import ServerClient
from connect_core.remote.values import at, refuse
from connect_core.sdk.values import Json, Position
from connect_core.service.offset_exports import ExportedOffsets
from connect_core.service.offsets import Agree, LastChange, Move, Repeats
from connect_core.service.opened import Say


def moved(
    client: ServerClient, name: str, partition: str, offset: int, *, why: str, abandon: bool, agree: Agree
) -> Json:
    refuse(abandon, "--abandon")
    path = f"{at(name)}/offsets"
    asked: Json = {"offsets": {partition: offset}}
    seen = client.answered("PATCH", path, query={"preview": True}, body=asked).told
    repeats, before, after = seen["repeats"][partition], seen["before"][partition], seen["after"][partition]
    agree(Move(name, partition, before, after, Repeats(**repeats)))
    told = client.answered("PATCH", path, body=asked | {"why": why, "before": {partition: before}}).told
    was, now = told["incarnations"][partition]
    return {
        "connector": name,
        "partition": partition,
        "before": None if was is None else {"incarnation": was, "offset": told["before"][partition]},
        "after": {"incarnation": now, "offset": told["after"][partition]},
        "repeats": repeats,
    }


def undone(client: ServerClient, name: str, partition: str, agree: Agree) -> Json:
    path = f"{at(name)}/offsets/undo"
    asked: Json = {"partition": partition}
    seen = client.judged(path, asked | {"preview": True})
    before, after, change = _offset(seen["before"]), _offset(seen["after"]), seen["undone"]
    by_hand = LastChange(
        before=Position(**seen["after"]) if seen["after"] else None,
        who=change["who"],
        changed_at=datetime.fromisoformat(change["at"]),
        built_on=change["built_on"],
        newest_run=change["newest_run"],
    )
    agree(Move(name, partition, before, after, Repeats(**seen["repeats"]), undone=by_hand))
    return _told(client.post(path, asked | {"before": before}))


def exported(client: ServerClient, name: str, say: Say) -> Json:
    told = client.get(f"{at(name)}/offsets/export")
    for notice in told["notices"]:
        say(notice)
    found: Json = told["exported"]
    return found


def imported(client: ServerClient, name: str, taken: ExportedOffsets, why: str, agree: Agree) -> Json:
    path = f"{at(name)}/offsets/import"
    asked: Json = {"exported": taken.model_dump()}
    seen = client.judged(path, asked | {"preview": True})
    for partition, repeats in seen["repeats"].items():
        agree(Move(name, partition, seen["before"][partition], seen["after"][partition], Repeats(**repeats)))
    return _told(client.post(path, asked | {"why": why, "before": seen["before"]}))


def _told(answer: Json) -> Json:
    """As the use cases give it: what was asked for was done."""
    return {key: value for key, value in answer.items() if key != "applied"}


def _offset(position: Json | None) -> int | None:
    return position["offset"] if position else None
