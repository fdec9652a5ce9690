"""Which servers a document may name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from connect_core.config.addresses import faults_of, host_of
from connect_core.config.checking import check
from connect_core.config.option_models import address_fields, find, plugins, written_fields
from connect_core.config.resolving import resolve
from connect_core.config.settings import load_settings
from connect_core.config.written import read_text
from connect_core.errors import ConfigError
from connect_core.sdk.plugin import ROLES

ALLOWED = ("*.example.com", "10.1.0.0/16", "fd00::/8", "db", "/var/run/postgresql", "192.0.2.7")


@pytest.mark.parametrize(
    "address",
    [
        "mq.example.com",
        "MQ.Example.COM.:9876",
        "10.1.2.3:9876",
        "db",
        "db:5432",
        "[fd00::1]:9876",
        "fd00::1",
        "192.0.2.7",
        "/var/run/postgresql",
        "https://schemas.example.com:8081/path",
        "http://user@db/elsewhere.org",
        "db;mq.example.com:1",
        ["db:1", "10.1.0.0:2"],
        "${stack:name_servers}",
        "",
        None,
    ],
)
def test_what_is_allowed(address: Any) -> None:
    assert list(faults_of(address, ALLOWED)) == []


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("169.254.169.254", "169.254.169.254"),
        ("example.com", "example.com"),
        ("mq.example.com.evil.org:9876", "mq.example.com.evil.org"),
        ("db;evil.org:9876", "evil.org"),
        ("10.1.2.3.evil.org", "10.1.2.3.evil.org"),
        ("10.2.0.1", "10.2.0.1"),
        ("0x0a010203", "0x0a010203"),
        ("http://db@evil.org/", "evil.org"),
        ("http://evil.org#@db/", "evil.org"),
        ("[::ffff:169.254.169.254]:80", "::ffff:169.254.169.254"),
        ("/tmp/socket", "/tmp/socket"),
        (["db", "evil.org"], "evil.org"),
        ("evil.org\\.example.com", "evil.org\\.example.com"),
        ("evil.org#.example.com", "evil.org#.example.com"),
        ("evil.org/.example.com:80", "evil.org/.example.com"),
        ("evil.org .example.com", "evil.org .example.com"),
        ("evil.org:80:mq.example.com", "evil.org:80:mq.example.com"),
        ("[mq.example.com]evil.org", "[mq.example.com]evil.org"),
        ("/tmp/sock.example.com", "/tmp/sock.example.com"),
    ],
)
def test_what_is_not(address: Any, host: str) -> None:
    [wrong] = faults_of(address, ALLOWED)
    assert wrong.startswith(f"{host} is none of the servers that may be named: *.example.com, ")


@pytest.mark.parametrize(
    "address",
    [
        "http://evil.org/${stack:mqtt_port}",
        "evil.org:${stack:mqtt_port}",
        "${stack:a}.evil.org",
        "${env:HOST}",
        "${file:hosts#a}",
        "${env:A}.example.com",
        "${stack:x}${env:Y}",
    ],
)
def test_what_is_not_written_out_is_not_known(address: str) -> None:
    [wrong] = faults_of(address, ALLOWED)
    assert wrong.startswith("must be written out")


@pytest.mark.parametrize("address", ["http://[", "http://[db]evil.org", "http://db]"])
def test_what_is_no_address_is_none_that_is_allowed(address: str) -> None:
    [wrong] = faults_of(address, ALLOWED)
    assert wrong == "is no address" or "is none of the servers" in wrong


def test_the_host_is_what_a_client_would_connect_to() -> None:
    assert host_of("HTTP://a:b@[::1]:80/x") == "::1"
    assert host_of("::1") == "::1"


def test_every_option_that_names_a_server_is_judged() -> None:
    named = {
        (plugin.name, role, name)
        for plugin in plugins()
        for role in ROLES
        if (model := find(role, plugin.name))
        for name in written_fields(model)
        if name in ("host", "hosts", "failover", "name_servers", "url", "address", "addresses")
    }
    assert len(named) > 8
    for system, role, name in named:
        assert name in address_fields(find(role, system)), (system, role, name)  # type: ignore[arg-type]


DOCUMENT = """
version: 1
name: orders
source: {file: {path: in.log}}
sink: {rocketmq: {name_servers: 'mq.example.com:9876;169.254.169.254:80', topic: orders}}
errors: {tolerance: all, sink: {rocketmq: {name_servers: 'other.org:9876', topic: letters}}}
"""


def test_a_document_that_names_another_server_is_refused_before_it_is_asked(tmp_path: Path) -> None:
    [written] = read_text(DOCUMENT, where="orders.yaml")
    [avro] = read_text(
        "version: 1\nname: a\nsource: {file: {path: a}}\nsink: {file: {path: b}}\n"
        "encode: {format: avro, framing: registry, registry: {url: 'http://169.254.169.254/', subject: a}}\n",
        where="a.yaml",
    )
    anywhere = load_settings(tmp_path, {})
    some = load_settings(tmp_path, {"WAYBILL_ALLOWED_HOSTS": "*.example.com, 127.0.0.1"})
    stored = check(written, None, anywhere).document
    with pytest.raises(ConfigError) as refused:
        check(written, None, some)
    assert [fault.path for fault in refused.value.faults] == [
        "sink.rocketmq.name_servers",
        "errors.sink.rocketmq.name_servers",
    ]
    with pytest.raises(ConfigError, match="cannot run"):
        resolve(stored, None, some, "uid")
    with pytest.raises(ConfigError) as refused:
        check(avro, None, some)
    assert "encode.registry.url" in [fault.path for fault in refused.value.faults]


@pytest.mark.parametrize("hosts", ["10.0.0.1/8", "db:5432", "a,,b"])
def test_patterns_that_mean_nothing_are_refused(hosts: str, tmp_path: Path) -> None:
    if hosts == "a,,b":
        assert load_settings(tmp_path, {"WAYBILL_ALLOWED_HOSTS": hosts}).allowed_hosts == ("a", "b")
        return
    with pytest.raises(ConfigError, match="settings are not valid"):
        load_settings(tmp_path, {"WAYBILL_ALLOWED_HOSTS": hosts})
