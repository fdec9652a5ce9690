"""Lines into a file: settled bytes stay, unsettled ones are set aside, and the file is the one that was planned."""

from __future__ import annotations

import hashlib
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from connect_core.errors import ConfigError, Retriable, TargetChanged, Unreachable
from connect_core.sdk.sink import Scan
from connect_core.sdk.testing.driving import UID, attempt, limit, records
from connect_core.sdk.values import OPEN_END, Attempt, Floor
from connect_core.systems.file import aside, target
from connect_core.systems.file.options import FileSinkOptions
from connect_core.systems.file.sink import FileSink
from tests.unit.systems.driving import Filler


def sink(path: Path, **options: object) -> FileSink:
    return FileSink(FileSinkOptions.model_validate({"path": str(path), **options}))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.txt"


@pytest.fixture
def filler(out: Path) -> Filler:
    return Filler(sink(out))


def test_values_become_lines(out: Path, filler: Filler) -> None:
    delivered = filler.run([b"a", None, b"\xff\x00", b""])
    assert out.read_bytes() == b"a\n\n\xff\x00\n\n"
    assert (delivered.records, delivered.bytes) == (4, 7)
    assert delivered.behind == {str(out): 7}
    assert delivered.where == {"path": str(out), "begin": 0, "end": 7}
    assert delivered.digest == "sha256:" + hashlib.sha256(out.read_bytes()).hexdigest()
    filler.run([b"b"])
    assert out.read_bytes() == b"a\n\n\xff\x00\n\nb\n"


def test_slices_of_batches_are_written_as_they_are(out: Path, filler: Filler) -> None:
    planned = filler.plan()
    with filler.sink.writer(attempt(), planned) as writer:
        writer.write(records([b"a", b"b", b"c", b"d"]).slice(1, 2), limit())
        writer.write(records([]), limit())
        writer.flush(limit())
    assert out.read_bytes() == b"b\nc\n"


def test_ranges_of_a_lane_follow_each_other(out: Path, filler: Filler) -> None:
    planned = filler.plan()
    assert filler.write(planned, [b"first"]).where["end"] == 6
    assert filler.write(planned, [b"second"]).where == {"path": str(out), "begin": 6, "end": 13}
    assert out.read_bytes() == b"first\nsecond\n"


def test_nothing_is_taken_when_the_quantum_is_over(out: Path, filler: Filler) -> None:
    with filler.sink.writer(attempt(), filler.plan()) as writer:
        assert writer.write(records([b"a"]), limit(quantum_s=-1)) == 0
        delivered = writer.flush(limit())
    assert (delivered.records, delivered.behind) == (0, {str(out): 0})
    assert not out.exists()


def test_unsettled_bytes_are_set_aside_and_written_again(out: Path, filler: Filler) -> None:
    filler.run([b"settled"])
    filler.write(filler.plan(), [b"lost receipt", b"of these"])
    again = Filler(sink(out), filler.floors, epoch=7, next_offset=1)
    again.run([b"lost receipt", b"of these"])
    assert out.read_bytes() == b"settled\nlost receipt\nof these\n"
    assert Path(f"{out}.unsettled-8").read_bytes() == b"lost receipt\nof these\n"


def test_bytes_are_not_set_aside_before_there_is_something_to_write(out: Path, filler: Filler) -> None:
    filler.run([b"settled"])
    filler.write(filler.plan(), [b"unsettled"])
    again = Filler(sink(out), filler.floors, epoch=7)
    again.run([])
    assert out.read_bytes() == b"settled\nunsettled\n"


def test_a_writer_left_without_flush_makes_the_next_one_begin_where_it_did(out: Path, filler: Filler) -> None:
    filler.run([b"settled"])
    planned = filler.plan()
    with filler.sink.writer(attempt(5), planned) as writer:
        writer.write(records([b"abandoned"]), limit())
    filler.write(planned, [b"next"])
    assert out.read_bytes() == b"settled\nnext\n"


