"""RocketMQ to RocketMQ over TLS, with credentials: certificates of our own authority, access control 2.0.

The servers of this module take plain text as well, which is how the stack sees that they are ready: a connector that
fell back to it would succeed where it has to fail.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from connect_core import stack
from connect_core.rocketmq import Client, ClientOptions, Credentials, encode_batch
from connect_core.rocketmq.channel import Channel
from connect_core.rocketmq.connection import Purpose
from connect_core.rocketmq.wire.header import Command
from tests.site import Site

pytestmark = pytest.mark.server

ADMIN, ADMIN_SECRET = "admin", "secret-of-the-admin"
USER, USER_SECRET = "mover", "secret-of-the-mover"
BODIES = [b"%d" % number for number in range(200)]
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

    def ends(self, site: Site, **differing: Any) -> dict[str, Any]:
        """Both ends of a document that is allowed to copy the site's topic, but for what differs."""
        reached = {
            "name_servers": self.name_servers,
            "user": USER,
            "password": f"${{file:{_password(site)}}}",
            "tls": True,
            "tls_ca": self.pem("ca"),
            "tls_certificate": self.pem("mover"),
            "tls_key": self.key("mover"),
            **differing,
        }
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

    def allow(self, user: str, **resources: list[str]) -> None:
        """What a user may do with each resource, written `Topic_name` and `Group_name`."""
        entries = [
            {"resource": name.replace("_", ":", 1), "actions": actions, "sourceIps": [], "decision": "Allow"}
            for name, actions in resources.items()
        ]
        policies = [{"policyType": "Custom", "entries": entries}]
        subject = f"User:{user}"
        self.asked(_CREATE_ACL, {"subject": subject}, {"subject": subject, "policies": policies})


def _password(site: Site) -> Path:
    """Where workers find it, as well as the command."""
    return site.folder / "password"


