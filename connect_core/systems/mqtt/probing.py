"""What a broker says of itself to whoever connects, and what of it a sink misses: for runs and for `check --probe`,
which connects as nobody who has anything there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from uuid import uuid4

from connect_core.sdk.plugin import ProbeResult, Role
from connect_core.sdk.values import Json
from connect_core.systems.mqtt.asking import seen_by
from connect_core.systems.mqtt.grants import Grants
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.publishing import Publisher
from connect_core.systems.mqtt.sink_options import MqttSinkOptions

NOT_KEPT = "The broker keeps no retained messages, and the sink keeps its progress as one"


def probe(role: Role, options: Json) -> Iterator[ProbeResult]:
    if role == "source":
        yield from (ProbeResult(*seen) for seen in seen_by(MqttSourceOptions.model_validate(options)))
        return
    given = MqttSinkOptions.model_validate(options)
    grants = granted(given)
    yield ProbeResult(True, f"the broker {given.where} answers; {grants.told()}")
    yield from (ProbeResult(False, what) for what in missing(given, grants))


def looking_as(options: MqttSinkOptions) -> str:
    """The client id of somebody who only looks, and throws nobody out."""
    return options.named(f"waybill-{options.uid}-look-{uuid4().hex[:8]}")


def granted(options: MqttSinkOptions) -> Grants:
    """Raises what `Publisher` raises."""
    with closing(Publisher(options, looking_as(options))) as publisher:
        return publisher.grants


def missing(options: MqttSinkOptions, seen: Grants) -> Iterator[str]:
    """What the sink needs and the broker does not grant, a sentence each."""
    needed = max(options.composer.qos or 1, 1)
    if seen.most_qos < needed:
        yield f"The broker grants at most QoS {seen.most_qos}, and the sink needs {needed}"
    if seen.keeps_retained is False:
        yield f"{NOT_KEPT}: the broker says that they are not available"
