"""A `python` step: a function of a package, held to what it says of itself."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from connect_core import packages, version
from connect_core.errors import ContractBroken, VersionMismatch
from connect_core.pipeline.digest import pipeline_digest
from connect_core.pipeline.shaping import Pipeline
from connect_core.pipeline.transforms import python_functions
from connect_core.pipeline.transforms.steps import step_of
from connect_core.replication.worker.rejects import shape
from connect_core.rows.types import struct_of
from connect_core.sdk.row_functions import Changed, RowFunction
from connect_core.sdk.testing.driving import records
from tests.unit.pipeline.transforms.stepping import stepped, values

FIELDS = {"a": "int64", "t": "text"}
ROWS = [{"a": 1, "t": "x"}, {"a": -2, "t": "y"}, {"a": None, "t": "z"}]
Install = Callable[..., None]


def same(schema: pa.Schema) -> pa.Schema:
    return schema


def doubled(rows: pa.RecordBatch) -> Changed:
    return Changed(rows.set_column(0, rows.schema.field(0), pc.multiply(rows.column(0), 2)), pc.less(rows.column(0), 0))


DOUBLED = RowFunction(same, doubled, deterministic=True)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """As `pip install` of a package that brings `thing`."""

    def installed(found: object, release: str = "1.0") -> None:
        module = SimpleNamespace(THING=found)
        monkeypatch.setitem(__import__("sys").modules, "waybill_thing", module)
        entry = EntryPoint("thing", "waybill_thing:THING", "waybill.transforms")
        vars(entry)["dist"] = SimpleNamespace(name="waybill-thing", version=release, files=None)

        def entry_points(group: str, **chosen: str) -> EntryPoints:
            return EntryPoints([entry] if group == "waybill.transforms" else []).select(**chosen)

        monkeypatch.setattr(packages, "entry_points", entry_points)
        packages._loaded.clear()

    monkeypatch.setattr(packages, "_loaded", {})
    return installed


def test_rows_are_changed_and_rejected(install: Install) -> None:
    install(DOUBLED)
    done = stepped([{"filter": "$.t <> 'q'"}, {"python": "thing"}, {"rename": {"t": "text"}}], FIELDS, ROWS)
    assert values(done) == [{"a": 2, "text": "x"}, {"a": None, "text": "z"}]
    assert done.unfit == [(1, "python: thing rejects it")]


def test_a_time_beyond_its_day_rejects_its_record(install: Install) -> None:
    def timed(rows: pa.RecordBatch) -> Changed:
        times = pa.array([0, 86_400_000_000, 86_399_999_999], pa.int64()).cast(pa.time64("us"))
        return Changed(rows.append_column("at", times))

    install(RowFunction(lambda schema: schema.append(pa.field("at", pa.time64("us"))), timed, deterministic=True))
    done = stepped([{"python": "thing"}], FIELDS, ROWS)
    assert done.unfit == [(1, "python: thing gives a time beyond its day in at")]


def test_rows_that_were_left_out_before_are_not_given(install: Install) -> None:
    def only_x(rows: pa.RecordBatch) -> Changed:
        assert rows.column("t").to_pylist() == ["x"]
        return Changed(rows)

    install(RowFunction(same, only_x, deterministic=True))
    assert values(stepped([{"filter": "$.t = 'x'"}, {"python": "thing"}], FIELDS, ROWS)) == ROWS[:1]


def test_check_knows_the_fields_behind_it(install: Install) -> None:
    def wanting(schema: pa.Schema) -> pa.Schema:
        if "a" not in schema.names:
            raise ValueError("needs a field a")
        return schema.append(pa.field("when", pa.timestamp("ms", "UTC")))

    install(RowFunction(wanting, Changed, deterministic=True))
    assert str(step_of({"python": "thing"}).after(struct_of(FIELDS))) == "{a: int64, t: text, when: timestamp(ms)}"
    with pytest.raises(ValueError, match="needs a field a"):
        step_of({"python": "thing"}).after(struct_of({"b": "text"}))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (RowFunction(same, doubled, deterministic=False), "thing does not state that it makes the same of a record"),
        (
            RowFunction(lambda schema: pa.schema([("d", pa.large_string())]), doubled, deterministic=True),
            "large_string",
        ),
    ],
)
def test_what_must_not_be_used_is_a_fault_of_the_document(install: Install, function: object, words: str) -> None:
    install(function)
    with pytest.raises(ValueError, match=words):
        step_of({"python": "thing"}).after(struct_of(FIELDS))


def test_a_name_that_no_package_brings(install: Install) -> None:
    install(DOUBLED)
    with pytest.raises(ValueError, match=r"brings thign; did you mean thing\? \(there are: thing\)"):
        step_of({"python": "thign"}).after(struct_of(FIELDS))
    with pytest.raises(ValueError, match="needs the name of a function"):
        step_of({"python": {"thing": 1}})


def reshaped() -> Any:
    document = {"parse": {"format": "json", "fields": FIELDS}, "transforms": [{"python": "thing"}]}
    return shape(Pipeline(document), records([b'{"a":1,"t":"x"}', b'{"a":2,"t":"y"}', b'{"a":3,"t":"z"}']))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda rows: rows, "gave RecordBatch, not Changed"),
        (lambda rows: Changed(rows.slice(1)), "gave 2 rows of 3"),
        (lambda rows: Changed(rows, pa.array([True])), "gave 3 rows of 3"),
        (lambda rows: Changed(rows.select(["t", "a"])), "gave other fields than it says"),
    ],
)
def test_a_function_that_does_not_do_what_it_says_ends_the_run(install: Install, made: Any, words: str) -> None:
    """No record is to blame: none is rejected."""
    install(RowFunction(same, made, deterministic=True))
    with pytest.raises(ContractBroken, match=f"The function thing {words}"):
        reshaped()


def test_no_record_is_rejected_where_the_package_is_missing_or_broken(install: Install) -> None:
    install("no function")
    with pytest.raises(ContractBroken, match="waybill_thing:THING is no RowFunction"):
        reshaped()
    install(DOUBLED)
    with pytest.raises(VersionMismatch, match="No installed package brings the function other"):
        python_functions.function("other")


def test_what_it_raises_rejects_the_record_for_which_it_does(install: Install) -> None:
    def strict(rows: pa.RecordBatch) -> Changed:
        if 2 in rows.column("a").to_pylist():
            raise RuntimeError("a secret")
        return Changed(rows)

    install(RowFunction(same, strict, deterministic=True))
    shaped = reshaped()
    assert [row["value"] for row in shaped.kept.to_pylist()] == [b'{"a":1,"t":"x"}', b'{"a":3,"t":"z"}']
    [letter] = shaped.rejected
    assert (letter.offset, "secret" in letter.message) == (1, False)


def test_another_release_of_its_package_is_another_pipeline(install: Install) -> None:
    digests = set()
    for release in ("1.0", "1.1"):
        install(DOUBLED, release)
        digests.add(pipeline_digest({"transforms": [{"python": "thing"}]}))
        assert version.plugin_versions() == {"python thing": f"waybill-thing {release}"}
    assert len(digests) == 2
