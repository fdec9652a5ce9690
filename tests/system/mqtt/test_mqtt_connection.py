"""How a connection to a broker is made: websockets, TLS, what a broker grants, and nobody there."""

from __future__ import annotations

import contextlib
import gc
import select
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from connect_core.errors import ConfigError, Refused, Unreachable
from connect_core.stack import ports
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.session import Session
from tests.certificates import make_authority, make_certificate
from tests.faults.kit.fronts import Front, Line, hang_up
from tests.mqtt_brokers import HiveMQ, Mosquitto
from tests.mqtt_devices import devices
from tests.system.mqtt.test_mqtt_session import options, taken

pytestmark = pytest.mark.server


def test_a_websocket(hivemq: HiveMQ) -> None:
    given = options(hivemq, port=hivemq.websocket_port, websockets="/mqtt")
    session = Session(given, given.client_id(0))
    session.subscribe(["through/a/websocket"], 1)
    with devices(hivemq) as all_of_them:
        all_of_them.publish("through/a/websocket", [b"x" * 100_000, b"y"])
        all_of_them.wait()
    assert [len(one.payload) for one in taken(session, 2)] == [100_000, 1]
    session.give_up()


class Opening:
    """A line in front of a websocket that keeps the request which opens it."""

    def __init__(self, port: int) -> None:
        self.request = b""
        self._front = Front(("127.0.0.1", port), self._ways)
        self.port = self._front.port

    def close(self) -> None:
        self._front.close()

    def _ways(self, line: Line) -> Iterator[Callable[[], None]]:
        yield partial(self._forward, line)
        yield partial(forward, line.server, line.client)

    def _forward(self, line: Line) -> None:
        while b"\r\n\r\n" not in self.request and (data := line.client.recv(65_536)):
            self.request += data
            line.server.sendall(data)
        forward(line.client, line.server)


