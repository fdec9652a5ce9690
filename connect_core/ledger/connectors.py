"""Connectors and the revisions of their documents. Called by the CLI, the API and the makers of DAGs.

A connector is known by its uid, which is random: a name may be used again once its connector is deleted. Every change
is kept with who made it and why. This module does not look into a document.
"""

from __future__ import annotations

import difflib
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from connect_core.errors import ConfigError, Retriable
from connect_core.ledger.auditing import CREATED, note
from connect_core.ledger.database import Transactions, now
from connect_core.ledger.differences import differences
from connect_core.ledger.tables import ASSIGNMENTS, CONNECTOR_REVISIONS, CONNECTORS
from connect_core.ledger.writers import WritersSeen, require_seen
from connect_core.sdk.values import Json

TARGET_STATES = ("running", "paused", "stopped")


@dataclass(frozen=True)
class Connector:
    """A connector with the newest revision of its document. `deleted_at` is None as long as it is in use. `flat` is
    what the document was translated from when it was last applied; None where it was written as it is. `applied_at` is
    the moment of that revision; None only where none is stored."""

    uid: str
    name: str
    revision: int
    document: Json
    target_state: str
    created_at: datetime
    deleted_at: datetime | None = None
    flat: Json | None = None
    applied_at: datetime | None = None


@dataclass(frozen=True)
class Applied:
    """What `apply` did: `difference` is empty for a new connector and for a document that had not changed."""

    connector: Connector
    created: bool
    difference: list[str]


@dataclass(frozen=True)
class Revision:
    revision: int
    document: Json
    difference: list[str]
    who: str
    why: str
    applied_at: datetime
    flat: Json | None = None


@dataclass(frozen=True)
class ConnectorStanding:
    """What a run must know of its connector at each range boundary. `version` is that of the newest assignment."""

    target_state: str
    revision: int
    deleted: bool
    version: int


_CONNECTOR = sa.select(
    CONNECTORS, CONNECTOR_REVISIONS.c.document, CONNECTOR_REVISIONS.c.flat, CONNECTOR_REVISIONS.c.applied_at
).join(
    CONNECTOR_REVISIONS,
    (CONNECTOR_REVISIONS.c.uid == CONNECTORS.c.uid) & (CONNECTOR_REVISIONS.c.revision == CONNECTORS.c.revision),
)

_LIVE = _CONNECTOR.where(CONNECTORS.c.live_name == sa.bindparam("wanted"))
_STANDING = sa.select(
    CONNECTORS.c.target_state,
    CONNECTORS.c.revision,
    CONNECTORS.c.deleted_at,
    sa.select(sa.func.max(ASSIGNMENTS.c.version)).where(ASSIGNMENTS.c.uid == CONNECTORS.c.uid).scalar_subquery(),
).where(CONNECTORS.c.uid == sa.bindparam("connector"))


def locked(connection: Connection, uid: str) -> None:
    """Holds the connector's row until the transaction ends: one change of its plan of work at a time.

    Not FOR UPDATE: that would also stop every insert of a row that refers to the connector. Raises ConfigError when
    there is none.
    """
    query = sa.select(CONNECTORS.c.uid).where(CONNECTORS.c.uid == uid).with_for_update(key_share=True)
    if connection.scalar(query) is None:
        raise _unknown_uid(uid)


