"""A folder of documents is applied although others store documents all the time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from connect_core.config import checking
from connect_core.ledger import Ledger, WritersChanged
from connect_core.service import documents
from connect_core.service.opened import AtWork, reading

NAMES = [f"c{number}" for number in range(5)]


def quiet(_: object) -> None:
    """Says nothing."""


@pytest.fixture
def many(folder: Path) -> Path:
    """A folder with some documents."""
    (folder / "many").mkdir()
    for name in NAMES:
        text = (
            f"version: 1\nname: {name}\nsource: {{file: {{path: logs/{name}}}}}\nsink: {{file: {{path: out/{name}}}}}\n"
        )
        (folder / "many" / f"{name}.yaml").write_text(text)
    return folder / "many"


def noted(examine: Callable[..., checking._Examined], found: list[str]) -> Callable[..., checking._Examined]:
    def examined(written: checking.Written, *around: object, **more: object) -> checking._Examined:
        found.append(written.where)
        return examine(written, *around, **more)

    return examined


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where each document was from that was examined."""
    found: list[str] = []
    for name in ("_examined", "_with_ends"):
        monkeypatch.setattr(checking, name, noted(getattr(checking, name), found))
    return found


def beside_another(monkeypatch: pytest.MonkeyPatch, opened: AtWork, stores: Callable[[int], bool]) -> list[int]:
    """Between a check and storing what was checked another one changes `copy`, as often as it `stores`."""
    checks: list[int] = []
    check = documents._checked

    def checked(*given: object) -> list[checking.Checked]:
        told = check(*given)  # type: ignore[arg-type]
        checks.append(len(checks))
        if stores(len(checks)):
            before = opened.ledger.connector("copy")
            opened.ledger.revise(before, {**before.document, "description": f"{len(checks)}"}, who="bob")
        return told

    monkeypatch.setattr(documents, "_checked", checked)
    return checks


def test_it_is_checked_beside_what_others_store_until_it_is_stored(
    opened: AtWork, many: Path, examined: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = beside_another(monkeypatch, opened, lambda number: number < 20)
    assert len(documents.apply([many], say=quiet)) == len(NAMES)
    assert len(checks) == 20
    ours = [where for where in examined if where.endswith(".yaml")]
    assert len(ours) == len(NAMES), "only what has changed is examined again"
    assert examined.count("connector copy") == 20
    with reading() as found:
        assert {one.name for one in found.ledger.connectors()} == {"copy", *NAMES}


def test_who_stores_without_end_is_told_of(opened: AtWork, many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside_another(monkeypatch, opened, lambda number: True)
    with pytest.raises(WritersChanged, match="Another command has stored a document"):
        documents.apply([many], say=quiet)
    with reading() as found:
        assert {one.name for one in found.ledger.connectors()} == {"copy"}


def test_only_deleted_connectors_of_a_new_name_are_looked_at(
    opened: AtWork, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be any number of them, and each look is beside what others ask."""
    for number in range(20):
        uid = opened.ledger.apply(f"gone{number}", {}, who="ann").connector.uid
        opened.ledger.delete(uid, who="ann")
    asked: list[str] = []
    offsets = Ledger.offsets
    monkeypatch.setattr(Ledger, "offsets", lambda self, uid: asked.append(uid) or offsets(self, uid))
    documents.apply([many], say=quiet)
    assert len(asked) < 20