def forward(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(65_536):
            other.sendall(data)
    hang_up(other)


def test_headers_of_a_websocket_open_it(hivemq: HiveMQ) -> None:
    with closing(Opening(hivemq.websocket_port)) as opening:
        headers = {"X-Tenant": "acme", "Authorization": "Bearer s3cret"}
        given = options(hivemq, port=opening.port, websockets="/mqtt", websocket_headers=headers)
        session = Session(given, "with-headers")
        session.subscribe(["with/headers"], 1)
        session.give_up()
    lines = opening.request.decode().split("\r\n")
    assert lines[0] == "GET /mqtt HTTP/1.1"
    assert {"X-Tenant: acme", "Authorization: Bearer s3cret", "Sec-Websocket-Protocol: mqtt"} <= {*lines}


class Choosing:
    """TLS in front of a broker, which takes in only who offers this protocol. `chosen` are those agreed on."""

    def __init__(self, folder: Path, protocol: str, port: int) -> None:
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(folder / "broker.pem", folder / "broker.key")
        self._context.set_alpn_protocols([protocol])
        self.chosen: list[str | None] = []
        self._front = Front(("127.0.0.1", port), self._ways)
        self.port = self._front.port

    def close(self) -> None:
        self._front.close()

    def _ways(self, line: Line) -> Iterator[Callable[[], None]]:
        yield partial(self._talk, line)

    def _talk(self, line: Line) -> None:
        with contextlib.suppress(OSError), self._context.wrap_socket(line.client, server_side=True) as secured:
            self.chosen.append(secured.selected_alpn_protocol())
            while self.chosen[-1]:
                ready = [secured] if secured.pending() else select.select([secured, line.server], [], [])[0]
                for one in ready:
                    data = one.recv(65_536)
                    if not data:
                        return
                    (line.server if one is secured else secured).sendall(data)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_protocol_is_offered_in_the_handshake(secured: tuple[Mosquitto, Path], mosquitto: Mosquitto) -> None:
    """Where one is asked for, as of a load balancer at port 443 that serves more than MQTT."""
    _, folder = secured
    ours = {"tls": True, "tls_ca": f"{folder}/ca.pem", "connect_timeout_s": 1}
    with closing(Choosing(folder, "x-mqtt", mosquitto.port)) as choosing:
        session = Session(options(mosquitto, **ours, port=choosing.port, alpn=["other", "x-mqtt"]), "offers")
        session.subscribe(["a"], 1)
        session.give_up()
        assert choosing.chosen == ["x-mqtt"]
        with pytest.raises(Unreachable):
            Session(options(mosquitto, **ours, port=choosing.port), "offers-none")
        assert choosing.chosen[1:]
        assert {*choosing.chosen[1:]} == {None}


def test_what_a_broker_grants(mosquitto: Mosquitto, hivemq: HiveMQ, tmp_path: Path) -> None:
    """All that is asked for; and how often they want to hear of a client, as Mosquitto says by its `max_keepalive`."""
    granted = []
    impatient = Mosquitto(tmp_path / "broker", settings={"max_keepalive": "20"})
    impatient.start()
    for broker in (mosquitto, hivemq, impatient):
        session = Session(options(broker), "granted")
        granted.append(session.grants)
        assert not list(session.grants.faults(options(broker)))
        session.give_up()
    impatient.kill()
    assert [one.keep_alive_s for one in granted][::2] == [65_535, 20]


def test_what_an_attempt_to_connect_leaves_open_is_closed_with_its_error() -> None:
    given = MqttSourceOptions(host="127.0.0.1", port=ports.free(), filters=("a",), connect_timeout_s=0.5)
    gc.disable()
    try:
        with contextlib.suppress(Unreachable):
            Session(given, "leaves-nothing")
        kept = [one for one in gc.get_objects() if isinstance(one, Unreachable) and "leaves-nothing" in one.where]
    finally:
        gc.enable()
    assert kept == []


def test_nobody_there() -> None:
    given = MqttSourceOptions(host="127.0.0.1", port=ports.free(), filters=("a",), connect_timeout_s=0.5)
    with pytest.raises(Unreachable, match="cannot be reached"):
        Session(given, "x")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Mosquitto, Path]]:
    """A listener with TLS that wants a certificate of ours, a user and a password; and the folder of the files."""
    folder = tmp_path_factory.mktemp("secured")
    for name in ("ca", "stranger"):
        make_authority(folder, name)
    for name in ("broker", "client"):
        make_certificate(folder, name, "ca")
    (folder / "passwords").touch(0o600)
    subprocess.run(["mosquitto_passwd", "-b", str(folder / "passwords"), "robot", "s3cret"], check=True)
    port = ports.free()
    lines = [f"listener {port} 127.0.0.1", "allow_anonymous false", f"password_file {folder / 'passwords'}"]
    lines += [f"cafile {folder / 'ca.pem'}", f"certfile {folder / 'broker.pem'}", f"keyfile {folder / 'broker.key'}"]
    broker = Mosquitto(folder / "files", listeners="\n".join([*lines, "require_certificate true"]))
    broker.start()
    yield Mosquitto(folder, port=port), folder
    broker.kill()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_tls_with_an_authority_of_our_own_a_certificate_and_a_password(secured: tuple[Mosquitto, Path]) -> None:
    broker, folder = secured
    ours = {"tls": True, "tls_ca": f"{folder}/ca.pem", "user": "robot", "password": "s3cret"}
    mine = {"tls_certificate": f"{folder}/client.pem", "tls_key": f"{folder}/client.key"}
    session = Session(options(broker, **ours, **mine), "secured")
    session.subscribe(["a"], 1)
    session.give_up()
    with pytest.raises(Refused, match="refuses"):
        Session(options(broker, **{**ours, **mine, "password": "wrong"}), "secured")
    wrong = {
        "no certificate of ours": ours,
        "an authority that did not sign": {**ours, **mine, "tls_ca": f"{folder}/stranger.pem"},
        "plain text": {"user": "robot", "password": "s3cret"},
    }
    for given in wrong.values():
        with pytest.raises(Unreachable) as refused:
            Session(options(broker, connect_timeout_s=1, **given), "secured")
        assert "s3cret" not in str(refused.value)
    with pytest.raises(ConfigError, match="There is no file"):
        Session(options(broker, **{**ours, "tls_ca": "/nowhere.pem"}), "secured")
