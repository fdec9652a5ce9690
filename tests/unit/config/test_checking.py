"""Documents: every bad input with its message, and all faults at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from connect_core.config import ALL, Settings, check, check_paths, load_document, read_text, resolve
from connect_core.errors import ConfigError
from connect_core.work import RejectLimit

Faults = Callable[..., list[str]]

SOUND = """\
version: 1
name: lines-in
description: application logs
source: {file: {path: logs/*.log}}
sink: {rocketmq: {connection: main, topic: lines, queues: 4}}
tasks: 2
schedule: {every: 60s, window: 55s}
limits: {range_records: 1000, range_bytes: 1GiB, records_per_second: 0}
transforms: []
errors: {tolerance: none, dead_letter: ledger, on_data_loss: skip}
alerts: {lag: 5m, silent: 15m}
"""


def _without(key: str) -> str:
    return "".join(line for line in SOUND.splitlines(keepends=True) if not line.startswith(f"{key}:"))


def _with(line: str) -> str:
    return _without(line.partition(":")[0]) + line + "\n"


def test_a_sound_document_is_a_value(home: Path, settings: Settings) -> None:
    checked = check(read_text(SOUND, where="x")[0], home, settings)
    document = checked.document
    assert (document.name, document.tasks, document.limits.range_bytes) == ("lines-in", 2, 2**30)
    assert document.schedule.words() == "every 1m, window 55s"
    assert (document.errors.tolerance, document.errors.on_data_loss) == (0, "skip")
    assert document.alerts.silent == 900
    assert checked.notices == (
        "schedule.window: a run with a window holds its slot and one of the engine's for that long",
    )


def test_the_former_name_of_on_data_loss_is_read(home: Path, settings: Settings) -> None:
    former = SOUND.replace("on_data_loss: skip", "on_gap: skip")
    checked = check(read_text(former, where="x")[0], home, settings)
    assert checked.document.errors.on_data_loss == "skip"
    assert checked.data["errors"]["on_gap"] == "skip", "stored as it was written"


def test_what_is_stored_is_as_written_with_absolute_paths(home: Path, settings: Settings) -> None:
    checked = check(read_text(SOUND, where="x")[0], home, settings)
    assert checked.data["source"] == {"file": {"path": str(home.parent / "logs" / "*.log")}}
    assert checked.data["sink"] == {"rocketmq": {"connection": "main", "topic": "lines", "queues": 4}}
    assert checked.data["limits"]["range_bytes"] == "1GiB"
    assert load_document(checked.data) == checked.document


@pytest.mark.parametrize(("word", "value"), [("none", 0), ("all", ALL), ("17", 17)])
def test_tolerance(word: str, value: int, home: Path, settings: Settings) -> None:
    written = read_text(_with(f"errors: {{tolerance: {word}}}"), where="x")[0]
    assert check(written, home, settings).document.errors.tolerance == value


def test_a_budget_of_rejects(home: Path, settings: Settings) -> None:
    ends = "version: 1\nname: x\nsource: {file: {path: a}}\nsink: {file: {path: b}}\n"
    budget = "{records: 100, share: 0.5%, window: 10m}"
    written = read_text(f"{ends}errors: {{tolerance: all, budget: {budget}}}\n", where="x")[0]
    document = check(written, home, settings).document
    assert resolve(document, home, settings, "uid").reject_limit == RejectLimit(100, 0.005, 600)


def test_what_may_be_left_out(faults: Faults) -> None:
    assert faults("version: 1\nname: x\nsource: {file: {path: a}}\nsink: {file: {path: b}}\n") == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (_without("version"), "version: line 1: is missing: Version of the document format."),
        (_with("version: 2"), "version: line 11: input should be 1, found 2"),
        (_without("name"), "name: line 1: is missing: Unique name of the connector."),
        (_with("name: a/b"), "'a/b' cannot name a connector: use 1 to 100 of A-Z a-z 0-9 . _ -"),
        (_with("name: .."), "'..' cannot name a connector"),
        (_with(f"name: {'x' * 101}"), "cannot name a connector"),
        (_with("name: 12"), "name: line 11: input should be a valid string, found 12"),
        (_without("source"), "source: line 1: is missing: Where records are read"),
        (_with("source: file"), "source: line 11: needs exactly one system with its options"),
        (_with("source: {file: {path: a}, rocketmq: {}}"), "source: line 11: needs exactly one system"),
        (_with("source: {}"), "needs exactly one system with its options, as {file: {path: in.log}}; found nothing"),
        (_with("source: {file: in.log}"), "source: line 11: the options of file must be a mapping, not 'in.log'"),
        (_with("source: {flie: {path: a}}"), 'source.flie: line 11: there is no system "flie"; did you mean file?'),
        (_with("source: {file: {path: a, pth: b}}"), 'source.file.pth: line 11: unknown key "pth"; did you mean path?'),
        (_with("source: {file: {}}"), "source.file.path: line 11: is missing: File, or pattern"),
        (_with("source: {file: {path: 5}}"), "source.file.path: line 11: input should be a valid string, found 5"),
        (_with("source: {file: {path: /etc/passwd}}"), "/etc/passwd is outside of the folders that files may be in"),
        (_with("source: {file: {path: ../x}}"), "is outside of the folders that files may be in"),
        (_with("source: {file: {path: '*/../../x'}}"), "has .. behind a wildcard"),
        (_with("source: {rocketmq: {connection: main, topics: []}}"), "source.rocketmq.topics: line 11: "),
        (_with("source: {rocketmq: {connection: main, topics: [a b]}}"), "source.rocketmq.topics.0: line 11: must be"),
        (_with("source: {rocketmq: {topics: [a]}}"), "source.rocketmq.name_servers: line 11: is missing"),
        (_with("sink: {rocketmq: {connection: mian, topic: a}}"), 'there is no connection "mian" in '),
        (_with("sink: {rocketmq: {connection: ../x, topic: a}}"), "'../x' cannot name a connection"),
        (_with("sink: {file: {connection: main, path: x}}"), 'the connection "main" is for rocketmq, not for file'),
        (_with("sink: {rocketmq: {connection: main, topic: a.b}}"), "sink.rocketmq.topic: line 11: must be 1 to 127"),
        (_with("sink: {rocketmq: {connection: main, topic: TBW102}}"), "is a topic that RocketMQ or Waybill uses"),
        (_with("sink: {rocketmq: {connection: main, topic: a, queues: -1}}"), "greater than or equal to 0, found -1"),
        (
            _with("sink: {rocketmq: {name_servers: x, topic: a}}"),
            "sink.rocketmq.name_servers.0: line 11: must be written",
        ),
        (_with("sink: {file: {path: x, tasks: 3}}"), 'sink.file.tasks: line 11: unknown key "tasks"'),
        (_with("tasks: 0"), "tasks: line 11: input should be greater than or equal to 1, found 0"),
        (_with("tasks: '2'"), "tasks: line 11: input should be a valid integer, found '2'"),
        (_with("tasks: ${env:TASKS}"), "tasks: line 11: input should be a valid integer"),
        (
            _with("task: 2"),
            'task: line 12: unknown key "task"; did you mean tasks? (known: airflow, alerts, assignment, description,',
        ),
        (_with("schedule: {}"), "schedule: line 11: needs exactly one of every, cron, continuous, on_change, manual"),
        (_with("schedule: {every: 30s, manual: true}"), "every and manual are given"),
        (_with("schedule: {every: 30x}"), "schedule.every: line 11: '30x' is not a duration"),
        (_with("schedule: {every: 500ms}"), "schedule.every: line 11: input should be greater than or equal to 1"),
        (_with("str: 1"), 'str: line 12: unknown key "str"'),
        (_with("source: {file: {path: a, '[': b}}"), 'source.file.[: line 11: unknown key "["'),
        (_with("schedule: {evry: 30s}"), 'schedule.evry: line 11: unknown key "evry"; did you mean every?'),
        (_with("schedule: {manual: false}"), "schedule.manual: line 11: input should be True, found False"),
        (_with("schedule: {every: 30s, window: 30s}"), "window (30s) must be shorter than every (30s)"),
        (_with("schedule: {cron: '* * * *'}"), "'* * * *' has 4 fields, a cron expression has 5"),
        (_with("schedule: {cron: '60 * * * *'}"), "'60' is not a minute (0-59)"),
        (_with("schedule: {cron: '* * * * fry'}"), "'fry' is not a day of the week"),
        (_with("schedule: {cron: '*/0 * * * *'}"), "'*/0' is not a minute"),
        (_with("schedule: {cron: '9-5 * * * *'}"), "'9-5' is not a minute"),
        (_with("limits: {range_records: 0}"), "limits.range_records: line 11: input should be greater than"),
        (_with("limits: {range_bytes: 1 gig}"), "limits.range_bytes: line 11: '1 gig' is not a size"),
        (_with("limits: {range_bytes: true}"), "limits.range_bytes: line 11: True is not a size"),
        (_with("transforms: [{drop: x}]"), "transforms.0: line 11: drop: needs a list, as [user.mail]"),
        (_with("errors: {tolerance: some}"), "errors.tolerance: line 11: 'some' is not none, all or the number"),
        (_with("errors: {tolerance: -1}"), "-1 is not none, all or the number"),
        (_with("errors: {tolerance: true}"), "True is not none, all or the number"),
        (_with("errors: {budget: {records: 5}}"), "budget limits what tolerance allows, and tolerance is none"),
        (_with("errors: {tolerance: all, budget: {window: 1h}}"), "limits nothing: give records, share or both"),
        (_with("errors: {tolerance: all, budget: {share: 5}}"), "errors.budget.share: line 11: 5 is not a share"),
        (_with("errors: {dead_letter: topic}"), "errors.dead_letter: line 11: input should be 'ledger', found 'topic'"),
        (_with("errors: {on_data_loss: ignore}"), "errors.on_data_loss: line 11: input should be 'fail' or 'skip'"),
        (_with("errors: {on_gap: ignore}"), "errors.on_gap: line 11: input should be 'fail' or 'skip'"),
        (_with("errors: {on_data_loss: fail, on_gap: skip}"), 'errors.on_gap: line 11: unknown key "on_gap"'),
        (_with("alerts: {lag: 0}"), "alerts.lag: line 11: input should be greater than 0"),
        (
            SOUND + "airflow: {queue: 'north,south'}\n",
            "airflow.queue: line 12: 'north,south' cannot name a queue or a pool",
        ),
        (SOUND + "airflow: {pool: ''}\n", "airflow.pool: line 12: '' cannot name a queue or a pool"),
        (SOUND + "airflow: {slots: 2}\n", 'airflow.slots: line 12: unknown key "slots"'),
        (SOUND + "verify: {every: 1d, share: 0%}\n", "verify.share: line 12: '0%' is not a share: write a percentage"),
        (SOUND + "verify: {every: 1d, share: 101%}\n", "verify.share: line 12: '101%' is not a share"),
        (SOUND + "verify: {every: 1d, share: 0.05}\n", "verify.share: line 12: 0.05 is not a share"),
        (SOUND + "verify: {share: 5%}\n", "verify.every: line 12: is missing"),
        ("- a\n- b\n", "a document is a mapping of keys to values"),
        ("just text", "a document is a mapping of keys to values"),
    ],
)
def test_bad_input_is_told(text: str, fault: str, faults: Faults) -> None:
    told = faults(text)
    assert len(told) == 1, told
    assert fault in told[0]


