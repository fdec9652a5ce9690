"""What Kafka Connect answers: its names, its types, its words. Pure.

Facts: what its published clients expect (tests/system/replication/test_kafka_connect.py). Not compared with a worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from connect_core import __version__
from connect_core.errors import ConfigError, Fault, LeaseHeld, Retriable, Unreachable, WaybillError
from connect_core.service.callers import NotAllowed
from connect_core.service.flat_connectors import FlatConnector, FlatPlugin, FlatTask, hidden_text
from connect_core.service.kafka_connectors import FAILING, AlreadyThere, FlatKey, KafkaClass
from connect_core.service.visible import NotFound

Answer = dict[str, Any]

STATES = {
    "running": "RUNNING",
    "idle": "RUNNING",
    "new": "RUNNING",
    "waiting": "RUNNING",
    "failed": "FAILED",
    "blocked": "FAILED",
    "paused": "PAUSED",
    "stopped": "STOPPED",
}
"""Of a connector, by ours. UNASSIGNED and RESTARTING are passing states there: the first has no like here, the second
is the answer to a restart."""
TYPES = {"transform": "transformation"}
"""Of plug-ins, where they have another name there."""
_WORKER = "waybill"
"""Where no engine was at work yet."""
_COMMON = "Common"
_KINDS: tuple[tuple[type[WaybillError], int], ...] = (
    (NotAllowed, 403),
    (NotFound, 404),
    (AlreadyThere, 409),
    (ConfigError, 400),
    (Unreachable, 500),
    (Retriable, 409),
    (LeaseHeld, 409),
)
"""The first that fits; whatever else there is has 500."""


def failed(code: int, message: str) -> Answer:
    return {"error_code": code, "message": hidden_text(message)}


def error(raised: WaybillError) -> tuple[int, Answer]:
    code = next((code for kind, code in _KINDS if isinstance(raised, kind)), 500)
    faults = raised.faults if isinstance(raised, ConfigError) else ()
    return code, failed(code, _invalid(faults) if faults else str(raised))


def _invalid(faults: Sequence[Fault]) -> str:
    lines = "\n".join(str(one) for one in faults)
    return f"Connector configuration is invalid and contains the following {len(faults)} error(s):\n{lines}"


def server(ledger_id: str, code: str) -> Answer:
    """ServerInfo. The ledger is what all workers of a cluster share."""
    return {"version": __version__, "commit": code.partition("+")[2], "kafka_cluster_id": ledger_id}


def info(one: FlatConnector) -> Answer:
    """ConnectorInfo. A connector that is stopped has no tasks."""
    tasks = [{"connector": one.name, "task": task.number} for task in _tasks(one)]
    return {"name": one.name, "config": config(one), "tasks": tasks, "type": one.role}


def config(one: FlatConnector) -> Answer:
    return {"name": one.name, **one.config}


def status(one: FlatConnector, *, restarting: bool = False) -> Answer:
    """ConnectorStateInfo. The trace of a connector that is FAILED is why its first task did."""
    state: Answer = {"state": STATES[one.state], "worker_id": _worker(one)}
    if restarting:
        state["state"] = "RESTARTING"
    elif state["state"] == "FAILED":
        state["trace"] = next((task.failure for task in one.tasks if task.failure), "")
    tasks = [task_status(one, task, restarting=restarting) for task in _tasks(one)]
    return {"name": one.name, "connector": state, "tasks": tasks, "type": one.role}


def task_status(one: FlatConnector, task: FlatTask, *, restarting: bool = False) -> Answer:
    """TaskState. The trace is why its last run failed, while it is to be tried again or needs somebody."""
    told: Answer = {"id": task.number, "state": "RUNNING", "worker_id": _worker(one)}
    if one.state in FAILING and task.failure:
        failure: Answer = {"state": "FAILED", "trace": task.failure}
        return told | ({"state": "RESTARTING"} if restarting else failure)
    return told | ({"state": "PAUSED"} if one.state == "paused" else {})


def task_infos(one: FlatConnector) -> list[Answer]:
    return [
        {"id": {"connector": one.name, "task": task.number}, "config": config(one) | {"task.id": str(task.number)}}
        for task in _tasks(one)
    ]


def expanded(connectors: Iterable[FlatConnector], wanted: Sequence[str]) -> Answer:
    made = {"status": status, "info": info}
    return {one.name: {part: made[part](one) for part in wanted if part in made} for one in connectors}


def offsets(found: Mapping[str, int]) -> Answer:
    return {"offsets": [{"partition": {"partition": key}, "offset": {"offset": at}} for key, at in found.items()]}


def plugins(found: Iterable[FlatPlugin]) -> list[Answer]:
    return [{"class": one.name, "type": TYPES.get(one.kind, one.kind), "version": one.version} for one in found]


def definitions(kind: KafkaClass) -> list[Answer]:
    """ConfigKeyInfo of each key."""
    return [_definition(kind, key, order) for order, key in enumerate(kind.keys, 1)]


def validated(kind: KafkaClass, given: Mapping[str, Any], faults: Sequence[Fault]) -> Answer:
    """ConfigInfos: each key of the class and each that was given, with its value and what is wrong with it."""
    keys = {key.name: key for key in kind.keys}
    places = {one: _place(one, [*keys, *given]) for one in faults}
    for name in (*given, *places.values()):
        keys.setdefault(name, FlatKey(name, "", common=True))
    told = [
        {
            "definition": _definition(kind, key, order),
            "value": {
                "name": key.name,
                "value": given.get(key.name),
                "recommended_values": [],
                "errors": [hidden_text(one.message) for one, name in places.items() if name == key.name],
                "visible": True,
            },
        }
        for order, key in enumerate(keys.values(), 1)
    ]
    return {"name": kind.name, "error_count": len(places), "groups": [_COMMON, _short(kind)], "configs": told}


def _place(fault: Fault, keys: Sequence[str]) -> str:
    """The key that it is shown at: the longest that it is in."""
    known = [key for key in keys if fault.path == key or fault.path.startswith(f"{key}.")]
    return max(known, key=len, default=fault.path or "connector.class")


def _definition(kind: KafkaClass, key: FlatKey, order: int) -> Answer:
    return {
        "name": key.name,
        "type": "STRING",
        "required": bool(key.must),
        "default_value": None,
        "importance": "HIGH" if key.must else "LOW",
        "documentation": key.must,
        "group": _COMMON if key.common else _short(kind),
        "width": "NONE",
        "display_name": key.name,
        "dependents": [],
        "order": order,
    }


def _short(kind: KafkaClass) -> str:
    return kind.name.rpartition(".")[2]


def _tasks(one: FlatConnector) -> Sequence[FlatTask]:
    return () if one.state == "stopped" else one.tasks


def _worker(one: FlatConnector) -> str:
    return one.engine or _WORKER
