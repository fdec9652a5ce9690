"""A source of events that an HTTP service gives page by page: polled, exactly once.

    GET URL?after=CURSOR&limit=N   ->   {"events": [{"id": "…", …}, …], "cursor": "…"}

The service keeps its events and gives them in the same order each time, as a log of audit events does.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from contextlib import ExitStack

from pydantic import BaseModel, Field, HttpUrl

from connect_core.errors import Refused, Retriable, Unreachable
from connect_core.sdk.kits.polled import Polled, PolledSource
from connect_core.sdk.plugin import Plugin
from connect_core.sdk.records import Record
from connect_core.sdk.values import Json


class Options(BaseModel):
    url: HttpUrl
    page: int = Field(500, ge=1, description="Most events of one answer.")
    timeout_s: float = 10


class Pages(PolledSource):
    def __init__(self, options: Options, resources: ExitStack | None = None) -> None:
        super().__init__()
        self._options = options

    def poll(self, name: str, checkpoint: Json) -> Polled:
        answer = self._answer({"limit": self._options.page, **checkpoint})
        try:
            records = [Record(json.dumps(event).encode(), key=str(event["id"])) for event in answer["events"]]
            return Polled(records, {"after": answer["cursor"]} if records else checkpoint)
        except (KeyError, TypeError):
            raise Retriable("The answer has no events or no cursor", where=str(self._options.url)) from None

    def _answer(self, query: Json) -> Json:
        url = f"{self._options.url}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=self._options.timeout_s) as answer:
                content: Json = json.load(answer)
                return content
        except urllib.error.HTTPError as error:
            refused = Refused if error.code < 500 else Unreachable
            raise refused(f"The service answered {error.code}", where=str(self._options.url)) from None
        except (OSError, ValueError) as error:
            raise Unreachable(f"The service does not answer: {error}", where=str(self._options.url)) from None


PLUGIN = Plugin(
    "pages",
    "Pages of events",
    source_options=Options,
    open_source=Pages,
    guarantee=lambda role, options: Pages.guarantee,
)
