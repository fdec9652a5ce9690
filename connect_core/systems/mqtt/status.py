"""Says at a broker whether a task is at work: a retained message, and a will for whoever is killed.

A connection of its own with a thread of its own, since those that move records are driven by whoever reads or writes.
It connects in the background and again when it is cut off; the run does not wait for it, and warns once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from threading import Thread
from typing import Any

from paho.mqtt.client import Client

from connect_core.sdk.plugin import Leaving, RunOfTask
from connect_core.systems.mqtt.connection import TAKEN_OVER, new_client, set_up
from connect_core.systems.mqtt.options import MqttBrokerOptions

KEEP_ALIVE_S = 15
"""A broker publishes the will of a host that is gone after one and a half of these."""
_CONNECT_S = 5.0
_GOODBYE_S = 1.0
"""How long the end of a run waits at most for the broker to have its last word."""
_QOS = 1
LOST = "lost"


@contextmanager
def present(options: MqttBrokerOptions, uid: str, of: RunOfTask) -> Iterator[Leaving]:
    """See `sdk.plugin.Plugin.presence`."""
    status = _Status(options, uid, of)
    thread = Thread(target=status.stay, name=f"status {of.role} {of.task}", daemon=True)
    thread.start()
    try:
        yield status.leave
    finally:
        status.close()
        thread.join(_GOODBYE_S)


class _Status:
    """Used by two threads: paho's client may be."""

    def __init__(self, options: MqttBrokerOptions, uid: str, of: RunOfTask) -> None:
        self._options, self._of = options, of
        self._topic = options.status_topic_of(of.connector, of.task)
        self._warned = False
        client_id = options.status_client_id(uid, of.role, of.task)
        self._client = client = set_up(new_client(Client, options, client_id), options, client_id)
        client.connect_timeout = _CONNECT_S
        client.on_connect, client.on_disconnect = self._on_connect, self._on_disconnect
        client.on_connect_fail = lambda client, data: self._warn("does not answer")
        client.will_set(self._topic, self._told("offline", reason=LOST), _QOS, retain=True)

    def stay(self) -> None:
        """Of its thread: connected until it is closed."""
        host, port = self._options.address
        try:
            self._client.connect_async(host, port, keepalive=KEEP_ALIVE_S)
            self._client.loop_forever(retry_first_connection=True)
        except Exception as error:
            self._warn(f"cannot be reached: {type(error).__name__}")

    def leave(self, why: str) -> None:
        """Says so where it is connected; else its will has said what there was to say."""
        with suppress(OSError, ValueError, RuntimeError):
            if self._client.is_connected():
                told = self._client.publish(self._topic, self._told("offline", reason=why), _QOS, retain=True)
                told.wait_for_publish(_GOODBYE_S)

    def close(self) -> None:
        with suppress(OSError, ValueError):
            self._client.disconnect()

    def _on_connect(self, client: Client, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._warn(f"lets nobody in: {reason}")
        else:
            client.publish(self._topic, self._told("online"), _QOS, retain=True)

    def _on_disconnect(self, client: Client, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.value == TAKEN_OVER:  # a later run of this task is at work: this one is fenced, and does not know it
            client.disconnect()

    def _told(self, state: str, **more: str) -> str:
        of = self._of
        since = datetime.now(UTC).isoformat(timespec="seconds")
        told = {"state": state, "connector": of.connector, "task": of.task, "run": of.run, "since": since, **more}
        return json.dumps(told)

    def _warn(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            self._of.say(f"no status is published: the broker at {self._options.where} {what}; the run continues")
