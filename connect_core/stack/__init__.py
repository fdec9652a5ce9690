"""The local stack of one home: RocketMQ, PostgreSQL, the resident engine, Airflow and the server of REST calls, started
by `waybill dev up`.

This is all that other rooms call; importing it needs the standard library only.
"""

from connect_core.stack.airflow_settings import password_file
from connect_core.stack.lifecycle import AIRFLOW_PARTS, ALL, DATA_PARTS, PartStatus, down, kill, startable, status, up
from connect_core.stack.parts import (
    API_SERVER,
    BROKER,
    DAG_PROCESSOR,
    ENGINE,
    MQTT_BROKER,
    NAME_SERVER,
    POSTGRESQL,
    REST,
    SCHEDULER,
    TRIGGERER,
    Options,
)
from connect_core.stack.record import Stack, load

__all__ = [
    "AIRFLOW_PARTS",
    "ALL",
    "API_SERVER",
    "BROKER",
    "DAG_PROCESSOR",
    "DATA_PARTS",
    "ENGINE",
    "MQTT_BROKER",
    "NAME_SERVER",
    "POSTGRESQL",
    "REST",
    "SCHEDULER",
    "TRIGGERER",
    "Options",
    "PartStatus",
    "Stack",
    "down",
    "kill",
    "load",
    "password_file",
    "startable",
    "status",
    "up",
]
