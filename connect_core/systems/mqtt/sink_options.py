"""Options of the MQTT sink, as a document gives them once its references are resolved."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, ByteSize, Field, model_validator

from connect_core.sdk.templates import template
from connect_core.sdk.values import LIVE
from connect_core.systems.mqtt.options import MqttBrokerOptions
from connect_core.systems.mqtt.packets import MAX_PACKET_BYTES
from connect_core.systems.topic_filters import MAX_BYTES, fault_in_topic

_ROCKETMQ_MQTT_BYTES = 64 * 1024
"""Its `maxPacketSizeInByte`, unless that is set to another size. It does not answer what is larger."""
RECORD: Final = "record"
"""Each record says itself."""


def _template(text: str) -> str:
    parsed = template(text)
    if any(one.kind in ("payload", "text") for one in parsed.names()):
        raise ValueError("names a place in the payload: give the topic by a rule (`to`), which can")
    if any(one.kind == "file" for one in parsed.names()):
        raise ValueError("names a file: give the topic by a rule (`to`), which can")
    if wrong := fault_in_topic("".join(one if isinstance(one, str) else "x" for one in parsed.pieces)):
        raise ValueError(wrong)
    return text


def _prefix(text: str) -> str:
    if not text or any(one in text for one in "+#\0") or text[0] in "$/" or text[-1] == "/" or len(text) > MAX_BYTES:
        raise ValueError("must be a topic, without + and #, not beginning with / or $ and not ending with /")
    return text


def _text(text: str) -> str:
    if "\0" in text or len(text.encode()) > MAX_BYTES:
        raise ValueError(f"must have at most {MAX_BYTES} bytes and no NUL")
    return text


class MqttSinkOptions(MqttBrokerOptions):
    """Publishes each record to a topic."""

    OF_ROCKETMQ_MQTT: ClassVar[Mapping[str, Any]] = {
        **MqttBrokerOptions.OF_ROCKETMQ_MQTT,
        "in_flight": 1,  # it stores in any order what is in flight
        "retain": False,  # it does not answer a retained message unless it has nodes for these
        "max_packet_bytes": _ROCKETMQ_MQTT_BYTES,
    }

    topic: Annotated[str, AfterValidator(_template)] = Field(
        description="The topic of each publish. `{topic}`, `{tags}`, `{key}` and `{header:NAME}` stand for what the "
        "record has, `{header:MQTT_TOPIC|topic}` for the first of these that it has: where it came from. `[2]` behind "
        "a name is its second level, `[2:]` all from there on. A record without it, or whose topic cannot be one "
        "(`+`, `#`, `$` at its begin), is rejected",
        examples=["plant/commands"],
        json_schema_extra={"template": True},
    )
    qos: Literal["record", 0, 1, 2] = Field(
        default=RECORD,
        description="Quality of service; `record`: what the header `MQTT_QOS` says, else 1; at most what the broker "
        "grants. With 0 the broker may drop a message silently",
        examples=[1],
    )
    retain: Literal["record"] | bool = Field(
        default=RECORD,
        description="Whether brokers keep the last message of each topic; `record`: what the header `MQTT_RETAIN` says",
        examples=[True],
    )
    expiry_s: int | None = Field(
        default=None,
        ge=1,
        le=0xFFFFFFFF,
        description="After how many seconds brokers may drop a message that was not delivered (MQTT 5); empty: what "
        "the header `MQTT_EXPIRY_S` says, else never",
        examples=[3600],
    )
    content_type: Annotated[str, AfterValidator(_text)] = Field(
        default="",
        description="Content type of all messages (MQTT 5); empty: what the header `MQTT_CONTENT_TYPE` says",
        examples=["application/json"],
    )
    on_refused: Literal["stop", "reject"] = Field(
        default="stop",
        description="What happens to a record for whose topic the broker does not let this user publish (MQTT 5): "
        "`stop` ends the run with exit code 6; `reject` makes it a dead letter, as far as `errors.tolerance` allows, "
        "and the records of other topics are delivered",
        examples=["reject"],
    )
    progress_every: int = Field(
        default=1000,
        ge=1,
        le=65_535,
        description="After so many acknowledged publishes of a partition its progress is kept at the broker: the most "
        "that is repeated after a crash",
        examples=[100],
    )
    progress_topic: Annotated[str, AfterValidator(_prefix)] = Field(
        default="waybill",
        description="Progress is a retained message of the topic `waybill/UID/PARTITION`; this is its first part. The "
        "user must be allowed to publish and to subscribe to it",
        examples=["bridge/waybill"],
    )
    in_flight: int = Field(
        default=1000,
        ge=1,
        le=32_767,
        description="How many publishes of a partition may be in flight, unacknowledged; at most the broker's receive "
        "maximum, which 3.1.1 does not tell",
        examples=[20],
    )
    max_packet_bytes: ByteSize = Field(
        default=ByteSize(MAX_PACKET_BYTES),
        ge=128,
        le=MAX_PACKET_BYTES,
        description="A record whose packet would be larger is rejected; at most the broker's maximum packet size, "
        "which 3.1.1 does not tell",
        examples=["256KiB"],
    )
    uid: str = Field(
        default="",
        description="The connector's, for client ids and the topics of its progress",
        examples=["0123456789ab"],
        json_schema_extra={"injected": True},
    )

    @model_validator(mode="after")
    def _refusals_are_told(self) -> Self:
        if self.on_refused == "reject" and self.protocol != "5":
            raise ValueError("on_refused: reject needs protocol 5: a broker has no way to refuse a publish in 3.1.1")
        return self

    def sink_client_id(self, stream: str, partition_id: str) -> str:
        """Of one partition in one stream, the same for ever: whoever goes on with it throws out who had it before."""
        words = ["waybill", self.uid, "sink", partition_id]
        words += [] if stream == LIVE else [hashlib.blake2b(stream.encode(), digest_size=4).hexdigest()]
        return self.named("-".join(words))
