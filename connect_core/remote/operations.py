"""Long work: a server does it, and the command follows it to its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from connect_core.errors import Retriable, Unreachable, WaybillError
from connect_core.remote.client import ServerClient
from connect_core.remote.failures import of_problem
from connect_core.remote.values import at
from connect_core.sdk.values import Json
from connect_core.service.run_report import Progress, RunListener

Listening = Callable[[], AbstractContextManager[RunListener]]
_LOOK_EVERY_S = 0.5
_GOES_ON_AGAIN = {
    "run": "Run the command again: the next run continues where this one stopped",
    "verification": "Run the command again: it writes nothing",
    "replay": "Run the command again: it continues, and sends each record once",
}


def done(client: ServerClient, name: str, path: str, asked: Json, listening: Listening) -> Json:
    """Begins it and stays until it is over: its result, also that of a run which a person has ended by
    pausing or deleting its connector. Raises the error that it has failed with. Who leaves it ends a
    run or a verification; anything else goes on, and says how it is ended."""
    begun = client.post(f"{at(name)}/{path}", {key: value for key, value in asked.items() if value})
    with listening() as listener:
        try:
            over = _followed(client, begun, listener)
        except KeyboardInterrupt:
            _leave(client, begun, listener)
            raise
        if over["result"] and over["problem"]:
            listener.log(over["problem"]["detail"])
    if over["state"] != "succeeded" and not over["result"]:
        raise _why(over)
    result: Json = over["result"]
    return result


def _followed(client: ServerClient, now: Json, listener: RunListener) -> Json:
    told: Any = None
    listener.log(f"{now['connector']}: the server works on it as operation {now['id']}")
    while now["ended_at"] is None:
        time.sleep(_LOOK_EVERY_S)
        now = _looked_at(client, now)
        if now["progress"] and now["progress"] != told:
            told = now["progress"]
            _tell(now["kind"], told, listener)
    return now


def _looked_at(client: ServerClient, now: Json) -> Json:
    try:
        return client.get(f"/operations/{now['id']}")
    except Unreachable as error:
        raise Unreachable(
            f"{error.what}; operation {now['id']} of connector {now['connector']} was at work",
            where=error.where,
            next_step=f"It ends with its server, and goes on where only the way there is gone. {_again(now)}",
        ) from None


def _tell(kind: str, progress: Json, listener: RunListener) -> None:
    if kind == "verification":
        listener.log(f"{progress['done']:,} of {progress['planned']:,} ranges read again")
    else:
        listener.progress(Progress(0, progress["done"], progress["planned"], progress.get("records", 0)))


def _leave(client: ServerClient, begun: Json, listener: RunListener) -> None:
    if begun["kind"] in ("run", "verification"):
        client.answered("DELETE", f"/operations/{begun['id']}")
        listener.log(f"Operation {begun['id']} is cancelled")
    else:
        listener.log(
            f"Operation {begun['id']} goes on at the server. To end it for good: DELETE"
            f" {client.server.url}/api/v1/operations/{begun['id']}"
        )


def _why(over: Json) -> WaybillError:
    if over["state"] == "failed" or (over["state"] == "cancelled" and over["problem"]):
        return of_problem(over["problem"])
    where = f"connector {over['connector']}, operation {over['id']}"
    if over["state"] == "cancelled":
        return Retriable("The operation was cancelled", where=where, next_step=_again(over))
    return Retriable(str(over["problem"]["detail"]), where=where, next_step=_again(over))


def _again(operation: Json) -> str:
    if (kind := operation["kind"]) != "backfill":
        return _GOES_ON_AGAIN[kind]
    if stream := operation["asked"].get("stream"):
        again = f"waybill backfills resume {operation['connector']} {stream}"
        return f"It continues with `{again}`; each record is sent once"
    number = operation["asked"].get("id") or operation["id"]
    return (
        f"It continues with `waybill backfill {operation['connector']} --id {number}`, and with the same words beside"
        " it where it had begun nothing yet; each record is sent once"
    )
