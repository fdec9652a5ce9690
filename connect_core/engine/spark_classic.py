"""Lanes as tasks of the classic Spark that this process is the driver of: what spark-submit started.

The same functions and envelopes as with the resident server. Opened before anything is planned: then executors are
there, on this host, and run the code that this driver runs. Lives as long as its process.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from connect_core.engine import spark_classic_errors, spark_task, submit
from connect_core.engine.dialling import LOOPBACK
from connect_core.engine.naming import described
from connect_core.engine.spark_checks import check_private, check_retries, check_version, installed_version
from connect_core.engine.spark_jobs import SparkJobs
from connect_core.errors import Fatal, Unreachable, VersionMismatch, WaybillError
from connect_core.replication.host import boot_id
from connect_core.version import code_version, plugin_versions

EXECUTORS_LIMIT_S = 90.0
"""For a cluster to start executors and their first Python workers."""

_MASTER_LIMIT_S = 5.0


class SparkClassicEngine(SparkJobs):
    """The engine of kind "submit"; threads may share it."""

    looked_at = "Look at the master's page and the executors' logs"

    def __init__(self, limit_s: float = EXECUTORS_LIMIT_S, log: Path | None = None, driver_address: str = "") -> None:
        """`driver_address` is that of this host at which workers on others reach it; empty: none are to."""
        self.log = log
        self.address = driver_address or LOOPBACK
        self.where = "Spark of this process"
        self._limit_s = limit_s
        self._session: Any = None
        self._opening = threading.Lock()

    @property
    def described(self) -> str:
        return described("submit", installed_version())

    def open(self, lanes: int) -> None:
        """Starts Spark and asks as many workers as there are lanes who they are. Raises Unreachable or EngineFailed
        when they do not come, Fatal or VersionMismatch when they are not fit for lanes."""
        session = self.session()
        self.where = session.sparkContext.master
        for answer in self.answers(spark_task.places, [b""] * lanes, self._limit_s):
            place = json.loads(answer)
            self.elsewhere |= place["boot_id"] != boot_id()
            _check(place, self.where, other_hosts=self.address != LOOPBACK)
        if self.elsewhere:
            self.require_private()

    def require_private(self) -> None:
        check_private(dict(self.session().sparkContext.getConf().getAll()), self.where)

    def session(self) -> Any:
        with self._opening:
            if self._session is None:
                self._session = _opened()
            return self._session

    def tag(self, session: Any, tag: str) -> None:
        session.sparkContext.addJobTag(tag)

    def cancel(self, session: Any, tag: str) -> None:
        session.sparkContext.cancelJobsWithTag(tag)

    def cut(self) -> None:
        """There is no other Spark to take: what hangs in it ends with this process."""

    def translated(self, error: Exception, sent: bool) -> WaybillError:
        return spark_classic_errors.translated(error, sent=sent, where=self.where)


def _opened() -> Any:
    installed = installed_version()
    builder = SparkSession.builder.appName("waybill")
    for name, value in submit.lane_settings().items():
        builder = builder.config(name, value)
    # Against a standalone master that is not there Spark itself gives up after a minute.
    SparkContext._ensure_initialized()
    _check_answers(SparkConf().get("spark.master", ""))
    session = builder.getOrCreate()
    settings = session.sparkContext.getConf()
    master = session.sparkContext.master
    check_version(session.version, installed, master, mend="Start it with the spark-submit of this Python's pyspark")
    check_retries(master, settings.get("spark.task.maxFailures"), settings.get("spark.speculation", "false"), master)
    return session


def _check_answers(master: str) -> None:
    """Raises Unreachable when none of the standalone masters of this address does."""
    if not master.startswith("spark://"):
        return
    for one in master.removeprefix("spark://").split(","):
        host, _, port = one.rpartition(":")
        with contextlib.suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), _MASTER_LIMIT_S):
            return
    raise Unreachable("The Spark master does not answer", where=master, next_step="Start it, or name another")


def _check(place: Mapping[str, Any], where: str, *, other_hosts: bool) -> None:
    """Raises what keeps a worker from working through a lane of this driver, which `other_hosts` reach or not."""
    if place["boot_id"] != boot_id() and not other_hosts:
        raise Fatal(
            "An executor runs on another host than the driver, which listens on this host alone",
            where=where,
            next_step="Set WAYBILL_DRIVER_ADDRESS to the address at which other hosts reach this one",
        )
    if place["code"] != code_version():
        raise VersionMismatch(
            f"The executors on {place['host']} run other code ({place['code']}) than the driver ({code_version()})",
            where=where,
            next_step="Install the same release of waybill for their Python",
        )
    if place["plugins"] != (ours := plugin_versions()):
        raise VersionMismatch(
            f"The executors on {place['host']} have other plug-ins ({_listed(place['plugins'])}) than the driver "
            f"({_listed(ours)})",
            where=where,
            next_step="Install the same packages for their Python",
        )


def _listed(plugins: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {package}" for name, package in sorted(plugins.items())) or "none"