def test_every_attempt_sets_aside_under_a_name_of_its_own(out: Path, filler: Filler) -> None:
    filler.run([b"settled"])
    for text in (b"one", b"two", b"three"):
        planned = replace(Filler(sink(out), filler.floors).plan())
        with sink(out).writer(attempt(9), planned) as writer:
            writer.write(records([text]), limit())
            writer.flush(limit())
    assert Path(f"{out}.unsettled-9").read_bytes() == b"one\n"
    assert Path(f"{out}.unsettled-9.2").read_bytes() == b"two\n"


def test_a_file_that_was_there_is_appended_to(out: Path, filler: Filler) -> None:
    out.write_bytes(b"theirs\n")
    filler.run([b"ours"])
    assert out.read_bytes() == b"theirs\nours\n"


def test_a_file_without_a_last_line_feed_is_refused(out: Path, filler: Filler) -> None:
    out.write_bytes(b"theirs")
    with pytest.raises(TargetChanged, match="does not end with a line feed"):
        filler.plan()


def replaced(out: Path) -> None:
    out.rename(out.with_suffix(".old"))
    out.write_bytes(b"someone else's, and long enough\n")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (replaced, "another one"),
        (lambda out: os.truncate(out, 3), "fewer than the 8"),
        (lambda out: out.unlink(), "is gone"),
    ],
    ids=["replaced", "cut", "deleted"],
)
def test_a_file_that_is_not_the_one_written_stops_the_run(out: Path, change, told: str) -> None:  # type: ignore[no-untyped-def]
    filler = Filler(sink(out))
    filler.run([b"settled"])
    planned = filler.plan()
    change(out)
    with pytest.raises(TargetChanged, match=told):
        filler.plan()
    with pytest.raises(TargetChanged, match=told):
        filler.write(planned, [b"next"])


def test_a_replaced_file_is_begun_at_its_start_when_wanted(out: Path) -> None:
    filler = Filler(sink(out, on_replaced="continue"))
    filler.run([b"settled"])
    replaced(out)
    delivered = filler.run([b"next"])
    assert out.read_bytes() == b"next\n"
    assert Path(f"{out}.unsettled-2").read_bytes() == b"someone else's, and long enough\n"
    aside = [[f"{out}.unsettled-2", 32]]
    assert delivered.where == {"path": str(out), "begin": 0, "end": 5, "set_aside": aside}
    again = Filler(sink(out, on_replaced="continue"), filler.floors)
    again.run([b"more"])
    assert out.read_bytes() == b"next\nmore\n"


def test_a_replaced_file_is_begun_again_by_the_next_attempt(out: Path) -> None:
    filler = Filler(sink(out, on_replaced="continue"))
    filler.run([b"settled"])
    out.unlink()
    planned = filler.plan()
    filler.write(planned, [b"never", b"settled"])
    again = Filler(sink(out, on_replaced="continue"), filler.floors, epoch=5)
    again.settle(again.write(planned, [b"never", b"settled"]), 2)
    assert out.read_bytes() == b"never\nsettled\n"
    with sink(out).writer(attempt(), again.plan()) as writer:
        writer.write(records([b"more"]), limit())
        writer.flush(limit())
    assert out.read_bytes() == b"never\nsettled\nmore\n"


def test_a_file_renamed_while_it_is_written_gets_no_receipt(out: Path, filler: Filler) -> None:
    filler.run([b"settled"])
    with filler.sink.writer(attempt(), filler.plan()) as writer:
        writer.write(records([b"next"]), limit())
        out.rename(out.with_suffix(".1"))
        with pytest.raises(TargetChanged, match="is gone"):
            writer.flush(limit())


