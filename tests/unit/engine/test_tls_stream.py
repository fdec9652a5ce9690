"""TLS between driver and worker: only who has the certificate of the invitation gets the token, and both may talk at
once."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import threading
from collections.abc import Iterator

import pytest
from cryptography import x509

from connect_core.engine.dialling import DialIn, dial_in, dialled
from connect_core.engine.line import Line, LineEnded
from connect_core.engine.tls_stream import RunCertificate, TlsStream, calling

MESSAGES = [os.urandom(size) for size in (0, 1, 16_384, 16_385, 3_000_000, 5)]


@pytest.fixture
def ends() -> Iterator[tuple[TlsStream, TlsStream]]:
    """Of the driver and of the worker, who know each other."""
    identity = RunCertificate()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        here, there = identity.answering(ours), calling(theirs, identity.certificate)
        shaking = threading.Thread(target=there.handshake)
        shaking.start()
        here.handshake()
        shaking.join()
        yield here, there


def test_both_sides_send_and_receive_at_once(ends: tuple[TlsStream, TlsStream]) -> None:
    """In a thread each, without a limit, as a worker does: nothing is torn, whatever the sizes."""
    lines = [Line(end) for end in ends]
    got: list[list[bytes]] = [[], []]

    def receive(number: int) -> None:
        got[number].extend(lines[number].receive() for _ in range(3 * len(MESSAGES)))

    def send(number: int) -> None:
        for message in 3 * MESSAGES:
            lines[number].send(message)

    threads = [threading.Thread(target=work, args=(number,)) for work in (receive, send) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [3 * MESSAGES, 3 * MESSAGES]


def test_what_has_not_arrived_is_not_waited_for(ends: tuple[TlsStream, TlsStream]) -> None:
    here, there = map(Line, ends)
    assert here.arrived() is None
    there.send(b"one")
    there.send(b"two")
    assert [here.receive(10), here.arrived(), here.arrived()] == [b"one", b"two", None]
    with pytest.raises(TimeoutError):
        here.receive(0.01)
    there.close()
    with pytest.raises(LineEnded):
        here.receive(10)


def test_nothing_is_readable_on_the_way() -> None:
    identity = RunCertificate()
    ours, theirs = socket.socketpair()
    heard, seen = bytearray(), threading.Event()

    def answers() -> None:
        with contextlib.suppress(OSError):
            Line(identity.answering(ours)).receive(30)
        seen.set()

    threading.Thread(target=answers).start()
    middle, worker = socket.socketpair()

    def passes_on(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65_536):
                heard.extend(piece)
                target.sendall(piece)

    for pair in ((middle, theirs), (theirs, middle)):
        threading.Thread(target=passes_on, args=pair, daemon=True).start()
    stream = calling(worker, identity.certificate)
    stream.handshake()
    Line(stream).send(b"a secret of a lane")
    assert seen.wait(30)
    assert b"secret" not in heard
    for one in (worker, middle, theirs, ours):
        one.close()


def test_a_worker_says_nothing_to_a_driver_with_another_certificate() -> None:
    """Its token stays with it."""
    with DialIn(1, identity=RunCertificate()) as driver, DialIn(1, identity=RunCertificate()) as stranger:
        [invitation], [other] = driver.invitations(), stranger.invitations()
        misled = json.dumps({**json.loads(invitation), "port": json.loads(other)["port"]}).encode()
        failures: list[BaseException] = []

        def dial() -> None:
            try:
                with dialled(misled):
                    pytest.fail("there is no line")
            except ssl.SSLCertVerificationError as error:
                failures.append(error)

        worker = threading.Thread(target=dial)
        worker.start()
        assert stranger.lines(3, worker.is_alive) == []
        worker.join()
        assert len(failures) == 1


def test_invited_workers_come_over_tls_while_strangers_stay_silent_or_speak_plainly() -> None:
    with DialIn(1, identity=RunCertificate()) as driver:
        [invitation] = driver.invitations()
        told = json.loads(invitation)
        silent, plain = (socket.create_connection((told["host"], told["port"])) for _ in range(2))
        plain.sendall(told["token"].encode())
        done = threading.Event()

        def serve() -> None:
            with dialled(invitation) as line:
                line.send(line.receive(30) + b"!")
                done.wait(30)

        worker = threading.Thread(target=serve)
        worker.start()
        [line] = driver.lines(30, lambda: True)
    line.send(b"you")
    assert line.receive(30) == b"you!"
    done.set()
    worker.join()
    for stranger in (silent, plain):
        stranger.settimeout(10)
        with contextlib.suppress(ConnectionResetError):
            while stranger.recv(100):  # what TLS says to one who speaks plainly
                pass
        stranger.close()
    line.close()


def test_a_certificate_is_good_whatever_a_wall_clock_says() -> None:
    certificate = x509.load_pem_x509_certificate(RunCertificate().certificate.encode())
    assert certificate.not_valid_before_utc.year <= 2000
    assert certificate.not_valid_after_utc.year == 9999


@pytest.mark.parametrize(("address", "secured"), [("127.0.0.1", False), ("::1", False)])
def test_on_the_loopback_interface_there_is_no_tls(address: str, secured: bool) -> None:
    with dial_in(1, address) as driver:
        [invitation] = driver.invitations()
    assert bool(json.loads(invitation)["certificate"]) is secured
