"""What the OpenAPI document says of the routes of RocketMQ Connect: what they answer, what they are given, with
examples. Pure."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

Said = dict[str, Any]


class Answered(BaseModel):
    """What was asked for."""

    status: Literal[200]
    body: Any


class Failed(BaseModel):
    """Why it is not done. Of what a route knows of itself the HTTP status is 200 all the same, as there."""

    errorCode: int  # noqa: N815  a name of theirs
    message: str


FAILURES: dict[int | str, Said] = {
    400: {"model": Failed, "description": "A name or a word has the character NUL"},
    401: {"model": Failed, "description": "No token that holds, where the server wants one"},
    403: {
        "model": Failed,
        "description": "A caller who may not; another name than this machine's; a page of another site",
    },
    404: {"description": "There is no such route", "content": {"text/plain": {}, "application/json": {}}},
    405: {"description": "The route has another method", "content": {"application/json": {}}},
    408: {"model": Failed, "description": "The body did not come in time"},
    413: {"model": Failed, "description": "The body is too long"},
    503: {"model": Failed, "description": "Tokens cannot be looked up: the ledger does not answer"},
}
"""Of every route."""

CONFIG: Said = {
    "connector.class": "org.apache.rocketmq.connect.file.FileSourceConnector",
    "filename": "/tmp/test-source-file.txt",
    "connect.topicname": "fileTopic",
}
TASK_CONFIG: Said = CONFIG | {"task.id": "0", "task.class": "org.apache.rocketmq.connect.file.FileSourceTask"}
TASK: Said = {"id": 0, "state": "RUNNING", "trace": None, "workerId": "waybill"}
STATUS: Said = {
    "name": "in",
    "connector": {"state": "RUNNING", "trace": None, "workerId": "waybill"},
    "tasks": [TASK],
    "type": "SOURCE",
}
INFO: Said = {"name": "in", "config": CONFIG, "tasks": [{"connector": "in", "task": 0}], "type": "SOURCE"}
PLUGIN: Said = {"className": CONFIG["connector.class"], "type": "SOURCE", "version": "0.1.0"}
KEY: Said = {"name": "filename", "type": "STRING", "required": True, "displayName": "filename", "dependents": []}

_GIVEN: Said = {"type": "object", "additionalProperties": True, "example": CONFIG}
BODY: Said = {"requestBody": {"required": True, "content": {"application/json": {"schema": _GIVEN}}}}
"""Of a POST: the configuration."""
QUERY: Said = {
    "parameters": [
        {
            "name": "config",
            "in": "query",
            "required": True,
            "description": "The configuration, as the text of a JSON object",
            "schema": {"type": "string"},
            "example": '{"connector.class": "FileSourceConnector", "filename": "/tmp/a.txt"}',
        }
    ]
}
"""Of a GET that takes one."""


def answers(example: Any) -> dict[int | str, Said]:
    """Of a route that answers in an envelope; `example` is what is in it."""
    content = {"application/json": {"example": {"status": 200, "body": example}}}
    return {200: {"model": Answered | Failed, "description": "An answer, or why there is none", "content": content}}


def bare_answers(example: Said) -> dict[int | str, Said]:
    """Of a route for connectAdmin, which reads it without an envelope."""
    content = {"application/json": {"schema": {"type": "object"}, "example": example}}
    return {200: {"description": "As its command line reads it", "content": content}}
