"""A process that is stopped at a step stands exactly there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

from connect_core.stack import processes
from tests.servers import wait_until_stopped

ROUNDS = 30
CHILD = """
    import os, sys, threading
    from pathlib import Path
    from connect_core.observe import Step, reached

    home, rounds = Path(sys.argv[1]), int(sys.argv[2])
    log = os.open(home / "passed", os.O_WRONLY | os.O_CREAT)

    def work():
        for number in range(rounds):
            (home / "faults" / "executed").write_text("stop 0")
            reached(Step.EXECUTED, home=home)
            os.pwrite(log, b"x", number)

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
"""


def test_the_thread_that_reaches_a_step_does_not_get_past_it(tmp_path: Path) -> None:
    """Nor does the process stop a moment later: a driver's step is reached in a thread of its own."""
    (tmp_path / "faults").mkdir()
    command = [sys.executable, "-c", textwrap.dedent(CHILD), str(tmp_path), str(ROUNDS)]
    passed, taken = tmp_path / "passed", tmp_path / "faults" / "executed.taken"
    with subprocess.Popen(command, env={**os.environ, "WAYBILL_TESTING": "1"}) as child:
        try:
            for number in range(ROUNDS):
                assert processes.wait_until(taken.exists, 20)
                wait_until_stopped(child.pid)
                assert passed.stat().st_size == number
                taken.unlink()
                child.send_signal(signal.SIGCONT)
            assert child.wait(20) == 0
        finally:
            child.kill()
