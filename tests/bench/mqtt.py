"""Into an MQTT broker (Mosquitto, on this machine), from a file and from a topic, beside a bare publisher.

The bare one is paho's client as its documentation has it (`tests.mqtt_devices`): a thread of its own, as many publishes
under way, QoS 1, nothing kept. Run as a process of its own (`python -m tests.bench.mqtt HOST PORT TOPIC FILE`); prints
how many were acknowledged, and seconds.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from tests.bench.copies import fill, forget
from tests.bench.measures import compared, write_logs
from tests.bench.place import Place, Timed
from tests.bench.telling import Row
from tests.mqtt_brokers import FOR_THROUGHPUT, Mosquitto
from tests.mqtt_devices import Reached, devices

MESSAGES = 100_000
_BYTES = 200
_QUEUES = 2
_IN_FLIGHT = 1000
_LIMIT_S = 600.0
_numbers = count(1)


def into_mqtt(place: Place, messages: int, repeats: int) -> list[Row]:
    [log] = write_logs(place.folder / f"logs-{next(_numbers)}", messages, 1)
    topic = f"full-{next(_numbers)}"
    fill(place, topic, messages, _BYTES, _QUEUES)
    sources: dict[str, Any] = {
        "file": {"file": {"path": str(log)}},
        f"RocketMQ, {_QUEUES} queues": {"rocketmq": {"connection": "main", "topics": topic}},
    }
    with _broker(place.folder / "mosquitto") as broker:
        rows = [_row(place, broker, name, source, log, messages, repeats) for name, source in sources.items()]
    forget(place, topic)
    return rows


def _row(
    place: Place, broker: Mosquitto, name: str, source: dict[str, Any], log: Path, messages: int, repeats: int
) -> Row:
    def ours() -> Timed:
        connector = f"mqtt-{next(_numbers)}"
        sink = {"host": broker.host, "port": broker.port, "topic": f"bench/{connector}", "in_flight": _IN_FLIGHT}
        place.apply(connector, source, {"mqtt": sink})
        return place.run(connector)

    return compared(
        f"{name} -> MQTT, QoS 1, {messages:,} messages of {_BYTES} bytes", messages, ours, _bare(broker, log), repeats
    )


def _bare(broker: Mosquitto, log: Path) -> Callable[[], float]:
    def seconds() -> float:
        words = [broker.host, str(broker.port), f"bench/bare-{next(_numbers)}", str(log)]
        command = [sys.executable, "-m", "tests.bench.mqtt", *words]
        return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[1])

    return seconds


@contextmanager
def _broker(folder: Path) -> Iterator[Mosquitto]:
    broker = Mosquitto(folder, settings=FOR_THROUGHPUT)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


def main(host: str, port: str, topic: str, path: str) -> None:
    begun = time.monotonic()
    with devices(Reached(host, int(port), _IN_FLIGHT)) as publishing:
        publishing.publish(topic, Path(path).read_bytes().splitlines())
        publishing.wait(_LIMIT_S)
    print(publishing.acknowledged, time.monotonic() - begun)


if __name__ == "__main__":
    main(*sys.argv[1:])
