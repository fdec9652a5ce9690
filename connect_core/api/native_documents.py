"""Documents judged, and several applied at once; what they may name; and what there is to know of the server."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import APIRouter

from connect_core.api import native_examples as examples
from connect_core.api.native_asked import Alone, Applying, Checking, Preview
from connect_core.api.native_said import JsonAnswer
from connect_core.api.native_said import add as added
from connect_core.service import native_documents as native
from connect_core.service import plugins
from connect_core.service.native_connectors import WHY

_log = logging.getLogger(__name__)


def add(routes: APIRouter) -> None:
    judged = {"valid": True, "documents": [examples.CHECKED]}
    added(routes, "POST", "/check", check_documents, "Judge documents; nothing is stored", judged)
    applied = {"applied": True, "connectors": [examples.CHANGE]}
    added(routes, "POST", "/apply", apply_documents, "Create or change connectors: all of them, or none", applied)
    added(routes, "GET", "/plugins", list_plugins, "Whatever documents may name", {"plugins": [examples.PLUGIN]})
    reloaded = {"reloaded": [{"name": "iban", "before": "waybill-iban 1.0", "now": "waybill-iban 1.1"}], "broken": []}
    added(routes, "POST", "/plugins/reload", reload_plugins, "Load packages that were replaced again", reloaded)
    options = {"system": examples.PLUGIN["name"], "options": [examples.OPTION]}
    added(routes, "GET", "/plugins/{system}", show_options, "The options of a system", options)
    healthy = {"ledger": "there", "connectors": {"idle": 1}}
    added(routes, "GET", "/health", show_health, "Whether the ledger answers, and what the connectors do", healthy)
    states = {"version": "0.1.0", "ledger": "there", "connectors": [examples.STATUS]}
    added(routes, "GET", "/status", show_states, "What every connector does, and has settled last", states)
    version = {"version": "0.1.0", "code": "0.1.0+3f2a", "ledger": "0015"}
    added(routes, "GET", "/version", show_version, "Of this code, and of the tables of its ledger", version)


def check_documents(given: Checking, alone: Alone) -> Any:
    checked = native.check(given.documents, _log.info, probe=given.probe)
    told = [{key: value for key, value in one.items() if key != "where"} for one in checked]
    return JsonAnswer({"valid": True, "documents": told})


def apply_documents(given: Applying, alone: Alone, preview: Preview = False) -> Any:
    changes = native.apply(given.documents, _log.info, why=given.why or WHY, preview=preview, made_from=given.made_from)
    return JsonAnswer({"applied": not preview, "connectors": changes})


def list_plugins() -> Any:
    return JsonAnswer({"plugins": plugins.listed()})


def reload_plugins(alone: Alone) -> Any:
    return JsonAnswer(plugins.reload())


def show_options(system: str) -> Any:
    return JsonAnswer({"system": system, "options": native.options(system)})


def show_health() -> Any:
    return JsonAnswer(native.health(_log.info))


def show_states() -> Any:
    return JsonAnswer(native.status(_log.info))


def show_version() -> Any:
    return JsonAnswer(native.version())
