"""How a cluster is reached: addresses, credentials, TLS. Both ends have these options, and connections hold them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from connect_core.sdk.values import Json
from connect_core.systems.tls import TlsCa, TlsCertificate, TlsFiles, TlsKey

if TYPE_CHECKING:
    from connect_core.rocketmq import ClientOptions


def as_list(value: object) -> object:
    """Several names may also stand in one text, as RocketMQ's own settings have them."""
    return [part.strip() for part in re.split(r"[;,]", value) if part.strip()] if isinstance(value, str) else value


def _address(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError('must be written as "host:port"')
    return text


Address = Annotated[str, AfterValidator(_address)]
NameServers = Annotated[tuple[Address, ...], BeforeValidator(as_list), Field(min_length=1)]


class ClusterOptions(BaseModel):
    """A RocketMQ cluster, and who we are to it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    ACCESS: ClassVar[frozenset[str]] = frozenset(
        {"user", "password", "tls", "tls_ca", "tls_certificate", "tls_key", "tls_server_name"}
    )
    """How the cluster is reached, and not which one it is."""

    name_servers: NameServers = Field(
        description='Name servers of the cluster, each "host:port"',
        examples=[["127.0.0.1:9876"]],
        json_schema_extra={"kind": "address"},
    )
    user: str = Field(
        default="", description="User name (access control 2.0) or access key (1.0)", examples=["replication"]
    )
    password: str = Field(
        default="",
        repr=False,
        description="Its password or secret key; never in plain text: `${env:NAME}` or `${file:PATH#KEY}`",
        examples=["${env:ROCKETMQ_PASSWORD}"],
    )
    tls: bool = Field(
        default=False,
        description="TLS to name servers and brokers alike; certificates are checked, and there is no way back to "
        "plain text",
        examples=[True],
    )
    tls_ca: TlsCa = ""
    tls_certificate: TlsCertificate = ""
    tls_key: TlsKey = ""
    tls_server_name: str = Field(
        default="",
        description="Name that the servers' certificates must be for; empty: the host that is connected to",
        examples=["rocketmq.internal"],
    )

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if bool(self.user) != bool(self.password):
            raise ValueError("user and password go together")
        self._tls_files().check(tls=self.tls)
        if self.tls_server_name and not self.tls:
            raise ValueError("tls_server_name means nothing without tls: true")
        return self

    @classmethod
    def of(cls, options: Json) -> ClusterOptions:
        """Those of an end's or a connection's options that say how its cluster is reached."""
        return ClusterOptions.model_validate({name: options[name] for name in cls.model_fields if name in options})

    def client_options(self, send_timeout_s: float | None = None) -> ClientOptions:
        """For a client with the usual time to send in, when none is given."""
        from connect_core.rocketmq import ClientOptions, Credentials  # documents are checked without a client

        return ClientOptions(
            name_servers=self.name_servers,
            send_timeout_s=ClientOptions.send_timeout_s if send_timeout_s is None else send_timeout_s,
            credentials=Credentials(self.user, self.password) if self.user else None,
            tls=self._tls_files().context if self.tls else None,
            tls_server_name=self.tls_server_name or None,
        )

    def _tls_files(self) -> TlsFiles:
        return TlsFiles(self.tls_ca, self.tls_certificate, self.tls_key)
