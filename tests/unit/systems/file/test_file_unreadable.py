"""One file that cannot be read stops no other one, wherever that is noticed. (Tests may run as root, whom no permission
stops: the operating system is made to refuse.)"""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connect_core.errors import Failure, PartitionUnreachable
from connect_core.replication.worker.range import concerns_one
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import limit, range_of
from connect_core.sdk.values import OPEN_END, SourceBatch
from connect_core.systems.file import source as module
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.source import FileSource


def source(folder: Path, **options: object) -> FileSource:
    path = str(folder / "*.log")
    return FileSource(FileSourceOptions.model_validate({"path": path, "rotation_quiet_s": 0, **options}))


def refuses(monkeypatch: pytest.MonkeyPatch, path: Path, number: int) -> None:
    real = os.open

    def refuse(name: Any, *args: Any, **more: Any) -> int:
        if name == str(path):
            raise OSError(number, os.strerror(number), name)
        return real(name, *args, **more)

    monkeypatch.setattr(os, "open", refuse)


@pytest.mark.parametrize("options", [{}, {"parallel": True}], ids=["whole", "in parts"])
def test_the_bounds_of_the_others_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, object]
) -> None:
    for name in "amz":
        (tmp_path / f"{name}.log").write_bytes(b"one\n")
    bad = Partition(str(tmp_path / "m.log"))
    refuses(monkeypatch, tmp_path / "m.log", errno.EACCES)
    files = source(tmp_path, **options)
    named = files.partitions([])
    assert bad in named
    assert len(named) == 3
    bounds = files.available_offsets(dict.fromkeys(named))
    failure = bounds[bad].failure
    assert failure is not None
    assert (failure.family, failure.where) == ("Unreachable", bad.key)
    others = [seen for partition, seen in bounds.items() if partition != bad]
    assert [(seen.failure, seen.end) for seen in others] == [(None, 4), (None, 4)]
    assert set(files.partitions(named)) == set(named)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ELOOP])
def test_one_that_may_not_be_read_since_it_was_planned_concerns_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    files, partition = source(tmp_path), Partition(str(path))
    wanted = range_of(partition, files.available_offsets({partition: None})[partition])
    refuses(monkeypatch, path, number)
    with pytest.raises(Exception, match=r"a\.log") as told:
        list(files.read(wanted, limit()))
    assert concerns_one(told.value)
    assert isinstance(told.value, PartitionUnreachable) == (number != errno.EIO)


def test_what_nobody_expects_of_one_file_is_its_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "az":
        (tmp_path / f"{name}.log").write_bytes(b"one\n")
    real = module.Rotation.bounds

    def brittle(self: Any, partition: Partition, position: Any) -> Any:
        if partition.key.endswith("a.log"):
            raise ValueError("the words of a line")
        return real(self, partition, position)

    monkeypatch.setattr(module.Rotation, "bounds", brittle)
    files = source(tmp_path)
    first, second = files.available_offsets(dict.fromkeys(files.partitions([]))).values()
    assert first.failure is not None
    assert (first.failure.kind, "the words" in first.failure.what) == ("ValueError", False)
    assert (second.failure, second.end) == (None, 4)


def test_the_others_are_followed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "az":
        (tmp_path / f"{name}.log").write_bytes(b"")
    files = source(tmp_path)
    bounds = files.available_offsets(dict.fromkeys(files.partitions([])))
    live = [replace(range_of(one, seen), end=OPEN_END) for one, seen in bounds.items()]
    refuses(monkeypatch, tmp_path / "a.log", errno.EACCES)
    for name in "az":
        (tmp_path / f"{name}.log").write_bytes(b"one\n")
    came = {Path(one.partition.key).stem: batch for one, batch in files.follow(live, limit(), idle_timeout_s=0.3)}
    assert isinstance(came["a"], Failure)
    assert isinstance(came["z"], SourceBatch)
