"""check, apply, init, options."""

from __future__ import annotations

import lzma
from pathlib import Path
from textwrap import indent

import pytest

from connect_core.cli import output
from tests.unit.cli.conftest import DOCUMENT, Waybill


def _write(folder: Path, text: str, name: str = "copy.yaml") -> str:
    (folder / name).write_text(text)
    return name


def test_check_writes_nothing(waybill: Waybill, folder: Path) -> None:
    typed = waybill("check", _write(folder, DOCUMENT.format(name="copy")))
    assert typed.code == 0
    assert typed.out.splitlines()[0] == "copy.yaml: copy is valid"
    assert not (folder / ".waybill").exists()


def test_check_and_show_print_what_is_promised_with_each_condition(waybill: Waybill, folder: Path) -> None:
    path = _write(folder, DOCUMENT.format(name="copy"))
    promised = """\
guarantee: exactly once, if
  - No log is cut in place and then grows past the position that was read with the same bytes again.
  - A log stays in its folder, under any name, until a run has read its last line.
  - The target is on a local file system.
  - Nothing else writes to the target file.
order: within each file
"""
    assert waybill("check", path).out.endswith(f"valid\n{indent(promised, '  ')}")
    waybill("apply", path)
    assert promised in waybill("connectors", "show", "copy").out
    told = waybill("check", path, "--json").json["documents"][0]["guarantee"]
    assert told["delivery"] == "exactly once"
    assert len(told["conditions"]) == 4
    assert told["order"] == "each file"
    assert waybill("connectors", "show", "copy", "--json").json["guarantee"] == told


def test_check_prints_on_what_it_depends_that_several_hosts_read_a_file(waybill: Waybill, folder: Path) -> None:
    text = DOCUMENT.format(name="copy").replace("logs/*.log", "logs/*.log, shared: true")
    assert (
        "each sees at once what another has written or renamed (`shared: true`)."
        in waybill("check", _write(folder, text)).out
    )


def test_a_document_that_is_no_yaml_is_a_document_with_a_fault(waybill: Waybill, folder: Path) -> None:
    typed = waybill("check", _write(folder, "version: 1\nname: a\nsql: SELECT lambda x: x\n"))
    assert (typed.code, typed.err.splitlines()[0]) == (2, "Error: 1 fault in 1 document")


def test_check_tells_all_faults_and_ends_with_2(waybill: Waybill, folder: Path) -> None:
    path = _write(folder, "version: 1\nname: a b\nsource: {flie: {}}\nsink: {file: {}}\n")
    typed = waybill("check", path)
    assert typed.code == 2
    assert typed.out == ""
    assert typed.err.startswith("Error: 3 faults in 1 document\n")
    for words in ("copy.yaml: name: line 2", "source.flie: line 3: there is no system", "sink.file.path: line 4"):
        assert words in typed.err
    told = waybill("check", path, "--json")
    assert told.code == 2
    assert told.json["error"]["kind"] == "ConfigError"
    assert [fault["path"] for fault in told.json["error"]["faults"]] == [
        "copy.yaml: name",
        "copy.yaml: source.flie",
        "copy.yaml: sink.file.path",
    ]


def test_check_as_json_has_the_notices(waybill: Waybill, folder: Path) -> None:
    path = _write(folder, "connector.class=FileSource\nfilename=a\nconnect.topicname=t\nbatch.size=9\n", "x.properties")
    told = waybill("check", path, "--json").json
    assert told["valid"] is True
    assert told["documents"][0]["name"] == "x"
    assert told["documents"][0]["notices"][0].startswith("batch.size: accepted without effect")


def test_probe_looks_at_the_paths(waybill: Waybill, folder: Path) -> None:
    path = _write(folder, DOCUMENT.format(name="copy"))
    typed = waybill("check", path, "--probe")
    assert typed.code == 0
    assert f"ok: source: 1 files match {folder}/logs/*.log" in typed.out
    (folder / "logs" / "a.log").unlink()
    (folder / "out").rmdir()
    missing = waybill("check", path, "--probe", "--json")
    assert missing.code == 3
    assert [seen["ok"] for seen in missing.json["documents"][0]["probe"]] == [False, False]