def test_all_faults_are_told_at_once(faults: Faults) -> None:
    text = "version: 3\nname: a b\nsource: {file: {pth: 1, parallel: 7}}\nsink: {rocketmq: {topic: '!'}}\ntasks: x\n"
    told = faults(text)
    paths = {fault.partition(":")[0] for fault in told}
    assert paths == {
        "version",
        "name",
        "source.file.pth",
        "source.file.path",
        "source.file.parallel",
        "sink.rocketmq.topic",
        "sink.rocketmq.name_servers",
        "tasks",
    }


@pytest.mark.parametrize(
    ("ends", "fault"),
    [
        (
            "source: {file: {path: 'a/*.log'}}\nsink: {file: {path: a/b.log}}",
            "sink.file.path: line 4: is one of the files",
        ),
        ("source: {file: {path: 'a/**/*.log'}}\nsink: {file: {path: a/c/d/b.log}}", "is one of the files"),
        (
            "source: {rocketmq: {connection: main, topics: [a, b]}}\nsink: {rocketmq: {connection: main, topic: b}}",
            "sink.rocketmq.topic: line 4: is a topic that the source reads, in the same cluster",
        ),
        (
            "source: {rocketmq: {connection: main, topics: ['*']}}\nsink: {rocketmq: {connection: main, topic: b}}",
            "is a topic that the source reads",
        ),
        (
            f"source: {{rocketmq: {{connection: main, topics: [{'long' * 30}]}}}}\n"
            "sink: {rocketmq: {connection: main, topic: 'copy-of-{topic}'}}",
            "sink.rocketmq.topic: line 4: makes a name of longlong",
        ),
        (
            "source: {rocketmq: {connection: main, topics: 'a*'}}\n"
            "sink: {rocketmq: {connection: main, topic: '{topic}-copy'}}",
            "is a topic that the source reads",
        ),
        (
            "source: {rocketmq: {connection: main, topics: [a, b]}}\n"
            "sink: {rocketmq: {connection: main, topic: '{topic}-copy', rename: {a: b}}}",
            "is a topic that the source reads",
        ),
        (
            "source: {mqtt: {host: a, filters: ['d/+']}}\nsink: {mqtt: {host: a, topic: 'd/{tags}'}}",
            "sink.mqtt.topic: line 4: is a topic that the source reads, at the same broker",
        ),
        (
            "source: {mqtt: {host: a, filters: ['d/#']}}\nsink: {mqtt: {host: a, topic: '{header:MQTT_TOPIC|topic}'}}",
            "is a topic that the source reads, at the same broker",
        ),
        (
            "source: {rocketmq: {name_servers: 'LocalHost:9876;b:9876', topics: [a, b]}}\n"
            "sink: {rocketmq: {name_servers: ['127.0.0.1:9876'], topic: b}}",
            "is a topic that the source reads, in the same cluster",
        ),
        (
            "source: {mqtt: {host: '::1', filters: ['d/+']}}\nsink: {mqtt: {host: 'localhost.', topic: d/x}}",
            "is a topic that the source reads, at the same broker",
        ),
        (
            "source: {mqtt: {host: a, failover: ['b:1884'], filters: ['d/+']}}\n"
            "sink: {mqtt: {host: b, port: 1884, topic: d/x}}",
            "is a topic that the source reads, at the same broker",
        ),
        (
            "source: {mqtt: {host: LocalHost, filters: ['d/+']}}\n"
            "sink: {mqtt: {host: 127.0.0.1, port: 1883, topic: d/x}}",
            "is a topic that the source reads, at the same broker",
        ),
        (
            "source: {mqtt: {host: a, filters: ['way/#']}}\nsink: {mqtt: {host: a, topic: b, progress_topic: way/b}}",
            "sink.mqtt.progress_topic: line 4: begins a topic that the source reads",
        ),
    ],
)
def test_a_connector_may_not_feed_itself(ends: str, fault: str, faults: Faults) -> None:
    told = faults(f"version: 1\nname: x\n{ends}\n")
    assert len(told) == 1
    assert fault in told[0]


