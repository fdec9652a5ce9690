"""serve: what it refuses before it listens. What it answers is in tests/unit/api."""

from __future__ import annotations

import socket

import pytest

from tests.unit.cli.conftest import Waybill


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_it_listens_on_the_loopback_interface_alone(host: str, waybill: Waybill) -> None:
    typed = waybill("serve", "--host", host, "--port", "0")
    assert (typed.code, "is no address of the loopback interface" in typed.err) == (2, True)


def test_a_port_that_is_taken_is_said(waybill: Waybill) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        typed = waybill("serve", "--port", str(port))
    assert (typed.code, f"Port {port} of 127.0.0.1 cannot be listened on" in typed.err) == (3, True)
