"""Requests of a server: each with the token, to that server alone, and made again once where the connection was lost.

A request that changes something is made again only where that cannot do it twice: a POST has a key, by which the server
answers it as it did the first time. What is sent once and not answered is told as that.
"""

from __future__ import annotations

import json
import re
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from uuid import uuid4

import httpx

from connect_core.errors import ConfigError, Retriable, Unreachable, WaybillError
from connect_core.remote.failures import broke_off, error_of, looking_at, not_reached, of_another_form
from connect_core.remote.server import RemoteServer
from connect_core.sdk.values import Json
from connect_core.service.json_values import plain

PREFIX = "/api/v1"
_CONNECT_LIMIT_S, _ANSWER_LIMIT_S = 10.0, 120.0
_NOT_THERE = "urn:waybill:problem:not-found"
_STILL_WORKED_ON = "urn:waybill:problem:key-in-use"
_ASK_AGAIN_S, _TIMES = 0.5, 60
_PAGE = 500
KEY = "Idempotency-Key"
_LINES = "application/x-ndjson"
_TAG = re.compile(r'(?:W/)?"([0-9]+)"')


class _Asked(NamedTuple):
    method: str
    path: str
    query: Mapping[str, Any]
    body: Any
    headers: Mapping[str, str]

    @property
    def changes(self) -> bool:
        return not self.query.get("preview") and (self.method in ("PUT", "PATCH", "DELETE") or KEY in self.headers)

    @property
    def can_be_made_again(self) -> bool:
        return not self.changes or KEY in self.headers


class AnswerOfServer(NamedTuple):
    """An object of JSON, and the revision that its ETag names: 0 where there is none."""

    told: Json
    revision: int