@pytest.mark.parametrize(
    "ends",
    [
        "source: {file: {path: 'a/*.log'}}\nsink: {file: {path: a/c/b.log}}",
        "source: {rocketmq: {connection: main, topics: [a]}}\nsink: {rocketmq: {connection: main, topic: b}}",
        "source: {rocketmq: {connection: main, topics: [a]}}\n"
        "sink: {rocketmq: {name_servers: ['other:9876'], topic: a}}",
        "source: {rocketmq: {connection: main, topics: ['*'], exclude: ['*-copy']}}\n"
        "sink: {rocketmq: {connection: main, topic: '{topic}-copy', order: queue, queues: 0}}",
        "source: {rocketmq: {connection: main, topics: ['*']}}\n"
        "sink: {rocketmq: {name_servers: ['other:9876'], topic: '{topic}', rename: {a: b}}}",
        "source: {mqtt: {host: a, filters: ['d/+']}}\nsink: {mqtt: {host: a, topic: 'copy/{topic}'}}",
        "source: {mqtt: {host: a, filters: ['#']}}\nsink: {mqtt: {host: b, topic: '{topic}'}}",
        "source: {mqtt: {host: a, filters: ['#']}}\nsink: {mqtt: {host: a, port: 1884, topic: '{topic}'}}",
        "source: {file: {path: a}}\nsink: {mqtt: {host: b, topic: c}}\nrules: [{name: r, to: 'd/{$.id}'}]",
    ],
)
def test_ends_that_do_not_meet_are_sound(ends: str, faults: Faults) -> None:
    assert faults(f"version: 1\nname: x\n{ends}\n") == []


