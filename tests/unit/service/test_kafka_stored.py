"""Connectors of Kafka Connect: what its REST API answers, from files."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import ConfigError, Refused, Unreachable, WaybillError
from connect_core.service.kafka_server import KafkaServer
from connect_core.service.kafka_stored import _connectors, connectors_at, connectors_in

SOURCE = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": "in.txt", "topic": "lines"}
SINK = {"connector.class": "FileStreamSink", "tasks.max": "1", "file": "out.txt", "topics": "lines"}
PLACE = {"partition": {"filename": "in.txt"}, "offset": {"position": 8}}
OF_KAFKA = {"partition": {"kafka_topic": "lines", "kafka_partition": 3}, "offset": {"kafka_offset": 17}}
# The answers of a worker of Kafka Connect 3.7 to `GET /connectors?expand=info&expand=status`, as its documentation has
# them (https://kafka.apache.org/documentation/#connect_rest).
EXPANDED = {
    "in": {
        "info": {"name": "in", "config": SOURCE, "tasks": [{"connector": "in", "task": 0}], "type": "source"},
        "status": {
            "name": "in",
            "connector": {"state": "PAUSED", "worker_id": "10.0.0.1:8083"},
            "tasks": [{"id": 0, "state": "PAUSED", "worker_id": "10.0.0.1:8083"}],
            "type": "source",
        },
    },
    "out": {
        "info": {"name": "out", "config": SINK, "tasks": [], "type": "sink"},
        "status": {"name": "out", "connector": {"state": "STOPPED", "worker_id": "w"}, "tasks": [], "type": "sink"},
    },
}


def written(folder: Path, **files: Any) -> Path:
    for name, body in files.items():
        (folder / f"{name.replace('_', '.')}.json").write_text(body if isinstance(body, str) else json.dumps(body))
    return folder


def test_what_the_rest_api_answers_is_read(tmp_path: Path) -> None:
    written(tmp_path, all=EXPANDED, in_offsets={"offsets": [PLACE]}, out_offsets={"offsets": [OF_KAFKA]})
    one, two = connectors_in(tmp_path)
    assert (one.name, one.state, one.config) == ("in", "paused", SOURCE)
    assert one.positions == [(PLACE["partition"], PLACE["offset"])]
    assert (two.name, two.state, two.positions) == ("out", "stopped", [])
    assert "they are of topics of Kafka (lines)" in two.notes[0]


def test_single_connectors_and_lists_of_them_are_read(tmp_path: Path) -> None:
    written(
        tmp_path, a={"name": "a", "config": SOURCE, "initial_state": "PAUSED"}, more=[{"name": "b", "config": SINK}]
    )
    assert [(one.name, one.state) for one in connectors_in(tmp_path)] == [("a", "paused"), ("b", "running")]
    assert connectors_in(tmp_path / "a.json")[0].name == "a"


def test_another_waybill_tells_offsets_by_our_own_keys(tmp_path: Path) -> None:
    entry = {"partition": {"partition": "/srv/in.txt"}, "offset": {"offset": 12}}
    reset = {"partition": {"filename": "x"}, "offset": None}
    written(tmp_path, a={"name": "a", "config": SOURCE}, a_offsets={"offsets": [entry, reset]})
    [one] = connectors_in(tmp_path)
    assert (one.offsets, one.positions) == ({"/srv/in.txt": 12}, [])


def test_a_state_that_is_none_of_ours_and_what_is_no_connector_are_told(tmp_path: Path) -> None:
    failed = {**EXPANDED["in"], "status": {"connector": {"state": "FAILED"}}}
    written(tmp_path, all={"in": failed}, other={"name": "native", "config": {"waybill.document": "{}"}})
    one, two = connectors_in(tmp_path)
    assert (one.state, one.notes) == ("running", ["it is FAILED there, and begins as one that runs"])
    assert "no connector.class" in two.problems[0]


def test_every_file_that_is_broken_is_told_at_once(tmp_path: Path) -> None:
    written(tmp_path, a="{", b={"name": "b", "config": 1}, c={"name": "c", "config": SOURCE}, d=[3])
    written(tmp_path, c2={"name": "c", "config": SOURCE}, c_offsets={"offsets": 1}, gone_offsets={"offsets": []})
    with pytest.raises(ConfigError) as refused:
        connectors_in(tmp_path)
    assert sorted(fault.path for fault in refused.value.faults) == [
        *("a.json", "b.json", "c.offsets.json", "c2.json", "d.json", "gone.offsets.json"),
    ]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="no connectors"):
        connectors_in(tmp_path / "empty")
    with pytest.raises(ConfigError, match="cannot be read"):
        connectors_in(tmp_path / "none")


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "config", "info", "status", "connector", "state"]), inner)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_whatever_a_file_holds_is_read_or_refused(body: Any) -> None:
    with suppress(ValueError):
        assert all(isinstance(one.name, str) for one in _connectors(body))


# ------------------------------------------------------------------------------------------------------------- a server


@contextmanager
def answering(answers: dict[str, tuple[int, Any]]) -> Iterator[tuple[str, list[str | None]]]:
    """Where it is, and what came as Authorization."""
    came: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            came.append(self.headers["Authorization"])
            code, body = answers.get(self.path, (404, {"error_code": 404}))
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", came
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_server_is_asked_with_its_login(tmp_path: Path) -> None:
    (tmp_path / "login").write_text("someone:s3cret-of-test\n")
    running = {**EXPANDED["in"], "status": {"connector": {"state": "RUNNING"}}}
    answers = {
        "/connectors?expand=info&expand=status": (200, {**EXPANDED, "in": running}),
        "/connectors/in/offsets": (200, {"offsets": [PLACE]}),
    }
    with answering(answers) as (url, came):
        one, two = connectors_at(KafkaServer(f"{url}/", tmp_path / "login"))
    assert one.positions == [(PLACE["partition"], PLACE["offset"])]
    assert "it runs there: pause or stop it before" in one.notes[0]
    assert (two.notes, "does not tell them" in two.problems[0]) == ([], True)
    assert set(came) == {"Basic c29tZW9uZTpzM2NyZXQtb2YtdGVzdA=="}


@pytest.mark.parametrize(
    ("code", "body", "kind"), [(401, {}, Refused), (307, {}, Unreachable), (200, "<", ConfigError)]
)
def test_what_is_no_answer_is_told(code: int, body: Any, kind: type[WaybillError]) -> None:
    with answering({"/connectors?expand=info&expand=status": (code, body)}) as (url, _), pytest.raises(kind):
        connectors_at(KafkaServer(url, None))


def test_an_address_holds_no_login_and_somebody_has_to_be_there(tmp_path: Path) -> None:
    for wrong in ("ftp://x", "http://u:p@h:1", "x"):
        with pytest.raises(ConfigError):
            KafkaServer(wrong, None)
    with pytest.raises(Unreachable, match="does not answer"):
        connectors_at(KafkaServer("http://127.0.0.1:1", None))
    (tmp_path / "login").write_text("nothing")
    for login in (tmp_path / "login", tmp_path / "none"):
        with pytest.raises(ConfigError, match="login"):
            KafkaServer("http://h:1", login)
