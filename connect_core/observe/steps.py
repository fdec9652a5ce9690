"""The named steps of a run, in the order of effects. Each is named once, here; log and tests use the names.

Under WAYBILL_TESTING=1 a test can stop or kill a process exactly at a step: it puts a file named after the step into
the folder `faults` of the home, holding `kill` or `stop`, optionally followed by how often the step is passed first.
Whoever reaches the step takes the file away (so that it happens once), leaves its pid in `STEP.taken`, and sends
itself SIGKILL or SIGSTOP.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from enum import StrEnum
from pathlib import Path

_log = logging.getLogger(__name__)
_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


class Step(StrEnum):
    LEASED = "leased"
    FOUND = "found"
    BEFORE_PLANNED = "before-planned"
    PLANNED = "planned"
    LANE_STARTED = "lane-started"
    RECEIVED = "received"
    BATCH_DURABLE = "batch-durable"
    ACKNOWLEDGED = "acknowledged"
    BATCH_WRITTEN = "batch-written"
    BEFORE_RECEIPT = "before-receipt"
    EXECUTED = "executed"
    SETTLED = "settled"
    CONFIRMED = "confirmed"
    BEFORE_EVOLVED = "before-evolved"
    EVOLVED = "evolved"


def reached(step: Step, *, home: Path, where: str = "") -> None:
    """Called by driver and worker when they get to a step; `where` says of what (connector, task)."""
    _log.debug("%s %s", step, where)
    if os.environ.get("WAYBILL_TESTING") == "1":
        _take_fault(home / "faults" / step)


def _take_fault(fault: Path) -> None:
    """Lets the step pass as often as the file says, then says who is there and sends the signal it names."""
    mine = fault.with_name(f"{fault.name}.{os.getpid()}")
    try:
        fault.rename(mine)  # of several processes that reach the step only one gets the file
    except FileNotFoundError:
        return
    action, _, passes = mine.read_text().partition(" ")
    if left := int(passes or 0):
        mine.write_text(f"{action} {left - 1}")
        mine.rename(fault)
        return
    mine.write_text(str(os.getpid()))
    mine.rename(fault.with_name(f"{fault.name}.taken"))
    # To this thread, not to the process: that could let it go on for a moment, into a transaction, say.
    signal.pthread_kill(threading.get_ident(), _SIGNALS[action.strip()])
