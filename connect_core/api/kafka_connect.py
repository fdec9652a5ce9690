"""The routes of Kafka Connect's REST server, as an application of its own below `/kc`.

Its paths, methods, bodies and status codes; an error is `{"error_code": …, "message": …}`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from connect_core import __version__
from connect_core.api import kafka_connect_loggers as loggers
from connect_core.api import kafka_connect_shapes as shapes
from connect_core.api.changing import changing
from connect_core.errors import ConfigError, WaybillError
from connect_core.service import flat_connectors
from connect_core.service import kafka_connectors as kafka
from connect_core.service.connectors import Wish
from connect_core.service.visible import NotFound, named
from connect_core.version import code_version

PREFIX = "/kc"
_log = logging.getLogger(__name__)
_STATES: dict[str, Wish] = {"RUNNING": "running", "PAUSED": "paused", "STOPPED": "stopped"}
_Json = dict[str, Any]
_Answered = TypeVar("_Answered", bound=Response)


def is_below(path: str) -> bool:
    """Whether a request with this path is for these routes."""
    return f"{path}/".startswith(f"{PREFIX}/")


def made() -> FastAPI:
    app = FastAPI(title="Waybill for clients of Kafka Connect", version=__version__, docs_url=None, redoc_url=None)
    app.router.redirect_slashes = False
    for add in (_add_server, _add_connectors, _add_changes, _add_states, _add_offsets, _add_plugins, _add_loggers):
        routes = APIRouter()
        add(routes)
        app.include_router(routes)
    app.add_exception_handler(WaybillError, _failed)
    app.add_exception_handler(HTTPException, as_json)
    app.add_exception_handler(Exception, as_json)
    app.add_exception_handler(ClientDisconnect, _gone)
    return app


# --------------------------------------------------------------------------------------------------------- what is read


def _add_server(routes: APIRouter) -> None:
    @routes.get("/")
    def server() -> _Json:
        return shapes.server(kafka.ledger_id(), code_version())


def _add_connectors(routes: APIRouter) -> None:
    @routes.get("/connectors", response_model=None)
    def connectors(expand: Annotated[list[str] | None, Query()] = None) -> list[str] | _Json:
        return shapes.expanded(kafka.listed(_log.info), expand) if expand else kafka.names()

    @routes.get("/connectors/{name}")
    def info(name: str) -> _Json:
        return shapes.info(kafka.shown(name, _log.info))

    @routes.get("/connectors/{name}/config")
    def config(name: str) -> _Json:
        return shapes.config(kafka.shown(name, _log.info))

    @routes.get("/connectors/{name}/status")
    def status(name: str) -> _Json:
        return shapes.status(kafka.shown(name, _log.info))

    @routes.get("/connectors/{name}/tasks")
    def tasks(name: str) -> list[_Json]:
        return shapes.task_infos(kafka.shown(name, _log.info))

    @routes.get("/connectors/{name}/tasks-config")
    def task_configs(name: str) -> _Json:
        one = kafka.shown(name, _log.info)
        return {f"{name}-{told['id']['task']}": told["config"] for told in shapes.task_infos(one)}

    @routes.get("/connectors/{name}/tasks/{task}/status")
    def task_status(name: str, task: str) -> _Json:
        return _task(name, task)

    @routes.get("/connectors/{name}/topics")
    def topics(name: str) -> _Json:
        return {name: {"topics": kafka.topics(name)}}


def _task(name: str, task: str) -> _Json:
    """Raises NotFound."""
    for told in shapes.status(kafka.shown(name, _log.info))["tasks"]:
        if str(told["id"]) == task:
            found: _Json = told
            return found
    raise NotFound(f"No status found for task {name}-{task}")


# ------------------------------------------------------------------------------------------------------ what is changed


def _add_changes(routes: APIRouter) -> None:
    @routes.post("/connectors")
    async def create(request: Request) -> JSONResponse:
        def created(given: _Json) -> JSONResponse:
            name, config, state = _asked(given)
            kafka.create(name, config, state, _log.info)
            return _stored(request, name, created=True)

        return await _with_config(request, created)

    @routes.put("/connectors/{name}/config")
    async def put(name: str, request: Request) -> JSONResponse:
        return await _with_config(
            request, lambda given: _stored(request, name, created=kafka.put(name, given, _log.info))
        )

    @routes.patch("/connectors/{name}/config")
    async def patch(name: str, request: Request) -> JSONResponse:
        def patched(changes: _Json) -> JSONResponse:
            kafka.patch(name, changes, _log.info)
            return _stored(request, name, created=False)

        return await _with_config(request, patched)

    @routes.delete("/connectors/{name}", status_code=204)
    def delete(name: str) -> None:
        kafka.delete(name, _log.info)


def _asked(given: _Json) -> tuple[str, _Json, Wish]:
    """Of what POST is sent: a name, a configuration, and what the connector shall do first."""
    if unknown := given.keys() - {"name", "config", "initial_state"}:
        raise ConfigError(f"Unrecognized field {min(unknown)!r}; there are name, config and initial_state")
    name, config, state = given.get("name"), given.get("config"), given.get("initial_state") or "RUNNING"
    if not isinstance(name, str) or not name.strip():
        raise ConfigError("The field name is missing: a text")
    if not isinstance(config, dict):
        raise ConfigError("The field config is missing: an object")
    if not isinstance(state, str) or state.upper() not in _STATES:
        raise ConfigError(f"The field initial_state is none of {', '.join(_STATES)}")
    return name.strip(), config, _STATES[state.upper()]


def _stored(request: Request, name: str, *, created: bool) -> JSONResponse:
    told = shapes.info(kafka.shown(name, _log.info))
    where = {"Location": f"{request.scope['root_path']}/connectors/{quote(name, safe='')}"} if created else {}
    return JSONResponse(told, status_code=201 if created else 200, headers=where)


def _add_states(routes: APIRouter) -> None:
    def add(verb: str, state: Wish, code: int) -> None:
        @routes.put(f"/connectors/{{name}}/{verb}", status_code=code, operation_id=verb, response_class=Response)
        def change(name: str) -> Response:
            kafka.set_state(name, state)
            return Response(status_code=code)

    add("pause", "paused", 202)
    add("resume", "running", 202)
    add("stop", "stopped", 204)

    @routes.post("/connectors/{name}/restart", response_class=Response)
    def restart(name: str, includeTasks: str = "", onlyFailed: str = "") -> Response:  # noqa: N803  names of theirs
        begins = kafka.restart(name, _log.info)
        if "true" not in (includeTasks.lower(), onlyFailed.lower()):
            return Response(status_code=204)
        told = shapes.status(kafka.shown(name, _log.info), restarting=begins)
        return JSONResponse(told, status_code=202)

    @routes.post("/connectors/{name}/tasks/{task}/restart", response_class=Response)
    def restart_task(name: str, task: str) -> Response:
        _task(name, task)
        kafka.restart(name, _log.info)
        return Response(status_code=204)

    @routes.put("/connectors/{name}/topics/reset", response_class=Response)
    def forget_topics(name: str) -> Response:
        kafka.forget_topics(name)
        return Response(status_code=202)


# ------------------------------------------------------------------------------------------------------------- offsets


def _add_offsets(routes: APIRouter) -> None:
    @routes.get("/connectors/{name}/offsets")
    def offsets(name: str) -> _Json:
        return shapes.offsets(kafka.offsets_of(name))

    @routes.patch("/connectors/{name}/offsets")
    async def alter(name: str, request: Request) -> JSONResponse:
        def altered(given: _Json) -> JSONResponse:
            named(name)
            kafka.alter_offsets(name, _wanted(given), _log.info)
            return JSONResponse({"message": "The offsets for this connector have been altered successfully"})

        return await _with(request, altered)

    @routes.delete("/connectors/{name}/offsets")
    def reset(name: str) -> _Json:
        kafka.reset_offsets(name, _log.info)
        return {"message": "The offsets for this connector have been reset successfully"}


def _wanted(given: _Json) -> dict[str, int | None]:
    """By partition; None where the offset is null."""
    entries = given.get("offsets")
    if not isinstance(entries, list) or not entries:
        raise ConfigError("Partitions / offsets need to be provided for an alter offsets request")
    found: dict[str, int | None] = {}
    for entry in entries:
        key, offset = _place(entry)
        if key in found:
            raise ConfigError(f'The partition "{key}" is named twice')
        found[key] = offset
    return found


def _place(entry: Any) -> tuple[str, int | None]:
    shape = 'An entry of offsets is {"partition": {"partition": "…"}, "offset": {"offset": 0}}, as a GET shows it'
    if not isinstance(entry, dict) or "offset" not in entry or not isinstance(entry.get("partition"), dict):
        raise ConfigError(shape)
    key, offset = entry["partition"].get("partition"), entry["offset"]
    if not isinstance(key, str) or entry["partition"].keys() != {"partition"}:
        raise ConfigError(shape)
    if offset is None:
        return key, None
    at = offset.get("offset") if isinstance(offset, dict) and offset.keys() == {"offset"} else None
    if type(at) is not int or not 0 <= at < 1 << 63:
        raise ConfigError(shape)
    return key, at


# ------------------------------------------------------------------------------------------------- classes and loggers


def _add_plugins(routes: APIRouter) -> None:
    @routes.get("/connector-plugins")
    def plugins(connectorsOnly: str = "true") -> list[_Json]:  # noqa: N803
        """Of connectors, or also of what their configurations name."""
        every = connectorsOnly.strip().lower() == "false"
        return shapes.plugins(flat_connectors.all_plugins() if every else flat_connectors.plugins())

    @routes.get("/connector-plugins/{kind}/config")
    def keys(kind: str) -> list[_Json]:
        return shapes.definitions(kafka.plugin_of(kind))

    @routes.put("/connector-plugins/{kind}/config/validate")
    async def validate(kind: str, request: Request) -> JSONResponse:
        def judged(given: _Json) -> JSONResponse:
            faults = kafka.faults_of(kind, given)
            return JSONResponse(shapes.validated(kafka.class_of(kind), kafka.shown_config(given), faults))

        return await _with_config(request, judged)


def _add_loggers(routes: APIRouter) -> None:
    @routes.get("/admin/loggers")
    def levels() -> _Json:
        return loggers.shown_all()

    @routes.get("/admin/loggers/{name}")
    def level(name: str) -> _Json:
        return loggers.shown(name)

    @routes.put("/admin/loggers/{name}")
    async def set_level(name: str, request: Request, scope: str = "worker") -> Response:
        def done(given: _Json) -> Response:
            level = given.get("level")
            if not isinstance(level, str):
                raise ConfigError("Desired 'level' parameter was not specified in request.")
            changed = loggers.set_level(name, level)
            return Response(status_code=204) if scope == "cluster" else JSONResponse(changed)

        return await _with(request, done)


# --------------------------------------------------------------------------------------------------- bodies and errors


async def _with(request: Request, use: Callable[[_Json], _Answered]) -> _Answered:
    """What `use` makes of the object that was sent. Raises ConfigError for anything else."""
    return await run_in_threadpool(use, _object(await request.body()))


async def _with_config(request: Request, use: Callable[[_Json], _Answered]) -> _Answered:
    """The same of a configuration, one at a time."""
    given = _object(await request.body())
    async with changing(request):
        return await run_in_threadpool(use, given)


def _object(body: bytes) -> _Json:
    try:
        given = json.loads(body)
        json.dumps(given, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise ConfigError("The body is no JSON object")
    return given


async def _failed(request: Request, error: Exception) -> JSONResponse:
    code, told = shapes.error(error) if isinstance(error, WaybillError) else (500, shapes.failed(500, str(error)))
    return JSONResponse(told, status_code=code)


async def as_json(request: Request, error: Exception) -> JSONResponse:
    """What is raised before any route of ours, or for none."""
    known = error if isinstance(error, HTTPException) else HTTPException(500, headers={"Connection": "close"})
    told = shapes.failed(known.status_code, f"HTTP {known.status_code} {known.detail}")
    return JSONResponse(told, status_code=known.status_code, headers=known.headers)


async def _gone(request: Request, error: Exception) -> Response:
    """Nobody reads it: the caller has hung up in the middle of a body."""
    return Response(status_code=400)
