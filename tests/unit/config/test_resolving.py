"""From a stored document to what a run works with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connect_core.config import (
    ALL,
    Settings,
    check,
    load_document,
    load_settings,
    read_text,
    resolve,
    resolve_source,
    with_policies,
)
from connect_core.config.checking import Checked
from connect_core.config.document import ConnectorDocument
from connect_core.config.ruling import rule_patterns, rule_topics
from connect_core.errors import ConfigError, Unreachable
from connect_core.sdk.values import Json
from connect_core.stack import parts, record
from connect_core.stack.processes import Process
from connect_core.work import Side

TEXT = """\
version: 1
name: x
source: {file: {path: logs/*.log, max_line_bytes: 1MiB}}
sink: {rocketmq: {name_servers: ['${env:NS}'], topic: t}}
tasks: 3
limits: {range_records: 5, range_bytes: 1MiB}
errors: {tolerance: all, on_data_loss: skip}
"""


def _checked(text: str, home: Path, settings: Settings) -> Checked:
    return check(read_text(text, where="x")[0], home, settings)


def test_what_a_run_gets(home: Path, settings: Settings) -> None:
    resolved = resolve(_checked(TEXT, home, settings).document, home, settings, "5f2c")
    assert (resolved.name, resolved.uid, resolved.tasks) == ("x", "5f2c", 3)
    assert (resolved.range_records, resolved.range_bytes) == (5, 2**20)
    assert (resolved.tolerance, resolved.on_data_loss, resolved.pipeline) == (ALL, "skip", {"transforms": []})
    path = str(home.parent / "logs" / "*.log")
    assert resolved.source.options == {"path": path, "max_line_bytes": "1MiB", "roots": [str(home.parent)]}
    assert resolved.sink.options["name_servers"] == ["${env:NS}"], "secrets stay references"


def test_links_stay_as_they_are_written(home: Path, settings: Settings) -> None:
    (home.parent / "real").mkdir()
    (home.parent / "link").symlink_to("real")
    text = TEXT.replace("logs/*.log", "link/current.log")
    text = text.replace("sink: {rocketmq: {name_servers: ['${env:NS}'], topic: t}}", "sink: {file: {path: link/out}}")
    checked = _checked(text, home, settings)
    resolved = resolve(checked.document, home, settings, "u")
    assert resolved.source.options["path"] == str(home.parent / "link" / "current.log")
    assert resolved.sink.options["path"] == str(home.parent / "link" / "out")


def test_what_no_document_gives_is_filled_in(home: Path, settings: Settings) -> None:
    text = TEXT.replace("sink: {rocketmq: {name_servers: ['${env:NS}'], topic: t}}", "sink: {file: {path: out}}")
    assert resolve(_checked(text, home, settings).document, home, settings, "u").sink.options["tasks"] == 3
    text = text.replace("source: {file", "source: {rocketmq: {name_servers: 'h:1', topics: [a]}}\n# {file")
    options = resolve(_checked(text, home, settings).document, home, settings, "u").source.options
    assert (options["uid"], options["sink_system"]) == ("u", "file")
    text = text.replace("sink: {file: {path: out}}", "sink: {rocketmq: {name_servers: 'h:1', topic: t}}")
    options = resolve(_checked(text, home, settings).document, home, settings, "u").source.options
    assert options["sink_system"] == "rocketmq"


def test_an_older_revision_keeps_its_target_and_takes_the_policies_of_now() -> None:
    older = Side("file", {"path": "/old", "on_replaced": "fail"})
    assert with_policies("sink", older, Side("file", {"path": "/new", "on_replaced": "continue"})) == Side(
        "file", {"path": "/old", "on_replaced": "continue"}
    )
    assert with_policies("sink", older, Side("file", {"path": "/new"})) == Side("file", {"path": "/old"})
    assert with_policies("sink", older, Side("rocketmq", {"topic": "t"})) == older


def test_so_does_its_source() -> None:
    older = Side("file", {"path": "/old", "parallel": True})
    assert with_policies("source", older, Side("file", {"path": "/new", "shared": True})) == Side(
        "file", {"path": "/old", "parallel": True, "shared": True}
    )


def test_the_resolved_sides_are_plain_data(home: Path, settings: Settings) -> None:
    resolved = resolve(_checked(TEXT, home, settings).document, home, settings, "u")
    for side in (resolved.source, resolved.sink):
        assert json.loads(json.dumps(side.options)) == side.options


def test_roots_that_have_shrunk_refuse_what_was_stored(home: Path, settings: Settings) -> None:
    stored = _checked(TEXT, home, settings).data
    narrow = load_settings(home, {"WAYBILL_FILES_ROOTS": "elsewhere"})
    with pytest.raises(ConfigError, match="The connector cannot run") as raised:
        resolve(load_document(stored), home, narrow, "u")
    assert "source.file.path: " in str(raised.value)


def test_a_source_needs_no_stack_of_its_target(home: Path, settings: Settings) -> None:
    text = TEXT.replace("name_servers: ['${env:NS}']", "name_servers: '${stack:name_servers}'")
    document = _checked(text, home, settings).document
    with pytest.raises(Unreachable):
        resolve(document, home, settings, "")
    assert resolve_source(document, home, settings).options["path"] == str(home.parent / "logs" / "*.log")


def test_without_a_stack_its_reference_is_unreachable(home: Path, settings: Settings) -> None:
    text = TEXT.replace("name_servers: ['${env:NS}']", "connection: main")
    with pytest.raises(Unreachable, match="The local stack is not running") as raised:
        resolve(_checked(text, home, settings).document, home, settings, "u")
    assert "waybill dev up" in raised.value.next_step


def test_the_running_stack_says_where_its_name_server_is(home: Path, settings: Settings) -> None:
    process = Process(pid=1, started=0, boot_id="")
    ports = {"remoting": 19876}
    server = record.StackPart(parts.NAME_SERVER, process, ports, "5.3.3", {}, 0.0)
    record.save(record.Stack(home, parts.Options(), {parts.NAME_SERVER: server}))
    text = TEXT.replace("name_servers: ['${env:NS}']", "connection: main")
    resolved = resolve(_checked(text, home, settings).document, home, settings, "u")
    assert resolved.sink.options["name_servers"] == "127.0.0.1:19876"


def test_a_document_of_another_version_is_told() -> None:
    with pytest.raises(ConfigError, match="The document is not valid") as raised:
        load_document({"version": 9, "name": "x", "source": {"file": {}}, "sink": {"file": {}}}, "connector x")
    assert "version: input should be 1" in str(raised.value)


def test_rules_are_pinned_as_far_as_they_count(home: Path, settings: Settings) -> None:
    rules = "rules: [{name: a, when: '$.a > 1', to: hot}, {name: b, to: cold, enabled: false}, {name: c, tags: ''}]\n"
    resolved = resolve(_checked(TEXT + rules, home, settings).document, home, settings, "u")
    assert resolved.pipeline["rules"] == [
        {"name": "a", "when": "$.a > 1", "to": "hot"},
        {"name": "c", "tags": ""},
    ]
    assert (resolved.sink.options["rule_topics"], resolved.sink.options["only_rule_topics"]) == (["hot"], False)


@pytest.mark.parametrize(
    ("rules", "only"),
    [("{name: a, to: hot}, {name: b, enabled: false}", True), ("{name: a, to: hot}, {name: b}", False)],
)
def test_a_sink_is_told_when_rules_name_all_its_topics(rules: str, only: bool, home: Path, settings: Settings) -> None:
    document = _checked(TEXT + f"rules: [{rules}]", home, settings).document
    assert resolve(document, home, settings, "u").sink.options["only_rule_topics"] is only


def test_without_an_enabled_rule_a_run_still_has_rules(home: Path, settings: Settings) -> None:
    resolved = resolve(
        _checked(TEXT + "rules: [{name: b, enabled: false}]", home, settings).document, home, settings, "u"
    )
    assert (resolved.pipeline["rules"], resolved.sink.options["rule_topics"]) == ([], [])
    assert resolved.sink.options["only_rule_topics"] is False
    bare = resolve(_checked(TEXT, home, settings).document, home, settings, "u")
    assert (bare.pipeline, bare.sink.options["rule_topics"]) == ({"transforms": []}, None)


def loaded(parts: Json) -> ConnectorDocument:
    ends = {"source": {"file": {"path": "a.log"}}, "sink": {"rocketmq": {"topic": "a"}}}
    return load_document({"version": 1, "name": "x", **ends, **parts})


def test_a_sink_is_told_the_names_of_rules_and_the_patterns_of_their_templates(home: Path, settings: Settings) -> None:
    written = [
        {"name": "a", "to": "hot"},
        {"name": "b", "to": "t-{topic[1]}-{$.id}"},
        {"name": "c", "to": "off-{$.id}", "enabled": False},
    ]
    document = loaded({"rules": written})
    assert (rule_topics(document), rule_patterns(document.rules)) == (["hot"], ["t-*-*"])
    assert (rule_topics(loaded({})), rule_patterns([])) == (None, [])
    fields = {"format": "json", "fields": {"items": ["text"]}}
    assert rule_topics(loaded({"parse": fields, "transforms": [{"explode": "items"}]})) == []
