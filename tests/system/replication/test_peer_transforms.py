"""Flat documents with the transforms of Kafka Connect, from a file to a topic and from there to another file."""

from __future__ import annotations

import json
import time

import pytest

from connect_core.rocketmq import Client, ClientOptions
from connect_core.rocketmq.wire import properties
from tests.site import Site

pytestmark = pytest.mark.server

KAFKA = "org.apache.kafka.connect.transforms"
CONVERTER = """value.converter=org.apache.kafka.connect.json.JsonConverter
value.converter.schemas.enable=false
"""


def test_lines_become_json_with_keys_and_headers_and_come_back(site: Site) -> None:
    (site.folder / "lines.txt").write_text("foo\nbar\nZoë\n")
    (site.folder / "in.properties").write_text(
        f"""connector.class=FileSourceConnector
filename=lines.txt
connect.topicname=old-{site.topic}
{CONVERTER}transforms=route,hoist,source,key,take,header
transforms.route.type={KAFKA}.RegexRouter
transforms.route.regex=old-(.*)
transforms.route.replacement=$1
transforms.hoist.type={KAFKA}.HoistField$Value
transforms.hoist.field=line
transforms.source.type={KAFKA}.InsertField$Value
transforms.source.static.field=from
transforms.source.static.value=desk
transforms.key.type={KAFKA}.ValueToKey
transforms.key.fields=line
transforms.take.type={KAFKA}.ExtractField$Key
transforms.take.field=line
transforms.header.type={KAFKA}.HeaderFrom$Value
transforms.header.fields=from
transforms.header.headers=origin
transforms.header.operation=move
"""
    )
    (site.folder / "back.properties").write_text(
        f"""connector.class=FileSinkConnector
filename=back.jsonl
connect.topicnames={site.topic}
consume.from.where=CONSUME_FROM_FIRST_OFFSET
{CONVERTER}waybill.fields={{"line": "text"}}
transforms=skip,rename
transforms.skip.type={KAFKA}.Filter
transforms.skip.predicate=other
transforms.skip.negate=true
predicates=other
predicates.other.type={KAFKA}.predicates.HasHeaderKey
predicates.other.name=origin
transforms.rename.type={KAFKA}.ReplaceField$Value
transforms.rename.renames=line:text
"""
    )
    connections = site.home / "conf" / "connections"
    connections.mkdir(parents=True, exist_ok=True)
    (connections / "main.yaml").write_text(json.dumps({"rocketmq": {"name_servers": site.name_servers}}))
    for name in ("in", "back"):
        site.waybill("apply", f"{name}.properties")
        site.waybill("run", name)
    found = []
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        for queue, bounds in client.offsets.bounds(site.topic).items():
            for part in client.read(queue, bounds.begin, bounds.end, deadline=time.monotonic() + 30):
                found += list(part.messages)
    told = [(bytes(one.body).decode(), properties.decode(one.properties)) for one in found]
    assert sorted((body, own["KEYS"], own["origin"]) for body, own in told) == [
        ('{"line":"Zoë"}', "Zoë", "desk"),
        ('{"line":"bar"}', "bar", "desk"),
        ('{"line":"foo"}', "foo", "desk"),
    ]
    back = (site.folder / "back.jsonl").read_text().splitlines()
    assert sorted(back) == ['{"text":"Zoë"}', '{"text":"bar"}', '{"text":"foo"}']