def cutting_before_writes(patched: pytest.MonkeyPatch, behind: int, length: int) -> None:
    """Cuts the file at `length` right before each write behind the place `behind`, when nobody can look any more."""
    real = os.pwrite

    def pwrite(fd: int, data: memoryview, offset: int) -> int:
        if offset > behind:
            os.ftruncate(fd, length)
        return real(fd, data, offset)

    patched.setattr(target.os, "pwrite", pwrite)


def test_a_file_cut_while_it_is_written_gets_no_receipt(
    out: Path, filler: Filler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write behind the cut leaves a hole of zeros, and the bytes around it look as they should."""
    filler.run([b"settled"])
    planned = filler.plan()
    cutting_before_writes(monkeypatch, 0, 3)
    with filler.sink.writer(attempt(), planned) as writer:
        writer.write(records([b"behind" * 1000]), limit())
        with pytest.raises(TargetChanged, match="no longer holds what was settled"):
            writer.flush(limit())


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_fails_leaves_nothing_behind(out: Path, filler: Filler) -> None:
    filler.run([b"settled"])
    planned = filler.plan()
    with file_size_limit(100), pytest.raises(Unreachable, match=r"out\.txt.*Raise the limit"):
        filler.write(planned, [b"x" * 50, b"y" * 50])
    assert out.read_bytes() == b"settled\n"
    filler.write(planned, [b"x" * 50, b"y" * 50])
    assert out.stat().st_size == 8 + 102
    assert list(out.parent.iterdir()) == [out]


def test_bytes_that_cannot_be_set_aside_stay(out: Path, filler: Filler) -> None:
    filler.run([b"settled"])
    filler.write(filler.plan(), [b"u" * 200])
    again = Filler(sink(out), filler.floors)
    with file_size_limit(100), pytest.raises(Unreachable, match="cannot be set aside"):
        again.run([b"next"])
    assert out.read_bytes() == b"settled\n" + b"u" * 200 + b"\n"
    assert list(out.parent.iterdir()) == [out]


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match=r"nowhere/out\.txt"):
        Filler(sink(tmp_path / "nowhere" / "out.txt")).plan()


def test_a_folder_is_no_target(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Not a regular file"):
        Filler(sink(tmp_path)).plan()


def test_everything_is_synced_before_a_receipt(out: Path, filler: Filler, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        real(fd)

    monkeypatch.setattr(target.os, "fsync", fsync)
    filler.run([b"a"])
    assert synced == [str(out.parent), str(out)]


def test_a_failed_sync_is_no_receipt(out: Path, filler: Filler, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = filler.plan()
    out.write_bytes(b"")

    def fsync(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(target.os, "fsync", fsync)
    with pytest.raises(Retriable, match="cannot be made durable"):
        filler.write(planned, [b"a"])


def test_rows_with_a_line_feed_are_unfit(out: Path) -> None:
    rows = records([b"a", b"b\nc", None, b"\n"])
    assert [(row, kind) for row, kind, _ in sink(out).invalid_rows(rows)] == [
        (1, "EmbeddedNewline"),
        (3, "EmbeddedNewline"),
    ]
    assert sink(out).invalid_rows(rows.slice(2, 1)) == []
    assert sink(out).invalid_rows(rows.slice(0, 0)) == []


def test_names_of_tasks_and_leases(out: Path, tmp_path: Path) -> None:
    several = sink(out, tasks=2)
    assert several.path_for(1) == str(tmp_path / "out.task1.txt")
    assert sink(out).target_leases(0) == (f"file:{out}",)
    (tmp_path / "link").symlink_to(tmp_path)
    assert sink(tmp_path / "link" / "out.txt").target_leases(0) == sink(out).target_leases(0)
    assert several.targets(1, (), {}).single_lane


def test_find_has_nothing_to_look_for(out: Path, filler: Filler) -> None:
    planned = filler.plan()
    search = Scan(Attempt(UID, 1), (planned,), 1.0)
    assert filler.sink.scan(search)[planned.id].complete


def test_find_tells_how_many_bytes_no_receipt_covers(out: Path, filler: Filler) -> None:
    filler.run([b"settled"])
    planned = filler.plan()
    search = Scan(Attempt(UID, 1), (planned,), 1.0)
    assert filler.sink.scan(search)[planned.id].unplaced == 0
    filler.write(planned, [b"unsettled"])
    assert sink(out).scan(search)[planned.id].unplaced == 10
    replaced(out)
    assert sink(out).scan(search)[planned.id].unplaced == 0


def test_floors_of_another_file_do_not_count(out: Path, filler: Filler) -> None:
    filler.floors["/elsewhere"] = Floor("", "/elsewhere", 100, evidence={"base": 0, "dev": 1, "ino": 2})
    filler.run([b"a"])
    assert out.read_bytes() == b"a\n"


def emptied(out: Path) -> None:
    os.truncate(out, 0)


def cut_within(out: Path) -> None:
    os.truncate(out, 3)


def written_by_another(out: Path) -> None:
    with out.open("ab") as file:
        file.write(b"theirs\n")


@pytest.mark.parametrize("settled", [[], [b"settled"]], ids=["a new file", "a file that was settled"])
@pytest.mark.parametrize("deed", [emptied, cut_within, written_by_another])
def test_nothing_is_written_behind_what_another_program_did(out: Path, deed, settled: list[bytes | None]) -> None:  # type: ignore[no-untyped-def]
    """A write at the place that was planned would leave a hole before it, or destroy what stands there."""
    filler = Filler(sink(out))
    if settled:
        filler.run(settled)
    with filler.sink.writer(attempt(), filler.plan()) as writer:
        writer.write(records([b"before"]), limit())
        deed(out)
        there = out.read_bytes()
        with pytest.raises(TargetChanged, match=r"than the \d+ that were written"):
            writer.write(records([b"behind"]), limit())
    assert out.read_bytes() == there


def test_a_new_file_that_was_emptied_while_it_was_written_is_written_again(out: Path, filler: Filler) -> None:
    with filler.sink.writer(attempt(), filler.plan()) as writer:
        writer.write(records([b"before"]), limit())
        os.truncate(out, 0)
        with pytest.raises(TargetChanged, match="the next run writes again what has no receipt"):
            writer.write(records([b"behind"]), limit())
    filler.run([b"before", b"behind"])
    assert out.read_bytes() == b"before\nbehind\n"


@pytest.mark.parametrize("settled", [[], [b"settled" * 1000]], ids=["a new file", "a file that was settled"])
def test_a_cut_right_before_a_write_gets_no_receipt(
    out: Path, settled: list[bytes | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It falls between the look at the file and the write, which leaves a hole: the size is what it should be."""
    filler = Filler(sink(out))
    if settled:
        filler.run(settled)
    planned = filler.plan()
    before = out.stat().st_size if settled else 0
    cutting_before_writes(monkeypatch, before, before)
    with filler.sink.writer(attempt(), planned) as writer:
        writer.write(records([b"before"]), limit())
        writer.write(records([b"behind" * 1000]), limit())
        with pytest.raises(TargetChanged, match=f"what was written from byte {before} on"):
            writer.flush(limit())


def test_a_failed_write_takes_nothing_back_in_a_file_that_was_cut(out: Path, filler: Filler) -> None:
    """To cut at the place where it was flushed would make it longer, with zeros."""
    filler.run([b"settled" * 10])
    with filler.sink.writer(attempt(), filler.plan()) as writer:
        writer.write(records([b"x" * 50]), limit())
        with file_size_limit(140), pytest.MonkeyPatch.context() as patched:
            cutting_before_writes(patched, 139, 3)
            with pytest.raises(Unreachable, match="Raise the limit"):
                writer.write(records([b"y" * 50]), limit())
    assert out.stat().st_size == 3


@pytest.mark.parametrize(
    ("policy", "told"),
    [("fail", "set on_replaced: continue"), ("continue", r"writes the file .*on_replaced: continue\)")],
)
def test_a_file_renamed_in_mid_range_says_what_it_holds_and_what_is_next(out: Path, policy: str, told: str) -> None:
    filler = Filler(sink(out, on_replaced=policy))
    filler.run([b"settled"])
    with filler.sink.writer(attempt(), filler.plan()) as writer:
        writer.write(records([b"next"]), limit())
        out.rename(out.with_suffix(".1"))
        with pytest.raises(TargetChanged, match=f"is gone; the one that was written holds 5 bytes.*{told}"):
            writer.flush(limit())


@pytest.fixture
def linked(out: Path) -> Path:
    """Another name of the same file, through its folder."""
    (out.parent / "link").symlink_to(out.parent)
    return out.parent / "link" / out.name


def unsettled_of(out: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(out.parent.glob("*.unsettled-*"))]


def test_a_file_has_one_settled_length_under_all_its_names(out: Path, linked: Path) -> None:
    filler = Filler(sink(linked))
    filler.run([b"one"])
    for name, value in ((out, b"two"), (linked, b"three"), (out, b"four")):
        filler.sink = sink(name)
        filler.run([value])
    assert (out.read_bytes(), unsettled_of(out)) == (b"one\ntwo\nthree\nfour\n", [])
    assert filler.floors.keys() == {str(linked), str(out)}, "others look for both"


def test_lines_settled_under_a_later_name_are_not_taken_for_unsettled(out: Path, linked: Path) -> None:
    """Each name had a floor of its own in former versions. A range that was planned before is finished behind both."""
    former = Filler(sink(linked))
    former.run([b"one"])
    planned = former.plan()
    later = Filler(sink(out))
    later.run([b"two"])
    floors = former.floors | later.floors
    again = Filler(sink(linked), floors)
    search = Scan(Attempt(UID, 1), (replace(planned, floors=tuple(floors.values())),), 1.0)
    assert again.sink.scan(search)[planned.id].unplaced == 0
    delivered = again.write(replace(planned, floors=tuple(floors.values())), [b"three"])
    assert (out.read_bytes(), unsettled_of(out)) == (b"one\ntwo\nthree\n", [])
    assert (delivered.began, delivered.behind) == ({str(out): 8}, {str(out): 14})
    again.settle(delivered, 1)
    again.run([b"four"])
    assert out.read_bytes() == b"one\ntwo\nthree\nfour\n"


def test_what_was_never_settled_is_known_under_another_name(out: Path, linked: Path) -> None:
    filler = Filler(sink(linked))
    filler.write(filler.plan(), [b"given up"])
    filler.sink = sink(out)
    filler.run([b"one"])
    assert (out.read_bytes(), unsettled_of(out)) == (b"one\n", [b"given up\n"])
    hard = out.with_name("hard.txt")
    hard.hardlink_to(out)
    filler.write(filler.plan(), [b"given up as well"])
    filler.sink = sink(hard)
    filler.run([b"two"])
    assert hard.read_bytes() == b"one\ntwo\n"


def test_a_cut_is_not_hidden_by_what_was_settled_under_an_earlier_name(out: Path, linked: Path) -> None:
    former, later = Filler(sink(linked)), Filler(sink(out))
    former.run([b"one"])
    later.run([b"two"])
    os.truncate(out, 6)
    with pytest.raises(TargetChanged, match="fewer than the 8"):
        Filler(sink(out), former.floors | later.floors).plan()


def test_a_link_that_leads_to_another_file_of_ours_counts_as_replaced(tmp_path: Path) -> None:
    """With on_replaced: continue it is gone on with where it was settled."""
    one, two, link = tmp_path / "one.txt", tmp_path / "two.txt", tmp_path / "link.txt"
    filler = Filler(sink(two))
    filler.run([b"two"])
    link.symlink_to(one)
    filler.sink = sink(link)
    filler.run([b"one"])
    link.unlink()
    link.symlink_to(two)
    filler.sink = sink(link)
    with pytest.raises(TargetChanged, match="another one"):
        filler.plan()
    filler.sink = sink(link, on_replaced="continue")
    filler.run([b"more"])
    assert (one.read_bytes(), two.read_bytes(), unsettled_of(two)) == (b"one\n", b"two\nmore\n", [])


_UNSETTLED = b"".join(b"unsettled %06d\n" % number for number in range(4000))


class Killed(BaseException):
    pass


@pytest.fixture
def in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "_BLOCK", 4096)
    monkeypatch.setattr(aside, "_PIECE", 3 * 4096)
    monkeypatch.setattr(aside, "_LARGEST", 3 * 4096)