def test_a_folder_cannot_be_written_as_a_file(waybill: Waybill, folder: Path) -> None:
    (folder / "out" / "copy.task1.txt").mkdir()
    typed = waybill("check", _write(folder, DOCUMENT.format(name="copy") + "tasks: 2\n"), "--probe")
    assert typed.code == 3
    assert f"ok: sink: {folder}/out/copy.task0.txt can be written\n" in typed.out
    assert f"MISSING: sink: {folder}/out/copy.task1.txt cannot be written: it is a folder" in typed.out


def test_a_connector_that_is_there_keeps_its_file_and_its_system(waybill: Waybill, applied: Path) -> None:
    rival = _write(applied, DOCUMENT.format(name="rival").replace("out/rival", "out/copy"), "rival.yaml")
    other = _write(
        applied, DOCUMENT.format(name="copy").replace("{file: {path: logs/*.log}}", "{mqtt: {host: h, filters: [a]}}")
    )
    for words in (["apply"], ["apply", "--dry-run"], ["check"]):
        typed = waybill(*words, other, rival)
        assert typed.code == 2
        assert "rival.yaml: sink.file.path: line 4:" in typed.err
        assert "is also written by connector copy (copy.yaml)" in typed.err
        assert "copy.yaml: source.mqtt: line 3: connector copy reads file" in typed.err
        assert "is also written by connector copy" in waybill(*words, rival).err
    assert [one["name"] for one in waybill("connectors", "list", "--json").json["connectors"]] == ["copy"]
    assert waybill("connectors", "show", "copy", "--json").json["revision"] == 1


