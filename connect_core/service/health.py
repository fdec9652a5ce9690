"""Which home and ledger this is and what is there; and what is wrong and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connect_core import __version__
from connect_core.errors import WaybillError
from connect_core.sdk.values import Json
from connect_core.service.json_values import fields_of
from connect_core.service.opened import Opened, Say, ledger_exists, reading, surroundings

if TYPE_CHECKING:
    from connect_core.ledger import Connector


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `state` is ok, warning or fault; `next_step` says what to do about it."""

    subject: str
    state: str
    what: str
    next_step: str = ""
    exit_code: int = 0


def status(say: Say) -> Json:
    """Home, ledger, what runs, and what the connectors do. A ledger that cannot be asked is a `problem`, not raised."""
    from connect_core.service.local_stack import parts_of

    home, settings = surroundings()
    told: Json = {
        "version": __version__,
        "home": str(home) if home else None,
        "files_roots": [str(root) for root in settings.files_roots],
        "engine": settings.engine,
        "ledger": None,
        "stack": parts_of(home),
        "connectors": [],
    }
    try:
        told |= _ledger_facts(say)
    except WaybillError as error:
        told["problem"] = str(error)
    return told


def findings() -> list[Json]:
    """Everything that a run needs, looked at: `Finding`s as JSON has them."""
    looks = (_home, _variables, _java, _pyspark, _packages, _stack, _ledger)
    return [fields_of(finding) for look in looks for finding in _looked(look)]


# ------------------------------------------------------------------------------------------------------------- status


def _ledger_facts(say: Say) -> Json:
    from connect_core.config import database_url
    from connect_core.config.ledger_url import shown

    with reading() as opened:
        told = connectors_told(opened, opened.ledger.connectors(), say)
        return {"ledger": shown(database_url(opened.home)), "connectors": told}


def connectors_told(opened: Opened, there: Sequence[Connector], say: Say) -> list[Json]:
    """What each of them does, what it has settled last, and how many gaps it has."""
    from connect_core.sdk.values import LIVE
    from connect_core.service.connectors import states
    from connect_core.service.reports import gaps_of

    now, told = states(opened, there, say), []
    for connector in there:
        receipt = next(iter(opened.ledger.receipts(connector.uid, stream=LIVE, limit=1)), None)
        one = fields_of(now[connector.name])
        told.append(
            {
                **one,
                "quarantined": [fields_of(partition) for partition in one["quarantined"]],
                "name": connector.name,
                "last_settled": receipt.settled_at if receipt else None,
                "gaps": len(gaps_of(opened.ledger, connector)),
            }
        )
    return told


# ----------------------------------------------------------------------------------------------------------- findings


def _looked(look: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """The findings of one look; an error of ours is one of them."""
    try:
        return list(look())
    except WaybillError as error:
        subject = look.__name__.strip("_")
        return [Finding(subject, "fault", f"{error.what} {error.where}".strip(), error.next_step, error.exit_code)]


def _home() -> Iterator[Finding]:
    home, settings = surroundings()
    if home is None:
        yield Finding("home", "warning", "none here or above", "Create one with `waybill dev up` or `waybill apply`")
    else:
        yield Finding("home", "ok", str(home))
    for root in settings.files_roots:
        state = "ok" if root.is_dir() else "fault"
        step = (
            ""
            if root.is_dir()
            else f"Make the folder, or name others: export WAYBILL_FILES_ROOTS=FOLDER{os.pathsep}FOLDER"
        )
        yield Finding("files_roots", state, str(root), step, 2)


def _variables() -> Iterator[Finding]:
    from connect_core.config import unknown_variables

    for name, meant in unknown_variables().items():
        yield Finding("environment", "warning", f"{name} is not a setting", f"Did you mean {meant}?")


def _java() -> Iterator[Finding]:
    from connect_core.stack import java

    found = java.of_machine()
    if found:
        yield Finding("java", "ok", str(found))
    else:
        yield Finding("java", "warning", "no Java 17 or newer on the PATH", "RocketMQ and the Spark engine need one")


def _pyspark() -> Iterator[Finding]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for package in ("pyspark", "pyspark-client"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            yield Finding("pyspark", "fault", f"{package} is not installed", "Install waybill again", 3)
    if len(set(found.values())) > 1:
        both = ", ".join(f"{package} {number}" for package, number in found.items())
        yield Finding("pyspark", "fault", f"versions differ: {both}", "Install both in one version", 6)
    elif len(found) > 1:
        yield Finding("pyspark", "ok", found["pyspark"])


def _packages() -> Iterator[Finding]:
    """A broken one harms those alone that need it."""
    from connect_core.service.plugins import brought

    for one in brought():
        subject = f"{one.kind} {one.name}"
        if one.error:
            yield Finding(subject, "warning", one.error, "Correct the package and install it again, or uninstall it")
        else:
            yield Finding(subject, "ok", f"{one.package} {one.version}")


def _stack() -> Iterator[Finding]:
    from connect_core import stack
    from connect_core.service.local_stack import parts_of

    home, _ = surroundings()
    for part in parts_of(home):
        if part["state"] == "stopped" and part["part"] not in stack.startable():
            continue
        state = {"running": "ok", "stopped": "warning"}.get(part["state"], "fault")
        stuck = "" if part["state"] in ("stopped", "dead") else f"`waybill dev down --only {part['part']}`, then "
        step = "" if state == "ok" else f"{stuck}`waybill dev up`; its log: {part['log']}"
        yield Finding(part["part"], state, part["state"], step, 3)


def _ledger() -> Iterator[Finding]:
    from connect_core import ledger
    from connect_core.config import database_url, find_home
    from connect_core.config.ledger_url import shown

    if not ledger_exists():
        yield Finding("ledger", "warning", "none yet", "Create one with `waybill apply` or `waybill dev up`")
        return
    url = database_url(find_home())
    faults = ledger.check(url)
    for fault in faults:
        yield Finding("ledger", "fault", fault, "", 2)
    if not faults:
        yield Finding("ledger", "ok", shown(url))
