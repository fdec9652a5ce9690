"""References: resolved late, masked in display, and never in a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_core.config.references import MASK, masked, resolve_stack, reveal, revealed
from connect_core.errors import ConfigError
from connect_core.work import Side


def test_environment_and_files_are_revealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    (tmp_path / "whole").write_text("all of it\n")
    (tmp_path / "json").write_text('{"a": "one", "b": 2}')
    (tmp_path / "lines").write_text("# comment\na = two\n")
    options = {
        "env": "${env:SECRET}",
        "inside": ["x ${env:SECRET} y", {"deep": f"${{file:{tmp_path}/json#a}}"}],
        "whole": f"${{file:{tmp_path}/whole}}",
        "lines": f"${{file:{tmp_path}/lines#a}}",
        "number": 5,
        "stack": "${stack:name_servers}",
    }
    assert reveal(options) == {
        "env": "s3cret",
        "inside": ["x s3cret y", {"deep": "one"}],
        "whole": "all of it",
        "lines": "two",
        "number": 5,
        "stack": "${stack:name_servers}",
    }
    assert options["env"] == "${env:SECRET}", "the options themselves stay as they were"


def test_a_side_is_revealed_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    assert revealed(Side("file", {"path": "${env:SECRET}"})) == Side("file", {"path": "s3cret"})


def test_the_stack_is_resolved_apart() -> None:
    options = {"a": "${stack:name_servers}", "b": "${env:X}"}
    assert resolve_stack(options, {"name_servers": "h:1"}.__getitem__) == {"a": "h:1", "b": "${env:X}"}


def test_what_is_not_there_is_told_without_the_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    (tmp_path / "keys").write_text("password=hunter2\n")
    (tmp_path / "bad").write_text("{hunter2")
    (tmp_path / "bytes").write_bytes(b"\xff")
    for reference, words in [
        ("${env:NOT_SET}", "The environment variable NOT_SET is not set"),
        (f"${{file:{tmp_path}/none}}", "No such file or directory"),
        (f"${{file:{tmp_path}/keys#user}}", "has no such key.*a line key=value, or to its JSON object"),
        (f"${{file:{tmp_path}/bad#user}}", "has no such key"),
        (f"${{file:{tmp_path}/bytes}}", "is not UTF-8 text"),
    ]:
        with pytest.raises(ConfigError, match=words) as raised:
            reveal({"a": reference})
        assert "hunter2" not in str(raised.value)


def test_secrets_are_masked_and_references_are_not() -> None:
    shown = masked({"rocketmq": {"secret_key": "hunter2", "password": "${env:P}", "tokens": ["a"], "topic": "t"}})
    assert shown == {"rocketmq": {"secret_key": MASK, "password": "${env:P}", "tokens": [MASK], "topic": "t"}}
    assert masked({"password": "prefix${env:P}", "secret": None}) == {"password": MASK, "secret": None}


@pytest.mark.parametrize(
    "name",
    [
        "basic.auth.user.info",
        "userinfo",
        "sasl.jaas.config",
        "ssl.key.passphrase",
        "api.key",
        "access.key",
        "AuthKey",
        "pwd",
    ],
)
def test_a_secret_goes_by_many_names(name: str) -> None:
    assert masked({f"value.converter.{name}": "user:canary"}) == {f"value.converter.{name}": MASK}


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://u:pw@h/x", f"https://u:{MASK}@h/x"),
        ("jdbc:postgresql://u:p@w@h/db", f"jdbc:postgresql://u:{MASK}@h/db"),
        ("https://u:${env:P}x@h", f"https://u:{MASK}@h"),
        ("https://a:b@c,https://:d@e", f"https://a:{MASK}@c,https://:{MASK}@e"),
        *((one, one) for one in ("https://u:${env:P}@h", "http://h:80/a@b", "tcp://a:1883", "https://u@h:80/")),
    ],
)
def test_a_password_in_an_address_is_masked(address: str, shown: str) -> None:
    assert masked({"urls": [address]}) == {"urls": [shown]}


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://h/?access_token=canary&a=1", f"https://h/?access_token={MASK}&a=1"),
        ("jdbc:x://h/db?user=u&password=canary", f"jdbc:x://h/db?user=u&password={MASK}"),
        ("sb://h/;SharedAccessKey=canary", f"sb://h/;SharedAccessKey={MASK}"),
        ("https://h/?token=${env:T}", "https://h/?token=${env:T}"),
    ],
)
def test_a_secret_behind_an_address_is_masked(address: str, shown: str) -> None:
    assert masked({"url": address}) == {"url": shown}
