"""What a client makes of an address."""

import pytest

from connect_core.engine import spark_session
from connect_core.errors import ConfigError


def test_an_address_must_be_one() -> None:
    with pytest.raises(ConfigError, match="sc://"):
        spark_session.connected("http://localhost:1")


def test_a_place_shows_no_token() -> None:
    assert spark_session.place("sc://localhost:15002/;token=secret") == "localhost:15002"
