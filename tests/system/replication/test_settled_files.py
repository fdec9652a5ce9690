"""A file that is written keeps what was settled in it, whoever else writes and in whatever order ranges are closed.

Each record is a line of its own, so a checker of plain files can tell what is lost, what is there twice, and what was
moved away; it shares no code with the product. Reproduced before settle compared floors: two tasks with a file each
lost 2,000 of 88,000 lines in three plain runs, a window with a rotated log 161 of 503, with exit code 0 and no gap.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.site import Site


def lines_of(paths: list[Path]) -> Counter[bytes]:
    return Counter(line for path in paths for line in path.read_bytes().split(b"\n")[:-1])


def require_equal(given: list[Path], written: list[Path]) -> None:
    """Every line given is there once, nothing else is, and nothing was set aside."""
    there, wanted = lines_of(written), lines_of(given)
    lost, too_many = wanted - there, there - wanted
    assert not lost, f"{lost.total()} of {wanted.total()} lines are lost, the first of them {sorted(lost)[:3]}"
    assert not too_many, f"{too_many.total()} lines are there too often, the first of them {sorted(too_many)[:3]}"
    aside = [str(path) for path in written[0].parent.iterdir() if ".unsettled-" in path.name]
    assert not aside, f"lines were set aside: {aside}"


def require_order(log: Path, written: list[Path]) -> None:
    """The lines of one log stand in one file, in the order of the log."""
    mine = log.read_bytes().split(b"\n")[:-1]
    wanted = set(mine)
    found = [[line for line in path.read_bytes().split(b"\n") if line in wanted] for path in written]
    assert [lines for lines in found if lines] == [mine]


def append(log: Path, begin: int, end: int, word: str = "") -> None:
    with log.open("a") as file:
        file.writelines(f"{word or log.stem} line {number:08d}\n" for number in range(begin, end))


def both_are_known(site: Site) -> bool:
    """Whether something of each of the two logs is settled."""
    return len({one["partition"] for one in site.json("receipts", "orders")["receipts"]}) > 1


def document(site: Site, **more: object) -> dict[str, object]:
    return {
        "source": {"file": {"path": str(site.folder / "in" / "*.log"), "rotation_quiet_s": 0.1}},
        "sink": {"file": {"path": str(site.folder / "out" / "all.txt")}},
        **more,
    }


def folders(site: Site) -> Path:
    (site.folder / "out").mkdir()
    (site.folder / "in").mkdir()
    return site.folder / "in"


def test_tasks_with_a_file_each_keep_what_each_of_them_has_settled(bare_site: Site) -> None:
    """Three plain runs, more lines for each of them."""
    folder = folders(bare_site)
    logs = [folder / f"{name}.log" for name in ("a", "b", "c", "d")]
    for log in logs:
        append(log, 0, 2_000)
    bare_site.apply("orders", document(bare_site, tasks=2))
    for round_ in range(3):
        for number, log in enumerate(logs):
            append(log, 2_000 + round_ * 1_000, 3_000 + round_ * 1_000 - number)
        bare_site.waybill("run", "orders", "--engine", "inline")
    written = sorted((bare_site.folder / "out").glob("all.task?.txt"))
    assert len(written) == 2
    require_equal(logs, written)
    for log in logs:
        require_order(log, written)


@pytest.mark.fault(costly=True)
def test_a_window_over_two_logs_of_which_one_is_rotated(bare_site: Site) -> None:
    """The live range of the other one is planned first; the rest of the renamed file is a range with an end, planned
    behind it and moved before it."""
    bare_site.settings |= {"WAYBILL_QUANTUM_S": "1s", "WAYBILL_LINGER_S": "300ms"}
    folder = folders(bare_site)
    app, other = folder / "app.log", folder / "access.log"
    append(app, 0, 50)
    append(other, 0, 50)
    bare_site.apply("orders", document(bare_site))
    over = threading.Event()

    def write() -> None:
        """A program goes on writing to its log for a moment after that was renamed, as all do. What is renamed before
        it was ever read is no rotation of anything."""
        while not (over.is_set() or both_are_known(bare_site)):
            time.sleep(0.2)
        for turn in range(1, 7):
            for number in range(5):
                append(app, 100 * turn + number, 100 * turn + number + 1, "app")
                time.sleep(0.3)
            renamed = app.rename(folder / f"app.log.{turn}")
            for number in range(10, 30):
                append(renamed, 100 * turn + number, 100 * turn + number + 1, "app")
                append(other, 100 * turn + number, 100 * turn + number + 1)
                time.sleep(0.05)
            append(app, 100 * turn + 50, 100 * turn + 55)
            if over.is_set():
                return

    writing = threading.Thread(target=write)
    writing.start()
    try:
        bare_site.waybill("run", "orders", "--engine", "inline", "--window", "15s")
    finally:
        over.set()
        writing.join()
    bare_site.waybill("run", "orders", "--engine", "inline")
    bare_site.waybill("run", "orders", "--engine", "inline")
    given = [path for path in folder.iterdir() if path.name.startswith(("app.log", "access.log"))]
    assert len(given) > 3, "the log was rotated while the window was open"
    require_equal(given, [bare_site.folder / "out" / "all.txt"])


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ("cut", 5, "bytes, fewer than the"),
        ("written over", 5, "no longer holds what was settled"),
        ("deleted", 5, "The file is gone"),
        ("folder gone", 3, "is missing"),
    ],
)
@pytest.mark.parametrize("moving", [False, True], ids=["nothing to move", "lines for another task"])
def test_a_task_with_nothing_to_move_looks_whether_its_file_is_whole(
    bare_site: Site, change: str, code: int, words: str, moving: bool
) -> None:
    """Of three tasks, each with a file of its own, one has lost what was settled."""
    site = bare_site
    logs = folders(site)
    for name in "abc":
        append(logs / f"{name}.log", 0, 100)
    site.apply("orders", document(site, tasks=3))
    site.waybill("run", "orders", "--engine", "inline")
    [mine] = [one for one in (site.folder / "out").iterdir() if b"b line 00000000" in one.read_bytes()]
    whole = mine.read_bytes()
    if change == "cut":
        mine.write_bytes(whole[:-500])
    elif change == "written over":
        mine.write_bytes(whole[:-10] + b"x" * 10)
    elif change == "deleted":
        mine.unlink()
    else:
        mine.parent.rename(site.folder / "elsewhere")
    if moving:
        append(logs / "a.log", 100, 120)
    said = site.waybill("run", "orders", "--engine", "inline", code=code)
    assert words in said
    if moving and code == 5:
        assert len(lines_of([one for one in (site.folder / "out").iterdir() if one != mine])) == 220
