"""`waybill try` shows keys: the one that a record has, and the one that it gets."""

from __future__ import annotations

from pathlib import Path

from tests.unit.cli.conftest import Waybill

READS = """\
version: 1
name: a
source: {rocketmq: {name_servers: "localhost:1", topics: [people]}}
sink: {file: {path: out/a.txt}}
parse: {format: json, fields: {name: text}, key_format: json, key_fields: {id: int64}}
encode: {format: json}
"""
WRITES = """\
version: 1
name: a
source: {file: {path: logs/*.log}}
sink: {rocketmq: {name_servers: "localhost:1", topic: people}}
parse: {format: json, fields: {id: int64}}
encode: {key_format: json, key_fields: [id]}
errors: {tolerance: all}
"""


def test_keys_are_shown(waybill: Waybill, folder: Path) -> None:
    (folder / "a.yaml").write_text(READS)
    typed = waybill("try", "a.yaml", "--topic", "people", "--key", '{"id":7}', "--payload", '{"name":"Ann"}')
    assert typed.out.splitlines() == ['people key {"id":7}: {"name":"Ann"}', '  -> {"id":7,"name":"Ann"}']
    typed = waybill("try", "a.yaml", "--topic", "people", "--key", "7", "--payload", '{"name":"Ann"}')
    assert typed.out.splitlines()[1] == "  rejected: Its key is not of format json: not one JSON object"
    (folder / "logs" / "a.log").write_text('{"id": 7}\n7\n')
    (folder / "a.yaml").write_text(WRITES)
    told = waybill("try", "a.yaml").out.splitlines()
    assert told[:2] == ['{"id": 7}', '  -> key {"id":7}']
