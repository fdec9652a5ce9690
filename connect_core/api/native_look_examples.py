"""Examples of looks that move nothing, for the OpenAPI document of Waybill's own API."""

from __future__ import annotations

from connect_core.api.native_examples import AT, PARTITION, RUN

PLAN = {
    "connector": "copy",
    "state": "running",
    "lag": 14,
    "unit": "bytes",
    "window_s": None,
    "schema": None,
    "partitions": [{"partition": PARTITION, "task": 0, "committed": 0, "begin": 0, "end": 14, "lag": 14, "gaps": []}],
}
LOG = {
    "connector": "copy",
    "run": RUN["id"],
    "state": "done",
    "failure": None,
    "dag": "waybill.copy",
    "dag_run": "scheduled__2026-11-29T10:00:00+00:00",
    "attempts": [{"attempt": 1, "lines": ["3 records delivered"]}],
}
STEP = {
    "at": AT,
    "kind": "settled",
    "stream": "live",
    "partition": PARTITION,
    "before": {"incarnation": 0, "offset": 0},
    "after": {"incarnation": 0, "offset": 14},
    "run": RUN["id"],
    "range": 1,
    "who": None,
    "why": "",
}
TRACE = {
    "connector": "copy",
    "records": [
        {
            "partition": PARTITION,
            "offset": 4,
            "ranges": [{"range": 1, "stream": "live", "run": RUN["id"], "state": "settled", "places": []}],
            "what": "",
        }
    ],
}
TRIED = {
    "topic": None,
    "tags": None,
    "key": None,
    "value": "one",
    "becomes": [{"rule": "hot", "to": "alarms", "tags": None, "key": None}],
    "steps": [],
}
GROUP = {
    "connector": "copy",
    "group": "billing",
    "applied": False,
    "queues": [{"source": "orders/a/0", "committed": 5, "target": "orders/b/0", "offset": 7, "behind": 0}],
    "offsets": [{"target": "orders/b/0", "offset": 7, "repeats": 0}],
    "retry_backlog": {},
}
