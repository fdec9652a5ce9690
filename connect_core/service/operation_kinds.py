"""The kinds of operations: who may begin one, which words it takes, what it does, and how it is gone on with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Protocol

from connect_core.errors import ConfigError, Fault
from connect_core.ledger import REPLAY_KIND, UNFINISHED, Operation
from connect_core.orchestration import control
from connect_core.replication.backfill.request import check as check_request
from connect_core.sdk.values import Json
from connect_core.service import backfill_runs, letter_replays, runs, verifying
from connect_core.service.backfill_runs import Request
from connect_core.service.callers import AccessRole
from connect_core.service.dead_letters import Words, wanted_of
from connect_core.service.durations import parse_seconds, parse_share
from connect_core.service.letter_replays import Replay
from connect_core.service.opened import AtWork, Opened
from connect_core.service.run_report import RunListener
from connect_core.service.runs import How


class Telling(Protocol):
    """Whom an operation tells how far it has come."""

    @property
    def listener(self) -> RunListener: ...

    def positions(self, done: int, planned: int) -> None: ...


def _no_streams(opened: Opened, operation: Operation) -> Sequence[str]:
    return ()


@dataclass(frozen=True)
class OperationKind:
    """`check` raises ConfigError for words that cannot be followed. `streams` are those that it has begun and that are
    not over."""

    needs: AccessRole
    check: Callable[[Json], object]
    do: Callable[[AtWork, Operation, Telling], Json]
    again: Callable[[Operation], str]
    streams: Callable[[Opened, Operation], Sequence[str]] = _no_streams
    ends_by_itself: bool = True
    """Whether it ends at a range boundary once its streams are cancelled."""


def continuing(operation: Operation) -> str:
    """What a person does to have an operation that was interrupted done after all."""
    return KINDS[operation.kind].again(operation)


def _how(telling: Telling, asked: Json) -> How:
    return How(lambda: nullcontext(telling.listener), telling.listener.log, accept_gaps=bool(asked.get("accept_gaps")))


# ---------------------------------------------------------------------------------------------------------------- runs


def _run(opened: AtWork, operation: Operation, telling: Telling) -> Json:
    """By the Airflow that runs the connectors, unless gaps are accepted, which is for one run by a person."""
    name, how = operation.connector, _how(telling, operation.asked)
    with control.airflow_of(opened.home, opened.settings) as airflow:
        if airflow and not how.accept_gaps:
            control.begin_run(airflow, name)
            return {"connector": name, "begun_in": "airflow"}
    return runs.run(opened, name, how)


def _run_again(operation: Operation) -> str:
    return f"POST /api/v1/connectors/{operation.connector}/runs: the next run continues where this one stopped"


# ----------------------------------------------------------------------------------------------------------- backfills


def _request(asked: Json, number: str = "") -> Request:
    return Request(
        begin=asked.get("from", ""),
        end=asked.get("to", ""),
        ranges=tuple(asked.get("ranges", ())),
        run=asked.get("run", ""),
        sink=_options(asked),
        id=asked.get("id") or number,
        accept_gaps=bool(asked.get("accept_gaps")),
        why=asked.get("why", ""),
    )


def _check_backfill(asked: Json) -> None:
    """With a `stream` it goes on with one that there is."""
    if asked.get("stream"):
        return
    request = _request(asked)
    if not request.says_what() and not request.id:
        words = "say from (and to), or ranges, or run; or the id of one to continue"
        raise ConfigError("This is no backfill", faults=(Fault("from", words),))
    check_request(request)


def _options(asked: Json) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in asked.get("sink", {}).items())


def _backfill(opened: AtWork, operation: Operation, telling: Telling) -> Json:
    how = _how(telling, operation.asked)
    if stream := operation.asked.get("stream"):
        return backfill_runs.resume(opened, operation.connector, stream, how)
    return backfill_runs.begin(opened, operation.connector, _request(operation.asked, operation.id), how)


def _backfill_again(operation: Operation) -> str:
    number, name = operation.asked.get("id") or operation.id, operation.connector
    if stream := operation.asked.get("stream"):
        return f"POST /api/v1/connectors/{name}/backfills/{stream}/resume: it continues"
    return (
        f'POST /api/v1/connectors/{name}/backfills with {{"id": "{number}"}}, or, where it had begun nothing yet, with'
        f" the same words: it continues; or waybill backfills resume {name} {number}"
    )


def _backfill_streams(opened: Opened, operation: Operation) -> Sequence[str]:
    number = operation.asked.get("id") or operation.id
    stream = operation.asked.get("stream")
    names = (stream,) if stream else (f"backfill-{number}", f"replay-{number}")
    found = opened.ledger.backfills(operation.uid)
    return [one.stream for one in found if one.stream in names and one.state in UNFINISHED]


# ------------------------------------------------------------------------------------------- replays of dead letters


def replay_of(asked: Json) -> Replay:
    """As a request has the words of one."""
    said = {key: asked[key] for key in ("stage", "since", "until", "partition", "reason", "run") if key in asked}
    words = Words(**said, ids=tuple(asked.get("ids", ())))
    return Replay(words, bool(asked.get("again")), _options(asked), asked.get("why", ""))


def _check_replay(asked: Json) -> None:
    wanted_of(replay_of(asked).words)


def _replay(opened: AtWork, operation: Operation, telling: Telling) -> Json:
    """Who asks for it by a request has agreed."""
    wanted, how = replay_of(operation.asked), _how(telling, operation.asked)
    return letter_replays.replay(opened, operation.connector, wanted, lambda preview: None, how)


def _replay_again(operation: Operation) -> str:
    return (
        f"POST /api/v1/connectors/{operation.connector}/dead-letters/replays with the same words:"
        " it continues what was begun, and sends each record once"
    )


def _replay_streams(opened: Opened, operation: Operation) -> Sequence[str]:
    """Those of this caller since it began."""
    since = operation.begun_at or operation.made_at
    return [
        one.stream
        for one in opened.ledger.backfills(operation.uid)
        if one.kind == REPLAY_KIND and one.state in UNFINISHED and one.who == operation.who
        if one.created_at and one.created_at >= since
    ]


# ------------------------------------------------------------------------------------------------------- verifications


def _check_verification(asked: Json) -> None:
    faults = []
    for key, parse in (("since", parse_seconds), ("share", parse_share)):
        try:
            if asked.get(key):
                parse(asked[key])
        except ValueError as error:
            faults.append(Fault(key, str(error)))
    if faults:
        raise ConfigError("This is no verification", faults=tuple(faults))


def _verify(opened: AtWork, operation: Operation, telling: Telling) -> Json:
    asked = operation.asked
    return verifying.verified(
        opened,
        operation.connector,
        run=asked.get("run", ""),
        since_s=parse_seconds(asked["since"]) if asked.get("since") else None,
        stream=asked.get("stream") or "live",
        share=parse_share(asked["share"]) if asked.get("share") else 1.0,
        progress=telling.positions,
    )


def _verify_again(operation: Operation) -> str:
    return f"POST /api/v1/connectors/{operation.connector}/verifications: it writes nothing, and begins again"


KINDS: Mapping[str, OperationKind] = {
    "run": OperationKind("operator", lambda asked: None, _run, _run_again, ends_by_itself=False),
    "backfill": OperationKind("admin", _check_backfill, _backfill, _backfill_again, _backfill_streams),
    "replay": OperationKind("admin", _check_replay, _replay, _replay_again, _replay_streams),
    "verification": OperationKind("operator", _check_verification, _verify, _verify_again, ends_by_itself=False),
}
"""By the word that operations have for them."""