@pytest.mark.parametrize(
    ("option", "fault"),
    [
        ("topic: '{topic}'", "sink.rocketmq.topic: line 4: {topic} needs a source of topics, and file is none"),
        ("topic: a, order: queue", "sink.rocketmq.order: line 4: queue needs a source of queues, and file is none"),
        ("topic: a, groups: [g]", "sink.rocketmq.groups: line 4: are those of a RocketMQ source, and file is none"),
        ("topic: a, groups: ['b c']", "sink.rocketmq.groups.0: line 4: must be 1 to 120 of the characters"),
    ],
)
def test_a_file_has_neither_topics_nor_queues(option: str, fault: str, faults: Faults) -> None:
    ends = f"source: {{file: {{path: a}}}}\nsink: {{rocketmq: {{connection: main, {option}}}}}"
    assert fault in faults(f"version: 1\nname: x\n{ends}\n")[0]


@pytest.mark.parametrize(
    ("start", "fault"),
    [
        ("yesterday", 'must be "earliest", "latest"'),
        ("2026-11-01T00:00:00", "is a time without its zone"),
        ("group:", "names no consumer group"),
        ("group:a b", "must be 1 to 120 of the characters"),
    ],
)
def test_a_start_that_means_nothing(start: str, fault: str, faults: Faults) -> None:
    assert fault in faults(_with(f"source: {{rocketmq: {{connection: main, topics: [a], start: '{start}'}}}}"))[0]


