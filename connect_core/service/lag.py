"""What is waiting in the sources, and what the next run would move. Asks sources and ledger; writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

from connect_core.config import database_url, load_document, reveal
from connect_core.config.schema_contract import schema_contract
from connect_core.errors import WaybillError
from connect_core.ledger import Connector, Ledger
from connect_core.replication.driver.preview import plan_connector
from connect_core.sdk.values import LIVE, Json
from connect_core.service import partition_states
from connect_core.service.opened import Opened, surroundings
from connect_core.systems import SYSTEMS


def plan(opened: Opened, name: str) -> Json:
    """What the next run would move, by partition. `lag` in `unit`; `window_s` is how long a scheduled run stays;
    `schema` as `schema_contract` has it."""
    connector = opened.ledger.connector(name)
    resolved = opened.resolved(connector)
    previews = plan_connector(opened.ledger, connector, resolved)
    return {
        "connector": name,
        "state": connector.target_state,
        "lag": sum(preview.lag or 0 for preview in previews),
        "unit": lag_unit(connector.document),
        "window_s": resolved.window_s,
        "schema": schema_contract(load_document(connector.document, f"connector {name}")),
        "partitions": [asdict(preview) for preview in previews],
    }


def plan_with_sample(opened: Opened, name: str, sample: int) -> Json:
    """The same, with what each step makes of the newest records as `sample`."""
    from connect_core.service import trying

    return {**plan(opened, name), "sample": trying.newest(trying.planned(opened, name), sample)}


def lag(opened: Opened, name: str = "") -> list[Json]:
    """Of one connector: raises what its source raises. Of all of them: one that cannot be asked has a `problem` and
    does not hide the others."""
    if name:
        return [_lag(opened, opened.ledger.connector(name))]
    return lag_of(opened, opened.ledger.connectors())


def lag_of(opened: Opened, connectors: Sequence[Connector]) -> list[Json]:
    """Of several: one that cannot be asked has a `problem`."""
    return [_lag_or_why_not(opened, connector) for connector in connectors]


def what_waits(name: str) -> dict[str, int | str]:
    """By key the end of each partition of a connector that has something to move, or the state of one that the next run
    would put aside or take back, for whoever looks every second: the ledger's schema is not looked at."""
    home, settings = surroundings()
    with Ledger.glance(database_url(home)) as ledger:
        connector = ledger.connector(name)
        previews = plan_connector(ledger, connector, Opened(home, settings, ledger).resolved(connector))
        stored = ledger.partition_states(connector.uid)
    aside = {partition.key for partition, one in stored.items() if one.state == "quarantined"}
    waiting: dict[str, int | str] = {
        one.partition: one.state for one in previews if (one.state == "quarantined") != (one.partition in aside)
    }
    return waiting | {one.partition: one.end for one in previews if one.lag or one.open_from is not None or one.gaps}


def lag_unit(document: Json) -> str:
    """What the positions of its source count."""
    plugin = SYSTEMS.get(next(iter(document["source"])))  # of another package, it may be gone
    return plugin.unit if plugin else "records"


def _lag(opened: Opened, connector: Connector) -> Json:
    previews = plan_connector(opened.ledger, connector, opened.resolved(connector))
    newest = next(iter(opened.ledger.receipts(connector.uid, stream=LIVE, limit=1)), None)
    since = newest.settled_at if newest else connector.created_at
    alerts = load_document(connector.document).alerts
    waiting, aside = sum(preview.lag or 0 for preview in previews), partition_states.of_previews(previews)
    return {
        "connector": connector.name,
        "lag": waiting,
        "unit": lag_unit(connector.document),
        "settled_at": newest.settled_at if newest else None,
        "late": bool(waiting) and _older(since, alerts.lag),
        "silent": _older(since, alerts.silent),
        "partitions": [
            {key: getattr(seen, key) for key in ("partition", "committed", "end", "lag", "waiting", "state")}
            for seen in previews
        ],
        "aside": aside,
        "snapshot": _rows_left(opened, connector, is_told=bool(aside)),
    }


def _rows_left(opened: Opened, connector: Connector, *, is_told: bool) -> list[Json]:
    """Of each table whose rows come by a snapshot, about how many are still to come, also before the first run.
    `is_told`: what is wrong with the source is said elsewhere."""
    source = opened.resolved(connector).source
    committed = opened.ledger.positions(connector.uid, LIVE, opened.ledger.assignment(connector.uid).shares)
    begun: list[Json | None] = [at.evidence for at in committed.values() if at]
    asked = SYSTEMS[source.system].rows_left
    try:
        return [one._asdict() for evidence in begun or [None] for one in asked(reveal(source.options), evidence)]
    except WaybillError:
        if is_told:
            return []
        raise


def _lag_or_why_not(opened: Opened, connector: Connector) -> Json:
    try:
        return _lag(opened, connector)
    except WaybillError as error:
        unknown: Json = {"lag": None, "settled_at": None, "late": False, "silent": False, "partitions": []}
        unknown["snapshot"] = []
        unknown["aside"] = partition_states.of_states(opened.ledger.partition_states(connector.uid))
        return {"connector": connector.name, **unknown, "unit": lag_unit(connector.document), "problem": str(error)}


def _older(moment: datetime, limit_s: float | None) -> bool:
    return limit_s is not None and datetime.now(UTC) - moment > timedelta(seconds=limit_s)