class Connectors(Transactions):
    """The connectors' part of the ledger."""

    def apply(self, name: str, document: Json, *, who: str, why: str = "") -> Applied:
        """Makes the connector, or adds a revision when the document differs from the newest one."""
        return self.apply_all({name: document}, who=who, why=why)[name]

    def apply_all(
        self,
        documents: Mapping[str, Json],
        *,
        who: str,
        why: str = "",
        made_from: Mapping[str, int] | None = None,
        flat: Mapping[str, Json] | None = None,
        begins: str = TARGET_STATES[0],
        seen: WritersSeen | None = None,
    ) -> dict[str, Applied]:
        """Each document by the name of its connector, in one transaction: all of them or none. `made_from` has the
        revision for those that were made from what the ledger had, 0 where it had none; `flat` what those were
        translated from that were. `begins` is the target state of those that are new, `seen` what they were checked
        beside.

        Raises Retriable when another `apply` made one of the names, or such a revision, at the same moment, and
        WritersChanged.
        """
        with self._write() as connection:
            require_seen(connection, seen)
            for name, revision in sorted((made_from or {}).items()):
                _lock_name(connection, name)
                _check_revision(_live(connection, name), name, revision)
            given = flat or {}
            return {
                name: _apply(connection, _New(name, documents[name], given.get(name), begins), who, why)
                for name in sorted(documents)
            }

    def revise(self, old: Connector, document: Json, *, who: str, why: str = "") -> Applied | None:
        """For a `document` that was made from the one of `old`; what that was translated from stays. None, and nothing
        is changed, when that is not the newest any more, or its connector was deleted. Then the caller makes it
        again, from what is there now."""
        with self._write() as connection:
            _lock_name(connection, old.name)
            found = _live(connection, old.name)
            if found is None or (found.uid, found.revision) != (old.uid, old.revision):
                return None
            return _revised(connection, found, document, found.flat, who, why)

    def connector(self, name: str) -> Connector:
        """Raises ConfigError, naming the nearest known name, when there is none of this name."""
        with self._read() as connection:
            found = _live(connection, name)
            if found is not None:
                return found
            known = connection.scalars(sa.select(CONNECTORS.c.live_name).where(CONNECTORS.c.live_name.is_not(None)))
            raise _unknown_name(name, [str(one) for one in known])

    def connector_named(self, name: str) -> Connector | None:
        """None where there is none."""
        with self._read() as connection:
            return _live(connection, name)

    def connectors(self, include_deleted: bool = False) -> list[Connector]:
        """All connectors by name; one query."""
        query = _CONNECTOR.order_by(CONNECTORS.c.name, CONNECTORS.c.created_at)
        if not include_deleted:
            query = query.where(CONNECTORS.c.live_name.is_not(None))
        with self._read() as connection:
            return [_connector_of(row) for row in connection.execute(query)]

    def deleted_connectors(self, names: Collection[str]) -> list[Connector]:
        """Those of these names that were deleted, of each name the last one last."""
        query = _CONNECTOR.where(CONNECTORS.c.live_name.is_(None), CONNECTORS.c.name.in_([*names]))
        with self._read() as connection:
            rows = connection.execute(query.order_by(CONNECTORS.c.name, CONNECTORS.c.deleted_at))
            return [_connector_of(row) for row in rows]

    def standing(self, uid: str) -> ConnectorStanding:
        """Raises ConfigError for an unknown uid; a deleted connector is known."""
        with self._read() as connection:
            row = connection.execute(_STANDING, {"connector": uid}).one_or_none()
        if row is None:
            raise _unknown_uid(uid)
        state, revision, deleted_at, version = row
        return ConnectorStanding(state, revision, deleted_at is not None, version or 0)

    def document(self, uid: str, revision: int) -> Json:
        """One revision of a document. Raises ConfigError when there is none."""
        table = CONNECTOR_REVISIONS
        query = sa.select(table.c.document).where(table.c.uid == uid, table.c.revision == revision)
        with self._read() as connection:
            found: Json | None = connection.scalar(query)
        if found is None:
            raise ConfigError(f"There is no revision {revision} of connector {uid}", next_step=_LIST_ADVICE)
        return found

    def revisions(self, uid: str) -> list[Revision]:
        """Every revision of the document, oldest first."""
        table = CONNECTOR_REVISIONS
        query = sa.select(table).where(table.c.uid == uid).order_by(table.c.revision)
        with self._read() as connection:
            return [
                Revision(row.revision, row.document, row.difference, row.who, row.why, row.applied_at, row.flat)
                for row in connection.execute(query)
            ]

    def note_snapshot(self, uid: str, tables: Sequence[str], *, who: str, where: str | None = None) -> None:
        """Who has asked for rows of these tables: for all, or for those that fulfil a condition."""
        with self._write() as connection:
            condition = {} if where is None else {"where": where}
            note(connection, uid, "snapshot", who, detail={"tables": [*tables], **condition})

    def note_cancelled_snapshot(self, uid: str, tables: Sequence[str], *, who: str) -> None:
        """Who has asked for rows of these tables no longer."""
        with self._write() as connection:
            note(connection, uid, "cancel snapshot", who, detail={"tables": [*tables]})

    def note_group(self, uid: str, group: str, queues: int, *, who: str) -> None:
        """Who has moved a consumer group in the target, in how many queues."""
        with self._write() as connection:
            note(connection, uid, "group", who, detail={"group": group, "queues": queues})

    def set_target_state(self, uid: str, state: str, *, who: str) -> None:
        """What the connector shall do: running, paused or stopped. Raises ConfigError for another word or no uid."""
        self.set_target_states([uid], state, who=who)

    def set_target_states(self, uids: Collection[str], state: str, *, who: str) -> None:
        """The same of several: of all, or of none where it raises."""
        if state not in TARGET_STATES:
            raise ConfigError(f"{state!r} is not a target state", next_step=f"Use one of {', '.join(TARGET_STATES)}")
        with self._write() as connection:
            for uid in sorted(uids):  # two that change the same ones wait for each other, and not in a circle
                locked(connection, uid)
                before = connection.scalar(sa.select(CONNECTORS.c.target_state).where(CONNECTORS.c.uid == uid))
                connection.execute(CONNECTORS.update().where(CONNECTORS.c.uid == uid).values(target_state=state))
                note(connection, uid, "target state", who, detail={"before": before, "state": state})

    def note_switch(self, uid: str, before: str, state: str, *, who: str) -> None:
        """Who has turned the scheduler's switch, which the ledger does not keep."""
        with self._write() as connection:
            note(connection, uid, "switch", who, detail={"before": before, "state": state})

    def delete(self, uid: str, *, who: str, told: Sequence[str] = ()) -> None:
        """Marks the connector deleted: its name is free again, everything it did stays readable by its uid. `told` is
        kept with the deed: what became of what its source kept for it."""
        with self._write() as connection:
            locked(connection, uid)
            alive = CONNECTORS.update().where(CONNECTORS.c.uid == uid, CONNECTORS.c.deleted_at.is_(None))
            if connection.execute(alive.values(live_name=None, deleted_at=now(), target_state="stopped")).rowcount:
                note(connection, uid, "delete", who, detail={"told": list(told)} if told else None)


