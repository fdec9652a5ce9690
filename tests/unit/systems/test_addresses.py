"""One host that is written in several ways."""

from __future__ import annotations

import pytest

from connect_core.systems.addresses import plain_address, plain_host


@pytest.mark.parametrize("host", ["localhost", "LocalHost", "localhost.", "127.0.0.1", "127.1.2.3", "::1", "[::1]"])
def test_the_loopback_interface_is_one_host(host: str) -> None:
    assert plain_host(host) == "localhost"
    assert plain_address(f" {host}:9876") == "localhost:9876"


@pytest.mark.parametrize("host", ["a.internal", "10.0.0.1", "localhost.internal", "${stack:host}"])
def test_others_are_not(host: str) -> None:
    assert plain_host(host) == host
    assert plain_address(f"{host}:1") == f"{host}:1"


def test_addresses_of_version_6_are_compared_by_their_short_form() -> None:
    assert plain_host("[2001:DB8:0::1]") == plain_host("2001:db8::1") == "2001:db8::1"


def test_what_is_no_address_stands_for_itself() -> None:
    assert plain_address("${stack:name_servers}") == "${stack:name_servers}"
