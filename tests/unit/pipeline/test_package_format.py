"""A format of a package, held to what it says of itself."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from connect_core import packages, version
from connect_core.config.payloads import Encode, Parse
from connect_core.errors import ContractBroken, VersionMismatch
from connect_core.pipeline.digest import pipeline_digest
from connect_core.pipeline.shaping import Pipeline
from connect_core.replication.worker.rejects import shape
from connect_core.sdk.row_formats import Payloads, RowFormat
from connect_core.sdk.row_functions import Changed
from connect_core.sdk.testing.driving import records
from connect_core.sdk.testing.formats import FormatCase, FormatContract
from tests.page_code import example

FIXED = example("fixed").FIXED
Install = Callable[..., None]


class TestTheFormatOfTheExample(FormatContract):
    case = FormatCase(
        FIXED,
        {"widths": {"id": 4, "what": 3}},
        rows=[{"id": "1", "what": "abc"}, {"id": "", "what": " x"}, {"id": "äöü€", "what": ""}],
        refused=[b"", b"too long for it", b"\xff\xfe12345"],
        unwritable=[{"id": "12345", "what": ""}, {"id": "a ", "what": ""}],
        wrong_options={"widths": {}},
    )


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """As `pip install` of a package that brings the format `thing`."""

    def installed(found: object, release: str = "1.0", name: str = "thing") -> None:
        monkeypatch.setitem(__import__("sys").modules, "waybill_thing", SimpleNamespace(THING=found))
        entry = EntryPoint(name, "waybill_thing:THING", "waybill.formats")
        vars(entry)["dist"] = SimpleNamespace(name="waybill-thing", version=release, files=None)

        def entry_points(group: str) -> EntryPoints:
            return EntryPoints([entry] if group == "waybill.formats" else [])

        monkeypatch.setattr(packages, "entry_points", entry_points)
        packages._loaded.clear()

    monkeypatch.setattr(packages, "_loaded", {})
    return installed


def read(options: Any, fields: pa.Schema, payloads: pa.Array) -> Changed:
    texts = [{"t": payload.decode()} for payload in payloads.to_pylist()]
    return Changed(pa.RecordBatch.from_pylist(texts, schema=fields))


def write(options: Any, rows: pa.RecordBatch) -> Payloads:
    return Payloads(rows.column("t").cast(pa.binary()))


def thing(**changes: Any) -> RowFormat:
    return RowFormat("Thing", **{"read": read, "write": write, "deterministic": True, **changes})


DOCUMENT = {"parse": {"format": "thing", "fields": {"t": "text"}}, "encode": {"format": "thing"}}


def shaped(*payloads: bytes | None) -> Any:
    return shape(Pipeline(DOCUMENT), records([*payloads]))


def test_payloads_become_rows_and_payloads_again(install: Install) -> None:
    install(thing())
    done = shaped(b"x", None, b"y")
    assert [row["value"] for row in done.kept.to_pylist()] == [b"x", b"", b"y"]


def test_what_it_raises_rejects_the_record_for_which_it_does(install: Install) -> None:
    install(thing())
    done = shaped(b"x", b"\xff", b"y")
    assert [row["value"] for row in done.kept.to_pylist()] == [b"x", b"y"]
    [letter] = done.rejected
    assert (letter.offset, "xff" in letter.message) == (1, False)


def test_a_time_beyond_its_day_rejects_its_record(install: Install) -> None:
    def timed(options: Any, fields: pa.Schema, payloads: pa.Array) -> Changed:
        times = pa.array([0, 86_400_000_000][: len(payloads)], pa.int64()).cast(pa.time64("us"))
        return Changed(pa.RecordBatch.from_arrays([times], schema=fields))

    install(thing(read=timed, fields=lambda options, declared: pa.schema([("at", pa.time64("us"))])))
    done = shape(Pipeline({"parse": {"format": "thing"}, "encode": {"format": "json"}}), records([b"", b""]))
    assert [(one.offset, "at is a time beyond its day" in one.message) for one in done.rejected] == [(1, True)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"read": lambda options, fields, payloads: payloads}, "gave BinaryArray, not Changed"),
        ({"read": lambda *of: Changed(read(*of).rows.slice(1))}, "gave 1 rows of 2"),
        ({"read": lambda *of: Changed(read(*of).rows, pa.array([True]))}, "gave 2 rows of 2"),
        ({"read": lambda *of: Changed(read(*of).rows.rename_columns(["u"]))}, "gave other fields than it says"),
        ({"write": lambda options, rows: rows}, "gave RecordBatch, not Payloads"),
        ({"write": lambda options, rows: Payloads(rows.column("t"))}, "gave payloads of Arrow's type string"),
        ({"write": lambda *of: Payloads(write(*of).values.slice(1))}, "gave 1 rows of 2"),
        ({"write": None}, "no longer has such a function"),
    ],
)
def test_a_format_that_does_not_do_what_it_says_ends_the_run(install: Install, changes: Any, words: str) -> None:
    """No record is to blame: none is rejected."""
    install(thing(**changes))
    with pytest.raises(ContractBroken, match=f"The format thing {words}"):
        shaped(b"x", b"y")


def test_no_record_is_rejected_where_the_package_is_missing_or_broken(install: Install) -> None:
    install("no format")
    with pytest.raises(ContractBroken, match=r"waybill-thing 1\.0.*is no RowFormat"):
        shaped(b"x")
    install(thing(), name="other")
    with pytest.raises(VersionMismatch, match="No installed package brings the format thing"):
        shaped(b"x")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (thing(deterministic=False), "thing does not state that it makes the same"),
        (thing(read=None), "thing cannot read"),
        (thing(read=None, write=None), "it brings neither read nor write"),
        (thing(fields=lambda options, declared: pa.schema([("d", pa.large_string())])), "Arrow's type large_string"),
        ("no format", "The package waybill-thing 1.0, which brings the format thing, is broken"),
    ],
)
def test_what_cannot_be_used_is_a_fault_of_the_document(install: Install, found: object, words: str) -> None:
    install(found)
    with pytest.raises(ValueError, match=words):
        Parse.model_validate(DOCUMENT["parse"])


def test_a_document_says_whether_it_fits(install: Install) -> None:
    install(thing())
    assert Parse.model_validate(DOCUMENT["parse"]).model_dump()["format"] == "thing"
    assert str(Parse.model_validate(DOCUMENT["parse"]).rows()) == "{t: text}"
    for part, words in [
        ({"format": "thing"}, "needs fields"),
        ({"format": "thing", "fields": {"t": "text"}, "unknown": "drop"}, "unknown goes with format"),
        ({"format": "thing", "fields": {"t": "text"}, "options": {"a": 1}}, "options.a: Extra inputs"),
        ({"format": "thing", "fields": {"t": "text"}, "delimiter": ";"}, "delimiter goes with format csv"),
        ({"format": "csv", "columns": ["a"], "options": {"a": 1}}, "options goes with a format that a package"),
    ]:
        with pytest.raises(ValueError, match=words):
            Parse.model_validate(part)
    install(thing(write=None))
    with pytest.raises(ValueError, match="thing cannot write"):
        Encode.model_validate({"format": "thing"})


def test_another_release_of_its_package_is_another_pipeline(install: Install) -> None:
    digests = set()
    for release in ("1.0", "1.1"):
        install(thing(), release)
        digests.add(pipeline_digest(DOCUMENT))
        assert version.plugin_versions() == {"format thing": f"waybill-thing {release}"}
    assert len(digests) == 2
