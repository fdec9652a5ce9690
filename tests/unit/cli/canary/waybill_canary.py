"""A system that says its token wherever it can speak, and returns what it should not: `says` is where, or what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from threading import Thread
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pydantic import BaseModel

from connect_core import errors
from connect_core.errors import Unreachable, WaybillError
from connect_core.sdk.kits.polled import Polled, PolledSource
from connect_core.sdk.kits.simple import SimpleSink
from connect_core.sdk.plugin import Plugin, ProbeResult, Role
from connect_core.sdk.records import Record
from connect_core.sdk.values import Json


class Options(BaseModel):
    token: str
    says: str = ""


def said(token: str, kind: type[WaybillError] = Unreachable) -> WaybillError:
    return kind(f"401 for token={token}", where=f"http://u:{quote(token)}@h/", next_step=f"Look at {token!r}")


def fail_in_thread(token: str) -> None:
    def fail() -> None:
        raise ValueError(token)

    thread = Thread(target=fail, name=f"of {token}")
    thread.start()
    thread.join()


class Source(PolledSource):
    def __init__(self, options: Options) -> None:
        super().__init__()
        self._token, self._says = options.token, options.says

    def names(self) -> Sequence[str]:
        return [self._token if self._says == "names" else "all"]

    def poll(self, name: str, checkpoint: Json) -> Polled:
        at = checkpoint.get("at", 0)
        records, behind = [Record(b"one")] if not at else [], {"at": 1}
        if self._says == "poll raises":
            raise said(self._token)
        if self._says == "poll exits":
            raise SystemExit(0)
        if self._says == "poll fails":
            raise ValueError(self._token)
        if self._says == "a thread of poll fails":
            fail_in_thread(self._token)
        answers: dict[str, Any] = {
            "poll gives None": None,
            "checkpoint": Polled(records, {"at": 1, "next": f"/?token={quote(self._token)}"}),
            "checkpoint is no JSON": Polled(records, {"at": datetime(2026, 1, 1)}),
            "checkpoint stays": Polled([Record(b"one")] * 10, checkpoint),
        }
        return answers.get(self._says, Polled(records, behind))  # type: ignore[no-any-return]


class Sink(SimpleSink):
    def __init__(self, options: Options) -> None:
        super().__init__(options.token if options.says == "target" else "there")
        self._token, self._says = options.token, options.says

    def invalid_rows(self, records: pa.RecordBatch) -> list[tuple[int, str, str]]:
        return [(0, "Bad", f"not for {self._token}")] if self._says == "invalid row" else []

    @contextmanager
    def connect(self) -> Iterator[Sink]:
        yield self

    def write(self, records: pa.RecordBatch) -> None:
        if self._says == "write fails":
            raise ValueError(self._token)
        if self._says == "write exits":
            raise SystemExit(self._token)
        if self._says.startswith("write raises "):
            raise said(self._token, getattr(errors, self._says.split()[-1])) from ValueError(self._token)


def probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    yield ProbeResult(False, f"no answer for {options['token']}")
    raise said(options["token"])


PLUGIN = Plugin(
    "canary",
    "Canary",
    Options,
    Options,
    lambda options, resources: Source(options),
    lambda options, resources: Sink(options),
    probe=probe,
)
