"""A run evolves the document of its connector for records that do not fit it (`parse.unknown: evolve`).

A worker ends its range before such a record and says which fields it needs. The receipt is settled; then the document
gets these fields as a new revision, only upon the newest one: whoever was faster, a task or a person, is joined with
instead of undone. What is left is planned by that revision, and begins at the record. Who dies before the revision is
stored meets the record again; who dies behind it finds the revision. A part of a run's driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from connect_core.config.evolved_fields import added, differ_by_runs, evolved, single, told
from connect_core.errors import ConfigError
from connect_core.ledger import Connector
from connect_core.observe import Step
from connect_core.replication.driver.context import RunContext
from connect_core.replication.driver.task_view import TaskView
from connect_core.rows.widening import MOST_EVOLVED
from connect_core.sdk.values import LIVE, Json, OpenRange
from connect_core.work import Evolving, Outcome, RefusedField


class DocumentEvolution:
    """Of one attempt of one task. What is refused is refused until the attempt ends: the next one tries again."""

    def __init__(self, task: TaskView) -> None:
        self._task = task
        self._refused: list[RefusedField] = []

    def of_lanes(self) -> Evolving | None:
        """None where records that do not fit are rejected: a backfill keeps to the revision that it began with, and
        names that are data need not be refused one by one."""
        known = self._task.context.resolved.evolved
        if known is None or self._task.stream != LIVE or len(self._refused) >= MOST_EVOLVED:
            return None
        return Evolving(known, tuple(self._refused))

    def is_all_that_changed(self, revision: int) -> bool:
        """Whether this revision differs from the one of this attempt by what runs have evolved alone."""
        context, uid = self._task.context, self._task.uid
        if context.resolved.evolved is None:
            return False
        return differ_by_runs(context.connector.document, context.ledger.document(uid, revision))

    def noted(self, items: Sequence[OpenRange], outcomes: Sequence[Outcome]) -> None:
        """Evolves the document for the ranges that ended before a record that needs it."""
        by_id = {item.id: item.range for item in items}
        for one in outcomes:
            if one.needs:
                wanted = by_id[one.range_id]
                at = one.receipt.end if one.receipt else wanted.begin
                self._evolve(one.needs, f"partition {wanted.partition.key}, offset {at:,}")

    def _evolve(self, needs: Json, where: str) -> None:
        context = self._task.context
        while old := self._newest():
            document = self._with_what_is_taken(old, needs)
            if document is old.document:
                return
            document = context.check_evolved(old, document, register=True)
            self._task.reached(Step.BEFORE_EVOLVED)
            more = told(added(old.document, document))
            who, why = f"run {self._task.summary.run_id}", f"a record needed {more}: {where}"
            if stored := context.ledger.revise(old, document, who=who, why=why):
                self._task.reached(Step.EVOLVED)
                self._say(f"revision {stored.connector.revision} has {more}: {where}")
                return

    def _with_what_is_taken(self, old: Connector, needs: Json) -> Json:
        """The document with all of these fields that nothing refuses, itself where there are none; keeps in mind what
        is refused."""
        document = old.document
        whole = evolved(document, needs) or document
        if whole is document or not self._refusal(old, whole):
            return whole
        for place, kind, one in single(needs):
            wider = evolved(document, one) or document
            if wider is document:
                continue
            if why := self._refusal(old, wider):
                self._refuse(RefusedField(place, kind, why))
            else:
                document = wider
        return document

    def _refuse(self, field: RefusedField) -> None:
        self._refused.append(field)
        self._say(f"{field.place}: {field.type} is refused, and records that need it are rejected: {field.why}")
        if len(self._refused) == MOST_EVOLVED:
            self._say(f"{MOST_EVOLVED} are refused: until this run ends no more are added or widened")

    def _refusal(self, old: Connector, document: Json) -> str:
        """Why it cannot be stored; empty: it can. Raises ConfigError where that is no fault of its fields."""
        check, why = self._task.context.check_evolved, ""
        self._task.held.renew_in_time()
        try:
            check(old, document, register=False)
        except ConfigError as error:
            why = "; ".join(map(str, error.faults)) or error.what
        if why:
            check(old, old.document, register=False)
        return why

    def _newest(self) -> Connector | None:
        """None when the connector was deleted."""
        with suppress(ConfigError):
            found = self._task.ledger.connector(self._task.context.connector.name)
            return found if found.uid == self._task.uid else None
        return None

    def _say(self, text: str) -> None:
        self._task.context.listener.log(f"fields: {text}")


def following(context: RunContext, elapsed_s: float) -> RunContext | None:
    """With what a run goes on whose document runs have evolved meanwhile, `elapsed_s` after its begin; None where it is
    over, or a person has changed the document."""
    if context.resolved.evolved is None or context.stream != LIVE or context.halted():
        return None
    before = context.connector
    standing = context.ledger.standing(before.uid)
    if standing.deleted or standing.target_state != "running" or standing.revision == before.revision:
        return None
    document = context.ledger.document(before.uid, standing.revision)
    if not differ_by_runs(before.document, document):
        return None
    return replace(
        context,
        connector=replace(before, revision=standing.revision, document=document),
        resolved=context.resolve(standing.revision),
        window_s=max(context.window_s - elapsed_s, 0.0),
    )
