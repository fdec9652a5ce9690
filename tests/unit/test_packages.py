"""Packages that bring systems, functions and formats: a broken one harms nothing else, and a replaced one is seen."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from connect_core import packages
from connect_core.errors import ConfigError, ContractBroken
from connect_core.pipeline.transforms.python_functions import function
from connect_core.replication.worker.plugin_code import of_one_version
from connect_core.service import plugins
from connect_core.systems import SYSTEMS, source
from connect_core.version import plugin_versions
from connect_core.work import Outcome, Side
from tests.installing import install

SYSTEM = """
from pydantic import BaseModel
from connect_core.sdk.plugin import Plugin

class Options(BaseModel):
    path: str

PLUGIN = Plugin("{name}", "Thing", source_options=Options, open_source=lambda options, resources: options)
"""
THING = SYSTEM.format(name="thing")
FUNCTION = """
from connect_core.sdk.row_functions import Changed, RowFunction
DOES = RowFunction(lambda schema: schema, Changed, deterministic=True)
RELEASE = {release!r}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """One that Python looks into, with a sound system `well`."""
    install(tmp_path, "waybill-well", {"waybill.systems": "well = waybill_well:PLUGIN"}, SYSTEM.format(name="well"))
    modules = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(packages, "_loaded", {})
    SYSTEMS.reload()
    yield tmp_path
    for name in [one for one in set(sys.modules) - modules if one.startswith("waybill_")]:
        del sys.modules[name]
    monkeypatch.undo()
    SYSTEMS.reload()


def test_what_a_package_prints_when_it_is_loaded_is_no_part_of_an_answer(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(folder, "waybill-thing", {"waybill.systems": "thing = waybill_thing:PLUGIN"}, f"print('hello')\n{THING}")
    SYSTEMS.reload()
    assert not plugins.listed("thing")[0]["error"]
    assert capsys.readouterr() == ("", "hello\n")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("def broken(:", "SyntaxError: invalid syntax"),
        ("raise SystemExit('bye')", "SystemExit: bye (waybill_thing.py:1)"),
        ("1 / 0", "ZeroDivisionError: division by zero (waybill_thing.py:1)"),
        ("PLUGIN = object()", "waybill_thing:PLUGIN is no Plugin"),
        ("", "AttributeError: module 'waybill_thing' has no attribute 'PLUGIN'"),
        (SYSTEM.format(name="other"), "its Plugin has the name other"),
        (THING.replace(", open_source=lambda options, resources: options", ""), "needs both source_options"),
        (THING.replace("source_options=Options", "source_options=dict"), "source_options is no model of pydantic"),
        (THING.replace("path: str", "path: 'Nothing'"), "PydanticUndefinedAnnotation: name 'Nothing' is not defined"),
    ],
)
def test_a_broken_system_is_listed_with_why_and_harms_nothing_else(folder: Path, code: str, why: str) -> None:
    install(folder, "waybill-thing", {"waybill.systems": "thing = waybill_thing:PLUGIN"}, code, "1.2")
    SYSTEMS.reload()
    assert {"well", "file", "rocketmq"} <= SYSTEMS.keys()
    [listed] = plugins.listed("thing")
    assert (listed["kind"], listed["package"], listed["version"]) == ("system", "waybill-thing", "1.2")
    assert "The package waybill-thing 1.2, which brings the system thing, is broken: " in listed["error"]
    assert why in listed["error"]
    with pytest.raises(ContractBroken, match=r"waybill-thing 1\.2"):
        source(Side("thing", {"path": "x"}))


def test_what_has_the_name_of_a_system_of_ours_is_not_used(folder: Path) -> None:
    install(folder, "waybill-thing", {"waybill.systems": "file = waybill_thing:PLUGIN"}, SYSTEM.format(name="file"))
    SYSTEMS.reload()
    assert SYSTEMS["file"].title != "Thing"
    assert [one["package"] for one in plugins.listed("file") if not one["error"]] == ["waybill", "waybill"]
    assert [one["package"] for one in plugins.listed("file") if one["error"]] == ["waybill-thing"]


def test_what_two_packages_bring_neither_brings(folder: Path) -> None:
    install(folder, "waybill-thing", {"waybill.systems": "thing = waybill_thing:PLUGIN"}, THING)
    install(folder, "waybill-other", {"waybill.systems": "thing = waybill_other:PLUGIN"}, THING)
    SYSTEMS.reload()
    assert "thing" not in SYSTEMS
    error = plugins.listed("thing")[0]["error"]
    assert all(one in error for one in ("waybill-thing 1.0", "waybill-other 1.0", "uninstall all but one"))


def test_a_model_that_cannot_be_described_is_an_error_of_its_own(folder: Path) -> None:
    odd = THING.replace(
        "class Options(BaseModel):",
        "class Odd:\n    def __str__(self):\n        raise OSError('odd')\n\n"
        "class Options(BaseModel, arbitrary_types_allowed=True):\n    odd: Odd = Odd()",
    )
    install(folder, "waybill-thing", {"waybill.systems": "thing = waybill_thing:PLUGIN"}, odd)
    SYSTEMS.reload()
    [listed] = plugins.listed("thing")
    assert (listed["kind"], "OSError: odd" in listed["error"]) == ("source", True)
    assert plugins.listed("well")[0]["error"] == ""


