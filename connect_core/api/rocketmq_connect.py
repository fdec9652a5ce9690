"""The routes of RocketMQ Connect's REST server, word for word, and those that its own command line calls in vain there.

A failure that a route knows of has the HTTP status 200 and an `errorCode`, as there. There every change is a GET; here
that is so where a person wants it, and else each has a POST of the same path.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from connect_core.api import rocketmq_connect_shapes as shapes
from connect_core.api.rocketmq_connect_shapes import Answer
from connect_core.errors import ConfigError, WaybillError
from connect_core.service import flat_connectors
from connect_core.service.connectors import Wish
from connect_core.service.flat_connectors import FlatConnector

_log = logging.getLogger(__name__)
_REQUIRED = "Failed! query param 'config' is required "
_MALFORMED = "Failed! query param 'config' is malformed"


def router(*, gets_change: bool) -> APIRouter:
    """`gets_change`: a GET may create, pause, resume and stop. Where it may not, it is answered with what may."""
    routes = APIRouter(tags=["RocketMQ Connect"])
    _add_views(routes)
    _add_changes(routes, gets_change=gets_change)
    return routes


# --------------------------------------------------------------------------------------------------------- what is read


def _add_views(routes: APIRouter) -> None:
    for path, what, summary in (
        ("/getClusterInfo", lambda: shapes.body(shapes.workers(_listed())), "The workers"),
        ("/connectors/list", lambda: shapes.body(shapes.expanded(_listed())), "Every connector"),
        ("/allocated/connectors", lambda: shapes.body(shapes.configs(_listed())), "Their configurations"),
        ("/allocated/tasks", lambda: shapes.body(shapes.allocated_tasks(_listed())), "Tasks by what they do"),
        ("/plugin/list", lambda: shapes.body(_plugins()), "Classes of connectors"),
        ("/plugin/list/connectors", lambda: shapes.body(_plugins()), "Classes of connectors"),
        ("/getConfigInfo", lambda: shapes.body(shapes.config_info(_listed())), "Configurations, for connectAdmin"),
        ("/getAllocatedInfo", lambda: shapes.body(shapes.allocated_info(_listed())), "What works, for connectAdmin"),
        ("/getAllocatedConnectors", lambda: shapes.connectors_of_command(_listed()), "For connectAdmin"),
        ("/getAllocatedTasks", lambda: shapes.tasks_of_command(_listed()), "For connectAdmin"),
    ):
        routes.add_api_route(path, _answering(what), methods=["GET"], summary=summary)

    @routes.get("/plugin/config", summary="The keys of classes of connectors")
    def keys(request: Request) -> Answer:
        wanted = request.query_params.get("connector.class", "")
        found = [one for one in flat_connectors.plugins() if one.name.endswith(wanted)]
        return shapes.body({one.name: shapes.config_keys(one) for one in found})

    @routes.get("/connectors/{connectorName}/config", summary="Its configuration and its tasks")
    def config(connectorName: str) -> Answer:  # noqa: N803  a name of theirs
        return _told(lambda: shapes.body(shapes.info(_one(connectorName))))

    @routes.get("/connectors/{connectorName}/status", summary="What it does, and its tasks")
    def status(connectorName: str) -> Answer:  # noqa: N803
        return _told(lambda: shapes.body(shapes.status(_one(connectorName))))

    @routes.get("/connectors/{connectorName}/tasks", summary="Its tasks; none for one that is not there")
    def tasks(connectorName: str) -> Answer:  # noqa: N803
        def found() -> Answer:
            return shapes.body(
                [one for each in _listed() if each.name == connectorName for one in shapes.task_infos(each)]
            )

        return _told(found)

    @routes.get("/connectors/{connectorName}/tasks/{task}/status", summary="What one task does")
    def task_status(connectorName: str, task: str) -> Answer:  # noqa: N803
        def found() -> Answer:
            one = _one(connectorName)
            number = next((each for each in one.tasks if str(each.number) == task), None)
            if number is None:
                raise ConfigError(f"No status found for task {connectorName}-{task}")
            return shapes.body(shapes.task_status(one, number))

        return _told(found)


def _listed() -> list[FlatConnector]:
    return flat_connectors.listed(_log.info)


def _one(name: str) -> FlatConnector:
    return flat_connectors.shown(name, _log.info)


def _plugins() -> list[Answer]:
    return shapes.plugin_infos(flat_connectors.plugins())


# ------------------------------------------------------------------------------------------------------ what is changed


class _Verb(NamedTuple):
    """A change of one connector, and of all, with the words of the answers; `none` is for where there is none."""

    state: Wish
    each: str
    all: Callable[[list[str]], str]
    none: str


_VERBS: Mapping[str, _Verb] = {
    "stop": _Verb("stopped", "deleted", lambda names: f"[{', '.join(names)}] connectors are deleted", "deleted"),
    "pause": _Verb("paused", "paused", lambda names: f"{len(names)} connectors are suspended", "paused"),
    "resume": _Verb("running", "resumed", lambda names: f"{len(names)} connectors are resumed", "resumed"),
}


def _add_changes(routes: APIRouter, *, gets_change: bool) -> None:
    def add(path: str, change: Callable[..., Any], summary: str) -> None:
        routes.add_api_route(path, change, methods=["POST"], summary=summary)
        get = change if gets_change else _refused(path)
        routes.add_api_route(path, get, methods=["GET"], summary=summary, include_in_schema=gets_change)

    for verb in _VERBS:
        add(f"/connectors/{verb}/all", _answering(partial(_all, verb)), f"{verb.capitalize()} all connectors")
    add("/connectors/stopAll", _answering(partial(_all, "stop")), "Stop all connectors, for connectAdmin")
    for verb in _VERBS:
        add(f"/connectors/{{connectorName}}/{verb}", _changing(verb), f"{verb.capitalize()} a connector")
    add("/plugin/reload", _answering(lambda: shapes.body("Plugin reload succeeded")), "Plug-ins are read by each run")
    routes.add_api_route(
        "/plugin/config/validate", _validate, methods=["GET", "POST"], summary="What create would refuse"
    )
    add("/connectors/{connectorName}", _create, "Create a connector, or change it")


def _changing(verb: str) -> Callable[[str], Answer]:
    how = _VERBS[verb]

    def change(connectorName: str) -> Answer:  # noqa: N803
        def done() -> Answer:
            flat_connectors.set_state(connectorName, how.state)
            return shapes.body(f"Connector [{connectorName}] {how.each} successfully")

        return _told(done)

    return change


def _all(verb: str) -> Answer:
    how = _VERBS[verb]
    names = flat_connectors.set_all(how.state)
    if not names:
        return shapes.body(f"No connector needs to be {how.none}, please add connector first")
    return shapes.body(how.all(names))


async def _create(connectorName: str, request: Request) -> Answer:  # noqa: N803
    def created(given: Answer) -> Answer:
        flat_connectors.create(connectorName, given, _log.info)
        return shapes.body(flat_connectors.hidden(given))

    return await _with_config(request, created)


async def _validate(request: Request) -> Answer:
    """RocketMQ Connect answers that this is not implemented."""

    def judged(given: Answer) -> Answer:
        name = str(given.get("name", "connector"))
        return shapes.body(shapes.validated(name, flat_connectors.faults_of(name, given)))

    return await _with_config(request, judged)


async def _with_config(request: Request, use: Callable[[Answer], Answer]) -> Answer:
    text = await request.body() if request.method == "POST" else request.query_params.get("config", "").encode()
    if not text.strip():
        return shapes.failed(400, _REQUIRED)
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        return shapes.failed(400, _MALFORMED)
    return await run_in_threadpool(lambda: _told(lambda: use(given)))


def _answering(what: Callable[[], Answer]) -> Callable[[], Answer]:
    return lambda: _told(what)


def _told(what: Callable[[], Answer]) -> Answer:
    try:
        return what()
    except WaybillError as error:
        return shapes.error(error)


def _refused(path: str) -> Callable[[], JSONResponse]:
    def refuse() -> JSONResponse:
        how = f"POST {path}; or start the server with --gets-change, as scripts for RocketMQ Connect need it"
        answer = shapes.failed(405, f"A GET changes nothing here: {how}")
        return JSONResponse(answer, status_code=405, headers={"Allow": "POST"})

    return refuse