def with_unsettled(out: Path) -> Filler:
    filler = Filler(sink(out))
    filler.run([b"settled"])
    with out.open("ab") as file:
        file.write(_UNSETTLED)
    return filler


def recovered(out: Path) -> bytes:
    """What was unsettled, put together again from all files that hold some of it."""
    whole = bytearray(len(_UNSETTLED))
    for path in sorted(out.parent.glob("*.unsettled-*")):
        with path.open("rb") as file:
            begin = file.seek(0, os.SEEK_DATA) if path.stat().st_size else 0
            data = file.read()
        whole[begin : begin + len(data)] = data
    rest = out.read_bytes()[8:]
    whole[: len(rest)] = rest
    return bytes(whole)


def write_killed_at(filler: Filler, step: int) -> None:
    """Right before it makes one more than so many calls that change something."""
    planned, left = filler.plan(), iter(range(step))

    def made(real: Callable[..., int]) -> Callable[..., int]:
        def call(*given: object) -> int:
            if next(left, None) is None:
                raise Killed
            return real(*given)

        return call

    with pytest.MonkeyPatch.context() as patched:
        for name in ("pwrite", "fsync", "ftruncate"):
            patched.setattr(os, name, made(getattr(os, name)))
        with pytest.raises(Killed):
            filler.write(planned, [b"next"])