@pytest.mark.parametrize(
    ("address", "code", "words"),
    [
        ("", 0, "ok: engine far: executors on other hosts are refused: WAYBILL_DRIVER_ADDRESS is not set"),
        ("127.0.0.2", 0, "ok: engine far: executors on other hosts have to reach 127.0.0.2, at a port that each run"),
        ("198.51.100.7", 3, "MISSING: engine far: The driver cannot listen at the address"),
    ],
)
def test_probe_tells_where_executors_on_other_hosts_reach_the_driver(
    address: str, code: int, words: str, waybill: Waybill, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYBILL_DRIVER_ADDRESS", address)
    (folder / "conf" / "engines").mkdir(parents=True)
    (folder / "conf" / "engines" / "far.yaml").write_text("{kind: submit, master: 'spark://127.0.0.1:7077'}")
    typed = waybill("check", _write(folder, DOCUMENT.format(name="copy") + "engine: far\n"), "--probe")
    assert typed.code == code
    assert words in typed.out


def test_probe_names_the_files_that_will_be_refused(waybill: Waybill, folder: Path) -> None:
    packed, binary = folder / "logs" / "b.log", folder / "logs" / "c.log"
    packed.write_bytes(lzma.compress(b"line\n"))
    binary.write_bytes(b"\0\1\n")
    (folder / "logs" / "folder.log").mkdir()
    path = _write(folder, DOCUMENT.format(name="copy"))
    typed = waybill("check", path, "--probe")
    assert typed.code == 3
    assert f"source: 3 files match {folder}/logs/*.log" in typed.out
    assert f"{packed} is compressed (xz) and will be refused" in typed.out
    assert f"{binary} is binary (it holds NUL bytes) and will be refused" in typed.out
    asked = _write(folder, DOCUMENT.format(name="copy").replace("*.log}", "*.log, binary: true}"))
    assert waybill("check", asked, "--probe").code == 0


def test_probe_tells_of_a_missing_stack(waybill: Waybill, folder: Path) -> None:
    text = DOCUMENT.format(name="copy").replace(
        "sink: {file: {path: out/copy.txt}}", "sink: {rocketmq: {connection: main, topic: t}}"
    )
    typed = waybill("check", _write(folder, text), "--probe")
    assert typed.code == 3
    assert "MISSING: The local stack is not running" in typed.out


def test_apply_shows_the_difference_first(waybill: Waybill, folder: Path) -> None:
    path = _write(folder, DOCUMENT.format(name="copy"))
    typed = waybill("apply", path)
    assert typed.code == 0
    assert typed.out.startswith("copy: created\n  + name: copy\n")
    assert waybill("apply", path).out == "copy: unchanged\n"
    _write(folder, DOCUMENT.format(name="copy") + "tasks: 2\n")
    assert waybill("apply", path, "--why", "faster").out == "copy: changed\n  + tasks: 2\n"
    revisions = waybill("connectors", "show", "copy", "--revisions", "--json").json["revisions"]
    assert [(revision["revision"], revision["who"], revision["why"]) for revision in revisions] == [
        (1, "ann", ""),
        (2, "ann", "faster"),
    ]


def test_a_dry_run_writes_nothing(waybill: Waybill, folder: Path) -> None:
    path = _write(folder, DOCUMENT.format(name="copy"))
    typed = waybill("apply", path, "--dry-run")
    assert typed.out.startswith("copy: would be created\n")
    assert not (folder / ".waybill").exists()
    waybill("apply", path)
    _write(folder, DOCUMENT.format(name="copy") + "tasks: 2\n")
    told = waybill("apply", path, "--dry-run", "--json").json
    assert told == {
        "applied": False,
        "connectors": [
            {"name": "copy", "change": "changed", "difference": ["+ tasks: 2"], "notices": [], "made_from": 1}
        ],
    }
    assert waybill("connectors", "list", "--json").json["connectors"][0]["revision"] == 1


def test_one_bad_document_and_nothing_is_applied(waybill: Waybill, folder: Path) -> None:
    good = _write(folder, DOCUMENT.format(name="good"), "good.yaml")
    bad = _write(folder, DOCUMENT.format(name="bad") + "tasks: none\n", "bad.yaml")
    typed = waybill("apply", good, bad)
    assert typed.code == 2
    assert "bad.yaml: tasks: line 5" in typed.err
    assert not (folder / ".waybill").exists()


def test_what_is_stored_is_absolute(waybill: Waybill, applied: Path) -> None:
    shown = waybill("connectors", "show", "copy", "--json").json
    assert shown["document"]["source"]["file"]["path"] == f"{applied}/logs/*.log"


def test_init_gives_a_document_that_check_accepts(waybill: Waybill, folder: Path) -> None:
    typed = waybill("init", "file", "rocketmq")
    assert typed.code == 0
    assert waybill("check", _write(folder, typed.out, "new.yaml")).code == 0
    assert (
        waybill("init", "file", "rocketmq", "--name", "mine", "--json")
        .json["document"]
        .startswith("version: 1\nname: mine")
    )
    assert waybill("init", "file", "kafka").code == 2


def test_options_come_from_the_models(waybill: Waybill) -> None:
    typed = waybill("options", "file", "path")
    assert typed.code == 0
    assert "path (source of file)" in typed.out
    assert "File, or pattern with" in typed.out
    names = [option["name"] for option in waybill("options", "rocketmq", "--json").json["options"]]
    assert names.count("name_servers") == 2
    assert "uid" not in names, "what no document gives is not shown"
    assert "schedule.every" in waybill("options", "connector").out


@pytest.mark.parametrize(
    ("words", "message"),
    [(("options", "nope"), 'There is no system "nope"'), (("options", "file", "pth"), 'file has no option "pth"')],
)
def test_unknown_options_are_told(words: tuple[str, ...], message: str, waybill: Waybill) -> None:
    typed = waybill(*words)
    assert typed.code == 2
    assert message in typed.err


def test_what_apply_says_is_stored_by_then(folder: Path, waybill: Waybill, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody may read it to its end: `waybill apply … | head -1`."""

    def broken(text: str) -> None:
        raise BrokenPipeError

    with monkeypatch.context() as patched:
        patched.setattr(output, "line", broken)
        assert waybill("apply", _write(folder, DOCUMENT.format(name="copy"))).code != 0
    assert [one["name"] for one in waybill("connectors", "list", "--json").json["connectors"]] == ["copy"]
