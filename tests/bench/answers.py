"""How long the server of REST calls takes to answer, with many connectors in its ledger; and how often in a second."""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from connect_core.ledger import Ledger, upgrade
from connect_core.sdk.values import LIVE
from tests.bench.telling import Row, at, ms, row

CONNECTORS = 1_000
CLIENTS = 4
SECONDS = 5.0
_LISTS = ("/connectors/list", "/allocated/tasks", "/kc/connectors?expand=status&expand=info")
_OF_ONE = ("/connectors/c500/status", "/kc/connectors/c500/status")
_WAYBILL = Path(sys.executable).parent / "waybill"
_LISTENS = re.compile(r"http://127\.0\.0\.1:(\d+) ")


def answers(repeats: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, _served(_filled(Path(folder))) as port:
        rows = []
        for path in (*_LISTS, *_OF_ONE, "/metrics"):
            seen = sorted(_asked(port, path) for _ in range(max(repeats, 9)))
            rows.append(
                row(f"GET {path}", f"p50 {ms(at(seen, 0.5))}", f"max {ms(seen[-1])}, {CONNECTORS:,} connectors")
            )
        rows.append(row(f"GET {_OF_ONE[0]}", f"{_a_second(port):,.0f}/s", f"{CLIENTS} clients at once"))
        return rows


def _filled(folder: Path) -> Path:
    """With a ledger of connectors of which each has run."""
    home = folder / ".waybill"
    home.mkdir()
    url = f"sqlite:///{home / 'ledger.db'}"
    upgrade(url)
    with Ledger.open(url) as ledger:
        for number in range(CONNECTORS):
            ends = {
                "source": {"file": {"path": f"{folder}/{number}.log"}},
                "sink": {"file": {"path": f"{folder}/{number}"}},
            }
            name = f"c{number}"
            uid = ledger.apply(name, {"version": 1, "name": name, **ends}, who="bench").connector.uid
            run = ledger.begin_run(uid, LIVE, task=0, engine="inline")
            ledger.end_run(run, state="done", failure=None, summary={})
    return folder


@contextmanager
def _served(folder: Path) -> Iterator[int]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("WAYBILL_")}
    command = [str(_WAYBILL), "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, env=variables, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            said = next(filter(None, map(_LISTENS.search, server.stderr)))
            yield int(said[1])
        finally:
            server.terminate()


def _asked(port: int, path: str) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    begun = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    took = time.perf_counter() - begun
    connection.close()
    assert answer.status == 200
    return took


def _a_second(port: int) -> float:
    def asking(_: int) -> int:
        connection, count = http.client.HTTPConnection("127.0.0.1", port), 0
        while time.perf_counter() < until:
            connection.request("GET", _OF_ONE[0])
            connection.getresponse().read()
            count += 1
        return count

    until = time.perf_counter() + SECONDS
    with ThreadPoolExecutor(CLIENTS) as clients:
        return sum(clients.map(asking, range(CLIENTS))) / SECONDS