@pytest.mark.parametrize("step", range(29))
@pytest.mark.usefixtures("in_small_pieces")
def test_whoever_is_killed_while_bytes_are_set_aside_loses_none(out: Path, step: int) -> None:
    filler = with_unsettled(out)
    write_killed_at(filler, step)
    assert recovered(out) == _UNSETTLED
    filler.write(filler.plan(), [b"next"])
    assert out.read_bytes() == b"settled\nnext\n"
    out.write_bytes(b"settled\n")
    assert recovered(out) == _UNSETTLED


@pytest.mark.usefixtures("in_small_pieces")
def test_bytes_that_several_attempts_set_aside_are_in_one_file(out: Path) -> None:
    """Each is killed within its second piece."""
    filler = with_unsettled(out)
    sizes = [out.stat().st_size]
    for _ in range(3):
        write_killed_at(filler, 9)
        sizes.append(out.stat().st_size)
    assert sizes == sorted(set(sizes), reverse=True)
    filler.run([b"next"])
    assert [path.name for path in out.parent.iterdir() if path != out] == ["out.txt.unsettled-2"]
    assert unsettled_of(out) == [_UNSETTLED]


@pytest.mark.usefixtures("in_small_pieces")
def test_setting_aside_ends_when_the_lane_has_no_time_left_and_is_gone_on_with(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filler, real = with_unsettled(out), os.fsync

    def fsync(fd: int) -> None:
        if ".unsettled-" in os.readlink(f"/proc/self/fd/{fd}"):
            time.sleep(0.1)
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    with (
        filler.sink.writer(attempt(5), filler.plan()) as writer,
        pytest.raises(Retriable, match=r"[1-9][\d,]+ of 68,000 bytes .* were moved to .*-5, [\d,]+ are left"),
    ):
        writer.write(records([b"next"]), limit(deadline_s=0.5))
    assert 8 < out.stat().st_size < 8 + len(_UNSETTLED)
    (file,) = aside.set_aside_beside(str(out))
    assert file == (f"{out}.unsettled-5", len(_UNSETTLED) + 8 - out.stat().st_size)
    delivered = filler.write(filler.plan(), [b"next"])
    assert delivered.where["set_aside"] == [[f"{out}.unsettled-5", len(_UNSETTLED)]]
    assert unsettled_of(out) == [_UNSETTLED]


@pytest.mark.usefixtures("in_small_pieces")
def test_what_another_program_writes_while_bytes_are_set_aside_is_not_cut_off(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filler, real = with_unsettled(out), os.fsync

    def fsync(fd: int) -> None:
        real(fd)
        written_by_another(out)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(TargetChanged, match="another program writes or cuts it"):
        filler.write(filler.plan(), [b"next"])
    assert out.read_bytes().startswith(b"settled\n" + _UNSETTLED + b"theirs\n")
    assert unsettled_of(out) == []


@pytest.mark.usefixtures("in_small_pieces")
def test_nothing_is_cut_off_before_it_is_durable_elsewhere(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filler, calls = with_unsettled(out), list[str]()

    def noting(name: str, real: Callable[..., int]) -> Callable[..., int]:
        def call(fd: int, *given: object) -> int:
            calls.append(f"{name} {os.path.basename(os.readlink(f'/proc/self/fd/{fd}'))}")
            return real(fd, *given)

        return call

    planned = filler.plan()
    for name in ("pwrite", "fsync", "ftruncate"):
        monkeypatch.setattr(os, name, noting(name, getattr(os, name)))
    filler.write(planned, [b"next"])
    moved = [call for call in calls if call != "pwrite out.txt.unsettled-2"]
    first = ["fsync out.txt.unsettled-2", f"fsync {out.parent.name}", "ftruncate out.txt"]
    assert moved[:5] == [*first, "fsync out.txt.unsettled-2", "ftruncate out.txt"]
    assert moved[-4:] == ["ftruncate out.txt", "fsync out.txt", "pwrite out.txt", "fsync out.txt"]


@pytest.mark.parametrize("live", [False, True])
def test_what_an_attempt_left_in_a_rotated_file_is_told_and_counted(out: Path, *, live: bool) -> None:
    filler = Filler(sink(out, on_replaced="continue"))
    filler.run([b"settled"])
    filler.write(filler.plan(), [b"left", b"behind"])
    rotated = out.with_name("out.txt.1")
    out.rename(rotated)
    planned = filler.plan()
    planned = replace(planned, range=replace(planned.range, end=OPEN_END if live else planned.range.end))
    for _ in range(2):  # whoever had no receipt told nobody
        again = sink(out, on_replaced="continue")
        with again.writer(attempt(5), planned) as idle:
            assert idle.flush(limit()).possible_duplicates == 0
        with again.writer(attempt(5), planned) as writer:
            writer.write(records([b"left"]), limit())
            writer.write(records([b"behind", b"and more"]), limit())
            delivered = writer.flush(limit())
        assert delivered.where["left_in"] == [[str(rotated), 12]]
        assert delivered.possible_duplicates == 2
    with again.writer(attempt(5), planned) as writer:
        writer.write(records([b"next"]), limit())
        assert writer.flush(limit()).possible_duplicates == 0
    assert rotated.read_bytes() == b"settled\nleft\nbehind\n"


def test_a_replaced_file_without_leftovers_has_no_possible_duplicates(out: Path) -> None:
    filler = Filler(sink(out, on_replaced="continue"))
    filler.run([b"settled"])
    out.rename(out.with_name("out.txt.1"))
    assert filler.run([b"next"]).possible_duplicates == 0
