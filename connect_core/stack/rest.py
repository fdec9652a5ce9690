"""The server of REST calls, `waybill serve`, as a part of the stack. It takes the calls of RocketMQ Connect as scripts
make them, changes by GET among them: the stack is of one person, on the loopback interface of one machine.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from connect_core import __version__
from connect_core.stack import jars, ports
from connect_core.stack.http_answers import answers
from connect_core.stack.parts import POSTGRESQL, REST, RUNNING, Site, running_if
from connect_core.stack.processes import Launch

_START = "from connect_core.cli import main; main()"
_NICENESS = 10
"""Who asks much must not hold up what moves records: on two processors, beside 500 calls/s, schedules began 7 s late at
the worst without it, 4 s with it, and 2 s with no call at all."""


@dataclass(frozen=True)
class Rest:
    name: ClassVar[str] = REST
    after: ClassVar[tuple[str, ...]] = (POSTGRESQL,)
    told: ClassVar[tuple[str, ...]] = ()
    well_known: ClassVar[Mapping[str, int]] = {"http": 8082}
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    stop_grace_s: ClassVar[float] = 5

    def choose_ports(self, wanted: Mapping[str, int], taken: Set[int]) -> Mapping[str, int]:
        return {"http": ports.choose(wanted.get("http", 0), taken)}

    def prepare(self, site: Site, report: jars.Report) -> None:
        """Nothing to do."""

    def launch(self, site: Site) -> Launch:
        stands = ("/usr/bin/env", f"--chdir={site.home}", "/usr/bin/nice", "-n", str(_NICENESS))
        serve = ("serve", "--port", str(site.ports["http"]), "--gets-change")
        ours = {"WAYBILL_HOME": str(site.home), "PYTHONPATH": str(Path(__file__).parents[2])}
        return Launch((*stands, sys.executable, "-P", "-c", _START, *serve), os.environ | ours, site.log(self.name))

    def is_ready(self, site: Site, output: str) -> bool:
        return self.condition(site) == RUNNING

    def condition(self, site: Site) -> str:
        """It answers without the ledger, which the stack makes only when its parts run."""
        return running_if(answers(site.ports["http"], "/plugin/list"))

    def welcome(self, site: Site) -> None:
        """Nothing to do."""

    def version(self, site: Site) -> str:
        return __version__

    def facts(self, site: Site) -> Mapping[str, str]:
        return {}
