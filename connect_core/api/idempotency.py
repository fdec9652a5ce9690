"""`Idempotency-Key` of POSTs: the same request again is answered as it was the first time."""

from __future__ import annotations

import re
from hashlib import sha256

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from connect_core.api.native_problems import of_error, of_status
from connect_core.errors import WaybillError
from connect_core.service import first_answers
from connect_core.service.first_answers import KeptAnswer, TakenKey

HEADER = "Idempotency-Key"
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_KEPT = ("content-type", "location", "etag")
_FAILED = 500


class Idempotent:
    """An ASGI application whose POSTs may have a key."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = Headers(scope=scope).get(HEADER) if scope["type"] == "http" and scope["method"] == "POST" else None
        if key is None:
            await self._app(scope, receive, send)
            return
        answer = await self._answer(key, scope, receive, send)
        if answer is not None:
            await answer(scope, receive, send)

    async def _answer(self, key: str, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """None where the application has answered."""
        path = scope["path"]
        if not _KEY.fullmatch(key):
            why = {"path": HEADER, "message": "has 1 to 255 characters of ASCII, without a blank"}
            return of_status(400, "The request has not the form of this route", path, errors=[why])
        try:
            body = await Request(scope, receive).body()
            taken = await run_in_threadpool(first_answers.take, key, _digest(scope, body))
        except HTTPException as error:
            return of_status(error.status_code, str(error.detail), path)
        except WaybillError as error:
            return of_error(error, path)
        if isinstance(taken, KeptAnswer):
            headers = {**taken.headers, "idempotent-replayed": "true"}
            return Response(taken.body, taken.status, headers)
        await self._first(taken, scope, body, send)
        return None

    async def _first(self, taken: TakenKey, scope: Scope, body: bytes, send: Send) -> None:
        """What went wrong in the server is not kept, and no answer with payloads: the same request is worked on
        again."""
        seen = _Seen()

        async def sent(message: Message) -> None:
            if seen.is_whole_with(message):
                await run_in_threadpool(_settle, taken, seen)
            await send(message)

        with first_answers.working_on(taken):
            try:
                await self._app(scope, _given(body), sent)
            except Exception:
                await run_in_threadpool(first_answers.forget, taken)
                raise


class _Seen:
    """An answer on its way to the caller."""

    def __init__(self) -> None:
        self.status, self.headers, self.body, self.is_kept = _FAILED, dict[str, str](), b"", True

    def is_whole_with(self, message: Message) -> bool:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            named = Headers(raw=message["headers"])
            self.is_kept = self.status < _FAILED and named.get("cache-control") != "no-store"
            self.headers = {name: named[name] for name in _KEPT if name in named}
            return False
        self.body += message.get("body", b"")
        return not message.get("more_body", False)


def _settle(taken: TakenKey, seen: _Seen) -> None:
    if not seen.is_kept:
        first_answers.forget(taken)
    else:
        first_answers.keep(taken, KeptAnswer(seen.status, seen.headers, seen.body.decode()))


def _given(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _digest(scope: Scope, body: bytes) -> str:
    parts = (scope["path"].encode(errors="surrogateescape"), scope["query_string"], body)
    return sha256(b"\0".join(sha256(one).digest() for one in parts)).hexdigest()
