"""Examples for the OpenAPI document of Waybill's own API."""

from __future__ import annotations

DOCUMENT = {
    "version": 1,
    "name": "copy",
    "source": {"file": {"path": "/var/log/app/*.log"}},
    "sink": {"file": {"path": "/srv/copy.txt"}},
}
CHANGE = {
    "name": "copy",
    "change": "created",
    "difference": [],
    "notices": [],
    "made_from": 0,
    "uid": "k3v…",
    "revision": 1,
}
OUTLINE = {
    "name": "copy",
    "uid": "k3v…",
    "state": "idle",
    "since": "2026-11-29T10:00:00+00:00",
    "why": "",
    "next_step": "",
    "switch": "unknown",
    "revision": 1,
    "source": "file",
    "sink": "file",
    "tasks": 1,
    "schedule": "every hour",
    "description": "",
}
STATUS = {
    "connector": "copy",
    "state": "idle",
    "since": "2026-11-29T10:00:00+00:00",
    "why": "",
    "next_step": "",
    "switch": "unknown",
    "attempts": 0,
    "quarantined": [],
    "name": "copy",
    "last_settled": "2026-11-29T10:00:00+00:00",
    "gaps": 0,
}
RULE = {"name": "hot", "when": "$.temp > 30", "to": "alarms"}
REVISION = {
    "revision": 1,
    "applied_at": "2026-11-29T10:00:00+00:00",
    "who": "token ci from 192.0.2.7",
    "why": "by the REST API",
    "difference": [],
}
AT = "2026-11-29T10:00:00+00:00"
PARTITION = "/var/log/app/a.log"
RUN = {
    "id": "5h2m8a1k9q3zt",
    "stream": "live",
    "task": 0,
    "engine": "inline",
    "state": "done",
    "started_at": AT,
    "ended_at": AT,
    "failure": None,
    "delivered": 3,
}
TOTAL = {"ranges": 1, "read": 3, "delivered": 3, "gaps": 0, "bytes_read": 14}
RECEIPT = {
    "range": 1,
    "run": RUN["id"],
    "stream": "live",
    "partition": PARTITION,
    "begin": 0,
    "end": 14,
    "read": 3,
    "delivered": 3,
    "digest_read": "6c1f…",
    "digest_sent": "6c1f…",
    "conditions": [],
    "settled_at": AT,
}
GAP = {
    "stream": "live",
    "partition": PARTITION,
    "incarnation": 0,
    "begin": 14,
    "end": 20,
    "reason": "the file was rotated away",
    "run": None,
    "stored_at": AT,
}
LAG = {
    "connector": "copy",
    "lag": 0,
    "unit": "bytes",
    "settled_at": AT,
    "late": False,
    "silent": False,
    "partitions": [],
    "aside": [],
    "snapshot": [],
}
OFFSET = {"stream": "live", "partition": PARTITION, "incarnation": 0, "offset": 14, "changed_at": AT}
MOVED = {
    "connector": "copy",
    "applied": True,
    "before": {PARTITION: 14},
    "after": {PARTITION: 0},
    "incarnations": {PARTITION: [0, 0]},
}
UNDONE = {
    "applied": True,
    "connector": "copy",
    "partition": PARTITION,
    "before": {"incarnation": 0, "offset": 0},
    "after": {"incarnation": 0, "offset": 14},
    "repeats": {"receipts": 0, "records": 0, "bytes_read": 0, "at_most": False},
}
EXPORTED = {
    "version": 1,
    "connector": "copy",
    "offsets": [{"partition": PARTITION, "incarnation": 0, "offset": 14, "evidence": {"size": 14}}],
}
IMPORTED = {
    "applied": True,
    "connector": "copy",
    "before": {PARTITION: None},
    "after": {PARTITION: 14},
    "kept": [],
}
LETTER = {"id": 7, "state": "open", "partition": PARTITION, "offset": 4, "stage": "parse", "message": "is no JSON"}
GIVEN_UP = {"applied": True, "connector": "copy"}
SHOWN_LETTER = LETTER | {"key": None, "headers": [], "timestamp_ms": None, "whole": True, "original": "one, two"}
TO_REPLAY = {
    "connector": "copy",
    "until": AT,
    "letters": 1,
    "delivered": 0,
    "counts": [{"partition": PARTITION, "stage": "parse", "letters": 1, "bytes": 8}],
    "left_out": {},
    "resumed": [],
}
CHECKED = {"name": "copy", "notices": [], "examples": 0, "guarantee": {}}
PLUGIN = {
    "kind": "source",
    "name": "file",
    "title": "Files of lines",
    "package": "waybill",
    "version": "0.1.0",
    "classes": ["org.apache.rocketmq.connect.file.FileSourceConnector"],
    "options": [
        {
            "name": "path",
            "type": "path",
            "required": True,
            "default": "",
            "doc": "Which files to read",
            "unit": "",
            "importance": "high",
            "secret": False,
        }
    ],
    "error": "",
    "abilities": [],
    "installed": "0.1.0",
}
OPTION = {"name": "path", "role": "source", "type": "text", "required": True, "description": "Which files to read"}
BACKFILL = {
    "connector": "copy",
    "stream": "backfill-1m8kf4j1q9w38",
    "kind": "backfill",
    "state": "failed",
    "asked": {"ranges": [f"{PARTITION}:0-14"]},
    "sink": {},
    "revision": 1,
    "who": "token ci from 192.0.2.7",
    "why": "",
    "created_at": AT,
    "ended_at": AT,
    "open": [],
    "done": 4,
    "planned": 14,
    "parts": [{"partition": PARTITION, "incarnation": 0, "begin": 0, "end": 14, "done": 4}],
}
OPERATION = {
    "id": "1m8kf4j1q9w38",
    "connector": "copy",
    "kind": "verification",
    "asked": {"share": "5%"},
    "who": "token ci from 192.0.2.7",
    "state": "running",
    "step": 3,
    "progress": {"done": 2, "planned": 7},
    "result": None,
    "problem": None,
    "made_at": AT,
    "begun_at": AT,
    "ended_at": None,
}
