"""What the driver of a Spark application demands before anything is planned. No Spark starts."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from connect_core.engine.host_clocks import Reading, Sample
from connect_core.engine.line import Line
from connect_core.engine.spark_classic import SparkClassicEngine, _check, _check_answers
from connect_core.engine.worker import place
from connect_core.engine.workers import WithWorkers, Worker
from connect_core.errors import Fatal, Unreachable, VersionMismatch


def test_a_worker_beside_its_driver_is_fit() -> None:
    _check(json.loads(place()), "local[2]", other_hosts=False)


def test_a_worker_on_another_host_is_refused_unless_other_hosts_reach_the_driver() -> None:
    elsewhere = {**json.loads(place()), "boot_id": "another"}
    with pytest.raises(Fatal, match="which listens on this host alone") as refused:
        _check(elsewhere, "yarn", other_hosts=False)
    assert "WAYBILL_DRIVER_ADDRESS" in refused.value.next_step
    _check(elsewhere, "yarn", other_hosts=True)


def test_a_worker_with_other_code_is_refused_before_anything_is_planned() -> None:
    with pytest.raises(VersionMismatch, match=r"other code \(1\.0\+old\)"):
        _check({**json.loads(place()), "code": "1.0+old"}, "yarn", other_hosts=True)


def test_a_worker_with_another_version_of_a_plug_in_is_refused_before_anything_is_planned() -> None:
    there = {**json.loads(place()), "host": "there", "plugins": {"kafka": "waybill-kafka 1.0"}}
    with pytest.raises(VersionMismatch, match=r"on there have other plug-ins \(kafka: waybill-kafka 1\.0\)"):
        _check(there, "yarn", other_hosts=True)


def test_one_master_that_answers_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as master, socket.create_server(("127.0.0.1", 0)) as other:
        gone = other.getsockname()[1]
        other.close()
        _check_answers(f"spark://127.0.0.1:{gone},127.0.0.1:{master.getsockname()[1]}")
        with pytest.raises(Unreachable, match="The Spark master does not answer"):
            _check_answers(f"spark://127.0.0.1:{gone}")


@pytest.mark.parametrize("master", ["local[2]", "yarn", "k8s://https://127.0.0.1:1"])
def test_only_standalone_masters_are_asked(master: str) -> None:
    _check_answers(master)


def test_a_worker_that_dials_from_another_host_is_let_in_only_where_sparks_connections_are_encrypted() -> None:
    """Also one that nobody knew of when the application asked its executors where they are."""
    engine = DialledFromElsewhere(driver_address="10.0.0.1")
    with pytest.raises(Fatal, match="not encrypted"), engine.started(1):
        pytest.fail("it was let in")
    engine.private = True
    with engine.started(1) as ready:
        assert isinstance(ready, WithWorkers)
        assert ready.elsewhere


class DialledFromElsewhere(SparkClassicEngine):
    """One worker has dialled, whose clock is another one. There is no Spark."""

    private = False

    def _dialled(self, lanes: int, ending: ExitStack) -> tuple[Any, list[Worker]]:
        ours, theirs = socket.socketpair()
        for one in (ours, theirs):
            ending.callback(one.close)
        return object(), [Worker(Line(ours), Sample(Reading("there", 1), 2), here=False)]

    def session(self) -> Any:
        settings = {"spark.authenticate": "true", "spark.network.crypto.enabled": str(self.private).lower()}
        conf = SimpleNamespace(getAll=lambda: settings.items())
        return SimpleNamespace(sparkContext=SimpleNamespace(getConf=lambda: conf))