@pytest.mark.parametrize(
    ("start", "fault"),
    [
        ("{b: {b-a/0: 1}}", "source.rocketmq.start: line 11: b is none of the topics that are read"),
        ("{a: {b-a: 1}}", 'a: b-a is no queue: write "broker-a/0"'),
        ("{a: {b-a/0: -1}}", "a: b-a/0 must begin at an offset, 0 or more, not at -1"),
        ("{a: {b-a/0: x}}", "a: b-a/0 must begin at an offset, 0 or more, not at x"),
        ("{a: 7}", "a must have an offset for each of some queues"),
        ("{default: soon}", 'must be "earliest", "latest"'),
    ],
)
def test_start_offsets_that_mean_nothing(start: str, fault: str, faults: Faults) -> None:
    assert fault in faults(_with(f"source: {{rocketmq: {{connection: main, topics: [a], start: {start}}}}}"))[0]


def test_a_filter_that_is_no_condition(faults: Faults) -> None:
    sound = _with("filter: {sql: \"amount > 100 AND region IN ('eu', 'us')\"}")
    assert faults(sound.replace("file: {path: logs/*.log}", "mqtt: {host: b, filters: ['in/#']}")) == []
    (fault,) = faults(_with("filter: {sql: 'amount > 100 AND'}"))
    assert "filter.sql" in fault
    assert "is not a condition: it cannot be read at its end" in fault


@pytest.mark.parametrize("start", ["{a: {b-a/0: 0, b-a/1: 7}}", "{a: {b-a/0: 1}, default: 2026-11-01T00:00:00Z}"])
def test_start_offsets(start: str, faults: Faults) -> None:
    assert faults(_with(f"source: {{rocketmq: {{connection: main, topics: [a], start: {start}}}}}")) == []


