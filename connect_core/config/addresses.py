"""Which servers a document may name, where the setting `allowed_hosts` says so. Pure: nothing is asked of a name server
of the Internet, so a name is allowed by its pattern, and an address by its network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

from connect_core.systems.database_urls import file_of

_PORT = re.compile(r":\d+$")
_STACK = re.compile(r"\$\{stack:[a-z_]+\}")
_NO_HOST = re.compile(r"[\s/\\@%#?\0\[\]]")
"""What one client may take for an end of the host, and another for a part of it."""


def fault_of_pattern(pattern: str) -> str:
    """What is wrong with an entry of `allowed_hosts`; empty when it is sound."""
    if "/" in pattern and not pattern.startswith("/"):
        try:
            ip_network(pattern)
        except ValueError as error:
            return str(error)
    if _PORT.search(pattern) and pattern.count(":") == 1:
        return f"{pattern} has a port: name the host alone"
    return "" if pattern.strip() == pattern != "" else "an entry is empty, or begins or ends with a blank"


def faults_of(value: Any, allowed: Sequence[str]) -> Iterator[str]:
    """Of the addresses in an option, one text or several: what is wrong with each that may not be named. `allowed` is
    not empty."""
    for text in value if isinstance(value, list | tuple) else (value,):
        if isinstance(text, str):
            yield from (wrong for one in re.split(r"[;,]", text) if (wrong := _fault(one.strip(), allowed)))


def _fault(address: str, allowed: Sequence[str]) -> str:
    if not address or _STACK.fullmatch(address) or file_of(address):
        return ""
    if "${" in address:
        return "must be written out: the setting allowed_hosts says which servers may be named"
    try:
        host = host_of(address)
    except ValueError:
        return "is no address"
    if _is_sound(host) and any(_means(pattern, host) for pattern in allowed):
        return ""
    names = ", ".join(allowed)
    return f"{host} is none of the servers that may be named: {names} (setting allowed_hosts)"


def host_of(address: str) -> str:
    """The host of `HOST`, `HOST:PORT`, `[V6]:PORT`, or of a URL, in small letters. A socket's path is one as it is."""
    if "://" in address:
        address = urlsplit(address).netloc.rpartition("@")[2]
    if address.startswith("["):
        inner, _, behind = address[1:].partition("]")
        return inner.lower() if not behind or _PORT.fullmatch(behind) else address
    if address.startswith("/"):
        return address
    bare = _PORT.sub("", address) if address.count(":") == 1 else address
    return bare.rstrip(".").lower()


def _is_sound(host: str) -> bool:
    """Whether every client takes it for the same host. Several colons are of an address alone."""
    if host.startswith("/"):
        return True
    if host.count(":") > 1:
        return _network(host) is not None
    return not _NO_HOST.search(host)


def _means(pattern: str, host: str) -> bool:
    if (network := _network(pattern)) is not None:
        try:
            return ip_address(host) in network
        except ValueError:
            return False
    return host.startswith("/") == pattern.startswith("/") and fnmatchcase(host, pattern.lower())


@cache
def _network(pattern: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(pattern)
    except ValueError:
        return None
