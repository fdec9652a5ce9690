"""What a RocketMQ server or a connection can do to a request, as errors of the tree in `connect_core.errors`.

    Unreachable
    ├── ConnectionLost      the connection broke; `request_left` says whether the whole request had been handed over
    ├── NoAnswer            the deadline of an idempotent request passed
    └── NoMaster            the route names no master for the broker that is needed
    Retriable
    ├── SendUnknown         a batch was handed over and nobody knows whether it is stored
    ├── BrokerBusy          flow control or store not writable; nothing was stored
    ├── BrokerFault         the broker failed inside; not the fault of the request as far as one can tell
    └── RouteStale          the broker does not host this queue any more: refresh the route
    Refused
    ├── TopicMissing, GroupMissing, PermissionRefused, MessageIllegal, InvalidRequest, NotSupported

One table at the end turns a response code into its class. Codes 10, 11 and 12 of a send are not errors (the message is
stored), codes 19 to 21 are answers to a pull, 22 is the answer "nothing stored": none of them is in the table, but for
20 with a remark that says of no messages that they are not there.
"""

from __future__ import annotations

from connect_core.errors import Refused, Retriable, Unreachable, WaybillError
from connect_core.rocketmq.wire.commands import ResponseCode


class ConnectionLost(Unreachable):
    """`request_left` is True when the whole request was handed to the kernel, so the server may act on it."""

    def __init__(self, what: str, *, where: str = "", next_step: str = "", request_left: bool = True) -> None:
        super().__init__(what, where=where, next_step=next_step)
        self.request_left = request_left


class NoAnswer(Unreachable):
    pass


class NoMaster(Unreachable):
    pass


class SendUnknown(Retriable):
    pass


class BrokerBusy(Retriable):
    pass


class BrokerFault(Retriable):
    pass


class RouteStale(Retriable):
    pass


class TopicMissing(Refused):
    pass


class GroupMissing(Refused):
    pass


class PermissionRefused(Refused):
    pass


class MessageIllegal(Refused):
    pass


class InvalidRequest(Refused):
    pass


class NotSupported(Refused):
    pass


_CHECK_SERVER = "Look at the server's log"
_CHECK_NAMES = "Check the name, and create it when it should exist"
_CHECK_RIGHTS = "Check the credentials and the permissions of topic, group and broker"
_LATER = "Try again later"
_MAX_REMARK = 300
_TOO_LARGE = "message body size exceeded"
"""How brokers refuse a batch above their limit: with the code of an inner fault."""
_NOT_ALLOWED = "AclException"
"""How brokers with access control 1.0 refuse a user or what he wants, with the same code."""

_BY_CODE: dict[int, tuple[type[WaybillError], str]] = {
    ResponseCode.SYSTEM_ERROR: (BrokerFault, _CHECK_SERVER),
    ResponseCode.SYSTEM_BUSY: (BrokerBusy, _LATER),
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: (NotSupported, "Check that the address is of the right kind of server"),
    ResponseCode.MESSAGE_ILLEGAL: (MessageIllegal, "Check size and properties against the broker's limits"),
    ResponseCode.SERVICE_NOT_AVAILABLE: (BrokerBusy, "Check that the broker is a master and its disk is not full"),
    ResponseCode.PULL_RETRY_IMMEDIATELY: (BrokerFault, "Check that the broker is a master; nothing was passed over"),
    ResponseCode.VERSION_NOT_SUPPORTED: (NotSupported, "Use a newer server"),
    ResponseCode.NO_PERMISSION: (PermissionRefused, _CHECK_RIGHTS),
    ResponseCode.TOPIC_NOT_EXIST: (TopicMissing, _CHECK_NAMES),
    ResponseCode.SUBSCRIPTION_PARSE_FAILED: (InvalidRequest, "Check the tag expression"),
    ResponseCode.SUBSCRIPTION_NOT_EXIST: (InvalidRequest, "Check rejectPullConsumerEnable on the broker"),
    ResponseCode.SUBSCRIPTION_NOT_LATEST: (InvalidRequest, _CHECK_SERVER),
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: (GroupMissing, _CHECK_NAMES),
    ResponseCode.INVALID_PARAMETER: (InvalidRequest, "Check topic name and queue id"),
    ResponseCode.FLOW_CONTROL: (BrokerBusy, _LATER),
    ResponseCode.NOT_LEADER_FOR_QUEUE: (RouteStale, "Ask for the route again"),
    ResponseCode.ILLEGAL_OPERATION: (InvalidRequest, _CHECK_SERVER),
    ResponseCode.GO_AWAY: (BrokerBusy, "The server is shutting down: connect again"),
}


def forbids(code: int, remark: str) -> bool:
    """Whether somebody is not known, or not allowed what he asks for."""
    return code == ResponseCode.NO_PERMISSION or (code == ResponseCode.SYSTEM_ERROR and _NOT_ALLOWED in remark)


def refusal(code: int, remark: str, *, where: str) -> WaybillError:
    """The error for a response code; the remark is the server's own text. An unknown code is a fault of the broker."""
    if code == ResponseCode.SYSTEM_ERROR and _TOO_LARGE in remark:
        code = ResponseCode.MESSAGE_ILLEGAL
    if forbids(code, remark):
        code = ResponseCode.NO_PERMISSION
    kind, next_step = _BY_CODE.get(code, (BrokerFault, _CHECK_SERVER))
    first_line = remark.strip().partition("\n")[0].strip()[:_MAX_REMARK]
    return kind(f"Answered with code {code}: {first_line or 'no remark'}", where=where, next_step=next_step)
