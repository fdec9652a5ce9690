"""What is given to the connectors: lines in files that are rotated, telegrams of devices. Shares no code with the
product: plain files and paho.

Every record says its origin and its number, so that what is lost, repeated or out of order can be told by looking.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import paho.mqtt.client as mqtt

LINES_PER_S = 300
TELEGRAMS_PER_S = 40
_ROUND_S = 0.25
_UNSAVED_S = 4.0
"""Mosquitto saves what it keeps every second or two; on a crowded machine later."""
_UNDER_WAY_S = 1.0
"""An acknowledgement may be read after the broker that sent it was killed."""
_KEPT = 99
_PADDING = "x" * 60


def record(origin: str, number: int) -> str:
    return f"{origin} {number:08d} {_PADDING}"


@dataclass
class Files:
    """Three logs: one that nobody rotates, one that is renamed, one behind a link that moves on."""

    folder: Path
    counts: dict[str, int] = field(default_factory=lambda: {"steady": 0, "renamed": 0, "linked": 0})
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _release: int = 0

    def __post_init__(self) -> None:
        self.switch_link()

    def write(self, lines: int) -> None:
        with self._lock:
            for origin, path in self._paths().items():
                first = self.counts[origin]
                with path.open("a") as log:
                    log.write("".join(f"{record(origin, number)}\n" for number in range(first, first + lines)))
                self.counts[origin] = first + lines

    def rename(self) -> str:
        """As logrotate does: app.log becomes app.log.1, that app.log.2, and so on."""
        with self._lock:
            log = self._paths()["renamed"]
            if not log.exists() or not log.stat().st_size:
                return "app.log is empty and stays"
            for number in range(_KEPT, 0, -1):
                older = log.with_name(f"app.log.{number}")
                if older.exists() and number < _KEPT:
                    older.rename(log.with_name(f"app.log.{number + 1}"))
            log.rename(log.with_name("app.log.1"))
            log.touch()
        return "app.log renamed to app.log.1, a new one begun"

    def switch_link(self) -> str:
        """The link moves on to the file of the next release, at once."""
        with self._lock:
            self._release += 1
            target = self.folder / "releases" / f"current-{self._release:04d}.log"
            target.touch()
            fresh = self.folder / "logs" / "current.fresh"
            fresh.symlink_to(target)
            fresh.rename(self.folder / "logs" / "current.log")
        return f"current.log moved on to {target.name}"

    def _paths(self) -> dict[str, Path]:
        logs = self.folder / "logs"
        current = self.folder / "releases" / f"current-{self._release:04d}.log"
        return {"steady": logs / "steady.log", "renamed": logs / "app.log", "linked": current}


@dataclass
class Devices:
    """Telegrams with QoS 1. Whether the broker took one that it did not acknowledge nobody knows, and none is sent
    twice from here."""

    port: Callable[[], int]
    acknowledged: dict[int, float] = field(default_factory=dict)
    """Number -> when."""
    kills: list[float] = field(default_factory=list)
    """When the broker was killed: of what it acknowledged shortly before it keeps what it had saved."""
    sent: int = 0
    _client: mqtt.Client | None = None

    def publish(self, count: int) -> None:
        try:
            client = self._client = self._client or self._connected()
            waiting = []
            for number in range(self.sent, self.sent + count):
                self.sent = number + 1
                waiting.append((number, client.publish("plant/telegram", record("device", number), qos=1)))
            until = time.monotonic() + 5
            for number, told in waiting:
                told.wait_for_publish(max(until - time.monotonic(), 0.01))
                if not told.is_published():
                    raise TimeoutError
                self.acknowledged[number] = time.monotonic()
        except (OSError, ValueError, RuntimeError, TimeoutError):
            self.hang_up()

    def hang_up(self) -> None:
        """The next telegram is sent over another connection, in another session: nothing is sent again by paho."""
        if self._client is not None:
            self._client.loop_stop()
            self._client = None

    @property
    def sure(self) -> list[int]:
        """The numbers of those that the broker must have kept."""
        return [number for number, when in sorted(self.acknowledged.items()) if not self._perhaps_unsaved(when)]

    def _perhaps_unsaved(self, when: float) -> bool:
        return any(kill - _UNSAVED_S < when < kill + _UNDER_WAY_S for kill in self.kills)

    def _connected(self) -> mqtt.Client:
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, clean_session=True, reconnect_on_failure=False)
        client.connect("127.0.0.1", self.port(), keepalive=30)
        client.loop_start()
        until = time.monotonic() + 5
        while not client.is_connected():
            if time.monotonic() > until:
                client.loop_stop()
                raise TimeoutError
            time.sleep(0.02)
        return client


class Feeding:
    """Gives so many a second until it is ended, in a thread of its own."""

    def __init__(self, give: Callable[[int], None], each_second: int) -> None:
        self._give, self._count = give, int(each_second * _ROUND_S)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(_ROUND_S):
            self._give(self._count)
