"""What PEM files mean together, and what is told when one cannot be used."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from connect_core.errors import ConfigError
from connect_core.systems.tls import TlsFiles

NONE = TlsFiles("", "", "")


def test_names_and_certificates_are_checked() -> None:
    context = NONE.context()
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)


@pytest.mark.parametrize("files", [TlsFiles("/ca", "", ""), TlsFiles("", "/me", ""), TlsFiles("", "/me", "/key")])
def test_files_mean_nothing_without_tls(files: TlsFiles) -> None:
    NONE.check(tls=False)
    files.check(tls=True)
    with pytest.raises(ValueError, match="without tls: true"):
        files.check(tls=False)


def test_a_key_needs_its_certificate() -> None:
    with pytest.raises(ValueError, match="needs tls_certificate"):
        TlsFiles("/ca", "", "/key").check(tls=True)


def test_a_file_that_is_missing_or_something_else_is_named(tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_text("no certificate")
    with pytest.raises(ConfigError, match=r"There is no file /nowhere\.pem"):
        TlsFiles("/nowhere.pem", "", "").context()
    with pytest.raises(ConfigError, match="cannot be used") as told:
        TlsFiles("", str(other), "").context()
    assert told.value.where == str(other)
