"""A name server and a broker with TLS and access control 2.0: certificates of an authority of our own, an
administrator, and users who may do what they are allowed one by one.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connect_core import stack
from connect_core.rocketmq import ClientOptions, Credentials
from connect_core.rocketmq.channel import Channel
from connect_core.rocketmq.connection import Purpose
from connect_core.rocketmq.wire.header import Command
from tests.certificates import make_authority, make_certificate
from tests.servers import end, rocketmq_up
from tests.site import Site

ADMIN, ADMIN_SECRET = "admin", "secret-of-the-admin"
USER, USER_SECRET = "mover", "secret-of-the-mover"
_CREATE_USER, _CREATE_ACL = 3001, 3006
_RUNTIME_INFO = "28"


@dataclass(frozen=True)
class Secured:
    """One name server and one broker, and the PEM files: `ca`, `server`, `mover` with their keys, `stranger` of another
    authority."""

    name_servers: str
    broker: str
    folder: Path

    def pem(self, name: str) -> str:
        return str(self.folder / f"{name}.pem")

    def key(self, name: str) -> str:
        return str(self.folder / f"{name}.key")

    def reached(self, user: str, password: str) -> dict[str, Any]:
        """How a document names the cluster."""
        return {
            "name_servers": self.name_servers,
            "user": user,
            "password": password,
            "tls": True,
            "tls_ca": self.pem("ca"),
            "tls_certificate": self.pem("mover"),
            "tls_key": self.key("mover"),
        }

    def ends(self, site: Site, **differing: Any) -> dict[str, Any]:
        """Both ends of a document that is allowed to copy the site's topic, but for what differs."""
        reached = {**self.reached(USER, f"${{file:{password_of(site)}}}"), **differing}
        cluster = {name: value for name, value in reached.items() if value is not None}
        return {
            "source": {"rocketmq": {**cluster, "topics": site.topic}},
            "sink": {"rocketmq": {**cluster, "topic": f"{site.topic}-copy"}},
        }

    def options(self, user: str, secret: str) -> ClientOptions:
        return ClientOptions((self.name_servers,), credentials=Credentials(user, secret), tls=self._context)

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.pem("ca"))
        context.load_cert_chain(self.pem("mover"), self.key("mover"))
        return context

    def asked(self, code: int, fields: dict[str, str], body: dict[str, Any]) -> None:
        """One request of the administrator's."""
        channel = Channel(self.broker, self.options(ADMIN, ADMIN_SECRET), Purpose.ASK, signs=True)
        command = Command(code=code, fields=fields, body=json.dumps(body).encode())
        answer = channel.ask(command, time.monotonic() + 10).result()
        channel.close()
        assert answer.code == 0, answer

    def add(self, user: str) -> None:
        """A user who may do nothing."""
        about = {"username": user, "password": USER_SECRET, "userType": "Normal", "userStatus": "enable"}
        self.asked(_CREATE_USER, {"username": user}, about)

    def allow(self, user: str, resources: Mapping[str, Sequence[str]]) -> None:
        """What a user may do with each resource, written `Topic:name` and `Group:name`."""
        entries = [
            {"resource": name, "actions": list(actions), "sourceIps": [], "decision": "Allow"}
            for name, actions in resources.items()
            if actions
        ]
        policies = [{"policyType": "Custom", "entries": entries}]
        subject = f"User:{user}"
        self.asked(_CREATE_ACL, {"subject": subject}, {"subject": subject, "policies": policies})


def password_of(site: Site) -> Path:
    """Where workers find it, as well as the command."""
    return site.folder / "password"


@contextmanager
def started(folder: Path) -> Iterator[Secured]:
    """In a folder of its own, which must not exist."""
    folder.mkdir()
    make_authority(folder, "ca")
    make_authority(folder, "others")
    make_certificate(folder, "server", "ca")
    make_certificate(folder, "mover", "ca")
    make_certificate(folder, "stranger", "others")
    tls = {
        "tls.server.mode": "permissive",
        "tls.test.mode.enable": "false",
        "tls.server.certPath": folder / "server.pem",
        "tls.server.keyPath": folder / "server.key",
        "tls.server.trustCertPath": folder / "ca.pem",
        "tls.server.authClient": "true",
        "tls.server.need.client.auth": "require",
    }
    options = stack.Options(
        well_known_ports=False,
        rocketmq_jvm=("-XX:TieredStopAtLevel=1", *(f"-D{name}={value}" for name, value in tls.items())),
        broker=_access_control(),
    )
    home = folder / ".waybill"
    running = rocketmq_up(home, options)
    broker = f"127.0.0.1:{running.part(stack.BROKER).ports['remoting']}"
    made = Secured(running.name_servers, broker, folder)
    made.add(USER)
    yield made
    end(home)


def _access_control() -> dict[str, str]:
    provider = "org.apache.rocketmq.auth.{0}.provider"
    return {
        "authenticationEnabled": "true",
        "authenticationProvider": provider.format("authentication") + ".DefaultAuthenticationProvider",
        "authenticationMetadataProvider": provider.format("authentication") + ".LocalAuthenticationMetadataProvider",
        "authenticationWhitelist": _RUNTIME_INFO,
        "initAuthenticationUser": json.dumps({"username": ADMIN, "password": ADMIN_SECRET}),
        "innerClientAuthenticationCredentials": json.dumps({"accessKey": ADMIN, "secretKey": ADMIN_SECRET}),
        "authorizationEnabled": "true",
        "authorizationProvider": provider.format("authorization") + ".DefaultAuthorizationProvider",
        "authorizationMetadataProvider": provider.format("authorization") + ".LocalAuthorizationMetadataProvider",
        "authorizationWhitelist": _RUNTIME_INFO,
    }
