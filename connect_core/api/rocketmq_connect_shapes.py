"""What RocketMQ Connect answers: its names, its types, its words. Pure.

Facts: `RestHandler`, `ConnectorPluginsResource` and `rest/entities` of apache/rocketmq-connect, commit 85da68c.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from connect_core.errors import ConfigError, Fault, WaybillError
from connect_core.service.flat_connectors import FlatConnector, FlatPlugin, FlatTask, hidden_text

Answer = dict[str, Any]

_STATES = {"paused": "PAUSED", "failed": "FAILED", "blocked": "FAILED"}
"""By ours; whatever else a connector does is RUNNING there."""
_FAILING = ("waiting", "failed", "blocked")
_WORKER = "waybill"
"""Where no engine was at work yet."""
_LISTS = ("pendingTasks", "runningTasks", "stoppingTasks", "stoppedTasks", "errorTasks")
_TYPES = {"transform": "TRANSFORMATION"}
"""Of plug-ins, where they have another name there."""
_TOPICS = ("connect.topicname", "connect.topicnames")


def body(value: Any) -> Answer:
    return {"status": 200, "body": value}


def failed(code: int, message: str) -> Answer:
    """With the HTTP status 200 all the same: clients look for `errorCode`."""
    return {"errorCode": code, "message": hidden_text(message)}


def error(raised: WaybillError) -> Answer:
    faults = raised.faults if isinstance(raised, ConfigError) else ()
    return failed(500, "; ".join(f"{one.path}: {one.message}" for one in faults) or str(raised))


def info(one: FlatConnector) -> Answer:
    """ConnectorInfo."""
    tasks = [{"connector": one.name, "task": task.number} for task in one.tasks]
    return {"name": one.name, "config": dict(one.config), "tasks": tasks, "type": one.role.upper()}


def status(one: FlatConnector) -> Answer:
    """ConnectorStateInfo."""
    state = {"state": _STATES.get(one.state, "RUNNING"), "trace": None, "workerId": _worker(one)}
    tasks = [task_status(one, task) for task in one.tasks]
    return {"name": one.name, "connector": state, "tasks": tasks, "type": one.role.upper()}


def task_status(one: FlatConnector, task: FlatTask) -> Answer:
    """TaskState. The trace is why the last run of the task failed, while it is to be tried again or needs somebody."""
    state, trace = _task_state(one, task)
    return {"id": task.number, "state": state, "trace": trace, "workerId": _worker(one)}


def task_infos(one: FlatConnector) -> list[Answer]:
    """TaskInfo of each task."""
    return [
        {"id": {"connector": one.name, "task": task.number}, "config": _task_config(one, task)} for task in one.tasks
    ]


def expanded(connectors: Iterable[FlatConnector]) -> Answer:
    return {one.name: {"status": status(one), "info": info(one)} for one in connectors}


def configs(connectors: Iterable[FlatConnector]) -> Answer:
    return {one.name: dict(one.config) for one in connectors}


def workers(connectors: Iterable[FlatConnector]) -> list[str]:
    """The engines where the connectors were at work."""
    return sorted({_worker(one) for one in connectors}) or [_WORKER]


def allocated_tasks(connectors: Iterable[FlatConnector]) -> Answer:
    """By what they do."""
    found: Answer = {name: [] for name in _LISTS}
    for one in connectors:
        for task in one.tasks:
            state, _ = _task_state(one, task)
            told = {"connectorName": one.name, "config": _task_config(one, task), "taskState": state}
            found[_list_of(one, state)].append(told)
    return found


def plugin_infos(plugins: Iterable[FlatPlugin]) -> list[Answer]:
    return [
        {"className": one.name, "type": _TYPES.get(one.kind, one.kind.upper()), "version": one.version}
        for one in plugins
    ]


def config_keys(plugin: FlatPlugin) -> list[Answer]:
    """ConfigKeyInfo of each key. RocketMQ Connect has this entity, and never returns it."""
    unsaid: Answer = dict.fromkeys(("defaultValue", "importance", "documentation", "group", "orderInGroup", "width"))
    return [
        {"name": key, "type": "STRING", "required": required, "displayName": key, "dependents": []} | unsaid
        for key, required in plugin.keys.items()
    ]


def validated(name: str, faults: Sequence[Fault]) -> Answer:
    """RocketMQ Connect has no answer of its own here."""
    return {
        "name": hidden_text(name),
        "errorCount": len(faults),
        "errors": [{"key": one.path, "message": hidden_text(one.message)} for one in faults],
    }


# ----------------------------------------------------- what its command line asks for, and its own server does not have


def config_info(connectors: Sequence[FlatConnector]) -> Answer:
    tasks = {one.name: [_task_config(one, task) for task in one.tasks] for one in connectors}
    return {"connectorConfigs": configs(connectors), "taskConfigs": tasks}


def allocated_info(connectors: Sequence[FlatConnector]) -> Answer:
    tasks = [f"{one.name}-{task.number}" for one in connectors for task in one.tasks]
    return {"workers": workers(connectors), "connectors": [one.name for one in connectors], "tasks": tasks}


def connectors_of_command(connectors: Iterable[FlatConnector]) -> Answer:
    """Without an envelope: `getAllocatedConnectors` reads it as a map."""
    return {one.name: {"properties": dict(one.config) | _of_command(one)} for one in connectors}


def tasks_of_command(connectors: Iterable[FlatConnector]) -> Answer:
    """Without an envelope: `getAllocatedTasks` reads it as a map of lists."""
    found: dict[str, list[Answer]] = {}
    for one in connectors:
        for task in one.tasks:
            state, _ = _task_state(one, task)
            named = {"task-class": _task_class(one), "task-id": str(task.number)}
            properties = dict(one.config) | _of_command(one) | named
            told = {"connectorName": one.name, "state": state, "configs": {"properties": properties}}
            found.setdefault(_list_of(one, state), []).append(told)
    return found


def _of_command(one: FlatConnector) -> dict[str, str]:
    topic = next((one.config[key] for key in _TOPICS if key in one.config), "")
    return {"topic": topic, "update-timestamp": str(int(one.applied_at.timestamp() * 1000))}


def _task_state(one: FlatConnector, task: FlatTask) -> tuple[str, str | None]:
    if one.state in _FAILING and task.failure:
        return "FAILED", task.failure
    return ("PAUSED" if one.state == "paused" else "RUNNING"), None


def _list_of(one: FlatConnector, state: str) -> str:
    if state == "FAILED":
        return "errorTasks"
    if state == "PAUSED":
        return "stoppedTasks"
    return "pendingTasks" if one.state == "new" else "runningTasks"


def _task_config(one: FlatConnector, task: FlatTask) -> dict[str, str]:
    return dict(one.config) | {"task.id": str(task.number), "task.class": _task_class(one)}


def _task_class(one: FlatConnector) -> str:
    return one.config.get("connector.class", "").removesuffix("Connector") + "Task"


def _worker(one: FlatConnector) -> str:
    return one.engine or _WORKER
