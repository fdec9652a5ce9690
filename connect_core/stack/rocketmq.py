"""Name server and broker of the local stack, started from the published jars on loopback.

The broker's replication (HA) listener binds to all interfaces whatever its settings say; it gets a port of its own that
no client uses, and a firewall is what closes it where that matters. Protocol facts: RocketMQ 5.x, `BrokerStartup` and
`NamesrvStartup`, readiness by `GET_BROKER_CLUSTER_INFO` (106) and `GET_BROKER_RUNTIME_INFO` (28).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from connect_core.stack import archives, jars, java, ports, probe
from connect_core.stack.parts import BROKER, NAME_SERVER, RUNNING, Options, Site, running_if
from connect_core.stack.processes import Launch

SETTINGS = Path(__file__).with_name("settings")
JVM = ("-XX:+UseSerialGC", "-XX:-UsePerfData", "-Dfile.encoding=UTF-8")
# Both would make a key and sign a certificate with each start, for which BouncyCastle's signed jars are checked: more
# than half of the processor time of a start, for a secret that nobody can verify.
_NO_TLS = "-Dtls.server.mode=disabled"
# Early start speed matters more than peak speed for a server that answers a few requests a minute.
NAME_SERVER_JVM = ("-Xms64m", "-Xmx128m", "-XX:MaxDirectMemorySize=128m", "-XX:TieredStopAtLevel=1", _NO_TLS)
# The store deletes unexpired messages above the second ratio and refuses writes above the first.
BROKER_JVM = (
    "-Xms256m",
    "-Xmx512m",
    "-XX:MaxDirectMemorySize=512m",
    "-Drocketmq.broker.diskSpaceWarningLevelRatio=0.99",
    "-Drocketmq.broker.diskSpaceCleanForciblyRatio=0.97",
    _NO_TLS,
)


@dataclass(frozen=True)
class NameServer:
    name: ClassVar[str] = NAME_SERVER
    after: ClassVar[tuple[str, ...]] = ()
    told: ClassVar[tuple[str, ...]] = ()
    well_known: ClassVar[Mapping[str, int]] = {"remoting": 9876}
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    stop_grace_s: ClassVar[float] = 8

    def choose_ports(self, wanted: Mapping[str, int], taken: Set[int]) -> Mapping[str, int]:
        return {"remoting": ports.choose(wanted.get("remoting", 0), taken)}

    def prepare(self, site: Site, report: jars.Report) -> None:
        jars.fetch(site.options.rocketmq_version, report=report)
        _write_settings(_folder(site) / "namesrv.conf", name_server_addresses(site.ports["remoting"]))

    def launch(self, site: Site) -> Launch:
        return _launch(site, self.name, "org.apache.rocketmq.namesrv.NamesrvStartup", NAME_SERVER_JVM, "namesrv.conf")

    def is_ready(self, site: Site, output: str) -> bool:
        return "boot success" in output and self.condition(site) == RUNNING

    def condition(self, site: Site) -> str:
        return running_if(probe.ask(site.ports["remoting"], probe.BROKER_CLUSTER_INFO) is not None)

    def welcome(self, site: Site) -> None:
        """Nothing to do: topics are created by whoever needs them."""

    def version(self, site: Site) -> str:
        return site.options.rocketmq_version

    def facts(self, site: Site) -> Mapping[str, str]:
        return {}


@dataclass(frozen=True)
class Broker:
    name: ClassVar[str] = BROKER
    # A broker that finds no name server when it has started tells it again only ten seconds later.
    after: ClassVar[tuple[str, ...]] = (NAME_SERVER,)
    told: ClassVar[tuple[str, ...]] = (NAME_SERVER,)
    # The broker listens two below `remoting` as well (its fast port, which no setting moves).
    well_known: ClassVar[Mapping[str, int]] = {"remoting": 10911, "replication": 0}
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    stop_grace_s: ClassVar[float] = 30

    def choose_ports(self, wanted: Mapping[str, int], taken: Set[int]) -> Mapping[str, int]:
        remoting = ports.choose(wanted.get("remoting", 0), taken, with_below=2)
        replication = ports.choose(wanted.get("replication", 0), taken | {remoting, remoting - 2})
        return {"remoting": remoting, "replication": replication}

    def prepare(self, site: Site, report: jars.Report) -> None:
        jars.fetch(site.options.rocketmq_version, report=report)
        _write_settings(_folder(site) / "broker.conf", broker_settings(site.options), _broker_places(site))

    def launch(self, site: Site) -> Launch:
        return _launch(site, self.name, "org.apache.rocketmq.broker.BrokerStartup", BROKER_JVM, "broker.conf")

    def is_ready(self, site: Site, output: str) -> bool:
        if "boot success" not in output or self.condition(site) != RUNNING:
            return False
        name_server = site.neighbours[NAME_SERVER]["remoting"]
        known = probe.ask(name_server, probe.BROKER_CLUSTER_INFO) or b""
        if f"127.0.0.1:{site.ports['remoting']}".encode() in known:
            return True
        _announce(site)
        return False

    def condition(self, site: Site) -> str:
        return running_if(probe.ask(site.ports["remoting"], probe.BROKER_RUNTIME_INFO) is not None)

    def welcome(self, site: Site) -> None:
        """Nothing to do."""

    def version(self, site: Site) -> str:
        return site.options.rocketmq_version

    def facts(self, site: Site) -> Mapping[str, str]:
        return {"broker_name": broker_settings(site.options)["brokerName"]}


def settings_of(name: str) -> dict[str, str]:
    """The settings of one shipped properties file."""
    lines = (line.strip() for line in (SETTINGS / name).read_text().splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs}


def broker_settings(options: Options) -> dict[str, str]:
    return settings_of("broker.conf") | dict(options.broker)


def name_server_addresses(port: int) -> dict[str, str]:
    """All settings of the name server: it has no others."""
    return {"bindAddress": "127.0.0.1", "listenPort": str(port)}


def broker_addresses(own: Mapping[str, int], name_server: int) -> dict[str, str]:
    """Where the broker listens and what it tells clients, on loopback. `own`: its ports by purpose."""
    return {
        "namesrvAddr": f"127.0.0.1:{name_server}",
        "brokerIP1": "127.0.0.1",
        "brokerIP2": "127.0.0.1",
        "bindAddress": "127.0.0.1",
        "listenPort": str(own["remoting"]),
        "haListenPort": str(own["replication"]),
    }


def _broker_places(site: Site) -> dict[str, str]:
    store = _folder(site) / "store"
    addresses = broker_addresses(site.ports, site.neighbours[NAME_SERVER]["remoting"])
    return addresses | {"storePathRootDir": str(store), "storePathCommitLog": str(store / "commitlog")}


def _folder(site: Site) -> Path:
    return site.home / "rocketmq"


def _announce(site: Site) -> None:
    """Lets the broker tell the name server that it is there.

    It does so by itself when it starts, but tells nobody where its client has not found the name server by then, which
    is one start in two; its next time is ten seconds later (`BrokerController.start`, `NettyRemotingClient`). A changed
    permission makes it tell at once. It then writes its settings file anew, as it does for any changed setting.
    """
    permission = broker_settings(site.options).get("brokerPermission", "6")
    probe.ask(site.ports["remoting"], probe.UPDATE_BROKER_CONFIG, f"brokerPermission={permission}".encode())


def _write_settings(path: Path, *layers: Mapping[str, str]) -> None:
    """Writes a properties file in which later layers win. A backslash would start an escape there."""
    merged: dict[str, str] = {}
    for layer in layers:
        merged |= layer
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key}={value}\n" for key, value in merged.items()), encoding="utf-8")


def _launch(site: Site, part: str, main_class: str, jvm: tuple[str, ...], settings: str) -> Launch:
    cache = jars.cache_folder()
    folder = _folder(site)
    lib = jars.folder_of(site.options.rocketmq_version, cache)
    command = (
        str(java.find(cache)),
        *jvm,
        *JVM,
        *archives.arguments(lib),
        *site.options.rocketmq_jvm,
        f"-Duser.home={folder}",
        # Netty makes a key and a certificate there; a process that is killed does not take them away.
        f"-Djava.io.tmpdir={folder}",
        f"-Drmq.logback.configurationFile={SETTINGS / 'rmq.logback.xml'}",
        "-cp",
        f"{lib}/*",
        main_class,
        "-c",
        str(folder / settings),
    )
    environment = {**os.environ, "ROCKETMQ_HOME": str(folder)}
    environment.pop("NAMESRV_ADDR", None)  # it would win over the file
    return Launch(command, environment, site.log(part))
