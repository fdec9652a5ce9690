"""What a command that shares partitions out has seen of them is kept for the first run."""

from __future__ import annotations

from pathlib import Path

from connect_core.ledger import Ledger
from connect_core.sdk.testing.driving import Follower
from connect_core.sdk.values import LIVE
from connect_core.service import documents, offsets
from connect_core.service.opened import AtWork
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.source import FileSource


def _read_next(ledger: Ledger, name: str, options: FileSourceOptions) -> list[bytes | None]:
    uid = ledger.connector(name).uid
    follower = Follower(FileSource(options))
    follower.positions |= ledger.positions(uid, LIVE, list(ledger.partitions(uid)))
    lines = follower.run()
    assert follower.gaps == []
    return lines


def _rotate(log: Path) -> None:
    log.rename(f"{log}.1")
    log.write_text("new\n")


def test_files_beside_the_one_whose_offset_is_set_first_are_followed(opened: AtWork, folder: Path) -> None:
    set_here, beside = folder / "logs" / "a.log", folder / "logs" / "b.log"
    beside.write_text("of b\n")
    offsets.set_offset(opened, "copy", str(set_here), 4, agree=lambda move: None, say=print)
    _rotate(set_here)
    _rotate(beside)
    options = FileSourceOptions(path=str(folder / "logs" / "*.log"), rotation_quiet_s=0)
    assert sorted(_read_next(opened.ledger, "copy", options), key=str) == [b"new", b"new", b"of b", b"three", b"two"]


def test_the_parts_beside_the_one_whose_offset_is_set_first_are_kept_as_they_were_seen(
    opened: AtWork, folder: Path
) -> None:
    log = folder / "logs" / "a.log"
    log.write_bytes(b"".join(b"line %03d\n" % number for number in range(300)))
    options = {"path": str(log), "parallel": True, "sub_partition_bytes": 1024, "rotation_quiet_s": 0}
    document = f"{{version: 1, name: parts, source: {{file: {options}}}, sink: {{file: {{path: out/parts.txt}}}}}}"
    Path("parts.yaml").write_text(document.replace("True", "true").replace("'", ""))
    documents.apply([Path("parts.yaml")], say=lambda _: None)
    source = FileSource(FileSourceOptions.model_validate(options))
    first, *others = source.partitions([])
    offsets.set_offset(opened, "parts", first.key, 9, agree=lambda move: None, say=print)
    kept = opened.ledger.positions(opened.ledger.connector("parts").uid, LIVE, others)
    assert [bool(position and position.evidence.get("head")) for position in kept.values()] == [True, True]
    log.write_bytes(log.read_bytes()[:1500])
    losses = source.available_offsets(kept)
    assert [bool(losses[one].gaps) for one in others] == [True, True]
