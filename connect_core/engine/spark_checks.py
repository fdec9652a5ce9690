"""Whether a Spark, resident or classic, is fit for lanes: of one version with its client, and no task is tried twice.

Pure but for the look at what is installed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from connect_core.errors import Fatal, VersionMismatch

_RESTART = "Run `waybill engine stop`, then `waybill engine start`"

_LOCAL_MASTER = re.compile(r"local(?:\[(?:\d+|\*)(?:,\s*(?P<failures>\d+))?\])?")


def installed_version() -> str:
    """The one version of pyspark and pyspark-client, which share a folder. Raises VersionMismatch when they differ."""
    return one_version({name: found for name in ("pyspark", "pyspark-client") if (found := _version(name))})


def one_version(versions: Mapping[str, str]) -> str:
    """The version that all of these packages have."""
    if len(set(versions.values())) != 1:
        told = ", ".join(f"{name} {found}" for name, found in versions.items()) or "neither is installed"
        raise VersionMismatch(
            f"pyspark and pyspark-client must be of one version, since they share their files: {told}",
            next_step="Install both with pip in one version",
        )
    return next(iter(versions.values()))


def check_retries(master: str, max_failures: str | None, speculation: str, where: str) -> None:
    """Raises Fatal when the server would run a lane twice. A local master says itself how often it tries a task
    (once, unless it is local[N,F]); others obey spark.task.maxFailures, 4 when it is not set."""
    local = _LOCAL_MASTER.fullmatch(master)
    tries = int(local["failures"] or 1) if local else int(max_failures or 4)
    if tries > 1:
        raise Fatal(
            f"The engine tries a task {tries} times (master {master}): a lane that is run again writes again",
            where=where,
            next_step="Set spark.task.maxFailures=1, and a local master without a second number",
        )
    if speculation == "true":
        raise Fatal("The engine runs tasks twice at once (spark.speculation)", where=where, next_step="Set it to false")


def check_private(settings: Mapping[str, str], where: str) -> None:
    """Raises Fatal when Spark's own connections to other hosts can be read on the way: they carry searches, with what
    an Airflow connection stands for in them, and the invitations to dial the driver. Either of two ways will do, both
    with a secret that all processes share (Spark's page on security)."""
    encrypted = any(settings.get(name) == "true" for name in ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled"))
    if not encrypted or settings.get("spark.authenticate") != "true":
        raise Fatal(
            "Executors are on other hosts, and Spark's connections to them are not encrypted",
            where=where,
            next_step="Set spark.authenticate, spark.authenticate.secret and spark.network.crypto.enabled in the"
            " spark-defaults.conf of all hosts",
        )


def check_version(server: str, installed: str, where: str, mend: str = _RESTART) -> None:
    """Raises VersionMismatch unless the server runs the release that is installed here."""
    if server != installed:
        raise VersionMismatch(
            f"The engine runs Spark {server}, this client is {installed}", where=where, next_step=mend
        )


def check_asked_for(wanted: str) -> None:
    """Raises VersionMismatch unless the release that is installed here is the one that an engine names."""
    installed = installed_version()
    if installed != wanted:
        raise VersionMismatch(
            f"The engine requires Spark {wanted}, but Spark {installed} is installed",
            next_step="Name another interpreter in the engine's file (conf/engines), or install that release",
        )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