def test_a_broken_function_is_listed_with_why(folder: Path) -> None:
    install(folder, "waybill-does", {"waybill.transforms": "does = waybill_does:DOES"}, "import nothing_there")
    [listed] = plugins.listed("does")
    assert "No module named 'nothing_there'" in listed["error"]
    with pytest.raises(ContractBroken, match="nothing_there"):
        function("does")


def test_what_is_sound_is_listed_with_its_package_and_options(folder: Path) -> None:
    [listed] = plugins.listed("well")
    assert (listed["kind"], listed["package"], listed["version"], listed["error"]) == (
        "source",
        "waybill-well",
        "1.0",
        "",
    )
    [option] = listed["options"]
    assert (option["name"], option["required"], option["importance"], option["secret"]) == ("path", True, "high", False)


def test_there_is_nothing_of_a_name() -> None:
    with pytest.raises(ConfigError, match="Did you mean file"):
        plugins.listed("fiel")


def test_a_class_of_a_peer_names_what_takes_it() -> None:
    sources = [one for one in plugins.listed() if one["kind"] == "source" and one["classes"]]
    assert {"file", "mqtt"} <= {one["name"] for one in sources}
    assert plugins.listed(sources[0]["classes"][0])[0]["name"] == sources[0]["name"]


def test_a_package_that_was_replaced_is_seen_and_until_then_the_former_version_is_told(folder: Path) -> None:
    entries = {"waybill.transforms": "does = waybill_does:DOES"}
    install(folder, "waybill-does", entries, FUNCTION.format(release="1.0"))
    former = function("does")
    install(folder, "waybill-does", entries, FUNCTION.format(release="22.0"), "22.0")
    assert function("does") is former
    assert plugin_versions()["python does"] == "waybill-does 1.0"
    assert packages.replaced() == [("does", "waybill-does 1.0", "waybill-does 22.0")]
    assert plugins.reload()["reloaded"] == [{"name": "does", "before": "waybill-does 1.0", "now": "waybill-does 22.0"}]
    assert function("does") is not former
    assert sys.modules["waybill_does"].RELEASE == "22.0"
    assert plugin_versions()["python does"] == "waybill-does 22.0"
    assert plugins.reload()["reloaded"] == []


def test_a_package_that_came_and_one_that_went_are_seen(folder: Path) -> None:
    assert "well" in SYSTEMS
    install(folder, "waybill-thing", {"waybill.systems": "thing = waybill_thing:PLUGIN"}, THING)
    assert "thing" not in SYSTEMS
    plugins.reload()
    assert "thing" in SYSTEMS
    for path in folder.glob("waybill_thing-*/*"):
        path.unlink()
    assert plugins.reload()["reloaded"] == [{"name": "thing", "before": "waybill-thing 1.0", "now": ""}]
    assert "thing" not in SYSTEMS


PARTS = """
from connect_core.sdk.row_functions import Changed, RowFunction

def rows(given):
    import waybill_parts
    return Changed(given)

DOES = RowFunction(lambda schema: schema, rows, deterministic=True)
"""


def test_what_was_loaded_as_a_whole_goes_on_and_what_was_loaded_since_is_told(folder: Path) -> None:
    """`pip` replaces files while they are at work; a module that is imported later is the new one."""
    entries = {"waybill.transforms": "does = waybill_does:DOES"}
    install(folder, "waybill-does", entries, PARTS)
    parts = folder / "waybill_parts.py"
    parts.write_text("")
    record = "waybill_does.py,,\nwaybill_parts.py,,\n"
    (folder / "waybill_does-1.0.dist-info" / "RECORD").write_text(record)
    found = function("does")
    before = packages.modules()
    install(folder, "waybill-does", entries, PARTS, "2.0")
    assert packages.mixed(before) == []
    found.rows(pa.RecordBatch.from_pydict({"a": [1]}))
    replaced = packages.Replaced("does", "waybill-does 1.0", "waybill-does 2.0")
    assert packages.mixed(before) == [replaced]
    lane = SimpleNamespace(connector="c", task=0)
    outcomes = of_one_version(lane, [Outcome(7, None)], before)  # type: ignore[arg-type]
    assert [(one.range_id, one.receipt, one.clean) for one in outcomes] == [(7, None, False)]
    assert outcomes[0].failure is not None
    assert "does: waybill-does 1.0 by waybill-does 2.0" in outcomes[0].failure.what


def test_what_was_rejected_while_a_package_was_replaced_has_no_receipt(folder: Path) -> None:
    """A part that is no longer there fails as a record may."""
    install(folder, "waybill-does", {packages.FUNCTIONS: "does = waybill_does:DOES"}, FUNCTION.format(release=1))
    assert function("does")
    before, lane = packages.modules(), SimpleNamespace(connector="c", task=0)
    code = FUNCTION.format(release=2)
    install(folder, "waybill-does", {packages.FUNCTIONS: "does = waybill_does:DOES"}, code, "2.0")
    assert packages.mixed(before) == []
    rejected = Outcome(7, SimpleNamespace(rejected=3))  # type: ignore[arg-type]
    [outcome] = of_one_version(lane, [rejected], before)  # type: ignore[arg-type]
    assert outcome.receipt is None
    assert outcome.failure is not None
    assert outcome.failure.family == "Retriable"
