"""Java's view of the network: the key store is what Java reads, the proxy is the one of the environment."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from connect_core.stack import network

# Self-signed, made for this test: openssl req -x509 -newkey ed25519 -nodes -subj /CN=waybill-test; no key is kept.
CERTIFICATE = """-----BEGIN CERTIFICATE-----
MIIBRDCB96ADAgECAhRaQSE8fBSEADs1AyL87xQsU7cDTzAFBgMrZXAwFzEVMBMG
A1UEAwwMd2F5YmlsbC10ZXN0MCAXDTI2MTEyMTE0MDkwM1oYDzIxMjYxMDI4MTQw
OTAzWjAXMRUwEwYDVQQDDAx3YXliaWxsLXRlc3QwKjAFBgMrZXADIQCv/nRNq2cJ
rnPwDc4NYepjObi6hz8rt+HXJcXsWIu7+KNTMFEwHQYDVR0OBBYEFPBgCemVsvNz
OR9lkpz7BsCSmJR0MB8GA1UdIwQYMBaAFPBgCemVsvNzOR9lkpz7BsCSmJR0MA8G
A1UdEwEB/wQFMAMBAf8wBQYDK2VwA0EAFAiTJIIeBtY2LOXbBckCXJANxXYo7SDD
Hf0ChywIMIl9mj2IPtUAaz3iRI/pTMw2T1kNiucX1JVtmA/Q86eeCw==
-----END CERTIFICATE-----
"""


def test_java_lists_the_authority(tmp_path: Path) -> None:
    keytool = shutil.which("keytool")
    if keytool is None:
        pytest.skip("no keytool: the Java here is the wheel's")
    store = tmp_path / "authorities.jks"
    store.write_bytes(network.key_store([ssl.PEM_cert_to_DER_cert(CERTIFICATE)]))
    words = [keytool, "-list", "-v", "-keystore", str(store), "-storepass", "changeit"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "CN=waybill-test" in done.stdout
    assert "authority-0" in done.stdout


def test_authorities_of_the_environment_are_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(CERTIFICATE)
    monkeypatch.setenv("PIP_CERT", str(bundle))
    arguments = network.java_arguments(tmp_path)
    assert arguments[0] == f"-Djavax.net.ssl.trustStore={tmp_path / 'authorities.jks'}"
    assert ssl.PEM_cert_to_DER_cert(CERTIFICATE) in (tmp_path / "authorities.jks").read_bytes()


def test_the_proxy_of_the_environment_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    assert network.java_arguments(tmp_path)[-2:] == ["-Dhttps.proxyHost=proxy.example", "-Dhttps.proxyPort=3128"]
