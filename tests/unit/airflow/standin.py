"""Users and an auth manager that stand in for Airflow's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Right = tuple[str, str | None]
"""A method, and what of a DAG it is for."""
READ: set[Right] = {("GET", None)}
WORK: set[Right] = READ | {("POST", "RUN"), ("PUT", "TASK_INSTANCE"), ("PUT", None)}
ALL: set[Right] = WORK | {("DELETE", None)}


@dataclass(frozen=True)
class User:
    name: str

    def get_id(self) -> str:
        return self.name

    def get_name(self) -> str:
        return self.name


@dataclass
class AuthManager:
    """`dags`: what a user may, by user and DAG; the DAG "" stands for all of them. `connections`: who may make some."""

    dags: dict[tuple[str, str], set[Right]]
    connections: set[str] = field(default_factory=set)
    asked: int = 0

    def is_authorized_dag(self, *, method: Any, access_entity: Any, details: Any, user: User) -> bool:
        self.asked += 1
        right = str(method), access_entity.name if access_entity else None
        own = self.dags.get((user.name, details.id), set()) if details else set()
        return right in own | self.dags.get((user.name, ""), set())

    def is_authorized_connection(self, *, method: Any, user: User) -> bool:
        return method == "POST" and user.name in self.connections
