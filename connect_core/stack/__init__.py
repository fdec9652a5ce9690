"""The local stack: RocketMQ, PostgreSQL and the resident engine of one home, started and stopped by `waybill dev`.

This is all that other rooms call; importing it needs the standard library only.
"""

from connect_core.stack.lifecycle import ALL, PartStatus, down, kill, status, up
from connect_core.stack.parts import BROKER, ENGINE, NAME_SERVER, POSTGRESQL, Options
from connect_core.stack.record import Stack, load

__all__ = [
    "ALL",
    "BROKER",
    "ENGINE",
    "NAME_SERVER",
    "POSTGRESQL",
    "Options",
    "PartStatus",
    "Stack",
    "down",
    "kill",
    "load",
    "status",
    "up",
]
