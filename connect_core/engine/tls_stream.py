"""TLS between a driver and its workers on other hosts: a certificate for one run, which its workers know beforehand.

The driver makes a key and a certificate in memory; the certificate travels with the token in the invitation, over the
way that the invitation takes, and the worker trusts that one and no other. So there is nothing to set up, and nothing
on a disk. TLS 1.3 only. The worker shows that it was invited by its token, as without TLS.

`TlsStream` has of a socket what `Line` needs. One thread may receive while another one sends, which OpenSSL does not
allow with one connection: its state is behind a lock, which nobody holds while waiting for the network.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
from datetime import UTC, datetime

from connect_core.errors import ConfigError

_PIECE_BYTES = 256 * 1024
_ALWAYS = datetime(2000, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
"""Hosts whose wall clocks are wrong are hosts all the same; the certificate is forgotten with its run."""


class RunCertificate:
    """That of a driver, for one run, with its key."""

    def __init__(self) -> None:
        """Raises ConfigError when the package is missing that makes certificates."""
        key, certificate = _made()
        self.certificate = certificate.decode()
        """PEM, for the invitations."""
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3
        self._context.num_tickets = 0  # a worker dials once
        # The library reads files only. This one is in memory and has no name.
        descriptor = os.memfd_create("waybill-tls")
        try:
            os.write(descriptor, key + certificate)
            self._context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)

    def answering(self, stream: socket.socket) -> TlsStream:
        """The driver's end of a connection that a worker has opened."""
        return TlsStream(stream, self._context, server=True)


def calling(stream: socket.socket, certificate: str) -> TlsStream:
    """The worker's end. Raises ssl.SSLError, an OSError, when the other side is not who has that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # the one certificate says who it is, at whatever address
    context.load_verify_locations(cadata=certificate)
    return TlsStream(stream, context, server=False)


class TlsStream:
    """One end. Waits as the socket does: `settimeout` is that of the socket."""

    def __init__(self, stream: socket.socket, context: ssl.SSLContext, *, server: bool) -> None:
        self._stream = stream
        self._arrived, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._arrived, self._to_send, server_side=server)
        self._state, self._sending = threading.Lock(), threading.Lock()
        self._known = False
        """Whether both sides know each other. From then on only `sendall` sends: if two ends that receive waited to
        send what others have made, both would wait for ever."""

    def fileno(self) -> int:
        return self._stream.fileno()

    def settimeout(self, limit_s: float | None) -> None:
        self._stream.settimeout(limit_s)

    def handshake(self) -> None:
        """Waits until both sides know each other. Whoever receives first does it by that."""
        while not self._shaken():
            self._take()

    def recv(self, most_bytes: int) -> bytes:
        """Some bytes, or none when the other side has ended. Raises what the socket raises, ssl.SSLError among it."""
        if not self._known:
            self.handshake()
        while True:
            with self._state:
                try:
                    return self._tls.read(most_bytes)
                except ssl.SSLZeroReturnError:
                    return b""
                except ssl.SSLWantReadError:
                    pass
            self._take()

    def sendall(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            with self._state:
                left = left[self._tls.write(left) :]
            self._flush()

    def close(self) -> None:
        self._stream.close()

    def _shaken(self) -> bool:
        with self._state:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                pass
            else:
                self._known = True
        self._flush()
        return self._known

    def _take(self) -> None:
        piece = self._stream.recv(_PIECE_BYTES)
        with self._state:
            if piece:
                self._arrived.write(piece)
            else:
                self._arrived.write_eof()

    def _flush(self) -> None:
        """In the order in which it was made, whichever thread has made it."""
        with self._sending:
            with self._state:
                made = self._to_send.read()
            if made:
                self._stream.sendall(made)


def _made() -> tuple[bytes, bytes]:
    """A fresh key and its certificate, as PEM."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise ConfigError(
            "Workers on other hosts are reached over TLS, and the package that makes its certificate is missing",
            next_step="Install waybill[hosts] for the driver's Python",
        ) from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "waybill driver")])
    begin, end = _ALWAYS
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    return key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain), certificate.public_bytes(pem)
