"""An MQTT broker for trying things out, a part of the stack that is started when it is asked for: Mosquitto where this
machine has it, else HiveMQ CE from published jars. Loopback only, everybody may connect.

Sources: mosquitto.conf(5); HiveMQ CE's embedded API and its `config.xml`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from connect_core.stack import archives, jars, java, ports
from connect_core.stack.parts import MQTT_BROKER, NOT_ANSWERING, RUNNING, Site, running_if
from connect_core.stack.processes import Launch
from connect_core.stack.rocketmq import SETTINGS, settings_of

HIVEMQ = "hivemq-2025.5"
HIVEMQ_JVM = ("-Xms96m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_CONNECT = b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x0a\x00\x00"
"""MQTT 3.1.1, a session that ends with the connection, no name of our own: [MQTT-3.1]."""
_CONNACK = b"\x20\x02\x00\x00"
_TIMEOUT_S = 2.0
_MANY = 1_000_000_000
"""Messages that wait for a client that is away. HiveMQ CE has no word for "no limit", and drops silently what comes
beyond 1,000 unless it is told otherwise."""


@dataclass(frozen=True)
class MqttBroker:
    name: ClassVar[str] = MQTT_BROKER
    after: ClassVar[tuple[str, ...]] = ()
    told: ClassVar[tuple[str, ...]] = ()
    well_known: ClassVar[Mapping[str, int]] = {"mqtt": 1883}
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    stop_grace_s: ClassVar[float] = 10

    def choose_ports(self, wanted: Mapping[str, int], taken: Set[int]) -> Mapping[str, int]:
        return {"mqtt": ports.choose(wanted.get("mqtt", 0), taken)}

    def prepare(self, site: Site, report: jars.Report) -> None:
        folder = _folder(site)
        folder.mkdir(parents=True, exist_ok=True)
        if program() is None:
            report("Mosquitto is not installed here: taking HiveMQ CE from its published jars")
            jars.fetch(HIVEMQ, report=report)
            prepare_hivemq(folder, site.ports["mqtt"])
        else:
            (folder / "mosquitto.conf").write_text(mosquitto_document(folder, site.ports["mqtt"]))

    def launch(self, site: Site) -> Launch:
        mosquitto = program()
        folder = _folder(site)
        command = (mosquitto, "-c", str(folder / "mosquitto.conf")) if mosquitto else hivemq_command(folder)
        return Launch(command, dict(os.environ), site.log(self.name))

    def is_ready(self, site: Site, output: str) -> bool:
        return self.condition(site) == RUNNING

    def condition(self, site: Site) -> str:
        """A port is open before its broker is ready: only the answer to a client tells."""
        try:
            with socket.create_connection(("127.0.0.1", site.ports["mqtt"]), timeout=_TIMEOUT_S) as connection:
                connection.sendall(_CONNECT)
                return running_if(connection.recv(len(_CONNACK)) == _CONNACK)
        except OSError:
            return NOT_ANSWERING

    def welcome(self, site: Site) -> None:
        """Nothing to do."""

    def version(self, site: Site) -> str:
        mosquitto = program()
        return mosquitto_version(mosquitto) if mosquitto else HIVEMQ

    def facts(self, site: Site) -> Mapping[str, str]:
        return {}


def program() -> str | None:
    """Mosquitto, if it is installed. Debian has it where only root looks."""
    return shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def mosquitto_version(mosquitto: str) -> str:
    said = subprocess.run([mosquitto, "-h"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"mosquitto version (\S+)", said)
    return f"mosquitto-{found[1]}" if found else "mosquitto"


def mosquitto_document(folder: Path, port: int, changed: Mapping[str, str] | None = None, listeners: str = "") -> str:
    """Its configuration: the shipped settings, those that are `changed`, one open listener on `port`, and more
    `listeners`. As root it would give itself another account, which could not write here."""
    settings = settings_of("mosquitto.conf") | dict(changed or {})
    allowed = settings.pop("allow_anonymous")
    settings |= {"persistence_location": f"{folder}/", "user": "root", "per_listener_settings": "true"}
    lines = [f"{name} {value}" for name, value in settings.items()]
    return "\n".join([*lines, f"listener {port} 127.0.0.1", f"allow_anonymous {allowed}", listeners, ""])


def prepare_hivemq(folder: Path, port: int, listeners: str = "") -> None:
    """The folders that it wants, and its configuration; `listeners` are more of them, in its XML."""
    for name in ("conf", "data", "extensions"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "conf" / "config.xml").write_text(
        f'<?xml version="1.0"?><hivemq><listeners><tcp-listener><port>{port}</port>'
        f"<bind-address>127.0.0.1</bind-address></tcp-listener>{listeners}</listeners>"
        f"<mqtt><queued-messages><max-queue-size>{_MANY}</max-queue-size></queued-messages></mqtt>"
        "<anonymous-usage-statistics><enabled>false</enabled></anonymous-usage-statistics></hivemq>\n"
    )


def hivemq_command(folder: Path) -> tuple[str, ...]:
    """Its server class lets nobody in without an extension, so its embedded form is started from a source file."""
    cache = jars.cache_folder()
    lib = jars.folder_of(HIVEMQ, cache)
    jvm = (str(java.find(cache)), *HIVEMQ_JVM, *archives.arguments(lib), f"-Djava.io.tmpdir={folder}")
    return (*jvm, "-cp", f"{lib}/*", str(SETTINGS / "HiveMQ.java"), str(folder))


def _folder(site: Site) -> Path:
    return site.home / "mqtt"
