"""A sink that posts records to an address: a simple one, at least once.

    POST URL   [VALUE, …]     each VALUE in base64, or null where a record has none

Only values are posted: no keys, no headers.
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pyarrow as pa
from pydantic import BaseModel, HttpUrl

from connect_core.errors import Refused, Unreachable
from connect_core.sdk.kits.simple import SimpleSink
from connect_core.sdk.plugin import Plugin


class Options(BaseModel):
    url: HttpUrl
    timeout_s: float = 10


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect makes a GET of a POST: the records would be gone, and the answer would say that they arrived."""

    def redirect_request(self, *_: object) -> None:
        return None


class Webhook(SimpleSink):
    def __init__(self, options: Options, resources: ExitStack | None = None) -> None:
        super().__init__(target=str(options.url))
        self._options = options

    @contextmanager
    def connect(self) -> Iterator[Webhook]:
        yield self

    def write(self, records: pa.RecordBatch) -> None:
        values = [as_text(value) for value in records.column("value").to_pylist()]
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.target, json.dumps(values).encode(), headers)
        try:
            urllib.request.build_opener(NoRedirects).open(request, timeout=self._options.timeout_s).close()
        except urllib.error.HTTPError as error:
            step = "Name the address that it redirects to" if error.code < 400 else ""
            raise Refused(f"The address answered {error.code}", where=self.target, next_step=step) from None
        except OSError as error:
            raise Unreachable(f"The address does not answer: {error}", where=self.target) from None


def as_text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


PLUGIN = Plugin(
    "webhook", "Webhook", sink_options=Options, open_sink=Webhook, guarantee=lambda role, options: Webhook.guarantee
)
