"""Hosts as different documents may write the same one. Pure: no name is resolved."""

from __future__ import annotations

from ipaddress import ip_address

_LOOPBACK = "localhost"


def plain_host(text: str) -> str:
    """One spelling for what is surely one host: letters are small, brackets and the dot of the root are left out, and
    all addresses of the loopback interface are one. A reference stays as it is."""
    host = text.strip().lower().removesuffix(".").removeprefix("[").removesuffix("]")
    try:
        return _LOOPBACK if ip_address(host).is_loopback else ip_address(host).compressed
    except ValueError:
        return host


def plain_address(text: str) -> str:
    """The same of `host:port`."""
    host, colon, port = text.strip().rpartition(":")
    return f"{plain_host(host)}:{port}" if colon and port.isdecimal() else text.strip()
