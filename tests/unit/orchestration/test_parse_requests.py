"""A parse that is asked for comes, also when another one is under way; and one that is over has stored what it read."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from connect_core.config import load_settings
from connect_core.orchestration import control, parse_requests


class DagProcessor:
    """As Airflow's, which looks at the time of the file and at the end of its last parse."""

    def __init__(self, file: Path) -> None:
        self.file, self.ended = file, 0.0
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        self.parse()

    @property
    def is_due(self) -> bool:
        return self.file.stat().st_mtime > self.ended

    def begin(self) -> None:
        parse_requests.begin(self.file)

    def end(self) -> None:
        time.sleep(0.01)  # a time of a file is that of the kernel's last tick
        self.ended = time.time()

    def parse(self) -> None:
        self.begin()
        self.end()


def test_each_request_is_one_parse(tmp_path: Path) -> None:
    airflow = DagProcessor(tmp_path / "airflow" / "dags" / "replication.py")
    assert not airflow.is_due
    for _ in range(2):
        control.parse_now(tmp_path, load_settings())
        control.parse_now(tmp_path, load_settings())
        assert airflow.is_due
        airflow.parse()
        assert not airflow.is_due


def test_what_comes_during_a_parse_is_for_the_next_one(tmp_path: Path) -> None:
    airflow = DagProcessor(tmp_path / "dags.py")
    airflow.begin()
    parse_requests.ask(airflow.file)
    airflow.end()
    assert airflow.is_due
    airflow.parse()
    assert not airflow.is_due


def test_who_waits_goes_on_when_a_parse_has_begun(tmp_path: Path) -> None:
    airflow = DagProcessor(tmp_path / "dags.py")
    assert parse_requests.has_begun(airflow.file, 60)
    parse_requests.ask(airflow.file)
    threading.Timer(0.3, airflow.begin).start()
    begun = time.monotonic()
    assert parse_requests.has_begun(airflow.file, 60)
    assert time.monotonic() - begun >= 0.25
    assert not airflow.is_due or airflow.file.stat().st_mtime <= time.time()


def test_where_nobody_parses_nobody_is_waited_for_without_end(tmp_path: Path) -> None:
    airflow = DagProcessor(tmp_path / "dags.py")
    parse_requests.ask(airflow.file)
    assert not parse_requests.has_begun(airflow.file, 0.2)
    for request in (parse_requests.ask, parse_requests.begin):
        request(tmp_path / "no-such-file")
    assert parse_requests.has_begun(tmp_path / "no-such-file", 9)
