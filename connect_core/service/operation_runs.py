"""One operation, done by this process: its progress, and how it ended, go into the ledger."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from threading import Event, Lock, Thread

from connect_core.errors import ConfigError, Failure, Retriable, WaybillError
from connect_core.ledger import Ledger, Operation
from connect_core.sdk.values import Json
from connect_core.service.backfill_runs import CalledOff
from connect_core.service.json_values import plain
from connect_core.service.opened import AtWork
from connect_core.service.operation_kinds import KINDS
from connect_core.service.operations import cancel_streams
from connect_core.service.run_report import Progress, RunListener, ended_by

_TELL_EVERY_S = 0.5
_LOOK_EVERY_S = 1.0


def execute(opened: AtWork, number: str, end: Callable[[], None]) -> bool:
    """Does it, for who has asked for it; whether all went well. One that was cancelled meanwhile ends at its next range
    boundary where it moves records, else by `end`, which ends this process."""
    ledger = opened.ledger
    if not ledger.begin_operation(number) or (operation := ledger.operation(number)) is None:
        return True
    mine = replace(opened, settings=opened.settings.model_copy(update={"user": operation.who}))
    done = Event()
    Thread(target=_looks, args=(mine, operation, done, end), daemon=True).start()
    teller = OperationTeller(ledger, number)
    try:
        result = _done(mine, operation, teller)
    except CalledOff as error:
        ledger.end_operation(number, "cancelled", problem=problem_of(error))
        return True
    except Exception as error:
        return not ledger.end_operation(number, "failed", problem=problem_of(error))
    finally:
        done.set()
    moved, problem = json.loads(json.dumps(result, default=plain)), _problem_of_run(result)
    ledger.end_operation(number, "cancelled" if problem else "succeeded", result=moved, problem=problem)
    return True


def _done(opened: AtWork, operation: Operation, teller: OperationTeller) -> Json:
    try:
        return KINDS[operation.kind].do(opened, operation, teller)
    finally:
        teller.tell_the_last()


def _problem_of_run(result: Json) -> Json | None:
    """Of one that somebody has ended before everything was moved."""
    if not (why := ended_by(result)):
        return None
    name = result["connector"]
    step = "" if why == "deleted" else f"POST /api/v1/connectors/{name}/resume: the next run moves the rest"
    detail = f"Connector {name} was {why} while it ran: it has ended at a range boundary"
    return problem_of(Retriable(detail, where=f"connector {name}", next_step=step))


def problem_of(error: Exception) -> Json:
    """As the server tells it."""
    if not isinstance(error, WaybillError):
        return {"detail": Failure.of(error).words, "kind": "Fatal"}
    told: Json = {"detail": error.what, "where": error.where, "next_step": error.next_step}
    told["kind"] = Failure.of(error).family
    if isinstance(error, ConfigError):
        told["errors"] = [{"path": one.path, "message": one.message} for one in error.faults]
    return {key: value for key, value in told.items() if value}


class OperationTeller:
    """What tasks tell in numbers, added up and told to the ledger now and then. For several threads."""

    def __init__(self, ledger: Ledger, number: str) -> None:
        self._ledger, self._number, self._lock = ledger, number, Lock()
        self._tasks: dict[int, Progress] = {}
        self._told_at = 0.0
        self._untold: Json | None = None
        self.listener = RunListener(lambda text: None, self._progress)

    def positions(self, done: int, planned: int) -> None:
        self._tell({"done": done, "planned": planned}, last=done == planned)

    def _progress(self, now: Progress) -> None:
        with self._lock:
            self._tasks[now.task] = now
            tasks = list(self._tasks.values())
        done, planned = sum(one.done for one in tasks), sum(one.planned for one in tasks)
        self._tell({"done": done, "planned": planned, "records": sum(one.records for one in tasks)}, done == planned)

    def tell_the_last(self) -> None:
        """How far it has come at its end, whatever that is."""
        with self._lock:
            progress, self._untold = self._untold, None
        if progress is not None:
            self._ledger.note_progress(self._number, progress)

    def _tell(self, progress: Json, last: bool) -> None:
        with self._lock:
            self._untold = progress
            if not last and time.monotonic() - self._told_at < _TELL_EVERY_S:
                return
            self._told_at, self._untold = time.monotonic(), None
        self._ledger.note_progress(self._number, progress)


def _looks(opened: AtWork, operation: Operation, done: Event, end: Callable[[], None]) -> None:
    """Whether somebody has cancelled it. What it begins after that is cancelled as well."""
    while not done.wait(_LOOK_EVERY_S):
        try:
            now = opened.ledger.operation(operation.id)
            if now is None or not now.is_over:
                continue
            cancel_streams(opened, operation)
        except WaybillError:
            continue
        if not KINDS[operation.kind].ends_by_itself:
            end()
