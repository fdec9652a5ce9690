"""A Schema Registry for tests, written from the REST API that Confluent documents: strict, in memory, on a free port of
the loopback interface. No package has the real one.

It takes what the documentation has and answers all else with 404 or 405. Schemas of Avro are compared as JSON without
white space, and compatible when no field is new without a default: a part of the rule BACKWARD that tests can see.
Those of Protobuf are taken as FileDescriptorProto in base64, compared as they are, and compatible when no message is
gone; the text of a .proto file, which the real one makes of them, nobody here reads.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto

TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass
class Registry:
    """What it has, and what it was asked. `login` is `user:password` where it wants one; `slow_s` before each answer;
    `failing`: the status of every answer."""

    port: int = 0
    login: str = ""
    slow_s: float = 0.0
    failing: int = 0
    schemas: dict[int, str] = field(default_factory=dict)
    more: dict[int, dict[str, Any]] = field(default_factory=dict)
    """What else an answer about a schema says."""
    subjects: dict[str, list[int]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add(self, subject: str, text: str) -> int:
        number = next((known for known, one in self.schemas.items() if one == text), len(self.schemas) + 1)
        self.schemas[number] = text
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if found := re.fullmatch(r"/schemas/ids/(\d+)(\?format=serialized)?", path):
            return self._schema(int(found[1]), serialized=bool(found[2])) if method == "GET" else (405, None)
        if found := re.fullmatch(r"/subjects/([^/]+)/versions/(latest|\d+)", path):
            return self._version(*found.groups()) if method == "GET" else (405, None)
        kind = body.get("schemaType", "AVRO") if isinstance(body, dict) else ""
        if method != "POST" or kind not in ("AVRO", "PROTOBUF"):
            return 404, None
        text = body["schema"] if kind == "PROTOBUF" else json.dumps(json.loads(body["schema"]), separators=(",", ":"))
        if found := re.fullmatch(r"/subjects/([^/]+)/versions", path):
            if not self._compatible(found[1], text):
                return 409, {"error_code": 409, "message": "Schema being registered is incompatible"}
            number = self.add(found[1], text)
            if kind == "PROTOBUF":
                self.more[number] = {"schemaType": kind}
            return 200, {"id": number}
        if found := re.fullmatch(r"/subjects/([^/]+)", path):
            return self._under(found[1], text)
        if found := re.fullmatch(r"/compatibility/subjects/([^/]+)/versions/latest", path):
            if found[1] not in self.subjects:
                return _NO_SUBJECT
            return 200, {"is_compatible": self._compatible(found[1], text)}
        return 404, None

    def _schema(self, number: int, *, serialized: bool) -> tuple[int, Any]:
        if number not in self.schemas:
            return 404, {"error_code": 40403, "message": "Schema not found"}
        more = self.more.get(number, {})
        is_protobuf = more.get("schemaType") == "PROTOBUF"
        if serialized and not is_protobuf:
            return 422, {"error_code": 422, "message": "Unsupported format"}
        text = "syntax = ..." if is_protobuf and not serialized else self.schemas[number]
        return 200, {"schema": text, **more}

    def _version(self, subject: str, version: str) -> tuple[int, Any]:
        if subject not in self.subjects:
            return _NO_SUBJECT
        numbers = self.subjects[subject]
        place = len(numbers) if version == "latest" else int(version)
        if not 1 <= place <= len(numbers):
            return 404, {"error_code": 40402, "message": "Version not found"}
        number = numbers[place - 1]
        return 200, {"subject": subject, "id": number, "version": place, "schema": self.schemas[number]}

    def _under(self, subject: str, text: str) -> tuple[int, Any]:
        if subject not in self.subjects:
            return _NO_SUBJECT
        for version, number in enumerate(self.subjects[subject], 1):
            if self.schemas[number] == text:
                return 200, {"subject": subject, "id": number, "version": version, "schema": text}
        return 404, {"error_code": 40403, "message": "Schema not found"}

    def _compatible(self, subject: str, text: str) -> bool:
        if not self.subjects.get(subject):
            return True
        if not text.startswith("{"):
            known, made = (
                {one.name for one in FileDescriptorProto.FromString(base64.b64decode(some)).message_type}
                for some in (self.schemas[self.subjects[subject][-1]], text)
            )
            return known <= made
        newest = {one["name"] for one in json.loads(self.schemas[self.subjects[subject][-1]])["fields"]}
        return all(one["name"] in newest or "default" in one for one in json.loads(text)["fields"])


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who asked did not wait for the answer."""


_NO_SUBJECT = (404, {"error_code": 40401, "message": "Subject not found."})


@contextmanager
def served(registry: Registry) -> Iterator[Registry]:
    """Answers until the block ends; the port stays that of the first time."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def _answer(self, method: str) -> None:
            registry.asked.append(f"{method} {self.path}")
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            time.sleep(registry.slow_s)
            status, answer = self._judged(method, content)
            text = json.dumps(answer or {"error_code": status, "message": f"HTTP {status}"}).encode()
            self.send_response(status)
            self.send_header("Content-Type", TYPE)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def _judged(self, method: str, content: bytes) -> tuple[int, Any]:
            wanted = "Basic " + base64.b64encode(registry.login.encode()).decode()
            if registry.login and self.headers.get("Authorization") != wanted:
                return 401, {"error_code": 40101, "message": "Unauthorized"}
            if registry.failing:
                return registry.failing, None
            if method == "POST" and self.headers.get("Content-Type") != TYPE:
                return 415, None
            return registry.answer(method, self.path, json.loads(content) if content else None)

        def log_message(self, format: str, *args: Any) -> None:
            """Not on the screen."""

    server = _Quiet(("127.0.0.1", registry.port), Handler)
    registry.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
