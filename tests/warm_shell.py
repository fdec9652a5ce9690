"""`waybill` for the shells of pages: each command that a script types is forked by the server of `tests.warm`.

A page types dozens of them, and each would spend four fifths of its time on the start of an interpreter. What is put on
the PATH asks this process of the tests for one, hands over its streams, and ends as the command does.

    with waybill_for_shells(folder) as place:
        subprocess.run(["bash", "-c", "waybill status"], env={**os.environ, "PATH": f"{place}:{os.environ['PATH']}"})
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from tests import warm

_MOST_BYTES = 1 << 20
_ASKS = """#!{python} -IS
import json, os, socket, sys
line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
line.connect("\\0" + {address!r})
socket.send_fds(line, [json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()], [0, 1, 2])
os._exit(int(line.recv(32)))
"""


@contextlib.contextmanager
def waybill_for_shells(folder: Path) -> Iterator[Path]:
    """A new folder below `folder` for the front of a PATH, with a `waybill` that works until the end of this."""
    place = folder / "warm-programs"
    place.mkdir()
    program, address = place / "waybill", f"waybill-shells-{folder}"
    program.write_text(_ASKS.format(python=sys.executable, address=address))
    program.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(f"\0{address}")
        door.listen()
        threading.Thread(target=_answer, args=(door,), daemon=True).start()
        yield place
        door.shutdown(socket.SHUT_RDWR)


def _answer(door: socket.socket) -> None:
    """Until the door is shut. Each of several commands side by side, as in a pipe, has a thread."""
    with contextlib.suppress(OSError):
        while True:
            threading.Thread(target=_run, args=(door.accept()[0],), daemon=True).start()


def _run(line: socket.socket) -> None:
    with line:
        request, streams, _, _ = socket.recv_fds(line, _MOST_BYTES, 3)
        words, cwd, environment = json.loads(request)
        command = [str(Path(sys.executable).with_name("waybill")), *words]
        stdin, stdout, stderr = streams
        try:
            process = warm.session().popen(command, cwd=cwd, env=environment, stdin=stdin, stdout=stdout, stderr=stderr)
        finally:
            for stream in streams:  # a pipe has ended when nobody has it any more
                os.close(stream)
        line.send(str(process.wait()).encode())