@pytest.mark.parametrize(
    "start",
    ["latest", "2026-11-01T00:00:00Z", "'2026-11-01 00:00:00+01:00'", "group:billing", "group:billing or latest"],
)
def test_starts(start: str, faults: Faults) -> None:
    assert faults(_with(f"source: {{rocketmq: {{connection: main, topics: [a], start: {start}}}}}")) == []


def test_secrets_must_be_references(faults: Faults, home: Path) -> None:
    folder = home.parent / "conf" / "connections"
    folder.mkdir(parents=True)
    (folder / "acl.yaml").write_text("rocketmq: {name_servers: ['a:1'], password: hunter2, user: '${env:AK}'}")
    told = faults(_with("sink: {rocketmq: {connection: acl, topic: a}}"))
    assert any("is a secret in plain text" in fault for fault in told)
    assert not any("hunter2" in fault for fault in told)


@pytest.mark.parametrize(
    ("header", "plain"),
    [
        ("Authorization: hunter2-x", True),
        ("authorization: 'Bearer ${env:TOKEN}'", False),
        ("Cookie: '${file:/run/cookie}'", False),
        ("X-Api-Key: hunter2-x", True),
        ("Apikey: hunter2-x", True),
        ("Ocp-Apim-Subscription-Key: hunter2-x", True),
        ("X-Auth: hunter2-x", True),
        ("apikey: '${env:KEY}'", False),
        ("X-Tenant: acme", False),
    ],
)
def test_headers_that_are_secrets_must_hold_references(faults: Faults, header: str, plain: bool) -> None:
    source = f"source: {{mqtt: {{host: a, filters: [b], websockets: /mqtt, websocket_headers: {{{header}}}}}}}"
    told = faults(_with(source))
    assert [fault.startswith("source.mqtt.websocket_headers.") and "plain text" in fault for fault in told] == [
        True
    ] * plain
    assert not any("hunter2" in fault for fault in told)


@pytest.mark.parametrize("reference", ["${env:NS}", "${file:/run/ns}", "${file:/run/ns#key}", "${stack:name_servers}"])
def test_a_reference_stands_for_any_type(reference: str, faults: Faults) -> None:
    assert faults(_with(f"sink: {{rocketmq: {{name_servers: '{reference}', topic: lines}}}}")) == []
    assert faults(_with(f"sink: {{rocketmq: {{name_servers: ['{reference}'], topic: lines}}}}")) == []


@pytest.mark.parametrize("reference", ["${NS}", "${vault:x}", "${env:}", "${env:A-B}", "${file:}", "${stack:A}"])
def test_a_broken_reference_is_told(reference: str, faults: Faults) -> None:
    told = faults(_with(f"sink: {{rocketmq: {{name_servers: '{reference}', topic: lines}}}}"))
    assert len(told) == 1
    assert "sink.rocketmq.name_servers: line 11: ${" in told[0]


def test_faults_of_many_files_come_together(home: Path, settings: Settings) -> None:
    folder = home.parent / "docs"
    folder.mkdir()
    (folder / "a.yaml").write_text(SOUND)
    (folder / "b.yaml").write_text(_with("tasks: 0"))
    (folder / "c.yaml").write_text(SOUND + "---\n" + _with("name: other").replace("main", "gone"))
    with pytest.raises(ConfigError, match="4 faults in 4 documents") as raised:
        check_paths([folder], home, settings)
    told = str(raised.value)
    assert f"{folder}/b.yaml: tasks: line 11" in told
    assert f"{folder}/b.yaml: name: " in told
    assert f"{folder}/c.yaml (document 2): sink.rocketmq.connection" in told
    assert f'{folder}/c.yaml (document 1): name: "lines-in" is already the name of the document in' in told


def test_no_document_is_a_fault(home: Path, settings: Settings) -> None:
    empty = home.parent / "empty"
    empty.mkdir()
    with pytest.raises(ConfigError, match="There is no document"):
        check_paths([empty], home, settings)
