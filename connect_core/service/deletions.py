"""The end of a connector: in the ledger, at its brokers, and in Airflow.

The ledger comes first, and then nothing of it moves any more. What breaks off behind that, as where a command is
killed or Airflow does not answer, leaves the DAGs there, as a rule paused. The same deletion again takes them away; and
so does a new connector of that name before it is stored: it would have their switch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager

from connect_core.errors import Unreachable, WaybillError
from connect_core.ledger import Connector
from connect_core.orchestration import control
from connect_core.orchestration.rest import Airflow
from connect_core.sdk.values import Json
from connect_core.service.opened import AtWork, Opened, Say, ledger_exists, reading

_LEFT_BEHIND = {
    "source": "what its server keeps for it (sessions, a slot, requests for rows) was not removed, and stays there",
    "sink": "its progress was not cleared, and stays at the broker",
    "errors.sink": "its progress in errors.sink was not cleared, and stays at the broker",
}


def delete(opened: AtWork, name: str, *, force: bool, agree: Callable[[str], None], say: Say) -> Json:
    """What a broker keeps for the connector is ended before; with `force` it goes also when a broker cannot be told.

    `agree` is called with its uid before anything is changed, and raises when nobody agrees. Raises Unreachable where
    it is deleted and Airflow has its DAGs still; the same call again removes them.
    """
    with control.airflow_of(opened.home, opened.settings) as airflow:
        if former := _left_in(airflow, opened, name):
            _end_in(airflow, opened, name)
            return {"name": name, "uid": former.uid, "deleted": True, "notes": []}
        connector = opened.ledger.connector(name)
        agree(connector.uid)
        with _cleaned_up(opened, connector, airflow, force, say) as notes:
            opened.ledger.delete(connector.uid, who=opened.settings.user, told=notes)
        control.parse_now(opened.home, opened.settings)
        _end_in(airflow, opened, name)
    return {"name": name, "uid": connector.uid, "deleted": True, "notes": notes}


def is_left(name: str) -> bool:
    """Whether the deletion of a connector of this name broke off: Airflow has DAGs of it."""
    if not ledger_exists():
        return False
    with reading() as opened, control.airflow_of(opened.home, opened.settings) as airflow:
        return _left_in(airflow, opened, name) is not None


def finish_deletions(names: Collection[str], say: Say) -> None:
    """Before connectors of these names are new. What Airflow does not do now is said."""
    if not names or not ledger_exists():
        return
    with reading() as opened:
        there = {one.name for one in opened.ledger.connectors()}
        former = sorted({one.name for one in opened.ledger.deleted_connectors(names)} - there)
        if not former:
            return
        try:
            with control.airflow_of(opened.home, opened.settings) as airflow:
                for name in control.known(airflow, former) if airflow else ():
                    _end_in(airflow, opened, name)
        except WaybillError as error:
            paused = f"Airflow may have {', '.join(former)} paused, from a deletion that broke off: look there"
            say(f"{paused} ({error.what})")


def _left_in(airflow: Airflow | None, opened: Opened, name: str) -> Connector | None:
    """The deleted connector of this name whose DAGs are in Airflow still; None where one of the name is there."""
    if airflow is None or opened.ledger.connector_named(name):
        return None
    former = opened.ledger.deleted_connectors([name])
    return former[-1] if former and control.known(airflow, [name]) else None


def _end_in(airflow: Airflow | None, opened: Opened, name: str) -> None:
    if airflow is None:
        return
    try:
        control.hold(airflow, name)
        control.end_runs(airflow, name)
        control.forget(airflow, name, opened.home, opened.settings)
    except WaybillError as error:
        raise Unreachable(
            f"{name} is deleted, and Airflow has its DAGs still: {error.what}",
            where=error.where,
            next_step="Delete it once more when Airflow answers: that ends what runs of them, and removes them",
        ) from error


@contextmanager
def _cleaned_up(
    opened: AtWork, connector: Connector, airflow: Airflow | None, force: bool, say: Say
) -> Iterator[list[str]]:
    """Its other sides keep nothing for the connector any more. When one cannot be told that, the connector stays,
    stopped; with `force` it goes all the same."""
    from connect_core.replication.driver import clean_up

    ends = clean_up.ends_with_remote_state(connector)
    if not ends:
        yield []
        return
    opened.ledger.set_target_state(connector.uid, "stopped", who=opened.settings.user)
    if airflow:
        control.end_runs(airflow, connector.name)
    with ExitStack() as leases:
        try:
            notes = leases.enter_context(
                clean_up.cleaned_up(opened.ledger, opened.settings, opened.home, connector, say)
            )
        except WaybillError as error:
            if not force:
                raise type(error)(
                    f"{error.what}; {connector.name} is stopped, and not deleted",
                    where=error.where,
                    next_step="Try again when no run and no backfill works for it (waybill backfills cancel) and the "
                    f"server answers; or `waybill connectors delete {connector.name} --force`: then the server keeps "
                    "its state of the connector",
                ) from None
            notes = [f"{_LEFT_BEHIND[end]} ({error.what})" for end in ends]
        yield notes
