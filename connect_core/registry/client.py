"""The calls that Waybill needs of a Schema Registry. Every failure is one of our errors: `Unreachable` when nobody
answers in time or the registry fails, `Refused` when the login does not do, `ConfigError` for a schema that it does not
take, `WireFormatError` for an answer that is none of its own.

No answer is quoted but the registry's own words on a schema; no login is ever in a message.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

from connect_core import clock
from connect_core.errors import ConfigError, Refused, Unreachable, WaybillError, WireFormatError

if TYPE_CHECKING:
    import ssl

    import httpx

MAX_ANSWER = 4 << 20
"""Bytes."""
_TYPE = "application/vnd.schemaregistry.v1+json"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LONGEST_DETAIL = 300
_UNKNOWN = (40401, 40402, 40403)
"""Error codes: no such subject, version, schema."""


class SchemaReference(NamedTuple):
    """A schema that another one needs, and what that calls it."""

    name: str
    subject: str
    version: int


class Registered(NamedTuple):
    """A schema as the registry has it. `kind` is AVRO, JSON or PROTOBUF."""

    text: str
    kind: str
    references: tuple[SchemaReference, ...] = ()


@dataclass(frozen=True)
class SchemaRegistry:
    """`timeout_s` is for a whole answer. `transport` replaces the network in tests."""

    url: str
    username: str = ""
    password: str = ""
    timeout_s: float = 3.0
    context: ssl.SSLContext | None = None
    transport: httpx.BaseTransport | None = None

    def schema(self, number: int, *, serialized: bool = False) -> Registered | None:
        """None where the registry has none of that number. `serialized`, of PROTOBUF: its FileDescriptorProto in
        base64, instead of the text of a .proto file."""
        answer = self._asked("GET", f"/schemas/ids/{number}{'?format=serialized' if serialized else ''}")
        if answer is None:
            return None
        references = answer.get("references")
        return Registered(
            self._said(answer, "schema", str),
            str(answer.get("schemaType", "AVRO")),
            tuple(map(self._reference, references)) if isinstance(references, list) else (),
        )

    def version(self, subject: str, version: int) -> int | None:
        """The number of a version of a subject; None where there is none."""
        answer = self._asked("GET", f"/subjects/{_quoted(subject)}/versions/{version}")
        return None if answer is None else self._said(answer, "id", int)

    def number_of(self, subject: str, schema: object, kind: str = "AVRO") -> int | None:
        """Of a schema that is registered under the subject; None where it is not. One of AVRO is its JSON, one of
        PROTOBUF its FileDescriptorProto in base64."""
        answer = self._asked("POST", f"/subjects/{_quoted(subject)}", _body(schema, kind))
        return None if answer is None else self._said(answer, "id", int)

    def register(self, subject: str, schema: object, kind: str = "AVRO") -> int:
        """Its number: a new one, or that which it has already."""
        answer = self._asked("POST", f"/subjects/{_quoted(subject)}/versions", _body(schema, kind))
        if answer is None:
            raise self._odd(404)
        number: int = self._said(answer, "id", int)
        return number

    def latest(self, subject: str) -> int | None:
        """The number of the newest schema of a subject; None where there is no such subject."""
        answer = self._asked("GET", f"/subjects/{_quoted(subject)}/versions/latest")
        return None if answer is None else self._said(answer, "id", int)

    def is_compatible(self, subject: str, schema: object, kind: str = "AVRO") -> bool:
        """With the newest of the subject, by the rule that the registry has for it; any is where there is none."""
        path = f"/compatibility/subjects/{_quoted(subject)}/versions/latest"
        answer = self._asked("POST", path, _body(schema, kind))
        return answer is None or self._said(answer, "is_compatible", bool)

    def _asked(self, method: str, path: str, body: object = None) -> dict[str, Any] | None:
        """The answer, None where there is no such thing."""
        status, content = self._sent(method, path, body)
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            answer = None
        if status == 200 and isinstance(answer, dict):
            return answer
        code = answer.get("error_code") if isinstance(answer, dict) else None
        if status == 404 and code in _UNKNOWN:
            return None
        raise self._failure(status, _detail(answer), path)

    def _sent(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        import httpx

        login = (self.username, self.password) if self.username or self.password else None
        headers = {"Accept": _TYPE, "Content-Type": _TYPE}
        until = clock.monotonic() + self.timeout_s
        content = bytearray()
        try:
            there = urlsplit(self.url)
            with (
                httpx.Client(
                    timeout=self.timeout_s,
                    # A proxy knows nothing of this machine's loopback.
                    trust_env=there.hostname not in _LOOPBACK,
                    # To load whom a certificate may be from takes 20 ms.
                    verify=self.context or there.scheme == "https",
                    transport=self.transport,
                    auth=login,
                ) as client,
                client.stream(method, self.url.rstrip("/") + path, json=body, headers=headers) as answer,
            ):
                for piece in answer.iter_bytes():
                    content += piece
                    if clock.monotonic() > until:
                        raise httpx.ReadTimeout("slow")
                    if len(content) > MAX_ANSWER:
                        raise WireFormatError("The schema registry's answer has no end", where=self.where)
                return answer.status_code, bytes(content)
        except httpx.TimeoutException:
            words = f"The schema registry does not answer within {self.timeout_s:g} s"
            raise Unreachable(words, where=self.where, next_step="Look whether it runs, or raise timeout") from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # the last of a url that is none
            words = f"The schema registry cannot be reached: {type(error).__name__}"
            raise Unreachable(words, where=self.where, next_step="Check its url, and whether it runs") from None

    @property
    def where(self) -> str:
        return self.url

    def _said(self, answer: dict[str, Any], name: str, kind: type[Any]) -> Any:
        value = answer.get(name)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self._odd(200)
        return value

    def _reference(self, said: object) -> SchemaReference:
        if not isinstance(said, dict):
            raise self._odd(200)
        return SchemaReference(*(self._said(said, *one) for one in (("name", str), ("subject", str), ("version", int))))

    def _odd(self, status: int) -> WireFormatError:
        step = "Check that url is that of a Schema Registry"
        return WireFormatError(f"Not an answer of a schema registry ({status})", where=self.where, next_step=step)

    def _failure(self, status: int, detail: str, path: str) -> WaybillError:
        where = f"{self.where}{path}"
        if status in (401, 403):
            step = "Check username and password of the registry, and what they may do"
            return Refused(f"The schema registry refused the login ({status})", where=where, next_step=step)
        if status == 409:
            step = "Change the schema, or the subject's compatibility, or write to another subject"
            words = f"The schema is not compatible with those of its subject{detail}"
            return ConfigError(words, where=where, next_step=step)
        if status == 422:
            return ConfigError(f"The schema registry does not take the schema{detail}", where=where)
        if status == 429 or status >= 500:
            return Unreachable(f"The schema registry failed ({status})", where=where, next_step="Read its log")
        return self._odd(status)


def _body(schema: object, kind: str) -> dict[str, object]:
    return {"schema": json.dumps(schema) if kind == "AVRO" else schema, "schemaType": kind}


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _detail(answer: object) -> str:
    words = answer.get("message") if isinstance(answer, dict) else None
    return f": {words[:_LONGEST_DETAIL]}" if isinstance(words, str) and words else ""
