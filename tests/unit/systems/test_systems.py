"""The registry: systems by name, options checked with every fault, nothing loaded before it is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from connect_core import systems
from connect_core.config import option_models
from connect_core.errors import ConfigError
from connect_core.systems.rocketmq.options import RocketMQSinkOptions, RocketMQSourceOptions
from connect_core.work import Side

MODELS = [
    model for system in systems.SYSTEMS.values() for model in (system.source_options, system.sink_options) if model
]


def test_our_systems_are_there() -> None:
    assert {"file", "rocketmq"} <= set(systems.SYSTEMS)
    assert systems.SYSTEMS.get("nothing") is None
    assert len(systems.SYSTEMS) == len(list(systems.SYSTEMS))


def test_sources_and_sinks_are_built_from_options(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    assert systems.source(Side("file", {"path": path})).partitions([])[0].key == path
    assert systems.sink(Side("file", {"path": path})).target_leases(0) == (f"file:{path}",)
    rocketmq = {"name_servers": ["127.0.0.1:9"]}
    assert systems.sink(Side("rocketmq", {**rocketmq, "topic": "t"})).target_leases(0) == ()
    assert systems.source(Side("rocketmq", {**rocketmq, "topics": ["t"]})).available_offsets({}) == {}


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as told:
        systems.sink(Side("rocketmq", {"name_servers": ["nowhere"], "topic": "a.b", "speed": 1}))
    assert {fault.path for fault in told.value.faults} == {"name_servers.0", "topic", "speed"}
    assert str(told.value).startswith("Wrong options for the sink rocketmq. Correct the document, its connection")


@pytest.mark.parametrize("topic", ["", "a.b", "a b", "x" * 128, "TBW102", "rmq_sys_wheel_timer", "WAYBILL_BARRIER"])
def test_illegal_topics_are_refused(topic: str) -> None:
    with pytest.raises(ConfigError, match="topic"):
        systems.sink(Side("rocketmq", {"name_servers": "a:1", "topic": topic}))


def test_unknown_systems_are_told_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"no system 'kafkaa'.*file"):
        systems.source(Side("kafkaa", {}))


def test_several_names_may_stand_in_one_text() -> None:
    options = RocketMQSourceOptions.model_validate({"name_servers": "a:1;b:2", "topics": "x, y"})
    assert (options.name_servers, options.topics) == (("a:1", "b:2"), ("x", "y"))


def test_the_group_is_named_after_the_connector() -> None:
    given = {"name_servers": "a:1", "topics": ["x"]}
    assert RocketMQSourceOptions.model_validate(given).consumer_group() == ""
    assert RocketMQSourceOptions.model_validate({**given, "uid": "12ab"}).consumer_group() == "WAYBILL-12ab"
    assert RocketMQSourceOptions.model_validate({**given, "uid": "1", "group": "g"}).consumer_group() == "g"


def test_sizes_are_read_with_their_units() -> None:
    options = {"name_servers": "a:1", "topic": "t", "max_message_bytes": "1MiB"}
    assert RocketMQSinkOptions.model_validate(options).max_message_bytes == 1024 * 1024


@pytest.mark.parametrize("model", MODELS)
def test_every_option_is_described_and_its_example_is_valid(model: type[BaseModel]) -> None:
    for name, field in model.model_fields.items():
        assert field.description, name
        assert field.examples, name
    example = {name: field.examples[0] for name, field in model.model_fields.items() if field.examples}
    for left_out in (  # one or the other
        {"tables", "exclude", "query", "bulk", "settle_s"},
        {"table", "query", "timestamp", "delay_s", "settle_s"},
        {"table", "tables", "exclude", "bulk", "settle_s"},
    ):
        other = left_out if option_models.needed_fields(model) else set()
        assert model.model_validate({name: one for name, one in example.items() if name not in other})


def test_what_is_filled_in_is_known() -> None:
    assert systems.injected(RocketMQSourceOptions) == {"uid", "sink_system"}


def test_drivers_do_not_load_pandas() -> None:
    """A tenth of a second of each run: pyarrow does when it makes a value of Python's, also a constant of a module."""
    names = ", ".join(
        f"connect_core.systems.{name}.{side}" for name in ("file", "rocketmq") for side in ("source", "sink")
    )
    code = f"import sys, {names}; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_ends_at_files_load_arrow_with_the_first_record() -> None:
    """Another tenth, which a run with nothing to move does not need."""
    names = ", ".join(f"connect_core.systems.file.{side}" for side in ("source", "sink"))
    code = f"import sys, {names}; print([one for one in ('numpy', 'pyarrow') if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_registry_loads_no_driver() -> None:
    drivers = r"connect_core\.(systems\..*\.(source|sink)|rocketmq\.client)"
    code = f"import re, sys, connect_core.systems; print([m for m in sys.modules if re.fullmatch(r'{drivers}', m)])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
