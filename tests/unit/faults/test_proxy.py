"""The line in front of RocketMQ that faults break: a trap is for a sender that is still there."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading

import pytest

from connect_core.rocketmq.wire.commands import RequestCode
from connect_core.rocketmq.wire.header import Command, encode
from connect_core.stack.processes import wait_until
from tests.faults.kit.fronts import Line
from tests.faults.kit.proxy import RocketMQProxy, Trap, kill_sender, sends_to

_SENDS = """
import socket, sys, time
line = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
while True:
    line.sendall(bytes.fromhex(sys.argv[2]))
    {then}
    time.sleep(0.01)
"""
_END = "line.close(); break"
_RESET = r"line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1' + bytes(7)); line.close(); break"
_REQUEST = encode(Command(RequestCode.SEND_BATCH_MESSAGE, fields={"b": "orders"})).hex()


def _sender(proxy: RocketMQProxy, then: str = "") -> subprocess.Popen[bytes]:
    port = proxy.broker_address.rpartition(":")[2]
    return subprocess.Popen([sys.executable, "-c", _SENDS.format(then=then), port, _REQUEST])


@pytest.mark.parametrize("gives_up", [_END, _RESET], ids=["end", "reset"])
def test_a_sender_that_gave_up_is_passed_over_and_the_next_one_is_killed(gives_up: str) -> None:
    gone: list[subprocess.Popen[bytes]] = []
    looked = threading.Event()

    def kill(line: Line) -> None:
        looked.set()
        gone[0].wait()
        kill_sender(line)

    with socket.create_server(("127.0.0.1", 0)) as broker:
        proxy = RocketMQProxy("127.0.0.1:1", f"127.0.0.1:{broker.getsockname()[1]}")
        try:
            trap = proxy.set(Trap(sends_to("orders"), first=kill))
            gone.append(_sender(proxy, gives_up))
            assert looked.wait(10)
            with _sender(proxy) as sender:
                assert wait_until(lambda: trap.caught, 10)
            assert sender.returncode == -signal.SIGKILL
        finally:
            proxy.close()
