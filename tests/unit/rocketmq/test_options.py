from __future__ import annotations

import pytest

from connect_core.errors import ConfigError
from connect_core.rocketmq import ClientOptions, Credentials
from connect_core.rocketmq.options import split_address


@pytest.mark.parametrize(
    ("address", "parts"), [("h:1", ("h", 1)), ("127.0.0.1:9876", ("127.0.0.1", 9876)), ("[::1]:65535", ("::1", 65535))]
)
def test_addresses(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize("address", ["", "host", ":9876", "host:", "host:0", "host:65536", "host:x", "host:-1"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ConfigError, match="Not an address"):
        ClientOptions((address,))


def test_a_client_needs_a_name_server() -> None:
    with pytest.raises(ConfigError, match="No name server"):
        ClientOptions(())


def test_secrets_are_not_printed() -> None:
    assert "hidden" not in repr(ClientOptions(("h:1",), credentials=Credentials("key", "hidden")))
