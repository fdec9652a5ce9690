"""What it means that no connection is made: the driver has words for that alone."""

from __future__ import annotations

import psycopg2
import pytest

from connect_core.errors import ConfigError, Unreachable
from connect_core.systems.postgresql.failures import reached

_TRIED = 'connection to server at "127.0.0.1", port 5432 failed: '


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ('FATAL:  password authentication failed for user "waybill"', ConfigError, "The login was refused"),
        ("fe_sendauth: no password supplied", ConfigError, "The login was refused"),
        ('FATAL:  no pg_hba.conf entry for host "127.0.0.1"', ConfigError, "pg_hba.conf"),
        ('FATAL:  role "waybill" does not exist', ConfigError, "The login was refused"),
        ('FATAL:  database "shop" does not exist', ConfigError, "There is no such database"),
        ("Connection refused\n\tIs the server running on that host?", Unreachable, "cannot be reached"),
        ("FATAL:  the database system is starting up", Unreachable, "is starting up"),
        ("FATAL:  sorry, too many clients already", Unreachable, "too many clients"),
        ("SSL error: certificate verify failed", Unreachable, "Look at tls"),
        ("server does not support SSL, but SSL was required", Unreachable, "There is no encrypted connection"),
    ],
)
def test_why_no_connection_is_made(said: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as told, reached("here"):
        raise psycopg2.OperationalError(_TRIED + said)
    assert words in str(told.value)
    assert "\n" not in str(told.value)
