from __future__ import annotations

import pickle

import pytest

from connect_core.errors import Refused, Retriable, WaybillError
from connect_core.rocketmq import errors
from connect_core.rocketmq.errors import ConnectionLost, refusal


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (1, errors.BrokerFault),
        (2, errors.BrokerBusy),
        (3, errors.NotSupported),
        (13, errors.MessageIllegal),
        (14, errors.BrokerBusy),
        (16, errors.PermissionRefused),
        (17, errors.TopicMissing),
        (26, errors.GroupMissing),
        (29, errors.InvalidRequest),
        (501, errors.RouteStale),
        (1500, errors.BrokerBusy),
        (4711, errors.BrokerFault),
    ],
)
def test_code_decides_the_class(code: int, kind: type[WaybillError]) -> None:
    error = refusal(code, "some remark", where="t/b/0")
    assert type(error) is kind
    assert str(error).startswith(f"Answered with code {code}: some remark [t/b/0]. ")
    assert isinstance(error, Retriable | Refused)


def test_access_control_1_refuses_with_the_code_of_an_inner_fault() -> None:
    told = "org.apache.rocketmq.acl.common.AclException: No default permission for topic-t, org.apache.rocketmq.acl"
    error = refusal(1, told, where="t on b")
    assert type(error) is errors.PermissionRefused
    assert error.what.endswith(told)


def test_long_remarks_are_cut_to_their_first_line() -> None:
    error = refusal(1, "first " * 100 + "\nat java.lang.Thread.run", where="x")
    assert len(error.what) < 350
    assert "java" not in error.what
    assert refusal(1, "", where="x").what == "Answered with code 1: no remark"


def test_errors_cross_process_borders() -> None:
    lost = pickle.loads(pickle.dumps(ConnectionLost("broke", where="h:1", request_left=True)))
    assert isinstance(lost, ConnectionLost)
    assert lost.request_left
