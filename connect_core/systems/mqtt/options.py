"""Options of the MQTT source, as a document gives them once its references are resolved."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import ssl
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from connect_core.systems.tls import TlsCa, TlsCertificate, TlsFiles, TlsKey
from connect_core.systems.topic_filters import MAX_BYTES, check_subscription, is_shared, matches, shared_out, twice

_PLAIN_PORT, _TLS_PORT = 1883, 8883
_ID_PREFIX = "waybill"
_HOST_AND_PORT = re.compile(r"(?:\[(?P<six>.+)\]|(?P<host>[^:]+)):(?P<port>\d+)")
_PATH = re.compile(r"/[!-~]*")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OF_WEBSOCKETS = re.compile(r"host|upgrade|connection|sec-websocket-.*", re.IGNORECASE)
ROCKETMQ_MQTT: Final = "rocketmq-mqtt"
_ADDRESS: dict[str, JsonValue] = {"kind": "address"}
_ROCKETMQ_MQTT_KEEP_ALIVE_S = 30
"""RocketMQ-MQTT ends a connection without keep-alive after 10 s, and keeps one that is dead for one and a half times
this (its `ChannelInfo.isExpired`, `DefaultChannelManager.doPing`)."""


def _as_list(value: object) -> object:
    """One filter may stand alone; a comma may be part of one."""
    return [value] if isinstance(value, str) else value


def default_port(*, tls: bool) -> int:
    return _TLS_PORT if tls else _PLAIN_PORT


def split_address(text: str, *, tls: bool) -> tuple[str, int]:
    """Of `HOST`, `HOST:PORT` or `[ADDRESS OF VERSION 6]:PORT`, with the usual port where none is written."""
    if (found := _HOST_AND_PORT.fullmatch(text)) is None:
        return text.removeprefix("[").removesuffix("]"), default_port(tls=tls)
    return found["six"] or found["host"], int(found["port"])


def _address(text: str) -> str:
    host, port = split_address(text, tls=False)
    if not host or not 0 < port < 65536 or {*host} & {*"/@[] "} or (":" in host and not _is_version_six(host)):
        raise ValueError('must be written as "host" or "host:port"')
    return text


def _is_version_six(host: str) -> bool:
    try:
        return ip_address(host).version == 6
    except ValueError:
        return False


TopicFilter = Annotated[str, AfterValidator(check_subscription)]


def _path(text: str) -> str:
    if text and not _PATH.fullmatch(text):
        raise ValueError('must begin with "/", and have no spaces')
    return text


def _status_topic(text: str) -> str:
    bare = text.replace("{connector}", "x").replace("{task}", "x")
    if text and ("{task}" not in text or bare[0] == "$" or {*bare} & {*"+#{}\0"} or len(text) > MAX_BYTES // 2):
        raise ValueError("must be a topic with {task} in it, without + and #, not beginning with $")
    return text


def _header_name(text: str) -> str:
    if not _TOKEN.fullmatch(text) or _OF_WEBSOCKETS.fullmatch(text):
        raise ValueError("must be the name of a header, and none of those that make the websocket")
    return text


def _header_value(text: str) -> str:
    if not text.isprintable() or not text.isascii():
        raise ValueError("must be printable ASCII")
    return text


HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[str, AfterValidator(_header_value)]


def _as_text(version: object) -> object:
    """YAML reads `protocol: 5` as a number."""
    return "5" if version == 5 else version


class MqttBrokerOptions(BaseModel):
    """An MQTT broker, and who we are to it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    ACCESS: ClassVar[frozenset[str]] = frozenset(
        {
            "user",
            "password",
            "signature",
            "tls",
            "tls_ca",
            "tls_certificate",
            "tls_key",
            "alpn",
            "websocket_headers",
            "connect_timeout_s",
            "failover",
            "status_topic",
        }
    )
    """How the broker is reached, and not which one it is."""
    OF_ROCKETMQ_MQTT: ClassVar[Mapping[str, Any]] = {"protocol": "3.1.1"}
    """The defaults for that kind of broker, where they are others."""

    broker: Literal["standard", "rocketmq-mqtt"] = Field(
        default="standard",
        description="What kind of broker it is. `rocketmq-mqtt`, the broker of Apache rocketmq-mqtt, does less than "
        "MQTT promises: nothing is concluded from what it says of sessions, and it keeps no progress. See "
        "docs/rocketmq-mqtt.md",
        examples=["standard"],
    )
    host: str = Field(
        min_length=1, description="Host of the broker", examples=["mqtt.internal"], json_schema_extra=_ADDRESS
    )
    port: int = Field(default=0, ge=0, le=65535, description="Its port; 0: 1883, with TLS 8883", examples=[1883])
    failover: Annotated[tuple[Annotated[str, AfterValidator(_address)], ...], BeforeValidator(_as_list)] = Field(
        default=(),
        description="Other addresses of the same broker or cluster, `HOST` or `HOST:PORT`, that are tried in this "
        "order when those before do not answer. For Waybill they are one broker, the one at `host` and `port`: its "
        "nodes have to share sessions and retained messages",
        examples=[["mqtt-2.internal", "mqtt-3.internal:1884"]],
        json_schema_extra=_ADDRESS,
    )
    protocol: Annotated[Literal["5", "3.1.1"], BeforeValidator(_as_text)] = Field(
        default="5",
        description="Version of MQTT. 3.1.1 has no properties, no say in how much comes at once, and cannot tell that "
        "a session was taken over",
        examples=["5"],
    )
    websockets: Annotated[str, AfterValidator(_path)] = Field(
        default="", description="Path of the broker's websocket; empty: plain TCP", examples=["/mqtt"]
    )
    websocket_headers: dict[HeaderName, HeaderValue] = Field(
        default={},
        repr=False,
        description="Headers of the request that opens the websocket, by name; a credential is a reference: "
        "`${env:NAME}` or `${file:PATH#KEY}`",
        examples=[{"X-Tenant": "acme", "Authorization": "${env:MQTT_BEARER}"}],
        json_schema_extra={"kind": "headers"},
    )
    user: str = Field(default="", description="User name", examples=["replication"])
    password: str = Field(
        default="",
        repr=False,
        description="Its password; never in plain text: `${env:NAME}` or `${file:PATH#KEY}`",
        examples=["${env:MQTT_PASSWORD}"],
    )
    signature: bool = Field(
        default=False,
        description="The password is a secret key that signs the client id, and the signature is what the broker gets: "
        "base64 of HMAC-SHA1, as RocketMQ-MQTT asks for",
        examples=[True],
    )
    client_group: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9_-]*$",
        max_length=20,
        description="What comes before each client id: `GROUP@@@waybill-…`, as RocketMQ-MQTT names clients",
        examples=["GID_replication"],
    )
    tls: bool = Field(
        default=False,
        description="TLS; the certificate is checked, and there is no way back to plain text",
        examples=[True],
    )
    tls_ca: TlsCa = ""
    tls_certificate: TlsCertificate = ""
    tls_key: TlsKey = ""
    alpn: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=255)], ...], BeforeValidator(_as_list)] = Field(
        default=(),
        description="Protocols that are offered in the TLS handshake (ALPN), for a server that tells its services "
        "apart by them, as at port 443",
        examples=[["mqtt"]],
    )
    connect_timeout_s: float = Field(
        default=10.0,
        gt=0,
        le=300,
        description="For how long a broker that does not answer is tried again",
        examples=[30],
    )

    status_topic: Annotated[str, AfterValidator(_status_topic)] = Field(
        default="",
        description="Topic of a retained message that says whether a task is at work, `online` or `offline` and why; "
        "`{connector}` and `{task}` in it stand for these. A will says `offline` of a run that was killed. Empty: no"
        " status",
        examples=["waybill/{connector}/{task}/status"],
    )

    @model_validator(mode="before")
    @classmethod
    def _of_its_kind(cls, given: Any) -> Any:
        """RocketMQ-MQTT speaks 3.1.1 alone."""
        if isinstance(given, dict) and given.get("broker") == ROCKETMQ_MQTT:
            return {**cls.OF_ROCKETMQ_MQTT, **given}
        return given

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.broker == ROCKETMQ_MQTT and self.protocol != "3.1.1":
            raise ValueError(f"protocol: {ROCKETMQ_MQTT} has 3.1.1 alone")
        if self.status_topic and not self.keeps_its_word:
            raise ValueError("status_topic needs a broker that retains messages")
        if self.password and not self.user:
            raise ValueError("password needs user")
        if self.signature and not self.password:
            raise ValueError("signature needs password")
        self._tls_files().check(tls=self.tls)
        if self.alpn and not self.tls:
            raise ValueError("alpn means nothing without tls: true")
        if self.websocket_headers and not self.websockets:
            raise ValueError("websocket_headers means nothing without websockets")
        return self

    @property
    def keeps_its_word(self) -> bool:
        """Whether what the broker says is so: of a session that it has kept, and of a message that it retains."""
        return self.broker != ROCKETMQ_MQTT

    @property
    def keep_alive_s(self) -> int:
        """0: the broker does not ask whether anybody is there."""
        return 0 if self.keeps_its_word else _ROCKETMQ_MQTT_KEEP_ALIVE_S

    @property
    def advice(self) -> str:
        """What to check when it does not answer."""
        plain = "Check the broker, and host, port and tls"
        if self.keeps_its_word:
            return plain
        return (
            f"{plain}. RocketMQ-MQTT gives no answer at all where the first level of a topic is no topic of RocketMQ,"
            " to a packet that is too large, and, without meta nodes, to a retained message"
        )

    def named(self, client_id: str) -> str:
        """A client id as the broker gets it."""
        return f"{self.client_group}@@@{client_id}" if self.client_group else client_id

    def status_topic_of(self, connector: str, task: int) -> str:
        return self.status_topic.replace("{connector}", connector).replace("{task}", str(task))

    def status_client_id(self, uid: str, end: str, task: int) -> str:
        """The same for each run of the task: a later one puts an end to the connection of the one before."""
        return self.named(f"{_ID_PREFIX}-{uid}-{end}-status-{task}")

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port or default_port(tls=self.tls)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """All at which the broker may answer, in the order in which they are tried."""
        return [self.address, *(split_address(one, tls=self.tls) for one in self.failover)]

    def password_for(self, client_id: str) -> str | None:
        """What the broker gets as password."""
        if not self.signature:
            return self.password or None
        signed = hmac.new(self.password.encode(), client_id.encode(), hashlib.sha1).digest()
        return base64.b64encode(signed).decode()

    @property
    def where(self) -> str:
        """For messages."""
        return f"{self.host}:{self.address[1]}"

    def tls_context(self) -> ssl.SSLContext | None:
        """None without TLS. Raises ConfigError when a file is missing or holds something else."""
        if not self.tls:
            return None
        context = self._tls_files().context()
        if self.alpn:
            context.set_alpn_protocols(list(self.alpn))
        return context

    def _tls_files(self) -> TlsFiles:
        return TlsFiles(self.tls_ca, self.tls_certificate, self.tls_key)


