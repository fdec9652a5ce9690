"""Connectors, their revisions and target states."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.exc import StatementError

from connect_core.errors import ConfigError, Retriable
from connect_core.ledger import Applied, ConnectorStanding, Ledger


def test_a_new_connector_gets_a_random_uid_and_runs(ledger: Ledger) -> None:
    applied = ledger.apply("orders", {"tasks": 2}, who="ann", why="first")
    connector = applied.connector
    assert (applied.created, applied.difference) == (True, [])
    assert len(connector.uid) == 12
    assert int(connector.uid, 16) >= 0
    assert (connector.name, connector.revision, connector.target_state) == ("orders", 1, "running")
    assert abs(datetime.now(UTC) - connector.created_at) < timedelta(minutes=1)
    assert ledger.connector("orders") == connector


def test_a_changed_document_is_a_revision_with_who_why_and_difference(ledger: Ledger) -> None:
    uid = ledger.apply("orders", {"tasks": 2, "sink": {"topic": "a"}}, who="ann").connector.uid
    applied = ledger.apply("orders", {"tasks": 3, "sink": {"topic": "a"}}, who="bob", why="faster")
    assert (applied.created, applied.difference) == (False, ["tasks: 2 -> 3"])
    assert (applied.connector.uid, applied.connector.revision) == (uid, 2)
    assert applied.connector.document["tasks"] == 3
    first, second = ledger.revisions(uid)
    assert (first.revision, first.document["tasks"], first.who, first.difference) == (1, 2, "ann", [])
    assert (second.revision, second.who, second.why, second.difference) == (2, "bob", "faster", ["tasks: 2 -> 3"])
    assert ledger.document(uid, 1)["tasks"] == 2
    assert ledger.connector("orders").document["tasks"] == 3


def test_an_equal_document_changes_nothing(ledger: Ledger) -> None:
    first = ledger.apply("orders", {"a": 1, "b": 2}, who="ann").connector
    again = ledger.apply("orders", {"b": 2, "a": 1}, who="bob")
    assert again == Applied(first, False, [])
    assert len(ledger.revisions(first.uid)) == 1


def test_several_documents_are_applied_together_or_not_at_all(ledger: Ledger) -> None:
    ledger.apply("b", {"n": 1}, who="ann")
    with pytest.raises(StatementError, match="not JSON serializable"):
        ledger.apply_all({"a": {"n": 1}, "b": {"n": 2}, "c": {"n": object()}}, who="bob")
    assert [(one.name, one.revision) for one in ledger.connectors()] == [("b", 1)]
    applied = ledger.apply_all({"c": {"n": 1}, "b": {"n": 2}, "a": {"n": 1}}, who="bob", why="all of them")
    assert {name: (one.created, one.connector.revision) for name, one in applied.items()} == {
        "a": (True, 1),
        "b": (False, 2),
        "c": (True, 1),
    }


def test_what_was_made_from_another_revision_is_not_stored(ledger: Ledger) -> None:
    with pytest.raises(Retriable, match="Another command changed connector 'a'"):
        ledger.apply_all({"a": {"n": 1}}, who="ann", made_from={"a": 1})
    ledger.apply_all({"a": {"n": 1}}, who="ann", made_from={"a": 0})
    for revision in (0, 2):
        with pytest.raises(Retriable, match="Another command changed connector 'a'"):
            ledger.apply_all({"a": {"n": 2}, "b": {"n": 1}}, who="bob", made_from={"a": revision})
    assert [(one.name, one.revision) for one in ledger.connectors()] == [("a", 1)]
    ledger.apply_all({"a": {"n": 2}, "b": {"n": 1}}, who="bob", made_from={"a": 1})
    assert [(one.name, one.revision) for one in ledger.connectors()] == [("a", 2), ("b", 1)]


def test_what_a_document_was_translated_from_is_kept_until_it_is_applied_as_it_is(ledger: Ledger) -> None:
    flat = {"connector.class": "Orders", "max.tasks": "2"}
    first = ledger.apply_all({"orders": {"tasks": 2}}, who="ann", flat={"orders": flat})["orders"].connector
    assert (first.flat, ledger.connector("orders").flat) == (flat, flat)
    same = ledger.apply_all({"orders": {"tasks": 2}}, who="ann", flat={"orders": dict(flat)})["orders"].connector
    assert same.revision == 1
    revised = ledger.revise(first, {"tasks": 2, "rules": []}, who="bob")
    assert revised is not None
    assert revised.connector.flat == flat
    other = flat | {"note": "with no effect"}
    third = ledger.apply_all({"orders": {"tasks": 2, "rules": []}}, who="ann", flat={"orders": other})["orders"]
    assert (third.connector.revision, third.connector.flat, third.difference) == (3, other, [])
    native = ledger.apply("orders", {"tasks": 2, "rules": []}, who="ann").connector
    assert (native.revision, native.flat) == (4, None)
    assert [one.flat for one in ledger.revisions(first.uid)] == [flat, flat, other, None]


def test_a_deleted_name_can_be_used_again_and_its_history_stays(ledger: Ledger) -> None:
    old = ledger.apply("orders", {"a": 1}, who="ann").connector
    ledger.delete(old.uid, who="bob")
    with pytest.raises(ConfigError):
        ledger.connector("orders")
    new = ledger.apply("orders", {"a": 2}, who="ann")
    assert new.created
    assert new.connector.uid != old.uid
    assert [one.uid for one in ledger.connectors()] == [new.connector.uid]
    assert [one.uid for one in ledger.deleted_connectors(["orders", "another"])] == [old.uid]
    both = ledger.connectors(include_deleted=True)
    assert [(one.uid, one.deleted_at is None) for one in both] == [(old.uid, False), (new.connector.uid, True)]
    assert ledger.document(old.uid, 1) == {"a": 1}


def test_deleting_twice_is_recorded_once(ledger: Ledger) -> None:
    uid = ledger.apply("orders", {}, who="ann").connector.uid
    ledger.delete(uid, who="ann")
    ledger.delete(uid, who="ann")
    assert [deed.action for deed in ledger.audit(uid)] == ["delete", "create"]


def test_connectors_come_by_name_with_their_newest_documents(ledger: Ledger) -> None:
    for name in ("b", "a", "c"):
        ledger.apply(name, {"n": name}, who="ann")
    ledger.apply("b", {"n": "changed"}, who="ann")
    assert [(one.name, one.document["n"]) for one in ledger.connectors()] == [("a", "a"), ("b", "changed"), ("c", "c")]


def test_an_unknown_name_names_the_nearest(ledger: Ledger) -> None:
    ledger.apply("orders-eu", {}, who="ann")
    ledger.apply("invoices", {}, who="ann")
    with pytest.raises(ConfigError, match="Did you mean 'orders-eu'"):
        ledger.connector("order-eu")


def test_an_unknown_name_in_an_empty_ledger_says_how_to_make_one(ledger: Ledger) -> None:
    with pytest.raises(ConfigError, match="waybill apply"):
        ledger.connector("orders")


def test_target_states(ledger: Ledger) -> None:
    uid = ledger.apply("orders", {}, who="ann").connector.uid
    ledger.set_target_state(uid, "paused", who="bob")
    assert ledger.connector("orders").target_state == "paused"
    assert ledger.audit(uid)[0].detail == {"before": "running", "state": "paused"}
    with pytest.raises(ConfigError, match="running, paused, stopped"):
        ledger.set_target_state(uid, "asleep", who="bob")
    with pytest.raises(ConfigError, match="no connector with uid"):
        ledger.set_target_state("0" * 12, "paused", who="bob")


def test_target_states_of_several_are_stored_all_or_none(ledger: Ledger) -> None:
    uids = [ledger.apply(name, {"name": name}, who="ann").connector.uid for name in ("a", "b")]
    with pytest.raises(ConfigError):
        ledger.set_target_states([*uids, "z" * 12], "stopped", who="bob")
    assert {one.target_state for one in ledger.connectors()} == {"running"}
    ledger.set_target_states(uids, "stopped", who="bob")
    assert {one.target_state for one in ledger.connectors()} == {"stopped"}
    assert [entry.action for uid in uids for entry in ledger.audit(uid)][:1] == ["target state"]


def test_an_unknown_revision_is_told(ledger: Ledger) -> None:
    uid = ledger.apply("orders", {}, who="ann").connector.uid
    with pytest.raises(ConfigError, match="no revision 9"):
        ledger.document(uid, 9)


def test_documents_applied_at_once_become_revisions_one_behind_the_other(ledger: Ledger) -> None:
    uid = ledger.apply("orders", {"n": -1}, who="ann").connector.uid
    start = threading.Barrier(6)

    def apply(number: int) -> int:
        start.wait()
        return ledger.apply("orders", {"n": number}, who=str(number)).connector.revision

    with ThreadPoolExecutor(6) as pool:
        revisions = list(pool.map(apply, range(6)))
    assert sorted(revisions) == [2, 3, 4, 5, 6, 7]
    assert [revision.revision for revision in ledger.revisions(uid)] == [1, 2, 3, 4, 5, 6, 7]


def test_a_document_made_from_an_older_one_changes_nothing(ledger: Ledger) -> None:
    seen = ledger.apply("orders", {"n": 1}, who="ann").connector
    newer = ledger.revise(seen, {"n": 2}, who="bob", why="first")
    assert newer is not None
    assert (newer.connector.revision, newer.difference) == (2, ["n: 1 -> 2"])
    assert ledger.revise(seen, {"n": 3}, who="ann") is None
    assert ledger.connector("orders") == newer.connector
    assert len(ledger.revisions(seen.uid)) == 2
    assert ledger.revise(newer.connector, {"n": 2}, who="ann") == Applied(newer.connector, False, [])


def test_a_document_is_not_given_to_another_connector_of_the_name(ledger: Ledger) -> None:
    seen = ledger.apply("orders", {"n": 1}, who="ann").connector
    ledger.delete(seen.uid, who="bob")
    assert ledger.revise(seen, {"n": 2}, who="ann") is None
    other = ledger.apply("orders", {"n": 5}, who="bob").connector
    assert ledger.revise(seen, {"n": 2}, who="ann") is None
    assert ledger.connector("orders") == other


def test_of_changes_made_at_once_none_is_lost(ledger: Ledger) -> None:
    """Each adds to what it has read, and does so again when that was changed meanwhile."""
    ledger.apply("orders", {"names": []}, who="ann")
    start = threading.Barrier(6)

    def add(number: int) -> int:
        start.wait()
        for tries in range(1, 100):
            seen = ledger.connector("orders")
            if ledger.revise(seen, {"names": [*seen.document["names"], number]}, who=str(number)):
                return tries
        return 0

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(add, range(6)))
    assert sorted(ledger.connector("orders").document["names"]) == list(range(6))


def test_a_name_made_twice_at_once_is_one_connector(ledger: Ledger) -> None:
    start = threading.Barrier(4)

    def apply(number: int) -> bool:
        start.wait()
        try:
            return ledger.apply("orders", {"n": 0}, who=str(number)).created
        except Retriable:
            return False

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(apply, range(4))) == 1
    assert len(ledger.connectors()) == 1


def test_the_standing_of_a_connector_follows_every_change(ledger: Ledger) -> None:
    uid = ledger.apply("orders", {"tasks": 2}, who="ann").connector.uid
    assert ledger.standing(uid) == ConnectorStanding("running", 1, False, 0)
    ledger.assign(uid, [], 2)
    ledger.apply("orders", {"tasks": 3}, who="ann")
    ledger.set_target_state(uid, "paused", who="ann")
    assert ledger.standing(uid) == ConnectorStanding("paused", 2, False, 1)
    ledger.delete(uid, who="ann")
    assert ledger.standing(uid) == ConnectorStanding("stopped", 2, True, 1)
    with pytest.raises(ConfigError, match="no connector"):
        ledger.standing("nobody")
