"""RocketMQ to RocketMQ over TLS, with credentials: certificates of our own authority, access control 2.0.

The servers of this module take plain text as well, which is how the stack sees that they are ready: a connector that
fell back to it would succeed where it has to fail.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect_core.errors import Refused
from connect_core.rocketmq import Client, encode_batch
from connect_core.sdk.sink import Scan
from connect_core.sdk.testing.driving import UID, Follower
from connect_core.sdk.values import Attempt
from connect_core.service.probing import probe_side
from connect_core.systems.rocketmq.options import RocketMQSinkOptions, RocketMQSourceOptions
from connect_core.systems.rocketmq.sink import RocketMQSink
from connect_core.systems.rocketmq.source import RocketMQSource
from connect_core.work import Side
from tests.site import Site
from tests.system.replication.secured import ADMIN, ADMIN_SECRET, USER, USER_SECRET, Secured, password_of, started
from tests.unit.systems.driving import Filler

pytestmark = pytest.mark.server

PAGE = Path(__file__).parents[3] / "docs" / "migrate-a-cluster.md"
BODIES = [b"%d" % number for number in range(200)]


@pytest.fixture(scope="module")
def secured(worker_folder: Path) -> Iterator[Secured]:
    with started(worker_folder / "secured") as made:
        yield made


@pytest.fixture
def client(secured: Secured) -> Iterator[Client]:
    with Client(secured.options(ADMIN, ADMIN_SECRET)) as opened:
        yield opened


@pytest.fixture
def source(site: Site, client: Client) -> str:
    """A topic with some messages, of which the user of the connector may know nothing yet."""
    password_of(site).write_text(USER_SECRET)
    client.topics.create(site.topic, 1)
    client.topics.create(f"{site.topic}-copy", 1)
    (queue,) = client.topics.write_queues(site.topic)
    sender = client.sender(queue)
    sender.submit(encode_batch(BODIES, [b""] * len(BODIES)), deadline=time.monotonic() + 10)
    sender.finish(deadline=time.monotonic() + 10)
    return site.topic


READ, WRITTEN, BARRIER, GROUPS = (
    "each topic that is read",
    "each topic that is written",
    "`Topic:WAYBILL_BARRIER` in the target",
    "`Group:WAYBILL*`",
)
"""The resources of the page's table, as they are written there."""


def listed() -> dict[str, list[str]]:
    """What the page lists, by resource."""
    table = PAGE.read_text().partition("| resource | actions | for |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines()[2:]]
    return {resource.strip(): re.findall(r"`(\w+)`", actions) for resource, actions in rows}


def named(source: str) -> dict[str, str]:
    """How RocketMQ names these resources."""
    topics = {READ: f"Topic:{source}", WRITTEN: f"Topic:{source}-copy", BARRIER: "Topic:WAYBILL_BARRIER"}
    return {**topics, GROUPS: "Group:WAYBILL*"}


def allow_all(secured: Secured, source: str, user: str = USER, but: tuple[str, str] = ("", "")) -> None:
    """What the page lists, but for one action on one resource."""
    names = named(source)
    wanted = {place: [one for one in actions if (place, one) != but] for place, actions in listed().items()}
    secured.allow(user, {names[place]: actions for place, actions in wanted.items()})


def test_the_right_to_create_is_what_a_missing_target_needs_besides(
    site: Site, secured: Secured, client: Client, source: str
) -> None:
    allow_all(secured, source)
    missing = f"{source}-missing"
    document = secured.ends(site)
    document["sink"]["rocketmq"] |= {"topic": missing}
    secured.allow(USER, {f"Topic:{missing}": ["Pub", "Sub", "Get"]})
    site.apply("creating", document)
    error = site.waybill("run", "creating", code=6)
    assert all(words in error for words in (f"user {USER}", "no permission", missing)), error
    assert USER_SECRET not in error
    assert not client.topics.exists(missing)

    secured.allow(USER, {f"Topic:{missing}": ["Pub", "Sub", "Get", "Create"]})
    site.waybill("run", "creating")
    assert bodies(client, missing) == BODIES


@pytest.fixture
def spark(spark_remote: str) -> Any:
    from connect_core.engine.spark_session import connected
    from connect_core.spark import RocketMQDataSource

    # One of its own: other tests register the same name in the one that all share, maybe at this moment.
    session = connected(f"{spark_remote};session_id={uuid.uuid4()}")
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

    password_of(site).write_text("not-the-secret")
    with pytest.raises(Exception, match=f"user {USER}") as refused:
        read().collect()
    assert "not-the-secret" not in str(refused.value)
    password_of(site).write_text(USER_SECRET)
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
    ("place", "right"),
    [pytest.param(place, one, id=f"{place}, {one}") for place, several in listed().items() for one in several],
)
def test_who_lacks_one_right_of_those_listed_is_told_the_resource(
    site: Site, secured: Secured, client: Client, source: str, place: str, right: str
) -> None:
    """Each right by itself, where topics may be missing: so none is listed that is not needed."""
    user, resource = f"user-{site.topic}", named(source)[place]
    if place == BARRIER or (place, right) == (WRITTEN, "Create"):
        client.topics.delete(resource.partition(":")[2])
    secured.add(user)
    allow_all(secured, source, user, but=(place, right))
    cluster = secured.reached(user, USER_SECRET)
    if place == BARRIER:
        moved(cluster, source)
        seen = probe_side("sink", Side("rocketmq", {**cluster, "topic": f"{source}-copy"}))
        (told,) = [str(one["what"]) for one in seen if not one["ok"]]
        assert "at least once" in told
    else:
        with pytest.raises(Refused) as refused:
            moved(cluster, source)
        told = str(refused.value)
    assert f"user {user}" in told
    assert resource.rstrip("*") in told
    assert USER_SECRET not in told


def test_with_all_rights_the_probe_says_that_it_is_exactly_once(secured: Secured, source: str) -> None:
    allow_all(secured, source)
    cluster = secured.reached(USER, USER_SECRET)
    moved(cluster, source)
    seen = probe_side("sink", Side("rocketmq", {**cluster, "topic": f"{source}-copy"}))
    assert all(one["ok"] for one in seen)
    assert any("exactly once" in one["what"] for one in seen)


def moved(cluster: dict[str, Any], source: str) -> None:
    """What a run does at both ends, the look at what is there and the telling of lag tools included."""
    reader = RocketMQSource(RocketMQSourceOptions(**cluster, topics=(source,), group=f"WAYBILL-{source}"))
    follower = Follower(reader)
    values = follower.run()
    sink = RocketMQSink(RocketMQSinkOptions(**cluster, topic=f"{source}-copy", queues=1))
    filler = Filler(sink)
    planned = filler.plan()
    assert filler.write(planned, [*values]).records == len(BODIES)
    assert sink.scan(Scan(Attempt(UID, 1), (planned,), 10.0))[planned.id].complete
    reader.commit_offsets({partition: at for partition, at in follower.positions.items() if at})


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
    password_of(site).write_text(secret)
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
