"""Log files that grow: writes numbered lines, in bulk or as a trickle from a thread, and knows how many there are.

Each line names its file and its number in that file, so that both identity and order can be checked afterwards.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

_PATHS = ("/orders", "/orders/8261", "/basket", "/login", "/search?q=spark", "/health")
_TRICKLE_EVERY_S = 0.05


class Feed:
    """Appends to one log file a host. Thread-safe. `counts` are lines written so far, by file."""

    def __init__(self, folder: Path, hosts: Sequence[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.files = [folder / f"{host}.log" for host in hosts]
        self.counts = dict.fromkeys(self.files, 0)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def total(self) -> int:
        with self._lock:
            return sum(self.counts.values())

    def append(self, lines: int) -> None:
        """`lines` more, spread evenly over the files; a remainder goes to the first ones."""
        share, rest = divmod(lines, len(self.files))
        for index, path in enumerate(self.files):
            self._append_to(path, share + (index < rest))

    def start_trickle(self, lines_per_second: int) -> None:
        """Goes on appending until `stop_trickle`. Lines come in two halves, as from a writer that buffers."""
        each = max(round(lines_per_second * _TRICKLE_EVERY_S), 1)

        def trickle() -> None:
            while not self._over.wait(_TRICKLE_EVERY_S):
                self.append(each)

        self._thread = threading.Thread(target=trickle, name="feed", daemon=True)
        self._thread.start()

    def stop_trickle(self) -> None:
        self._over.set()
        if self._thread:
            self._thread.join()

    def __enter__(self) -> Feed:
        return self

    def __exit__(self, *exception: object) -> None:
        with suppress(RuntimeError):
            self.stop_trickle()

    def _append_to(self, path: Path, lines: int) -> None:
        with self._lock:
            first = self.counts[path]
            moment = datetime.now(UTC).isoformat(timespec="milliseconds")
            data = "".join(line(moment, path.stem, first + number) for number in range(lines)).encode()
            with path.open("ab", buffering=0) as file:
                half = len(data) // 2
                file.write(data[:half])
                file.write(data[half:])
            self.counts[path] = first + lines


def line(moment: str, host: str, number: int) -> str:
    """One line of a log, with its newline; between 110 and 140 characters."""
    request = hashlib.blake2b(f"{host}{number}".encode(), digest_size=16).hexdigest()
    path = _PATHS[number % len(_PATHS)]
    return f"{moment} {host} {number:09d} GET {path} 200 {number * 7 % 90 + 3} ms request={request}\n"


def host_of(text: bytes) -> str:
    """The host that wrote a line; empty for what is not such a line."""
    fields = text.split(b" ", 2)
    return fields[1].decode(errors="replace") if len(fields) == 3 else ""
