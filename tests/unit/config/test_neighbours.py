"""Documents side by side and beside the connectors that there are: all faults at once, one writer a file, which no
other connector reads, no circle."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from connect_core.config import Settings, check_paths
from connect_core.errors import ConfigError
from connect_core.sdk.values import Json

Faults = Callable[..., list[str]]


def _document(name: str, source: str, sink: str, more: str = "") -> str:
    return f"version: 1\nname: {name}\nsource: {source}\nsink: {sink}\n{more}"


def _copy(name: str, path: str, more: str = "") -> str:
    return _document(name, "{file: {path: 'in/*.log'}}", f"{{file: {{path: {path}}}}}", more)


def _to_topic(name: str, path: str, topic: str, more: str = "") -> str:
    return _document(name, f"{{file: {{path: '{path}'}}}}", f"{{rocketmq: {{connection: main, topic: {topic}}}}}", more)


def _from_topic(name: str, topic: str, path: str, more: str = "") -> str:
    source = f"{{rocketmq: {{connection: main, topics: [{topic}]}}}}"
    return _document(name, source, f"{{file: {{path: {path}}}}}", more)


def _between_topics(name: str, topic: str, other: str) -> str:
    source = f"{{rocketmq: {{connection: main, topics: ['{topic}']}}}}"
    return _document(name, source, f"{{rocketmq: {{connection: main, topic: {other}}}}}")


@pytest.fixture
def faults(home: Path, settings: Settings) -> Faults:
    def found(*texts: str, standing: dict[str, Json] | None = None) -> list[str]:
        folder = home.parent / "documents"
        folder.mkdir(exist_ok=True)
        for number, text in enumerate(texts):
            (folder / f"{number}.yaml").write_text(text)
        try:
            check_paths([folder], home, settings, standing)
        except ConfigError as error:
            return [str(fault).replace(f"{folder}/", "") for fault in error.faults]
        return []

    return found


def test_a_wrong_connection_and_an_unreadable_file_hide_no_other_fault(home: Path, faults: Faults) -> None:
    folder = home.parent / "documents"
    (folder / "connections").mkdir(parents=True)
    (folder / "connections" / "east.yaml").write_text("rocketmq: {a: 1, a: 2}")
    told = faults(
        _document("a", "{rocketmq: {connection: eats, topcs: [x], start: never}}", "{file: {pth: out}}"),
        _document("b", "{file: {path: in}}", "{rocketmq: {connection: east, queues: -1, topic: t}}", "tasks: many\n"),
        "not: [closed",
        _copy("d", "out.txt"),
        _copy("e", "out.txt", "schedule: {evry: 1m}\n"),
    )
    expected = (
        ('0.yaml: source.rocketmq.connection: line 3: there is no connection "eats"', "did you mean east?"),
        ('0.yaml: source.rocketmq.topcs: line 3: unknown key "topcs"', "did you mean topics?"),
        ("0.yaml: source.rocketmq.start: line 3: must be", ""),
        ('0.yaml: sink.file.pth: line 4: unknown key "pth"', ""),
        ("0.yaml: sink.file.path: line 4: is missing", ""),
        ("1.yaml: sink.rocketmq.connection: line 4:", 'the key "a" appears twice'),
        ("1.yaml: sink.rocketmq.queues: line 4:", ""),
        ("1.yaml: tasks: line 5:", ""),
        ("2.yaml: line", ""),
        ("4.yaml: schedule.evry: line 5:", ""),
        ("4.yaml: sink.file.path: line 4:", "is also written by connector d"),
    )
    for begin, words in expected:
        assert any(begin in one and words in one for one in told), (begin, words, told)
    assert len(told) == len(expected), told


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_copy("a", "out/x.txt"), _copy("b", "out/x.txt")),
        (_copy("a", "out/x.txt"), _copy("b", "linked/x.txt")),
        (_copy("a", "out/x.txt"), _copy("b", "out/soft.txt")),
        (_copy("a", "out/x.txt"), _copy("b", "out/hard.txt")),
        (_copy("a", "out/y.txt", "tasks: 3\n"), _copy("b", "out/y.task2.txt")),
        (_copy("a", "out/x.txt"), _from_topic("b", "t", "out/x.txt", "rules: [{name: r}]\n")),
    ],
    ids=["path", "linked folder", "symbolic link", "hard link", "file of a task", "another source"],
)
def test_a_file_has_one_writer(one: str, other: str, home: Path, settings: Settings, faults: Faults) -> None:
    out = home.parent / "out"
    out.mkdir()
    (home.parent / "linked").symlink_to(out)
    (out / "x.txt").touch()
    (out / "soft.txt").symlink_to("x.txt")
    os.link(out / "x.txt", out / "hard.txt")
    for first, second in ((one, other), (other, one)):
        (told,) = faults(first, second)
        assert told.startswith("1.yaml: sink.file.path: line 4: ")
        assert "is also written by connector " in told
        assert "0.yaml), and a file can have one writer only" in told
    (home.parent / "alone.yaml").write_text(one)
    (standing,) = check_paths([home.parent / "alone.yaml"], home, settings)
    (home.parent / "documents" / "1.yaml").unlink()
    (told,) = faults(other, standing={"a": standing.data})
    assert "is also written by connector a" in told
    assert faults(one, standing={"a": standing.data}) == [], "applied once more"


def test_files_side_by_side_are_sound(faults: Faults) -> None:
    assert faults(_copy("a", "out/x.txt", "tasks: 2\n"), _copy("b", "out/x.txt"), _copy("c", "out/x.task2.txt")) == []


def test_a_task_s_file_that_the_source_reads_is_told(faults: Faults) -> None:
    text = _document("a", "{file: {path: 'x/*.task1.log'}}", "{file: {path: x/y.log}}")
    assert faults(text) == []
    (told,) = faults(f"{text}tasks: 2\n")
    assert "is one of the files that the source reads" in told


def test_a_link_to_the_target_is_not_read(home: Path, faults: Faults) -> None:
    for name in ("in", "out"):
        (home.parent / name).mkdir()
    (home.parent / "out" / "x.txt").touch()
    (home.parent / "in" / "x.log").symlink_to(home.parent / "out" / "x.txt")
    (told,) = faults(_copy("a", "out/x.txt"))
    assert "is one of the files that the source reads" in told


@pytest.mark.parametrize(
    "documents",
    [
        (_between_topics("a", "t", "u"), _between_topics("b", "u", "t")),
        (_between_topics("a", "t", "u"), _between_topics("b", "u", "v"), _between_topics("c", "v", "t")),
        (_between_topics("a", "t", "orders-1"), _between_topics("b", "orders-*", "t")),
    ],
    ids=["two", "three", "pattern"],
)
def test_connectors_that_feed_each_other_are_refused(documents: tuple[str, ...], faults: Faults) -> None:
    (told,) = faults(*documents)
    assert told.startswith("0.yaml: sink.rocketmq: line 4: what it writes is read by connector b")
    assert "every record would circulate forever" in told
    chosen = [*documents[:-1], f"{documents[-1]}filter: {{tags: [new]}}\n"]
    assert faults(*chosen) == [], "one that leaves records out may end it"


@pytest.mark.parametrize("path", ["x/*.log", "x/y.log", "x/y.task1.log"])
def test_no_connector_reads_what_another_one_writes_in_a_file(
    path: str, home: Path, settings: Settings, faults: Faults
) -> None:
    """Its last lines are not final before they have a receipt."""
    more = "tasks: 2\n" if "task1" in path else ""
    writer, reader = _from_topic("a", "t", "x/y.log", more), _to_topic("b", path, "u")
    for first, second, number in ((writer, reader, 1), (reader, writer, 0)):
        (told,) = faults(first, second)
        assert told.startswith(f"{number}.yaml: source.file.path: line 3: it names a file that connector a (")
    (home.parent / "alone.yaml").write_text(reader)
    (standing,) = check_paths([home.parent / "alone.yaml"], home, settings)
    (home.parent / "documents" / "1.yaml").unlink()
    (told,) = faults(writer, standing={"b": standing.data})
    assert told.startswith("0.yaml: sink.file.path: line 4: connector b reads this file")
    assert faults(_from_topic("a", "t", "x/y.txt"), standing={"b": standing.data}) == []


def test_a_chain_is_no_circle(faults: Faults) -> None:
    assert faults(_to_topic("a", "x/*.log", "t"), _from_topic("b", "t", "z/y.log")) == []


def test_another_system_under_one_name_is_refused(home: Path, settings: Settings, faults: Faults) -> None:
    (home.parent / "alone.yaml").write_text(_to_topic("a", "x/*.log", "t"))
    (standing,) = check_paths([home.parent / "alone.yaml"], home, settings)
    (told,) = faults(_from_topic("a", "t", "y.txt"), standing={"a": standing.data})
    assert told.startswith("0.yaml: source.rocketmq: line 3: connector a reads file: its offsets mean nothing")
    assert "waybill connectors delete a" in told
    assert faults(_copy("a", "y.txt"), standing={"a": standing.data}) == []
