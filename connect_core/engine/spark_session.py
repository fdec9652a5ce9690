"""A client's session with the resident Spark Connect server, checked to be fit for lanes.

Turns an address into a session: one and the same for all drivers, so that the server keeps one set of workers; never
stopped, because a stopped session can never be used again. Nothing is repeated by this client: no request twice, no
execution taken up again, for a lane that is sent twice would write twice.
"""

from __future__ import annotations

import atexit
from urllib.parse import urlsplit

from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.session import SparkSession

from connect_core.engine.spark_checks import check_retries, check_version, installed_version
from connect_core.errors import ConfigError

SESSION_ID = "6b0f6a2e-7f0d-4c57-9a5e-0d3f5a0b7a11"
USER_ID = "waybill"
"""Of addresses that name no session: one for all clients of a server, since each new one leaves a fork server there."""


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


def _channel(remote: str) -> DefaultChannelBuilder:
    if not remote.startswith("sc://"):
        raise ConfigError(
            "The engine's address does not begin with sc://", next_step="It looks like sc://localhost:15002/;token=…"
        )
    channel = DefaultChannelBuilder(remote)
    # The user is part of a session's identity: all clients must name the same one.
    for name, value in (("session_id", SESSION_ID), ("user_id", USER_ID)):
        channel.set(name, channel.getDefault(name, value))
    return channel
