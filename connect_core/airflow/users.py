"""What a user of Airflow may do through the REST routes: what Airflow's auth manager says of DAGs (docs/decisions).

A connector is the DAG of its live stream. Each role takes the rights, in Airflow's own pages, to all that it allows; so
no route does for a user what Airflow would refuse.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from connect_core.orchestration import names
from connect_core.service.callers import ROLES, AccessRole, NotAllowed

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.base_auth_manager import BaseAuthManager, ResourceMethod
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser

_OF_DAGS: dict[AccessRole, tuple[tuple[ResourceMethod, str | None], ...]] = {
    "viewer": (("GET", None),),
    "operator": (("POST", "RUN"), ("PUT", "TASK_INSTANCE"), ("PUT", None)),
    "admin": (("DELETE", None),),
}
"""Methods, as Airflow calls rights, and what of a DAG they are for: None is the DAG itself."""
_IN_WORDS: dict[AccessRole, str] = {
    "viewer": "read it",
    "operator": "read, trigger, clear and pause it",
    "admin": "read, trigger, clear, pause and delete it, and to make connections in Airflow",
}


class AirflowUser:
    """A caller, for one request: what the auth manager said is kept so long."""

    def __init__(self, user: BaseUser, auth_manager: BaseAuthManager[Any], address: str) -> None:
        self._user, self._auth_manager, self._address = user, auth_manager, address
        self._known: dict[tuple[AccessRole, str | None], bool] = {}

    @property
    def name(self) -> str:
        """The id of a user may be of any length, and equal the name of a token."""
        return f"airflow:{sha256(str(self._user.get_id()).encode()).hexdigest()}"

    @property
    def who(self) -> str:
        return f"{self._called()} from {self._address}"

    def sees(self, connector: str) -> bool:
        return self.may("viewer", connector)

    def may(self, role: AccessRole, connector: str | None) -> bool:
        """What is of no connector every user may read; to change it takes the rights to DAGs in general."""
        if connector is None and role == "viewer":
            return True
        asked = role, connector
        if asked not in self._known:
            self._known[asked] = all(self._answers(role, connector))
        return self._known[asked]

    def lacking(self, role: AccessRole, connector: str | None) -> NotAllowed:
        what = f"DAG {names.live_dag(connector)}" if connector is not None else "DAGs"
        return NotAllowed(
            f"{self._called()[0].upper()}{self._called()[1:]} is no {role} here",
            where=f"connector {connector}" if connector is not None else "",
            next_step=f"Ask for the right, in Airflow, to {_IN_WORDS[role]}: {what}",
        )

    def not_named(self, connector: str) -> NotAllowed:
        return self.lacking("viewer", connector)

    def _answers(self, role: AccessRole, connector: str | None) -> Iterator[bool]:
        from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails

        dag = names.live_dag(connector) if connector is not None else None
        details = DagDetails(id=dag, team_name=_team_of(dag)) if dag else None
        for lower in ROLES[: ROLES.index(role) + 1]:
            for method, entity in _OF_DAGS[lower]:
                yield self._auth_manager.is_authorized_dag(
                    method=method,
                    access_entity=DagAccessEntity[entity] if entity else None,
                    details=details,
                    user=self._user,
                )
        if role == "admin":  # a document names servers and files, as connections do, and no right to DAGs says so much
            yield self._auth_manager.is_authorized_connection(method="POST", user=self._user)

    def _called(self) -> str:
        """Names are whatever the auth manager takes: a line break would be one of the history."""
        said = "".join(one if one.isprintable() else "?" for one in str(self._user.get_name()))
        return f"airflow user {said}"


def _team_of(dag: str) -> str | None:
    from airflow.configuration import conf

    if not conf.getboolean("core", "multi_team", fallback=False):
        return None
    from airflow.models.dag import DagModel

    team: str | None = DagModel.get_team_name(dag)
    return team
