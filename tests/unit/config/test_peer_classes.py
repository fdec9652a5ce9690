"""Classes of transforms, predicates and converters that are listed: all that are taken, with every option they read."""

from __future__ import annotations

import ast
from pathlib import Path

from connect_core.config import peers
from connect_core.config.flat import translate
from connect_core.config.peers import debezium, kafka, packages, rocketmq_connect
from connect_core.config.peers.classes import converters, transforms_and_predicates

_ASKS = {"get", "need", "words", "one_of", "_needed", "_pairs"}
FILES = ("kafka.py", "rocketmq_connect.py", "debezium.py", "packages.py", "predicates.py")


def _asked(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            of_a_part = not isinstance(node.func, ast.Attribute) or getattr(node.func.value, "id", "") in {
                "part",
                "predicate",
            }
            given = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if name in _ASKS and of_a_part:
                found |= set(given[:1]) - {"__"}
    return found


def test_every_option_that_is_read_is_listed() -> None:
    folder = Path(peers.__path__[0])
    listed = {key for one in transforms_and_predicates() for key in one.keys}
    asked = set().union(*(_asked(folder / name) for name in FILES))
    assert len(asked) > 40
    assert asked <= listed


def test_every_class_that_is_listed_is_taken() -> None:
    for one in transforms_and_predicates():
        if one.kind == "transform" and not one.name.endswith(".Filter"):
            found = kafka.find(one.name) or rocketmq_connect.find(one.name) or debezium.find(one.name)
            assert found or one.name in packages.CLASSES, one.name


def test_every_converter_that_is_listed_is_known() -> None:
    for one in converters():
        given = {"connector.class": "FileStreamSink", "file": "f", "topics": "t", "value.converter": one.name}
        faults = [str(fault) for fault in translate(given, "c").faults]
        assert not any("is not available" in fault for fault in faults), faults
