"""Dead letters go to the second target of their connector, `errors.sink`, beside the ledger that keeps them.

They are a stream of their own, `errors-sink`, whose offsets are the numbers that the ledger gives them
(`connect_core/ledger/errors_sink.py`): planned, leased, looked for and settled like any other, by the tasks that have
their partitions. It is moved when the live stream has come as far as it could, so that a second target that is away
holds up nothing, and now and then while a window lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace

from connect_core.config import ALL, Resolved
from connect_core.config.units import show_count
from connect_core.errors import ConfigError, LeaseHeld, WaybillError
from connect_core.planning.backfill_plan import BackfillPlan
from connect_core.replication.driver.context import RunContext
from connect_core.replication.driver.summary import TaskSummary
from connect_core.sdk.values import ERRORS_SINK, LIVE, Part
from connect_core.work import Receipt

EVERY_S = 10.0
"""How often it is looked for new ones while a window lasts."""

Run = Callable[[RunContext], Sequence[TaskSummary]]
"""Runs the tasks of a context, and raises the gravest of their errors."""


class ErrorsSinkSender:
    """Of one run of the live stream; of other runs it sends nothing. `receipts` are those of what it has sent."""

    def __init__(self, context: RunContext, run: Run) -> None:
        self._context, self._run = context, run
        self._wanted = context.stream == LIVE and context.resolved.errors_sink is not None
        self._told = ""
        self.receipts: list[Receipt] = []

    def send_beside(self, running: Sequence[Future[TaskSummary]]) -> None:
        """Returns when these are over. What fails meanwhile is said, and tried again."""
        if not (self._wanted and self._context.window_s):
            return
        while wait(running, timeout=EVERY_S).not_done:
            if error := self.send():
                self._tell(f"dead letters could not be sent to errors.sink yet: {error}")

    def send(self) -> Exception | None:
        """All that wait; what has stopped it."""
        try:
            if self._wanted:
                self._send_all()
        except LeaseHeld as held:
            self._tell(f"another run sends dead letters to errors.sink: {held}")
        except WaybillError as error:
            error.where = f"errors.sink, {error.where}".removesuffix(", ")
            return error
        except Exception as error:
            return error
        return None

    def _send_all(self) -> None:
        context, uid, before = self._context, self._context.connector.uid, len(self.receipts)
        try:
            while context.ledger.letters_waiting(uid) and not self._is_to_end():
                parts = context.ledger.number_letters(uid, context.ledger.partitions(uid).keys())
                moved = [one for task in self._run(sending_context(context, parts)) for one in task.receipts]
                self.receipts += moved
                if not moved:
                    break
        finally:
            self._tell_sent(self.receipts[before:])

    def _is_to_end(self) -> bool:
        """Also when the document has changed: the next run sends the rest where it says now."""
        connector = self._context.connector
        standing = self._context.ledger.standing(connector.uid)
        if standing.deleted or standing.target_state != "running" or standing.revision != connector.revision:
            return True
        return bool(self._context.halted())

    def _tell_sent(self, receipts: Sequence[Receipt]) -> None:
        if not receipts:
            return
        name, there = self._context.connector.name, sum(one.emitted for one in receipts)
        words = f"{show_count(there, 'dead letter')} sent to errors.sink"
        if refused := sum(one.rejected or 0 for one in receipts):
            words += f"; {refused:,} it could not take, which the ledger keeps: waybill dead-letters list {name}"
        self._context.listener.log(words)

    def _tell(self, words: str) -> None:
        """Once, as long as it is the same."""
        if words != self._told:
            self._told = words
            self._context.listener.log(words)


def sending_context(live: RunContext, parts: Sequence[Part]) -> RunContext:
    """The context of a connector for what moves these stretches of its dead letters."""
    return replace(
        live,
        # Its tasks have the numbers of live ones, and what is sent is said at the end.
        listener=replace(live.listener, progress=lambda _: None),
        resolved=to_errors_sink(live.resolved),
        resolve=lambda revision, pinned=None: to_errors_sink(live.resolve(revision, pinned)),
        stream=ERRORS_SINK,
        backfill_plan=BackfillPlan(tuple(parts)),
        replays_letters=True,
        window_s=0.0,
        attempt_of=None,
    )


def to_errors_sink(resolved: Resolved) -> Resolved:
    """The connector with its second target in place of its sink: records pass as they are, and one that this target
    cannot take holds up no other. Raises ConfigError when the document has none."""
    if resolved.errors_sink is None:
        raise ConfigError(
            "The document has no errors.sink",
            where=f"connector {resolved.name}",
            next_step="Name the one that these dead letters were on their way to",
        )
    return replace(
        resolved,
        sink=resolved.errors_sink,
        pipeline={"transforms": []},
        tolerance=ALL,
        reject_limit=None,
        records_per_second=0,
    )
