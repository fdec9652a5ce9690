"""A client's session with the resident Spark Connect server, checked to be fit for lanes.

Turns an address into a session: one and the same for all drivers, so that the server keeps one set of workers; never
stopped, because a stopped session can never be used again. Nothing is repeated by this client: no request twice, no
execution taken up again, for a lane that is sent twice would write twice.
"""

from __future__ import annotations

import atexit
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from urllib.parse import urlsplit

from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.session import SparkSession

from connect_core.errors import ConfigError, Fatal, VersionMismatch

SESSION_ID = "6b0f6a2e-7f0d-4c57-9a5e-0d3f5a0b7a11"
USER_ID = "waybill"
"""Of addresses that name no session: one for all clients of a server, since each new one leaves a fork server there."""

_RESTART = "waybill engine stop, then waybill engine start"

_LOCAL_MASTER = re.compile(r"local(?:\[(?:\d+|\*)(?:,\s*(?P<failures>\d+))?\])?")


def place(remote: str) -> str:
    """Host and port of an address: what may be shown of it."""
    parts = urlsplit(remote)
    return f"{parts.hostname}:{parts.port}"


def connected(remote: str) -> SparkSession:
    """A session whose server is of this client's version and tries no task twice.

    Raises VersionMismatch or Fatal when it is not, ConfigError for an address that is none; what the client raises
    when the server does not answer is passed on.
    """
    installed = installed_version()
    session = SparkSession(_channel(remote))
    client = session.client
    client.set_retry_policies([])
    client.disable_reattachable_execute()
    # At its end the process would run one more command on the server and wait for it.
    atexit.unregister(client._cleanup_ml_cache)
    try:
        check_version(session.version, installed, place(remote))
        settings = session.conf
        check_retries(
            settings.get("spark.master"),
            settings.get("spark.task.maxFailures", None),
            settings.get("spark.speculation", "false"),
            place(remote),
        )
    except BaseException:
        client.close()
        raise
    return session


def installed_version() -> str:
    """The one version of pyspark and pyspark-client, which share a folder. Raises VersionMismatch when they differ."""
    return one_version({name: found for name in ("pyspark", "pyspark-client") if (found := _version(name))})


def one_version(versions: Mapping[str, str]) -> str:
    """The version that all of these packages have."""
    if len(set(versions.values())) != 1:
        told = ", ".join(f"{name} {found}" for name, found in versions.items()) or "neither is installed"
        raise VersionMismatch(
            f"pyspark and pyspark-client must be of one version, since they share their files: {told}",
            next_step="pip install both in one version",
        )
    return next(iter(versions.values()))


def check_retries(master: str, max_failures: str | None, speculation: str, where: str) -> None:
    """Raises Fatal when the server would run a lane twice. A local master says itself how often it tries a task
    (once, unless it is local[N,F]); others obey spark.task.maxFailures, 4 when it is not set."""
    local = _LOCAL_MASTER.fullmatch(master)
    tries = int(local["failures"] or 1) if local else int(max_failures or 4)
    if tries > 1:
        raise Fatal(
            f"the engine tries a task {tries} times (master {master}): a lane that is run again writes again",
            where=where,
            next_step="set spark.task.maxFailures=1, and a local master without a second number",
        )
    if speculation == "true":
        raise Fatal("the engine runs tasks twice at once (spark.speculation)", where=where, next_step="set it to false")


def check_version(server: str, installed: str, where: str) -> None:
    """Raises VersionMismatch unless the server runs the release that is installed here."""
    if server != installed:
        raise VersionMismatch(
            f"the engine runs Spark {server}, this client is {installed}", where=where, next_step=_RESTART
        )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _channel(remote: str) -> DefaultChannelBuilder:
    if not remote.startswith("sc://"):
        raise ConfigError(
            "the engine's address does not begin with sc://", next_step="it looks like sc://localhost:15002/;token=…"
        )
    channel = DefaultChannelBuilder(remote)
    # The user is part of a session's identity: all clients must name the same one.
    for name, value in (("session_id", SESSION_ID), ("user_id", USER_ID)):
        channel.set(name, channel.getDefault(name, value))
    return channel
