"""The examples that speak HTTP keep the contracts of their kits, against a service in memory that takes the place of
an opener of `urllib`; and so does the source of the page whose records come with the time."""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qs, urlsplit

import pytest

from connect_core.errors import Refused
from connect_core.sdk.kits.polled import Polled
from connect_core.sdk.records import Record
from connect_core.sdk.sink import Sink
from connect_core.sdk.source import Source
from connect_core.sdk.testing.content import VALUES
from connect_core.sdk.testing.driving import records
from connect_core.sdk.testing.kits import SimpleContract
from connect_core.sdk.testing.sinks import SimpleCase
from connect_core.sdk.testing.sources import SourceContract
from connect_core.sdk.values import Json
from tests.page_code import example, module_of

WEBHOOK, PAGES, TICKS = example("webhook"), example("pages"), module_of("ticks")
URL = "http://service.invalid/events"


class Service:
    """Keeps what is posted to it, and gives its events page by page."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        patched.setattr("urllib.request.OpenerDirector.open", lambda _, asked, *given, **named: self.open(asked))
        self.posted: list[bytes | None] = []
        self.events: list[Json] = []
        self.away = False
        self.code = 200

    def open(self, asked: Any) -> io.BytesIO:
        if self.away:
            raise URLError("nobody listens")
        if self.code != 200:
            raise HTTPError(URL, self.code, "", None, None)  # type: ignore[arg-type]
        return self._page(asked) if isinstance(asked, str) else self._taken(asked.data)

    def _taken(self, body: bytes) -> io.BytesIO:
        self.posted += [None if one is None else base64.b64decode(one) for one in json.loads(body)]
        return io.BytesIO()

    def _page(self, url: str) -> io.BytesIO:
        query = parse_qs(urlsplit(url).query)
        first, most = int(query.get("after", ["0"])[0]), int(query["limit"][0])
        page = self.events[first : first + most]
        return io.BytesIO(json.dumps({"events": page, "cursor": str(first + len(page))}).encode())


class WebhookCase(SimpleCase):
    repeats = "unsettled"

    def __init__(self, service: Service) -> None:
        self.service = service

    def sink(self) -> Sink:
        return WEBHOOK.PLUGIN.open_sink(WEBHOOK.Options(url=URL), None)  # type: ignore[no-any-return]

    def content(self, behind: int = 0) -> list[bytes | None]:
        return self.service.posted[behind:]

    def break_(self) -> None:
        self.service.away = True


class OfEvents(PAGES.Pages):  # type: ignore[misc, name-defined]
    """A record of the example is its event as JSON text. The suite compares what stands in the event."""

    every_s = 0.01

    def poll(self, name: str, checkpoint: Json) -> Polled:
        polled = super().poll(name, checkpoint)
        return Polled([record._replace(value=_said(record)) for record in polled.records], polled.checkpoint)


def _said(record: Record) -> bytes | None:
    said = json.loads(record.value or b"")["said"]
    return None if said is None else said.encode("latin-1")


class PagesCase:
    """What an event says is text: a character for each byte."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def source(self) -> Source:
        return OfEvents(PAGES.Options(url=URL, page=70))

    def append(self, values: Sequence[bytes | None]) -> None:
        said = [None if value is None else value.decode("latin-1") for value in values]
        self.service.events += [{"id": number, "said": one} for number, one in enumerate(said)]

    def break_(self) -> None:
        self.service.away = True


class OfMinutes(TICKS.Ticks):  # type: ignore[misc, name-defined]
    """A record of the page is the number of a minute. The suite compares the value that is appended for that minute."""

    every_s = 0.01

    def __init__(self, values: Sequence[bytes | None]) -> None:
        super().__init__(TICKS.Options(since=0))
        self._values = values

    def poll(self, name: str, checkpoint: Json) -> Polled:
        polled = super().poll(name, checkpoint)
        minutes = [int((record.value or b"").removeprefix(b"minute ")) for record in polled.records]
        return Polled([Record(self._values[minute]) for minute in minutes], polled.checkpoint)


class TicksCase:
    """Each value that is appended is a minute that passes."""

    unkept = VALUES.keys()
    """A minute has a number, and no content that somebody could choose."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self._values: list[bytes | None] = []
        patched.setattr(TICKS, "time", self)

    def time(self) -> float:
        return 60.0 * len(self._values) + 59

    def source(self) -> Source:
        return OfMinutes(self._values)

    def append(self, values: Sequence[bytes | None]) -> None:
        self._values += values


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    return Service(monkeypatch)


class TestTheWebhookOfTheExamples(SimpleContract):
    @pytest.fixture
    def target(self, service: Service) -> WebhookCase:
        return WebhookCase(service)


class TestThePagesOfTheExamples(SourceContract):
    idle_timeout_s = 0.05

    @pytest.fixture
    def system(self, service: Service) -> PagesCase:
        return PagesCase(service)


class TestTheTicksOfThePage(SourceContract):
    idle_timeout_s = 0.05

    """Nothing breaks here, as nothing is asked but the clock."""

    @pytest.fixture
    def system(self, monkeypatch: pytest.MonkeyPatch) -> TicksCase:
        return TicksCase(monkeypatch)


def test_a_webhook_that_answers_no_is_refused(service: Service) -> None:
    service.code = 403
    with pytest.raises(Refused, match="403"):
        WEBHOOK.Webhook(WEBHOOK.Options(url=URL)).write(records([b"a"]))


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_webhook_that_redirects_is_refused(code: int) -> None:
    """What stands there would be fetched without the records, and answer that all is well."""
    asked = []

    class Moved(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append("POST")
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(code)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def do_GET(self) -> None:
            asked.append("GET")
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Moved) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        sink = WEBHOOK.Webhook(WEBHOOK.Options(url=f"http://127.0.0.1:{server.server_port}/"))
        with pytest.raises(Refused, match=f"answered {code}.*Name the address"):
            sink.write(records([b"a"]))
        server.shutdown()
    assert asked == ["POST"]