class ServerClient:
    """For one command, which makes few requests: each has a connection of its own, so that none is left open."""

    def __init__(self, server: RemoteServer, transport: httpx.BaseTransport | None = None) -> None:
        self.server, self._transport = server, transport
        self._http: httpx.Client | None = None

    def get(self, path: str, **query: Any) -> Json:
        return self.answered("GET", path, query=query).told

    def post(self, path: str, body: Any = None) -> Json:
        return self.answered("POST", path, body=body, headers={KEY: uuid4().hex}).told

    def judged(self, path: str, body: Any, **query: Any) -> Json:
        """By a POST that changes nothing: its answer is not kept."""
        return self.answered("POST", path, query=query, body=body).told

    def listed(self, path: str, key: str, last: int | None = None, **query: Any) -> list[Json]:
        """The newest `last` of a list, or all of it: page after page."""
        found: list[Json] = []
        after: str | None = ""
        asked = set[str]()
        while after is not None and (last is None or len(found) < last):
            asked.add(after)
            limit = _PAGE if last is None else min(_PAGE, last - len(found))
            page, after = self._page(self.get(path, limit=limit, after=after, **query), key)
            if after is not None and (after in asked or not page):
                raise of_another_form(f"the list `{key}` has no end", self.server.url)
            found += page
        return found

    def _page(self, told: Json, key: str) -> tuple[list[Json], str | None]:
        page, after = told.get(key), told.get("after", 0)
        if not isinstance(page, list) or not isinstance(after, (str, type(None))):
            raise of_another_form(f"no list `{key}`", self.server.url)
        return page, after

    def answered(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> AnswerOfServer:
        """Raises the error that the server tells of, ConfigError, and Unreachable where nothing is answered."""
        answer = self._sent(_Asked(method, f"{PREFIX}{path}", query or {}, body, headers or {}))
        told = _json(answer)
        if answer.status_code >= 300 or not isinstance(told, dict):
            raise error_of(answer.status_code, told, self.server)
        tag = _TAG.fullmatch(answer.headers.get("etag", ""))
        return AnswerOfServer(told, int(tag[1]) if tag else 0)

    def is_there(self, path: str) -> bool:
        """Whether the caller is shown something there. Raises as `answered` does for anything else."""
        answer = self._sent(_Asked("GET", f"{PREFIX}{path}", {}, None, {}))
        told = _json(answer)
        if answer.status_code == 404 and isinstance(told, dict) and told.get("type") == _NOT_THERE:
            return False
        if answer.status_code >= 300 or not isinstance(told, dict):
            raise error_of(answer.status_code, told, self.server)
        return True

    def lines(self, path: str, **query: Any) -> Iterator[str]:
        """Of an answer in lines, as they come. Asked for once more where none came. Raises as `answered` does, and
        Unreachable where it breaks off."""
        given = False
        for first in (True, False):
            answered = False
            try:
                with self._opened().stream("GET", f"{self.server.url}{PREFIX}{path}", params=query) as answer:
                    answered = True
                    if answer.status_code != 200 or not answer.headers.get("content-type", "").startswith(_LINES):
                        answer.read()
                        raise error_of(answer.status_code, _json(answer), self.server)
                    for line in _lines(answer.iter_bytes()):
                        given = True
                        yield line
                return
            except httpx.TransportError as error:
                waited = isinstance(error, (httpx.ConnectError, httpx.TimeoutException))
                if given or waited or not first:
                    raise broke_off(error, self.server) if answered else not_reached(error, self.server) from None

    def text(self, method: str, path: str) -> str:
        """What the server says to a path of its own, whatever that is: only no answer is a failure, and no token."""
        answer = self._sent(_Asked(method, path, {}, None, {}))
        if answer.status_code == 401 or 300 <= answer.status_code < 400:
            raise error_of(answer.status_code, None, self.server)
        return answer.text

    def _sent(self, asked: _Asked) -> httpx.Response:
        for _ in range(_TIMES):
            answer = self._once_or_again(asked)
            if answer.status_code != 409 or not _is_still_worked_on(_json(answer)):
                return answer
            time.sleep(_ASK_AGAIN_S)
        raise Retriable(
            "The server still works on this request",
            where=self.server.url,
            next_step=f"Look what it has done before you make it again: {looking_at(asked.path)}",
        )

    def _once_or_again(self, asked: _Asked) -> httpx.Response:
        try:
            return self._once(asked)
        except (httpx.ConnectError, httpx.TimeoutException) as error:
            raise self._unanswered(error, asked, was_sent=not isinstance(error, httpx.ConnectError)) from None
        except httpx.TransportError as error:
            if not asked.can_be_made_again:
                raise self._unanswered(error, asked, was_sent=True) from None
        try:
            return self._once(asked)
        except httpx.TransportError as error:
            raise self._unanswered(error, asked, was_sent=True) from None

    def _once(self, asked: _Asked) -> httpx.Response:
        try:
            with self._opened().stream(
                asked.method,
                self.server.url + asked.path,
                params=asked.query or None,
                content=None if asked.body is None else _as_json(asked.body),
                headers={**asked.headers, **({"Content-Type": "application/json"} if asked.body is not None else {})},
            ) as answer:
                return _read(answer)
        except httpx.InvalidURL as error:
            raise ConfigError(f"This is no address: {error}", where=self.server.url) from None

    def _unanswered(self, error: httpx.TransportError, asked: _Asked, *, was_sent: bool) -> WaybillError:
        told = broke_off(error, self.server) if isinstance(error, _BrokeOff) else not_reached(error, self.server)
        if not was_sent or not asked.changes:
            return told
        return Unreachable(
            f"{told.what}. Whether it was done is not known",
            where=told.where,
            next_step=f"Look at what is there before you try again: {looking_at(asked.path)}",
        )

    def _opened(self) -> httpx.Client:
        """No redirect is followed, and no proxy of the environment is asked: the token goes to this server alone."""
        if self._http is None:
            authorization = {"Authorization": f"Bearer {self.server.token}"} if self.server.token else {}
            self._http = httpx.Client(
                headers=authorization,
                verify=_trusted(self.server) if self.server.encrypted and not self._transport else False,
                timeout=httpx.Timeout(_ANSWER_LIMIT_S, connect=_CONNECT_LIMIT_S),
                limits=httpx.Limits(max_keepalive_connections=0),
                follow_redirects=False,
                trust_env=False,
                transport=self._transport,
            )
        return self._http


class _BrokeOff(httpx.TransportError):
    """A part of the answer came."""


def _read(answer: httpx.Response) -> httpx.Response:
    """Whole. Raises _BrokeOff where its connection was lost."""
    try:
        answer.read()
    except httpx.TimeoutException:
        raise
    except httpx.TransportError as error:
        raise _BrokeOff(str(error)) from error
    return answer


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Whole ones: what is behind the last line feed is none."""
    begun: list[bytes] = []
    for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            yield b"".join([*begun, part, b"\n"]).decode()
            begun = []
        begun.append(rest)


def _trusted(server: RemoteServer) -> ssl.SSLContext:
    """The authorities of this machine, or the one that was named. Raises ConfigError for a file that has none."""
    try:
        return ssl.create_default_context(cafile=server.ca_file)
    except (OSError, ssl.SSLError):
        raise ConfigError(
            "The file has no certificates", where=str(server.ca_file), next_step="Name a PEM file with --ca FILE"
        ) from None


def _is_still_worked_on(told: Any) -> bool:
    return isinstance(told, dict) and told.get("type") == _STILL_WORKED_ON


def _json(answer: httpx.Response) -> Any:
    """None for what is no JSON."""
    try:
        return answer.json()
    except ValueError:
        return None


def _as_json(body: Any) -> bytes:
    """Raises ConfigError for what JSON has no form for."""
    try:
        return json.dumps(body, default=plain, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise ConfigError(
            "A document has a text or a number that JSON has no form for, or is nested too deeply",
            next_step="`waybill check` without --server names its place",
        ) from None
