"""The routes of RocketMQ Connect's REST server, word for word, and those that its own command line calls in vain there.

A failure that a route knows of has the HTTP status 200 and an `errorCode`, as there. There every change is a GET; here
that is so where a person wants it, and else each has a POST of the same path.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple, TypeVar

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from connect_core.api import rocketmq_connect_openapi as said
from connect_core.api import rocketmq_connect_shapes as shapes
from connect_core.api.changing import changing
from connect_core.api.rocketmq_connect_shapes import Answer
from connect_core.errors import ConfigError, WaybillError
from connect_core.service import flat_connectors, plugins
from connect_core.service.callers import NotAllowed
from connect_core.service.connectors import Wish
from connect_core.service.flat_connectors import FlatConnector

_log = logging.getLogger(__name__)
_Handler = TypeVar("_Handler", bound=Callable[..., Any])
_VALIDATE, _RELOAD = "/plugin/config/validate", "/plugin/reload"
_REQUIRED = "Failed! query param 'config' is required "
_MALFORMED = "Failed! query param 'config' is malformed"


def router(*, gets_change: bool) -> APIRouter:
    """`gets_change`: a GET may create, pause, resume and stop. Where it may not, it is answered with what may."""
    routes = APIRouter(tags=["RocketMQ Connect"], responses=said.FAILURES)
    _add_lists(routes)
    _add_views(routes)
    _add_changes(routes, gets_change=gets_change)
    return routes


# --------------------------------------------------------------------------------------------------------- what is read


class _List(NamedTuple):
    """A route that needs no name. `bare`: its answer has no envelope."""

    path: str
    what: Callable[[], Any]
    summary: str
    example: Any
    bare: bool = False


def _lists() -> tuple[_List, ...]:
    of_command = {"properties": said.CONFIG | {"topic": "fileTopic", "update-timestamp": "1700000000000"}}
    task = {"connectorName": "in", "state": "RUNNING", "configs": {"properties": said.TASK_CONFIG}}
    allocated = {"connectorName": "in", "config": said.TASK_CONFIG, "taskState": "RUNNING"}
    every = {"in": {"status": said.STATUS, "info": said.INFO}}
    configs = {"connectorConfigs": {"in": said.CONFIG}, "taskConfigs": {"in": [said.TASK_CONFIG]}}
    at_work = {"workers": ["waybill"], "connectors": ["in"], "tasks": ["in-0"]}
    return (
        _List("/getClusterInfo", lambda: shapes.workers(_listed()), "The workers", ["waybill"]),
        _List("/connectors/list", lambda: shapes.expanded(_listed()), "Every connector", every),
        _List(
            "/allocated/connectors",
            lambda: shapes.configs(_listed()),
            "The configuration of every connector",
            {"in": said.CONFIG},
        ),
        _List(
            "/allocated/tasks",
            lambda: shapes.allocated_tasks(_listed()),
            "The tasks of every connector, by what they do",
            {"runningTasks": [allocated]},
        ),
        _List("/plugin/list", _every_plugin, "Classes of connectors, transforms and converters", [said.PLUGIN]),
        _List("/plugin/list/connectors", _plugins, "Classes of connectors alone", [said.PLUGIN]),
        _List("/getConfigInfo", lambda: shapes.config_info(_listed()), "Configurations, for connectAdmin", configs),
        _List(
            "/getAllocatedInfo", lambda: shapes.allocated_info(_listed()), "What is there, for connectAdmin", at_work
        ),
        _List(
            "/getAllocatedConnectors",
            lambda: shapes.connectors_of_command(_listed()),
            "Connectors, for connectAdmin",
            {"in": of_command},
            bare=True,
        ),
        _List(
            "/getAllocatedTasks",
            lambda: shapes.tasks_of_command(_listed()),
            "Tasks, for connectAdmin",
            {"runningTasks": [task]},
            bare=True,
        ),
    )


def _add_lists(routes: APIRouter) -> None:
    for one in _lists():
        answers = said.bare_answers(one.example) if one.bare else said.answers(one.example)
        handler = _answering(one.what if one.bare else partial(_enveloped, one.what))
        routes.add_api_route(
            one.path,
            handler,
            methods=["GET"],
            summary=one.summary,
            responses=answers,
            response_model=None,
            operation_id=_operation("get", one.path),
        )


def _add_views(routes: APIRouter) -> None:
    def view(path: str, summary: str, example: Any) -> Callable[[_Handler], _Handler]:
        return routes.get(
            path,
            summary=summary,
            responses=said.answers(example),
            response_model=None,
            operation_id=_operation("get", path),
        )

    @view("/plugin/config", "The keys of a class, or of all", {said.PLUGIN["className"]: [said.KEY]})
    def keys(
        wanted: Annotated[str, Query(alias="connector.class", description="A class, or the end of its name")] = "",
    ) -> Answer:
        found = [one for one in flat_connectors.all_plugins() if one.name.endswith(wanted)]
        return shapes.body({one.name: shapes.config_keys(one) for one in found})

    @view("/connectors/{connectorName}/config", "Its configuration and its tasks", said.INFO)
    def config(connectorName: str) -> Answer:  # noqa: N803  a name of theirs
        return _told(lambda: shapes.body(shapes.info(_one(connectorName))))

    @view("/connectors/{connectorName}/status", "What it does, and its tasks", said.STATUS)
    def status(connectorName: str) -> Answer:  # noqa: N803
        return _told(lambda: shapes.body(shapes.status(_one(connectorName))))

    tasks_of = [{"id": {"connector": "in", "task": 0}, "config": said.TASK_CONFIG}]

    @view("/connectors/{connectorName}/tasks", "Its tasks; none for one that is not there", tasks_of)
    def tasks(connectorName: str) -> Answer:  # noqa: N803
        def found() -> Answer:
            return shapes.body(
                [one for each in _listed() if each.name == connectorName for one in shapes.task_infos(each)]
            )

        return _told(found)

    @view("/connectors/{connectorName}/tasks/{task}/status", "What one task does", said.TASK)
    def task_status(connectorName: str, task: str) -> Answer:  # noqa: N803
        def found() -> Answer:
            one = _one(connectorName)
            number = next((each for each in one.tasks if str(each.number) == task), None)
            if number is None:
                raise ConfigError(f"No status found for task {connectorName}-{task}")
            return shapes.body(shapes.task_status(one, number))

        return _told(found)


def _operation(method: str, path: str) -> str:
    """A name that clients can be generated with: `get_connectors_connectorName_status`."""
    return "_".join([method, *(part.strip("{}") for part in path.split("/") if part)])


def _enveloped(what: Callable[[], Any]) -> Answer:
    return shapes.body(what())


def _listed() -> list[FlatConnector]:
    return flat_connectors.listed(_log.info)


def _one(name: str) -> FlatConnector:
    return flat_connectors.shown(name, _log.info)


def _every_plugin() -> list[Answer]:
    """Without predicates: there are none of these there."""
    return shapes.plugin_infos(one for one in flat_connectors.all_plugins() if one.kind != "predicate")


def _plugins() -> list[Answer]:
    return shapes.plugin_infos(flat_connectors.plugins())


# ------------------------------------------------------------------------------------------------------ what is changed


class _Verb(NamedTuple):
    """A change of one connector, and of all, with the words of the answers; `none` is for where there is none."""

    does: str
    state: Wish
    each: str
    all: Callable[[list[str]], str]
    none: str


_VERBS: Mapping[str, _Verb] = {
    "stop": _Verb(
        "Stop", "stopped", "deleted", lambda names: f"[{', '.join(names)}] connectors are deleted", "deleted"
    ),
    "pause": _Verb("Pause", "paused", "paused", lambda names: f"{len(names)} connectors are suspended", "paused"),
    "resume": _Verb("Resume", "running", "resumed", lambda names: f"{len(names)} connectors are resumed", "resumed"),
}


def _add_changes(routes: APIRouter, *, gets_change: bool) -> None:
    def add(path: str, change: Callable[..., Any], summary: str, example: Any, *, takes_config: bool = False) -> None:
        def route(method: str, handler: Callable[..., Any], *, shown: bool) -> None:
            routes.add_api_route(
                path,
                handler,
                methods=[method],
                summary=summary,
                include_in_schema=shown,
                responses=said.answers(example),
                response_model=None,
                operation_id=_operation(method.lower(), path),
                openapi_extra={"POST": said.BODY, "GET": said.QUERY}[method] if takes_config else None,
            )

        route("POST", change, shown=True)
        only_asks = path in (_VALIDATE, _RELOAD)
        route("GET", change if gets_change or only_asks else _refused(path), shown=gets_change or only_asks)

    for verb, how in _VERBS.items():
        add(f"/connectors/{verb}/all", _answering(partial(_all, verb)), f"{how.does} all connectors", how.all(["in"]))
    add("/connectors/stopAll", _answering(partial(_all, "stop")), "As /connectors/stop/all, for connectAdmin", "…")
    for verb, how in _VERBS.items():
        done = f"Connector [in] {how.each} successfully"
        add(f"/connectors/{{connectorName}}/{verb}", _changing(verb), f"{how.does} a connector", done)
    add(_RELOAD, _answering(_reloaded), "Packages that were replaced are loaded again", "Plugin reload succeeded")
    judged = {"name": "in", "errorCount": 1, "errors": [{"key": "filename", "message": "Missing"}]}
    add(_VALIDATE, _validate, "What creating this configuration would refuse", judged, takes_config=True)
    add("/connectors/{connectorName}", _create, "Create a connector, or change it", said.CONFIG, takes_config=True)


def _reloaded() -> Answer:
    plugins.reload()
    return shapes.body("Plugin reload succeeded")


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
    async with changing(request):
        return await run_in_threadpool(lambda: _told(lambda: use(given)))


def _answering(what: Callable[[], Answer]) -> Callable[[], Answer]:
    return lambda: _told(what)


def _told(what: Callable[[], Answer]) -> Answer:
    """Raises NotAllowed, which has an HTTP status of its own."""
    try:
        return what()
    except NotAllowed:
        raise
    except WaybillError as error:
        return shapes.error(error)


def _refused(path: str) -> Callable[[], JSONResponse]:
    def refuse() -> JSONResponse:
        how = f"POST {path}; or start the server with --gets-change, as scripts for RocketMQ Connect need it"
        answer = shapes.failed(405, f"A GET changes nothing here: {how}")
        return JSONResponse(answer, status_code=405, headers={"Allow": "POST"})

    return refuse
