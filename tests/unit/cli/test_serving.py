"""serve: what it refuses before it listens, and one that is asked by TLS. What it answers is in tests/unit/api."""

from __future__ import annotations

import os
import re
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from connect_core.cli.serving import _listening
from tests import warm
from tests.unit.cli.conftest import Waybill

TLS = "either --tls-certificate FILE --tls-key FILE or, where a proxy does TLS, --behind-proxy"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate for localhost, `cert.pem`, its key, `key.pem`, the key of another one, and one with a
    password."""
    folder = tmp_path_factory.mktemp("tls")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    whose = ["-x509", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "2"]
    for key, cert, more in (
        ("key.pem", "cert.pem", ["-nodes"]),
        ("another.pem", "another-cert.pem", ["-nodes"]),
        ("locked.pem", "locked-cert.pem", ["-passout", "pass:a-password"]),
    ):
        command = ["openssl", "req", *curve, *whose, *more, "-keyout", key, "-out", cert]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (folder / "none.pem").write_text("nothing")
    return folder


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_without_a_login_it_listens_on_the_loopback_interface_alone(host: str, waybill: Waybill) -> None:
    typed = waybill("serve", "--host", host, "--port", "0")
    assert (typed.code, f"{host} is no address of the loopback interface" in typed.err) == (2, True)
    assert f"Leave --host out, or add --login and {TLS}" in typed.err


def test_beyond_it_a_login_alone_does_not_do(waybill: Waybill) -> None:
    typed = waybill("serve", "--host", "0.0.0.0", "--port", "0", "--login")
    assert (typed.code, f"or add {TLS}" in typed.err) == (2, True)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_proxy_or_tls_without_a_login_does_not_do(host: str, waybill: Waybill, files: Path) -> None:
    tls = ("--tls-certificate", files / "cert.pem", "--tls-key", files / "key.pem")
    for words in (("--behind-proxy",), tls):
        typed = waybill("serve", "--host", host, "--port", "0", *map(str, words))
        assert (typed.code, "Add --login" in typed.err) == (2, True)


@pytest.mark.parametrize(
    ("certificate", "key", "said"),
    [
        ("cert.pem", "", "go together"),
        ("", "key.pem", "go together"),
        ("cert.pem", "another.pem", "cannot be used"),
        ("cert.pem", "missing.pem", "No such file"),
        ("none.pem", "key.pem", "cannot be used"),
        ("cert.pem", "none.pem", "cannot be used"),
        ("locked-cert.pem", "locked.pem", "the key is encrypted"),
    ],
)
def test_a_certificate_that_does_not_do_is_told_before_the_port_is_open(
    certificate: str, key: str, said: str, waybill: Waybill, files: Path, applied: Path
) -> None:
    words = [
        word
        for option, file in (("--tls-certificate", certificate), ("--tls-key", key))
        for word in ((option, str(files / file)) if file else ())
    ]
    with socket.create_server(("127.0.0.1", 0)) as taken:  # else it would say that
        typed = waybill("serve", "--login", "--port", str(taken.getsockname()[1]), *words)
    assert (typed.code, said in typed.err) == (2, True), typed.err
    assert "a-password" not in typed.err


def test_a_login_needs_a_ledger(waybill: Waybill, folder: Path) -> None:
    typed = waybill("serve", "--login", "--port", "0")
    assert (typed.code, (folder / ".waybill").exists()) == (3, False)


def test_a_port_that_is_taken_is_said(waybill: Waybill) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        typed = waybill("serve", "--port", str(port))
    assert (typed.code, f"Port {port} of 127.0.0.1 cannot be listened on" in typed.err) == (3, True)


@contextmanager
def serving(folder: Path, said: Path, *words: str) -> Iterator[str]:
    """A server as a process of its own; its address, once it has said it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WAYBILL_")}
    command = ["waybill", "serve", "--login", "--host", "0.0.0.0", "--port", "0", *words]
    server = warm.session().start(command, folder, kept)
    try:
        lines = []
        while not (found := re.search(r"https?://\S+:\d+", lines[-1] if lines else "")):
            lines.append(server.stderr.readline())
            assert lines[-1], lines
        yield found[0].replace("0.0.0.0", "localhost")
    finally:
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=60)
        said.write_text("".join([*lines, out, err]))


def test_beyond_the_loopback_interface_it_is_asked_by_tls_with_a_token(
    waybill: Waybill, applied: Path, files: Path, tmp_path: Path
) -> None:
    token, said = waybill("tokens", "create", "ci", "--role", "viewer").out.strip(), tmp_path / "said.txt"
    trusted = ssl.create_default_context(cafile=str(files / "cert.pem"))
    with (
        serving(
            applied, said, "--tls-certificate", str(files / "cert.pem"), "--tls-key", str(files / "key.pem")
        ) as url,
        httpx.Client(base_url=url, verify=trusted, trust_env=False) as client,
    ):
        assert url.startswith("https://")
        assert client.get("/kc/connectors").status_code == 401
        forged = {"Authorization": "Bearer wb_" + "a" * 43, "X-Forwarded-For": "192.0.2.99"}
        assert client.get("/kc/connectors", headers=forged).status_code == 401
        assert client.get("/kc/connectors", auth=("anybody", "wrong")).status_code == 401
        for told in ({"headers": {"Authorization": f"Bearer {token}"}}, {"auth": ("anybody", token)}):
            answer = client.get("/kc/connectors", **told)
            assert (answer.status_code, answer.json()) == (200, ["copy"])
            assert client.put("/kc/connectors/copy/pause", **told).status_code == 403
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(url.replace("https", "http") + "/kc/connectors", trust_env=False)
    words = said.read_text()
    assert words.count("Refused a caller from 127.0.0.1: the token is unknown") == 2
    assert token not in words
    assert "a" * 43 not in words
    assert "192.0.2.99" not in words


def test_behind_a_proxy_the_address_is_the_one_it_tells(waybill: Waybill, applied: Path, tmp_path: Path) -> None:
    said = tmp_path / "said.txt"
    with serving(applied, said, "--behind-proxy") as url:
        assert url.startswith("http://")
        told = {"Authorization": "Bearer wb_", "X-Forwarded-For": "192.0.2.99", "X-Forwarded-Proto": "https"}
        assert httpx.get(f"{url}/metrics", headers=told, trust_env=False).status_code == 401
    assert "There is no token yet" in said.read_text()
    assert "Refused a caller from 192.0.2.99: the token is unknown" in said.read_text()


def test_no_part_of_an_answer_waits_for_an_acknowledgement() -> None:
    """Head and body are two writes: with Nagle's algorithm each answer would take 40 ms more."""
    with _listening("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
