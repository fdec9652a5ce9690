"""A client of Kafka Connect's REST API: the few calls that an import makes. It reads, and changes nothing there."""

from __future__ import annotations

import json
from base64 import b64encode
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from connect_core.errors import ConfigError, Refused, Unreachable
from connect_core.masking import remember

_LIMIT_S = 30.0
_NO_SUCH_ROUTE = (404, 405)


class KafkaServer:
    """`url` is where its paths begin. `login` is a file that holds `user:password`."""

    def __init__(self, url: str, login: Path | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError("Not an address of Kafka Connect", next_step="Write it as http://HOST:8083")
        if "@" in parts.netloc:
            step = "Write user:password into a file, and name it with --auth-file"
            raise ConfigError("A login has no place in the address", next_step=step)
        self._where = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._parts = parts
        self._headers = {"Accept": "application/json", **_authorization(login)}

    def connectors(self) -> Any:
        """By name, what each is and what it does."""
        return self._got("/connectors?expand=info&expand=status")

    def offsets(self, name: str) -> Any:
        """None where it is too old to tell them (before 3.5)."""
        return self._got(f"/connectors/{quote(name, safe='')}/offsets", or_none=True)

    def _got(self, path: str, *, or_none: bool = False) -> Any:
        code, body = self._answer(path)
        if or_none and code in _NO_SUCH_ROUTE:
            return None
        if code in (401, 403):
            raise Refused(f"It refuses the login ({code})", where=self._where, next_step="Name one with --auth-file")
        if code != 200:
            step = "Try again; 409 means that its workers share out their work, 3xx that it is another address"
            raise Unreachable(f"Kafka Connect answers {code}", where=f"{self._where}{path}", next_step=step)
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise ConfigError("This is no answer of Kafka Connect", where=f"{self._where}{path}") from None

    def _answer(self, path: str) -> tuple[int, bytes]:
        """Redirections are not followed: the login is for this address alone."""
        kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        try:
            connection = kind(self._parts.hostname or "", self._parts.port, timeout=_LIMIT_S)
            try:
                connection.request("GET", f"{self._parts.path.rstrip('/')}{path}", headers=self._headers)
                answer = connection.getresponse()
                return answer.status, answer.read()
            finally:
                connection.close()
        except (OSError, HTTPException, ValueError) as error:
            step = "Check the address, and that a worker runs there"
            raise Unreachable(f"Kafka Connect does not answer: {error}", where=self._where, next_step=step) from None


def _authorization(login: Path | None) -> dict[str, str]:
    if login is None:
        return {}
    try:
        text = login.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        words = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"The file of the login cannot be read: {words}", where=str(login)) from None
    if ":" not in text:
        raise ConfigError("The file of the login holds no user:password", where=str(login))
    remember(text.partition(":")[2], secret=True)
    return {"Authorization": f"Basic {b64encode(text.encode()).decode()}"}
