"""What a part of the local stack is: one server process with its ports, its settings and its proof of being ready.

The kinds are in `rocketmq.py`, `postgresql.py`, `spark_connect.py`, `airflow.py`,
`rest.py` and `mqtt_broker.py`; `lifecycle.py`
starts and stops them and knows nothing of what they are. A kind keeps no state: all of it is in the `Site` it is given
and in the files of the home.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from connect_core.stack import jars
from connect_core.stack.processes import Launch

NAME_SERVER, BROKER, POSTGRESQL, ENGINE = "name-server", "broker", "postgresql", "engine"
MQTT_BROKER, REST = "mqtt-broker", "rest"
RUNNING, NOT_ANSWERING, STARTS_NO_TASKS = "running", "not answering", "starting no tasks"
"""What a part whose process lives may be found to be."""
API_SERVER, SCHEDULER, DAG_PROCESSOR, TRIGGERER = "api-server", "scheduler", "dag-processor", "triggerer"


def running_if(answers: bool) -> str:
    return RUNNING if answers else NOT_ANSWERING


@dataclass(frozen=True)
class Options:
    """How a stack differs from the usual one. Tests use other versions, small limits and free ports only."""

    well_known_ports: bool = True
    rocketmq_version: str = jars.VERSION
    rocketmq_jvm: Sequence[str] = ()
    """More arguments for the Java of name server and broker."""
    broker: Mapping[str, str] = field(default_factory=dict)
    """Settings that replace or extend those of `settings/broker.conf`."""
    postgresql: Mapping[str, str] = field(default_factory=dict)
    engine_jvm: Sequence[str] = ()
    """More arguments for the Java of the engine."""
    engine_slots: int = 32
    """How many lanes may run at once; more than cores, since live lanes mostly wait."""
    airflow: Mapping[str, str] = field(default_factory=dict)
    """Variables (`AIRFLOW__SECTION__KEY`) that replace or extend those of `settings/airflow.env` and
    `settings/airflow-local.env`."""


@dataclass(frozen=True)
class Site:
    """One part of one home: where its files are, its ports by purpose, and the ports of the parts it talks to."""

    home: Path
    ports: Mapping[str, int]
    neighbours: Mapping[str, Mapping[str, int]]
    options: Options

    def log(self, part: str) -> Path:
        return self.home / "logs" / f"{part}.log"


class Kind(Protocol):
    """One kind of server. Methods are called in the order given here; `prepare` and `welcome` may be slow.

    Each runs in a thread of its own beside those of the other parts, once those that it comes after are welcomed.
    """

    @property
    def name(self) -> str: ...
    @property
    def after(self) -> tuple[str, ...]:
        """The parts that must be ready before this one is prepared, and are stopped only when it has ended."""
        ...

    @property
    def told(self) -> tuple[str, ...]:
        """The parts whose ports it is started with: where one of them moves, it has to be started anew."""
        ...

    @property
    def well_known(self) -> Mapping[str, int]:
        """Purpose -> the port that people expect, 0 for any free one."""
        ...

    @property
    def stop_signal(self) -> signal.Signals: ...
    @property
    def stop_grace_s(self) -> float: ...

    def choose_ports(self, wanted: Mapping[str, int], taken: Set[int]) -> Mapping[str, int]:
        """Purpose -> port; those of `wanted` where they are free."""
        ...

    def prepare(self, site: Site, report: jars.Report) -> None:
        """Fetches and writes what the start needs. Idempotent. Nothing of an earlier process is left by then."""
        ...

    def launch(self, site: Site) -> Launch: ...
    def is_ready(self, site: Site, output: str) -> bool:
        """A client's round trip. `output` is what the process has printed since it was started."""
        ...

    def welcome(self, site: Site) -> None:
        """What is done once behind each start, when it is ready: create the database, run the first job."""
        ...

    def condition(self, site: Site) -> str:
        """What a part whose process lives does, by a client's round trip of some seconds at most: RUNNING,
        NOT_ANSWERING or STARTS_NO_TASKS."""
        ...

    def version(self, site: Site) -> str: ...
    def facts(self, site: Site) -> Mapping[str, str]:
        """What clients need to know beside the ports: paths only, never a secret."""
        ...
