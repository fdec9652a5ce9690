"""RocketMQ to RocketMQ with access control 1.0, which brokers have up to 5.3.2: users and rights in a file of theirs.

Such a broker refuses with the code of an inner fault. It knows no right to create: that is for administrators, so the
topics and the user's groups are there before, as the guide says.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from connect_core import stack
from connect_core.errors import Refused
from connect_core.rocketmq import Client, ClientOptions, Credentials
from connect_core.stack import processes
from tests.faults.kit.topics import fill
from tests.servers import end, rocketmq_up
from tests.site import Site

pytestmark = pytest.mark.server

VERSION = "5.2.0"
ADMIN, ADMIN_SECRET = "the-admin", "secret-of-the-admin"
USER, USER_SECRET = "the-mover", "secret-of-the-mover"
ORIGIN, COPY, HIDDEN, GROUP = "acl-origin", "acl-copy", "acl-hidden", "WAYBILL-acl"
BODIES = [b"%d" % number for number in range(200)]
_NOTICED_S = 60.0


@dataclass(frozen=True)
class Broker:
    """One that knows an administrator, and a user who may copy one topic to another."""

    name_servers: str
    rules: Path

    def options(self, credentials: Credentials | None = None) -> ClientOptions:
        return ClientOptions((self.name_servers,), credentials=credentials)

    def guard(self, *, trusted: list[str]) -> None:
        """Writes the rules; addresses that are trusted are not checked."""
        user = {
            "accessKey": USER,
            "secretKey": USER_SECRET,
            "admin": False,
            "defaultTopicPerm": "DENY",
            "defaultGroupPerm": "DENY",
            "topicPerms": [f"{ORIGIN}=SUB", f"{COPY}=PUB|SUB", "WAYBILL_BARRIER=PUB|SUB"],
            "groupPerms": ["WAYBILL=SUB", f"{GROUP}=SUB"],
        }
        admin = {"accessKey": ADMIN, "secretKey": ADMIN_SECRET, "admin": True}
        self.rules.write_text(yaml.safe_dump({"globalWhiteRemoteAddresses": trusted, "accounts": [admin, user]}))

    def checks(self) -> bool:
        """Whether it refuses who says nothing of himself: it looks at the file every few seconds."""
        try:
            with Client(self.options()) as client:
                client.brokers.settings("broker-a")
        except Refused:
            return True
        return False


@pytest.fixture(scope="module")
def broker(worker_folder: Path) -> Iterator[Broker]:
    home = worker_folder / "acl" / ".waybill"
    rules = home / "rocketmq" / "conf" / "plain_acl.yml"
    rules.parent.mkdir(parents=True)
    Broker("", rules).guard(trusted=["127.0.0.1"])  # the stack sees without a name whether it is ready
    options = stack.Options(
        well_known_ports=False,
        rocketmq_version=VERSION,
        rocketmq_jvm=("-XX:TieredStopAtLevel=1",),
        broker={"aclEnable": "true"},
    )
    running = rocketmq_up(home, options)
    made = Broker(running.name_servers, rules)
    fill([running.name_servers], ORIGIN, [BODIES])
    fill([running.name_servers], HIDDEN, [BODIES])
    with Client(made.options()) as client:
        client.topics.create(COPY, 1)
        client.groups.create("WAYBILL")
        client.groups.create(GROUP)
    made.guard(trusted=[])
    assert processes.wait_until(made.checks, _NOTICED_S)
    yield made
    end(home)


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.options(Credentials(ADMIN, ADMIN_SECRET))) as opened:
        yield opened


def connector(site: Site, broker: Broker, name: str, secret: str = USER_SECRET, **differing: Any) -> None:
    (site.folder / "password").write_text(secret)
    user = {"user": USER, "password": f"${{file:{site.folder / 'password'}}}", **differing}
    cluster = {"name_servers": broker.name_servers} | {key: value for key, value in user.items() if key != "topics"}
    cluster = {key: value for key, value in cluster.items() if value is not None}
    site.settings["WAYBILL_ENGINE"] = "inline"
    site.apply(
        name,
        {
            "source": {"rocketmq": {**cluster, "topics": differing.get("topics", ORIGIN), "group": GROUP}},
            "sink": {"rocketmq": {**cluster, "topic": COPY}},
        },
    )


def copied(client: Client) -> list[bytes]:
    return [
        bytes(message.body)
        for queue, bounds in client.offsets.bounds(COPY).items()
        for part in client.read(queue, bounds.begin, bounds.end, deadline=time.monotonic() + 60)
        for message in part.messages
    ]


@pytest.mark.parametrize(
    ("differing", "secret", "told"),
    [
        ({"user": None, "password": None}, USER_SECRET, ("without a user", "accessKey")),
        ({}, "not-the-secret", (f"user {USER}", "signature")),
        ({"user": "nobody-known"}, USER_SECRET, ("user nobody-known", "No acl config")),
        ({"topics": HIDDEN}, USER_SECRET, (f"user {USER}", HIDDEN)),
    ],
    ids=["no credentials", "wrong secret", "unknown user", "no permission"],
)
def test_a_refusal_names_the_user_and_what_was_refused_but_no_secret(
    bare_site: Site, broker: Broker, client: Client, differing: dict[str, Any], secret: str, told: Any
) -> None:
    before = copied(client)
    connector(bare_site, broker, "refused", secret, **differing)
    error = bare_site.waybill("run", "refused", code=6)
    assert all(words in error for words in told), error
    assert secret not in error
    assert copied(client) == before


def test_a_user_with_rights_to_the_topics_moves_everything(bare_site: Site, broker: Broker, client: Client) -> None:
    connector(bare_site, broker, "allowed")
    bare_site.waybill("run", "allowed")
    assert copied(client) == BODIES
    assert client.groups.committed(GROUP, client.topics.read_queues(ORIGIN)[0]) == len(BODIES)


def test_topics_of_workers_are_read_with_their_keys_and_every_record_that_is_none_is_named(
    bare_site: Site, broker: Broker
) -> None:
    site, secret = bare_site, bare_site.folder / "secret"
    secret.write_text(USER_SECRET)
    topics = ("--config-topic", ORIGIN, "--position-topic", ORIGIN)
    words = ("import", "rocketmq-connect", "--namesrv", broker.name_servers, *topics)
    signed = (*words, "--access-key", USER, "--secret-key", f"${{file:{secret}}}")
    told = site.json(*signed)
    assert told["connectors"] == []
    for kind in ("its key", "the position of which connector it is"):
        named = [one.partition(":")[0] for one in told["lacking"] if f": {kind}" in one]
        assert named == [f"{ORIGIN}/broker-a/0 at {number}" for number in range(len(BODIES))]
    secret.write_text("not-the-secret")
    refused = site.waybill(*signed, code=6)
    assert USER in refused
    assert "not-the-secret" not in refused
    assert "in plain text" in site.waybill(*words, "--access-key", USER, "--secret-key", USER_SECRET, code=2)