def _check_revision(found: Connector | None, name: str, revision: int) -> None:
    if (found.revision if found else 0) != revision:
        raise Retriable(f"Another command changed connector {name!r} at the same moment", next_step="Try again")


class _New(NamedTuple):
    """A document on its way in."""

    name: str
    document: Json
    flat: Json | None
    begins: str


def _apply(connection: Connection, new: _New, who: str, why: str) -> Applied:
    _lock_name(connection, new.name)
    found = _live(connection, new.name)
    if found is None:
        return Applied(_create(connection, new, who, why), True, [])
    return _revised(connection, found, new.document, new.flat, who, why)


def _revised(
    connection: Connection, found: Connector, document: Json, flat: Json | None, who: str, why: str
) -> Applied:
    difference = differences(found.document, document)
    if difference or flat != found.flat:
        revision = found.revision + 1
        _add_revision(connection, found.uid, Revision(revision, document, difference, who, why, now(), flat))
        connection.execute(CONNECTORS.update().where(CONNECTORS.c.uid == found.uid).values(revision=revision))
        note(connection, found.uid, "apply", who, why, detail={"revision": revision})
        found = _live(connection, found.name) or found
    return Applied(found, False, difference)


def _lock_name(connection: Connection, name: str) -> None:
    """A statement of its own: PostgreSQL would judge a join by the revision that stood before it waited."""
    query = sa.select(CONNECTORS.c.uid).where(CONNECTORS.c.live_name == name).with_for_update(key_share=True)
    connection.execute(query)


def _live(connection: Connection, name: str) -> Connector | None:
    row = connection.execute(_LIVE, {"wanted": name}).one_or_none()
    return None if row is None else _connector_of(row)


def _connector_of(row: Any) -> Connector:
    known = (row.uid, row.name, row.revision, row.document, row.target_state, row.created_at, row.deleted_at)
    return Connector(*known, row.flat, row.applied_at)


def _create(connection: Connection, new: _New, who: str, why: str) -> Connector:
    name, document = new.name, new.document
    moment = now()
    made = Connector(secrets.token_hex(6), name, 1, document, new.begins, moment, flat=new.flat, applied_at=moment)
    row = {"uid": made.uid, "name": name, "live_name": name, "revision": 1, "target_state": made.target_state}
    try:
        connection.execute(CONNECTORS.insert().values(**row, created_at=made.created_at))
    except IntegrityError as taken:
        raise Retriable(
            f"Another command created connector {name!r} at the same moment", next_step="Try again"
        ) from taken
    _add_revision(connection, made.uid, Revision(1, document, [], who, why, made.created_at, new.flat))
    note(connection, made.uid, CREATED, who, why)
    return made


def _add_revision(connection: Connection, uid: str, new: Revision) -> None:
    connection.execute(CONNECTOR_REVISIONS.insert().values(uid=uid, **vars(new)))


_LIST_ADVICE = "See `waybill connectors list`"


def _unknown_uid(uid: str) -> ConfigError:
    return ConfigError(f"There is no connector with uid {uid}", next_step=_LIST_ADVICE)


def _unknown_name(name: str, known: Sequence[str]) -> ConfigError:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0)
    advice = f"Did you mean {near[0]!r}? {_LIST_ADVICE}" if near else "Create one with `waybill apply`"
    return ConfigError(f"There is no connector named {name!r}", next_step=advice)