class MqttSourceOptions(MqttBrokerOptions):
    """Receives what is published to topics, in sessions that the broker keeps while nobody is connected."""

    filters: Annotated[tuple[TopicFilter, ...], BeforeValidator(_as_list), Field(min_length=1)] = Field(
        description="Topic filters, with `+` and `#`. `$share/NAME/FILTER` divides matching messages among all "
        "sessions, at least once (MQTT 5)",
        examples=[["devices/+/state", "alarms/#"]],
    )
    qos: Literal[0, 1] = Field(
        default=1,
        description="The highest QoS that is asked of the broker. 1 receives QoS 2 publishes as well, each of them "
        "once, on the conditions of docs/mqtt-source.md; 0: a message that comes while no run is connected is lost",
        examples=[0],
    )
    sessions: int = Field(
        default=1,
        ge=1,
        le=256,
        description="Maximum number of sessions; each is a partition. The filters are distributed among them; those "
        "that overlap stay together. Every session is a member of each shared subscription",
        examples=[4],
    )
    session_expiry_s: int = Field(
        default=7 * 24 * 3600,
        ge=60,
        le=0xFFFFFFFE,
        description="For how many seconds the broker keeps a session while no run is connected (MQTT 5; with 3.1.1 the "
        "broker decides). Must be longer than any pause of the connector",
        examples=[86400],
    )
    receive_maximum: int = Field(
        default=4096,
        ge=1,
        le=4096,
        description="How many messages of a session may be in flight, unacknowledged (MQTT 5)",
        examples=[1000],
    )
    max_hops: int = Field(
        default=0,
        ge=0,
        le=32,
        description="Ends circles of connectors (MQTT 5): each message is marked with this connector, in the user "
        "property `WAYBILL_HOPS`, and one that has passed it before, or so many connectors that mark, is left out and "
        "counts as filtered. 1: of two connectors that bridge two brokers both ways none sends back what the other one "
        "brought. 0: no mark, and all messages pass",
        examples=[1],
    )
    packet_ids: Literal["detect", "count_up", "used_again"] = Field(
        default="detect",
        description="How the broker assigns packet ids: `count_up`, increasing, as Mosquitto does, or `used_again`, "
        "always the lowest free one, as HiveMQ does. `detect` assumes `used_again` until it is known otherwise: "
        "messages may then be delivered twice after a crash, and are counted",
        examples=["count_up"],
    )
    uid: str = Field(
        default="",
        description="The connector's, for client ids",
        examples=["0123456789ab"],
        json_schema_extra={"injected": True},
    )

    @model_validator(mode="after")
    def _ids_are_its_own(self) -> Self:
        if self.broker == ROCKETMQ_MQTT and self.packet_ids != "detect":
            raise ValueError(f"packet_ids: {ROCKETMQ_MQTT} sends again under other ids")
        return self

    @model_validator(mode="after")
    def _shared_alone(self) -> Self:
        if self.protocol != "5" and self.shared:
            raise ValueError("filters: shared subscriptions need protocol 5")
        if self.protocol != "5" and self.max_hops:
            raise ValueError("max_hops needs protocol 5: 3.1.1 has no user properties")
        status = self.status_topic_of("x", 0)
        if status and (own := [one for one in self.filters if matches(one, status)]):
            raise ValueError(f"status_topic: {own[0]} would bring what is said there")
        if both := twice(self.filters):
            raise ValueError(f"filters: a message that matches {both[0]} and {both[1]} would come twice")
        return self

    @property
    def shared(self) -> bool:
        """Whether sessions are members of a shared subscription."""
        return any(map(is_shared, self.filters))

    def counts_up(self, learned: bool) -> bool:
        """Whether the broker is taken to give out packet ids one after the other, when this was learned of it."""
        return learned if self.packet_ids == "detect" else self.packet_ids == "count_up"

    def client_id(self, session: int) -> str:
        """Of one session, the same for ever: the broker knows it by this."""
        return self.named(f"{_ID_PREFIX}-{self.uid}-{session}")

    def witness_id(self, session: int, losses: int = 0) -> str:
        """Of the session beside it, by which it is seen whether the broker has kept both. After each loss it is another
        one: a broker of before, that has kept the former ones, does not pass for the one that has the session now."""
        return f"{self.client_id(session)}-w{losses or ''}"

    def shares(self) -> list[tuple[str, ...]]:
        """The filters of each session."""
        return shared_out(self.filters, self.sessions)
