"""What went wrong, as an error of our tree: from what a server has answered, or why it did not. Pure."""

from __future__ import annotations

import re
import ssl
from typing import Any
from urllib.parse import unquote

from connect_core import __version__
from connect_core.errors import ConfigError, Failure, Fatal, Fault, Refused, Retriable, Unreachable, WaybillError
from connect_core.remote.server import RemoteServer
from connect_core.sdk.values import Json

_PROBLEM = "urn:waybill:problem:"
_CALLS = (
    (r"POST /api/v1/connectors/(\S+)/(pause|resume|stop)\b", r"waybill connectors \2 \1"),
    (r"POST /api/v1/connectors/([^\s/]+)/backfills/([^\s/]+)/resume\b", r"waybill backfills resume \1 \2"),
    (r"POST /api/v1/connectors/([^\s/]+)/(runs|verifications|backfills|dead-letters/replays)\b", "the same command"),
    (r"GET /api/v1/connectors/(\S+)/runs\b", r"waybill runs \1"),
    (r"GET /api/v1/connectors/(\S+)/backfills\b", r"waybill backfills list \1"),
    (r"GET /api/v1/connectors/(\S+)/dead-letters\b", r"waybill dead-letters list \1"),
    (r"GET /api/v1/plugins\b", "`waybill plugins` shows all"),
    (r"GET /api/v1/connectors(?!/)", "See `waybill connectors list`"),
    (r"GET /api/v1/operations\b", "Run the command again"),
)
"""What a program would call, and what a person types instead."""
_LOOKS = (
    (r"/connectors/([^/]+)/offsets\b.*", "waybill offsets show {}"),
    (r"/connectors/([^/]+)/rules\b.*", "waybill rules list {}"),
    (r"/connectors/([^/]+)/dead-letters\b.*", "waybill dead-letters list {}"),
    (r"/connectors/([^/]+)/backfills\b.*", "waybill backfills list {}"),
    (r"/connectors/([^/]+)/runs", "waybill runs {}"),
)
"""What has been changed by a path, and the command that shows it."""


def error_of(status: int, told: Any, server: RemoteServer) -> WaybillError:
    """Of an answer that is no good one; `told` is its body where that is JSON."""
    problem = told if isinstance(told, dict) and str(told.get("type", "")).startswith(_PROBLEM) else None
    if status == 401:
        return _no_token(server)
    if 300 <= status < 400:
        return ConfigError(
            "The server sends its callers to another address, where no token is sent",
            where=server.url,
            next_step="Name the address at which it answers itself with --server",
        )
    if problem is None or problem["type"] == f"{_PROBLEM}no-route":
        return _of_a_stranger(status, server)
    return of_problem(problem, status)


def of_problem(problem: Json, status: int = 500) -> WaybillError:
    """What a server, or one of its operations, tells of a failure."""
    what, where = str(problem.get("detail", "It failed")), str(problem.get("where", ""))
    next_step = for_commands(str(problem.get("next_step", "")))
    if problem.get("type") == f"{_PROBLEM}stale":
        return Retriable(what, where=where, next_step="Nothing was changed. Look at what is there now, and try again")
    family = str(problem.get("kind") or _family(status))
    if family == "ConfigError":
        faults = tuple(Fault(str(one["path"]), str(one["message"])) for one in problem.get("errors", ()))
        return ConfigError(what, where=where, next_step=next_step, faults=faults)
    return Failure(family, what, where, next_step, family).as_error()


def for_commands(text: str) -> str:
    for call, command in _CALLS:
        text = re.sub(call, command, text)
    return text


def looking_at(path: str) -> str:
    """The command that shows what a request with this path has changed."""
    for changed, command in _LOOKS:
        if found := re.fullmatch(f"/api/v1{changed}", path):
            return command.format(unquote(found[1]))
    return "waybill connectors list"


def not_reached(error: BaseException, server: RemoteServer) -> WaybillError:
    """Of a server that does not answer, or is not the one that its certificate names."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ConfigError(
                f"The certificate of the server is not trusted: {cause.verify_message}",
                where=server.url,
                next_step="Name the authority that has signed it with --ca FILE, or the server as its certificate does",
            )
        if isinstance(cause, ssl.SSLError):
            return Unreachable(
                f"The server does no TLS that this command knows: {cause.reason or cause}",
                where=server.url,
                next_step="Look whether it is https:// or http://, and which port it has",
            )
    return Unreachable(
        f"The server does not answer: {_words(error)}",
        where=server.url,
        next_step="Look whether `waybill serve` runs there, and whether the address is right",
    )


def broke_off(error: BaseException, server: RemoteServer) -> Unreachable:
    """Of an answer of which a part came."""
    return Unreachable(
        f"The answer of the server broke off: {_words(error)}",
        where=server.url,
        next_step="Give the command again, and look at the log of the server where it breaks off again",
    )


def _family(status: int) -> str:
    """Of a problem that does not say it: it was refused before any function of the server was called."""
    known = {403: "Refused", 404: "ConfigError", 408: "Retriable", 409: "Retriable", 429: "Retriable"}
    return known.get(
        status, ("Unreachable" if status in (502, 503, 504) else "Fatal") if status >= 500 else "ConfigError"
    )


def _no_token(server: RemoteServer) -> WaybillError:
    if server.token_file:
        return ConfigError(
            "The server refuses the token: it was revoked, has expired, or is of another server",
            where=f"{server.url}, {server.token_file}",
            next_step="Make another one on its host: waybill tokens create NAME --role viewer",
        )
    return ConfigError(
        "The server wants a token",
        where=server.url,
        next_step="Name the file that has it with --token-file FILE or WAYBILL_TOKEN_FILE. It is made on the host of"
        " the server: waybill tokens create NAME --role viewer",
    )


def _of_a_stranger(status: int, server: RemoteServer) -> WaybillError:
    if status in (502, 503, 504):
        return Unreachable(
            f"A proxy in front of the server answers {status}: it does not reach the server",
            where=server.url,
            next_step="Look whether `waybill serve` runs there",
        )
    if status == 429:
        return Retriable(
            "A proxy in front of the server answers 429: too many requests", where=server.url, next_step="Wait a while"
        )
    if status == 403:
        return Refused("The request is refused, and not by Waybill", where=server.url, next_step="Ask who runs it")
    if status >= 500:
        return Fatal(f"The server answers {status}", where=server.url, next_step="Its log has more")
    return ConfigError(
        f"There is no Waybill at this address, or an older one that cannot do this: it answers {status}",
        where=server.url,
        next_step="Name the address of `waybill serve`, such as https://HOST:8082",
    )


def _causes(error: BaseException | None) -> list[BaseException]:
    found = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def of_another_form(told: object, url: str) -> ConfigError:
    """Of an answer in JSON without what this command looks for in it; `told` says what that is."""
    return ConfigError(
        f"There is no Waybill at this address, or one of another version: its answer has another form ({told})",
        where=url,
        next_step="Name the address of `waybill serve`, such as https://HOST:8082, and compare `waybill --version` on"
        f" its host with the one here, {__version__}. Where both are right, report it with what --debug shows",
    )


def _words(error: BaseException) -> str:
    said = next((one.strerror for one in _causes(error) if isinstance(one, OSError) and one.strerror), str(error))
    return said or type(error).__name__
