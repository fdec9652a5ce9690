"""`errors.sink`: read and checked as a sink is, beside both ends and the other connectors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from connect_core.config import Settings, check, check_paths, load_document, read_text, resolve
from connect_core.errors import ConfigError

Faults = Callable[[str], list[str]]


def written(errors: str, source: str = "{file: {path: a.log}}", sink: str = "{file: {path: out.log}}") -> str:
    return f"{{version: 1, name: a, source: {source}, sink: {sink}, errors: {errors}}}"


@pytest.fixture
def together(home: Path, settings: Settings) -> Callable[..., list[str]]:
    def told(*texts: str) -> list[str]:
        folder = home.parent / "documents"
        folder.mkdir()
        for number, text in enumerate(texts):
            (folder / f"{number}.yaml").write_text(text)
        with pytest.raises(ConfigError) as raised:
            check_paths([folder], home, settings)
        return [str(one) for one in raised.value.faults]

    return told


SECRET = "{sink: {rocketmq: {name_servers: 'n:9876', topic: bad, secret_key: plain}}}"
TOPIC = "{rocketmq: {name_servers: 'n:9876', topics: [orders]}}"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (written("{sink: {kafka: {}}}"), 'errors.sink.kafka: line 1: there is no system "kafka"'),
        (written("{sink: {file: {}}}"), "errors.sink.file.path: line 1: is missing"),
        (written("{sink: {file: {path: b.log, pth: 1}}}"), 'errors.sink.file.pth: line 1: unknown key "pth"'),
        (written("{sink: b.log}"), "errors.sink: line 1: needs exactly one system with its options"),
        (written("{headers: connect}"), "errors: line 1: headers are those of records in errors.sink: name one"),
        (
            written("{sink: {rocketmq: {name_servers: 'n:9876', topic: orders}}}", TOPIC),
            "errors.sink.rocketmq.topic: line 1: ",
        ),
        (written("{sink: {file: {path: a.log}}}"), "errors.sink.file.path: line 1: "),
    ],
)
def test_what_is_wrong_is_said_at_its_place(faults: Faults, text: str, wanted: str) -> None:
    (fault,) = faults(text)
    assert fault.startswith(wanted)


def test_a_secret_in_it_is_refused_as_in_a_sink(faults: Faults) -> None:
    (fault,) = [one for one in faults(written(SECRET)) if "plain text" in one]
    assert fault.startswith("errors.sink.rocketmq.secret_key: line 1: is a secret in plain text")
    assert "plain;" not in fault


@pytest.mark.parametrize(
    ("other", "wanted"),
    [
        ("{version: 1, name: b, source: {file: {path: x.log}}, sink: {file: {path: bad.log}}}", "sink.file.path"),
        ("{version: 1, name: b, source: {file: {path: bad.log}}, sink: {file: {path: y.log}}}", "source.file.path"),
    ],
)
def test_a_file_of_rejects_has_one_writer_and_no_reader(
    together: Callable[..., list[str]], other: str, wanted: str
) -> None:
    assert any(wanted in one for one in together(written("{sink: {file: {path: bad.log}}}"), other))


def test_it_is_another_file_than_that_of_the_sink(together: Callable[..., list[str]]) -> None:
    (fault,) = together(written("{sink: {file: {path: out.log}}}"))
    assert "errors.sink.file.path" in fault
    assert "a file can have one writer only" in fault


def test_a_run_gets_it_with_its_connection(home: Path, settings: Settings) -> None:
    connections = home.parent / "conf" / "connections"
    connections.mkdir(parents=True, exist_ok=True)
    (connections / "bad.yaml").write_text("rocketmq: {name_servers: 'n:9876'}\n")
    text = written("{sink: {rocketmq: {connection: bad, topic: rejects}}, headers: connect, tolerance: all}")
    document = load_document(check(read_text(text, where="a.yaml")[0], home, settings).data)
    found = resolve(document, home, settings, "5f2c")
    assert found.errors_sink is not None
    assert found.errors_sink.system == "rocketmq"
    assert found.errors_sink.options["topic"] == "rejects"
    assert found.errors_headers
    assert found.connections == {"errors": {"name_servers": "n:9876"}}
    pinned = {"errors": {"name_servers": "before:9876"}}
    before = resolve(document, home, settings, "5f2c", pinned)
    assert before.errors_sink is not None
    assert before.errors_sink.options["name_servers"] == "before:9876"


def test_its_path_is_kept_absolute(home: Path, settings: Settings) -> None:
    kept = check(read_text(written("{sink: {file: {path: bad.log}}}"), where="a.yaml")[0], home, settings).data
    assert Path(kept["errors"]["sink"]["file"]["path"]).is_absolute()


def test_without_one_there_is_none(home: Path, settings: Settings) -> None:
    document = load_document(check(read_text(written("{tolerance: all}"), where="a.yaml")[0], home, settings).data)
    assert resolve(document, home, settings, "5f2c").errors_sink is None