@pytest.fixture(scope="module")
def secured(worker_folder: Path) -> Iterator[Secured]:
    folder = worker_folder / "secured"
    folder.mkdir()
    _authority(folder, "ca")
    _authority(folder, "others")
    _certificate(folder, "server", "ca")
    _certificate(folder, "mover", "ca")
    _certificate(folder, "stranger", "others")
    tls = {
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
    running = stack.up(home, parts=(stack.NAME_SERVER, stack.BROKER), supervise=False, options=options)
    broker = f"127.0.0.1:{running.part(stack.BROKER).ports['remoting']}"
    made = Secured(running.name_servers, broker, folder)
    made.asked(
        _CREATE_USER,
        {"username": USER},
        {"username": USER, "password": USER_SECRET, "userType": "Normal", "userStatus": "enable"},
    )
    yield made
    stack.down(home)


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


def _authority(folder: Path, name: str) -> None:
    _openssl(folder, "req", "-x509", *_NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")


def _certificate(folder: Path, name: str, authority: str) -> None:
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1")
    _openssl(folder, "req", *_NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
    signing = ("-CA", f"{authority}.pem", "-CAkey", f"{authority}.key", "-CAcreateserial", "-extfile", "san")
    _openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", "-days", "2", *signing)


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")


def _openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def client(secured: Secured) -> Iterator[Client]:
    with Client(secured.options(ADMIN, ADMIN_SECRET)) as opened:
        yield opened


@pytest.fixture
def source(site: Site, client: Client) -> str:
    """A topic with some messages, of which the user of the connector may know nothing yet."""
    _password(site).write_text(USER_SECRET)
    client.topics.create(site.topic, 1)
    client.topics.create(f"{site.topic}-copy", 1)
    (queue,) = client.topics.write_queues(site.topic)
    sender = client.sender(queue)
    sender.submit(encode_batch(BODIES, [b""] * len(BODIES)), deadline=time.monotonic() + 10)
    sender.finish(deadline=time.monotonic() + 10)
    return site.topic


def allow_all(secured: Secured, source: str) -> None:
    """What the guide lists."""
    secured.allow(
        USER,
        **{
            f"Topic_{source}": ["Sub", "Get"],
            f"Topic_{source}-copy": ["Pub", "Sub", "Get"],
            "Topic_WAYBILL_BARRIER": ["Pub", "Sub", "Get", "Create"],
            "Group_WAYBILL*": ["Sub", "Get", "Create", "Update"],
        },
    )


def test_the_right_to_create_is_what_a_missing_target_needs_besides(
    site: Site, secured: Secured, client: Client, source: str
) -> None:
    allow_all(secured, source)
    missing = f"{source}-missing"
    document = secured.ends(site)
    document["sink"]["rocketmq"] |= {"topic": missing}
    secured.allow(USER, **{f"Topic_{missing}": ["Pub", "Sub", "Get"]})
    site.apply("creating", document)
    error = site.waybill("run", "creating", code=6)
    assert all(words in error for words in (f"user {USER}", "no permission", missing)), error
    assert USER_SECRET not in error
    assert not client.topics.exists(missing)

    secured.allow(USER, **{f"Topic_{missing}": ["Pub", "Sub", "Get", "Create"]})
    site.waybill("run", "creating")
    assert bodies(client, missing) == BODIES


@pytest.fixture
def spark(spark_remote: str) -> Any:
    from connect_core.engine.spark_session import connected
    from connect_core.spark import RocketMQDataSource

    session = connected(spark_remote)
    session.dataSource.register(RocketMQDataSource)
    return session


def test_the_data_source_reads_and_appends_with_the_same_rights_and_tells_who_is_refused(
    site: Site, secured: Secured, client: Client, source: str, spark: Any
) -> None:
    allow_all(secured, source)
    reached = secured.ends(site)["sink"]["rocketmq"]
    options = {name: str(value).lower() if value is True else value for name, value in reached.items()}
    cluster = {name: value for name, value in options.items() if name != "topic"}

    def read(**differing: str) -> Any:
        return spark.read.format("rocketmq").options(**{**cluster, **differing}).option("topics", source).load()

    appended = read().select("value").write.format("rocketmq").options(**cluster)
    appended.option("topic", f"{source}-copy").mode("append").save()
    assert sorted(bodies(client, f"{source}-copy")) == sorted(BODIES)

    _password(site).write_text("not-the-secret")
    with pytest.raises(Exception, match=f"user {USER}") as refused:
        read().collect()
    assert "not-the-secret" not in str(refused.value)
    _password(site).write_text(USER_SECRET)
    missing = read().select("value").write.format("rocketmq").options(**cluster)
    with pytest.raises(Exception, match=f"{source}-missing") as refused:
        missing.option("topic", f"{source}-missing").option("create", "true").mode("append").save()
    assert "no permission" in str(refused.value)
    assert USER_SECRET not in str(refused.value)


def bodies(client: Client, topic: str) -> list[bytes]:
    found: list[bytes] = []
    for queue, bounds in client.offsets.bounds(topic).items():
        for part in client.read(queue, bounds.begin, bounds.end, deadline=time.monotonic() + 60):
            found += [bytes(message.body) for message in part.messages]
    return found


def test_a_user_with_the_documented_rights_moves_everything(
    site: Site, secured: Secured, client: Client, source: str
) -> None:
    allow_all(secured, source)
    site.apply("secured", secured.ends(site))
    site.waybill("check", "secured.yaml", "--probe")
    site.waybill("run", "secured")
    assert bodies(client, f"{source}-copy") == BODIES
    group = f"WAYBILL-{site.json('connectors', 'show', 'secured')['uid']}"
    assert client.groups.committed(group, client.topics.read_queues(source)[0]) == len(BODIES)


@pytest.mark.parametrize(
    ("differing", "secret", "told"),
    [
        ({"user": None, "password": None}, USER_SECRET, ("without a user",)),
        ({}, "not-the-secret", ("user mover", "signature")),
        ({"user": "nobody"}, USER_SECRET, ("user nobody", "not found")),
        ({}, USER_SECRET, ("user mover", "no permission")),
    ],
    ids=["no credentials", "wrong secret", "unknown user", "no permission"],
)
def test_a_refusal_names_the_user_and_what_was_refused_but_no_secret(
    site: Site, secured: Secured, client: Client, source: str, differing: dict[str, Any], secret: str, told: Any
) -> None:
    _password(site).write_text(secret)
    site.apply("refused", secured.ends(site, **differing))
    error = site.waybill("run", "refused", code=6)
    assert all(words in error for words in (*told, source)), error
    assert secret not in error
    assert bodies(client, f"{source}-copy") == []


@pytest.mark.parametrize(
    ("differing", "told"),
    [
        ({"tls_ca": None}, "certificate verify failed"),
        ({"tls_server_name": "rocketmq.internal"}, "rocketmq.internal"),
        ({"tls_certificate": None, "tls_key": None}, "certificate"),
        ({"tls_certificate": "stranger", "tls_key": "stranger"}, "certificate"),
    ],
    ids=["unknown authority", "another name", "no client certificate", "a stranger's certificate"],
)
def test_tls_that_fails_is_told_and_nothing_is_tried_in_plain_text(
    site: Site, secured: Secured, client: Client, source: str, differing: dict[str, Any], told: str
) -> None:
    allow_all(secured, source)
    if differing.get("tls_key") == "stranger":
        differing = {"tls_certificate": secured.pem("stranger"), "tls_key": secured.key("stranger")}
    site.apply("untrusted", secured.ends(site, **differing))
    error = site.waybill("run", "untrusted", code=3)
    assert told in error, error
    assert bodies(client, f"{source}-copy") == []
