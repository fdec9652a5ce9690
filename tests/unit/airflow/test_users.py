"""What a user of Airflow may do through the REST routes, by what the auth manager says of DAGs."""

from __future__ import annotations

import pytest

from connect_core.airflow.users import AirflowUser
from connect_core.service.callers import ROLES
from tests.unit.airflow.standin import ALL, READ, WORK, AuthManager, Right, User

DAG = "replicate.copy"


def roles(user: AirflowUser, connector: str | None) -> list[str]:
    return [role for role in ROLES if user.may(role, connector)]


def caller(rights: set[Right], *, dag: str = DAG, connections: bool = False, name: str = "eve") -> AirflowUser:
    manager = AuthManager({(name, dag): rights}, {name} if connections else set())
    return AirflowUser(User(name), manager, "192.0.2.7")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rights", "connections", "may"),
    [
        (set(), True, []),
        (READ, True, ["viewer"]),
        (WORK, False, ["viewer", "operator"]),
        (WORK, True, ["viewer", "operator"]),
        (ALL, False, ["viewer", "operator"]),
        (ALL, True, ["viewer", "operator", "admin"]),
        (ALL - READ, True, []),
    ],
)
def test_rights_to_a_dag_are_a_role_for_its_connector(rights: set[Right], connections: bool, may: list[str]) -> None:
    user = caller(rights, connections=connections)
    assert roles(user, "copy") == may
    assert user.sees("copy") is ("viewer" in may)
    assert roles(user, "another") == []
    assert not user.sees("another")


@pytest.mark.parametrize("missing", sorted(WORK - READ, key=str))
def test_an_operator_may_all_that_its_routes_do(missing: Right) -> None:
    """Each of them alone would let a route do what Airflow refuses."""
    assert roles(caller(ALL - {missing}, connections=True), "copy") == ["viewer"]


@pytest.mark.parametrize(("rights", "may"), [(set(), ["viewer"]), (WORK, ["viewer", "operator"]), (ALL, [*ROLES])])
def test_what_is_of_no_connector_takes_rights_to_dags_in_general(rights: set[Right], may: list[str]) -> None:
    assert roles(caller(rights, dag="", connections=True), None) == may
    assert roles(caller(rights, dag=DAG, connections=True), None) == ["viewer"]


def test_the_history_has_the_name_and_no_line_of_its_own() -> None:
    assert caller(READ).who == "airflow user eve from 192.0.2.7"
    assert caller(READ, name="eve\n2026 root").who == "airflow user eve?2026 root from 192.0.2.7"


def test_keys_of_requests_are_those_of_one_user_and_of_no_token() -> None:
    names = {caller(READ, name=name).name for name in ("eve", "Eve", "e" * 300)}
    assert len(names) == 3
    assert all(len(name) <= 100 and ":" in name for name in names)


def test_a_refusal_says_which_right_is_missing() -> None:
    assert str(caller(READ).lacking("operator", "copy")) == (
        "Airflow user eve is no operator here [connector copy]. "
        "Ask for the right, in Airflow, to read, trigger, clear and pause it: DAG replicate.copy"
    )
    assert "to read it: DAG replicate.copy" in str(caller(set()).not_named("copy"))


def test_the_auth_manager_is_asked_once_in_a_request() -> None:
    manager = AuthManager({("eve", ""): ALL})
    user = AirflowUser(User("eve"), manager, "192.0.2.7")  # type: ignore[arg-type]
    assert [user.sees("copy") for _ in range(9)] == [True] * 9
    assert manager.asked == 1
