"""MQTT -> RocketMQ: how fast sessions are emptied, by one member and by four, against a bare subscriber; and how soon a
message is visible in a window, there and in a file. Mosquitto, QoS 1.

Sessions are filled before they are measured. A run ends a second after the last message, which is part of its time.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from statistics import median
from typing import Any

from connect_core import stack
from connect_core.rocketmq import Client
from tests.bench.freshness import TRICKLE_S, See, Store, Way, after_silence, bodies_in, lines_of, under_a_trickle
from tests.bench.measures import compared
from tests.bench.place import Place, Timed
from tests.bench.telling import Row
from tests.bench.usage import usage
from tests.mqtt_brokers import FOR_THROUGHPUT, Mosquitto
from tests.mqtt_devices import Devices, devices

_PAYLOAD_BYTES = 256
_numbers = count(1)


def mqtt(place: Place, messages: int, repeats: int) -> list[Row]:
    with _mosquitto(place) as broker:
        return [_emptied(place, broker, messages, members, repeats) for members in (1, 4)]


def mqtt_freshness(place: Place) -> list[Row]:
    rows, way = list[Row](), Way("window")
    with _mosquitto(place) as broker, devices(broker) as publishing:
        bare, ends = BareWay("bare loop", broker=broker), partial(_bare_ends, broker, publishing)
        rows += [under_a_trickle(place, "MQTT -> RocketMQ", ends, bare, rate, TRICKLE_S) for rate in (10, 1_000)]
        for what, target in {"MQTT -> RocketMQ": _topic, "MQTT -> file": _file}.items():
            ends = partial(_ends, broker, publishing, target)
            rows += [under_a_trickle(place, what, ends, way, rate, TRICKLE_S) for rate in (10, 1_000)]
            rows.append(after_silence(place, what, ends, way))
    return rows


@dataclass(frozen=True, kw_only=True)
class BareWay(Way):
    """paho, and a send for each message."""

    broker: Mosquitto

    @contextmanager
    def running(self, place: Place, name: str) -> Iterator[None]:
        words = [sys.executable, "-m", "tests.bench.bare_mqtt", str(self.broker.port), f"{name}-0", f"{name}/#"]
        with subprocess.Popen([*words, "send", place.name_servers, name]) as process:
            yield
            process.kill()


def _bare_ends(broker: Mosquitto, publishing: Devices, place: Place, client: Client, **document: Any) -> Any:
    name = f"bare-mqtt-{next(_numbers)}"
    _, see = _topic(place, client, name)
    _takers(broker, name, 1, "subscribe")
    return name, _acknowledged(publishing, f"{name}/x"), see


@contextmanager
def _mosquitto(place: Place) -> Iterator[Mosquitto]:
    broker = Mosquitto(place.folder / f"mosquitto-{next(_numbers)}", settings=FOR_THROUGHPUT)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


def _emptied(place: Place, broker: Mosquitto, messages: int, members: int, repeats: int) -> Row:
    rates: dict[str, list[float]] = {"ours": [], "bare": []}

    @contextmanager
    def per_core(whose: str) -> Iterator[None]:
        before = _processor_s(place)
        yield
        rates[whose].append(messages / (_processor_s(place) - before))

    def ours() -> Timed:
        name = f"mqtt-{next(_numbers)}"
        source = _source(broker, [_filter(name, members)], sessions=members)
        place.apply(name, {"mqtt": source}, {"rocketmq": {"connection": "main", "topic": name, "queues": members}})
        place.run(name)
        _published(broker, f"{name}/x", messages)
        with per_core("ours"):
            timed = place.run(name)
        place.delete(name)
        return timed

    def bare() -> float:
        name = f"bare-{next(_numbers)}"
        _takers(broker, name, members, "subscribe")
        _published(broker, f"{name}/x", messages)
        with per_core("bare"):
            took = _takers(broker, name, members, "take")
        if sum(how_many for how_many, _, _ in took) != messages:
            raise SystemExit(f"the bare subscriber took {sum(one[0] for one in took)} of {messages} messages")
        return max(last for _, _, last in took) - min(first for _, first, _ in took if first)

    shared = "" if members == 1 else ", shared subscription"
    what = f"MQTT -> RocketMQ, {members} member{'s' * (members > 1)}{shared}, {messages:,} of {_PAYLOAD_BYTES} bytes"
    row = compared(what, messages, ours, bare, repeats)
    ours_rate, bare_rate = (median(rates[whose][1:]) for whose in ("ours", "bare"))  # as `compared` has it
    return replace(row, remark=f"{row.remark}; {ours_rate:,.0f}/s per core, bare {bare_rate:,.0f}/s per core")


def _processor_s(place: Place) -> float:
    """Of the engine with its workers, and of all processes that this one has waited for, their start included."""
    waited = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage(place.running)[stack.ENGINE].cpu_s + waited.ru_utime + waited.ru_stime


def _filter(name: str, members: int) -> str:
    return f"{name}/#" if members == 1 else f"$share/all/{name}/#"


def _source(broker: Mosquitto, filters: list[str], **more: Any) -> dict[str, Any]:
    return {"host": broker.host, "port": broker.port, "filters": filters, **more}


def _published(broker: Mosquitto, topic: str, messages: int) -> None:
    payload = b"x" * _PAYLOAD_BYTES
    with devices(broker) as publishing:
        publishing.publish(topic, [payload] * messages)
        publishing.wait()


def _takers(broker: Mosquitto, name: str, members: int, what: str) -> list[tuple[int, float, float]]:
    """One process a member; what each of them has told: how many messages, and when the first and the last came."""
    words = [sys.executable, "-m", "tests.bench.bare_mqtt", str(broker.port)]
    processes = [
        subprocess.Popen([*words, f"{name}-{n}", _filter(name, members), what], stdout=subprocess.PIPE, text=True)
        for n in range(members)
    ]
    told = [process.communicate()[0].split() for process in processes]
    return [(int(took), float(first), float(last)) for took, first, last in told]


Target = Callable[[Place, Client, str], tuple[dict[str, Any], See]]


def _ends(
    broker: Mosquitto, publishing: Devices, target: Target, place: Place, client: Client, **document: Any
) -> tuple[str, Store, See]:
    name = f"fresh-mqtt-{next(_numbers)}"
    sink, see = target(place, client, name)
    place.apply(name, {"mqtt": _source(broker, [f"{name}/#"])}, sink, **document)
    place.run(name)  # subscribes
    return name, _acknowledged(publishing, f"{name}/x"), see


def _topic(place: Place, client: Client, name: str) -> tuple[dict[str, Any], See]:
    client.topics.create(name, 1)
    return {"rocketmq": {"connection": "main", "topic": name, "queues": 1}}, partial(bodies_in, client, name)


def _file(place: Place, client: Client, name: str) -> tuple[dict[str, Any], See]:
    path = place.folder / f"{name}.log"
    return {"file": {"path": str(path)}}, partial(lines_of, path)


def _acknowledged(publishing: Devices, topic: str) -> Callable[[bytes], None]:
    def store(body: bytes) -> None:
        publishing.publish(topic, [body])
        while publishing.acknowledged < publishing.published:
            time.sleep(0.0002)

    return store
