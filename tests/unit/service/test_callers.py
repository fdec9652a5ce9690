"""What each function does for which caller: all that the routes of the server call, for each role, for connectors of
another team, and for nobody."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from connect_core.api import kafka_connect_loggers
from connect_core.errors import ConfigError, Retriable
from connect_core.ledger import Connector
from connect_core.sdk.plugin import SnapshotWish
from connect_core.service import (
    callers,
    documents,
    metrics,
    native_backfills,
    native_documents,
    native_letters,
    native_looks,
    native_offsets,
    native_reports,
    operations,
    plugins,
    visible,
)
from connect_core.service import flat_connectors as flat
from connect_core.service import kafka_connectors as kafka
from connect_core.service import native_connectors as native
from connect_core.service.callers import ROLES, AccessRole, Caller, NotAllowed
from connect_core.service.connectors import set_state
from connect_core.service.dead_letters import Words
from connect_core.service.letter_replays import Replay
from connect_core.service.native_connectors import MadeFrom
from connect_core.service.offset_exports import ExportedOffset, ExportedOffsets
from connect_core.service.opened import AtWork, reading, storing, working
from connect_core.service.trying import TryRequest
from tests.unit.service.conftest import DOCUMENT as COPY
from tests.unit.service.conftest import LEDGER, work_in

SOURCE = {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "file": "a", "topic": "t"}

DOCUMENT = {"version": 1, "source": {"file": {"path": "logs/b.log"}}, "sink": {"file": {"path": "out/b.txt"}}}
ANY = MadeFrom(any=True)
EXPORTED = ExportedOffsets(
    version=1, connector="c", offsets=(ExportedOffset(partition="a", incarnation=0, offset=0, evidence={}),)
)


def quiet(_: str) -> None: ...


NEEDS: dict[Callable[..., Any], tuple[AccessRole, Callable[[str], Any]]] = {
    flat.listed: ("viewer", lambda name: flat.listed(quiet)),
    flat.shown: ("viewer", lambda name: flat.shown(name, quiet)),
    flat.create: ("admin", lambda name: flat.create(name, SOURCE, quiet)),
    flat.set_state: ("operator", lambda name: flat.set_state(name, "paused")),
    flat.set_all: ("operator", lambda name: flat.set_all("paused")),
    flat.faults_of: ("admin", lambda name: flat.faults_of(name, SOURCE)),
    visible.visible_one: ("viewer", lambda name: visible.visible_one(name)),
    visible.named: ("viewer", lambda name: visible.named(name)),
    visible.may_write: ("admin", lambda name: visible.may_write(name)),
    kafka.listed: ("viewer", lambda name: kafka.listed(quiet)),
    kafka.names: ("viewer", lambda name: kafka.names()),
    kafka.shown: ("viewer", lambda name: kafka.shown(name, quiet)),
    kafka.topics: ("viewer", lambda name: kafka.topics(name)),
    kafka.offsets_of: ("viewer", lambda name: kafka.offsets_of(name)),
    kafka.create: ("admin", lambda name: kafka.create(name, SOURCE, "running", quiet)),
    kafka.put: ("admin", lambda name: kafka.put(name, SOURCE, quiet)),
    kafka.patch: ("admin", lambda name: kafka.patch(name, {"tasks.max": "1"}, quiet)),
    kafka.set_state: ("operator", lambda name: kafka.set_state(name, "paused")),
    kafka.restart: ("operator", lambda name: kafka.restart(name, quiet)),
    kafka.forget_topics: ("operator", lambda name: kafka.forget_topics(name)),
    kafka.delete: ("admin", lambda name: kafka.delete(name, quiet)),
    kafka.alter_offsets: ("admin", lambda name: kafka.alter_offsets(name, {"a": 0}, quiet)),
    kafka.reset_offsets: ("admin", lambda name: kafka.reset_offsets(name, quiet)),
    kafka.faults_of: ("admin", lambda name: kafka.faults_of(SOURCE["connector.class"], SOURCE | {"name": name})),
    native.listed: ("viewer", lambda name: native.listed(quiet, limit=9, name="*").items),
    native.document: ("viewer", lambda name: native.document(name)),
    native.status: ("viewer", lambda name: native.status(name, quiet)),
    native.history: ("viewer", lambda name: native.history(name, limit=9)),
    native.rules_of: ("viewer", lambda name: native.rules_of(name)),
    native.put: ("admin", lambda name: native.put(name, DOCUMENT, ANY, quiet)),
    native.put_rules: ("admin", lambda name: native.put_rules(name, [], ANY)),
    native.set_state: ("operator", lambda name: native.set_state(name, "paused")),
    native.snapshot: ("operator", lambda name: native.snapshot(name, SnapshotWish())),
    native.cancel_snapshot: ("operator", lambda name: native.cancel_snapshot(name, [])),
    native.delete: ("admin", lambda name: native.delete(name, ANY, quiet)),
    native_reports.runs: ("viewer", lambda name: native_reports.runs(name, limit=9)),
    native_reports.run: ("viewer", lambda name: native_reports.run(name, "r")),
    native_reports.receipts: ("viewer", lambda name: native_reports.receipts(name, limit=9)),
    native_reports.gaps: ("viewer", lambda name: native_reports.gaps(name, limit=9)),
    native_reports.waiting: ("viewer", lambda name: native_reports.waiting(name)),
    native_reports.all_waiting: ("viewer", lambda name: native_reports.all_waiting()),
    native_reports.letter: ("admin", lambda name: native_reports.letter(name, "1")),
    native_reports.replay_preview: (
        "admin",
        lambda name: native_reports.replay_preview(name, Replay(Words()))["counts"],
    ),
    native_reports.committed: ("viewer", lambda name: native_reports.committed(name)),
    native_reports.letters: ("viewer", lambda name: native_reports.letters(name, Words(), limit=9)),
    native_reports.move: ("admin", lambda name: native_reports.move(name, {"a": 0}, quiet, why="", preview=False)),
    native_offsets.undo: ("admin", lambda name: native_offsets.undo(name, "a", quiet, preview=True, seen={})),
    native_offsets.exported: ("admin", lambda name: native_offsets.exported(name)),
    native_offsets.taken_over: (
        "admin",
        lambda name: native_offsets.taken_over(name, EXPORTED, quiet, why="", preview=True, seen={}),
    ),
    native_backfills.listed: ("viewer", lambda name: native_backfills.listed(name, limit=9)),
    native_backfills.shown: ("viewer", lambda name: native_backfills.shown(name, "b")),
    native_backfills.cancel: ("admin", lambda name: native_backfills.cancel(name, "b", why="")),
    native_backfills.resume: ("admin", lambda name: native_backfills.resume(name, "b", accept_gaps=False)),
    native_letters.export: ("admin", lambda name: list(native_letters.export(name, Words()))),
    native_letters.discard: ("admin", lambda name: native_letters.discard(name, Words(), why="", preview=False)),
    native_letters.erase: ("admin", lambda name: native_letters.erase(name, Words(), why="", preview=False)),
    native_letters.redirect: ("admin", lambda name: native_letters.redirect(name, quiet, why="", preview=False)),
    native_looks.plan: ("viewer", lambda name: native_looks.plan(name)),
    native_looks.plan_with_sample: ("admin", lambda name: native_looks.plan_with_sample(name, 1)),
    native_looks.log: ("viewer", lambda name: native_looks.log(name, "r")),
    native_looks.offset_history: ("viewer", lambda name: native_looks.offset_history(name, limit=9)),
    native_looks.trace_place: ("viewer", lambda name: native_looks.trace_place(name, source="a:1")),
    native_looks.trace_content: ("admin", lambda name: native_looks.trace_content(name, key="a")),
    native_looks.newest: ("admin", lambda name: native_looks.newest(name, 1)),
    native_looks.try_document: ("admin", lambda name: native_looks.try_document({"name": name}, TryRequest(1))),
    native_looks.try_rules: ("admin", lambda name: native_looks.try_rules(name, TryRequest(1))),
    native_looks.translated_group: ("viewer", lambda name: native_looks.translated_group(name, "g")),
    native_looks.move_group: ("admin", lambda name: native_looks.move_group(name, "g")),
    native_documents.check: ("admin", lambda name: native_documents.check([{"name": name}], quiet)),
    native_documents.status: ("viewer", lambda name: native_documents.status(quiet)["connectors"]),
    native_documents.apply: ("admin", lambda name: native_documents.apply([{"name": name}], quiet)),
    plugins.listed: ("viewer", lambda name: plugins.listed("file")),
    plugins.brought: ("viewer", lambda name: plugins.brought()),
    plugins.reload: ("operator", lambda name: plugins.reload()),
    native_documents.options: ("viewer", lambda name: native_documents.options("file")),
    native_documents.health: ("viewer", lambda name: native_documents.health(quiet)),
    native_documents.version: ("viewer", lambda name: native_documents.version()),
    operations.begin: ("operator", lambda name: operations.begin(name, "verification", {})["connector"]),
    operations.listed: ("viewer", lambda name: operations.listed(limit=9, connector=name).items),
    operations.shown: ("viewer", lambda name: operations.shown(name)),
    operations.cancel: ("operator", lambda name: operations.cancel(name)),
    metrics.families: ("viewer", lambda name: metrics.families()),
    kafka_connect_loggers.set_level: ("admin", lambda name: kafka_connect_loggers.set_level("connect_core", "INFO")),
}
"""The lowest role, and a call for the connector of a name."""

OF_NO_CONNECTOR = {
    *(
        flat.hidden,
        flat.hidden_text,
        flat.texts,
        flat.plugins,
        flat.all_plugins,
        flat.storable,
        flat.in_its_own_words,
        flat.seen,
        flat.role_of,
    ),
    *(visible.visible, visible.without_others, kafka.class_of, kafka.plugin_of, kafka.shown_config, kafka.ledger_id),
    *(operations.told_of, operations.cancel_streams),
    *(native.stale, native.in_words_of_documents, native.refuse_masks, native_looks.newest_of_topic),
    *(metrics.full_name, metrics.folded, kafka_connect_loggers.shown, kafka_connect_loggers.shown_all),
}
"""They work on what they are given, or say what is true of the server: every caller is a viewer at least."""

REFUSES_NAMES = {visible.may_write, flat.create, flat.faults_of, kafka.create, kafka.put, kafka.faults_of}
REFUSES_NAMES |= {
    native.put,
    native.put_rules,
    native_documents.check,
    native_documents.apply,
    native_looks.try_document,
}
CHANGES = sorted((one for one in NEEDS if NEEDS[one][0] != "viewer"), key=lambda one: (one.__module__, one.__name__))


def label(one: object) -> str:
    return f"{one.__module__.rpartition('.')[2]}.{one.__name__}" if inspect.isfunction(one) else str(one)


@pytest.fixture(autouse=True)
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations come to nothing."""
    monkeypatch.setattr(operations, "_command", lambda number: ("true",))


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory, empty_ledger: Path) -> Path:
    """A folder as the others have it, with the connector `copy`, and in `kept.db` its ledger. All tests work in it: to
    apply the document for each took longer than the tests."""
    folder = tmp_path_factory.mktemp("applied")
    for name in ("logs", "out", ".waybill"):
        (folder / name).mkdir()
    shutil.copy(empty_ledger, folder / LEDGER)
    (folder / "logs" / "a.log").write_text("one\ntwo\nthree\n")
    (folder / "copy.yaml").write_text(COPY)
    with pytest.MonkeyPatch.context() as patch:
        work_in(folder, patch)
        documents.apply([Path("copy.yaml")], say=lambda _: None)
    shutil.copy(folder / LEDGER, folder / "kept.db")
    return folder


@pytest.fixture
def folder(applied: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(applied / "kept.db", applied / LEDGER)
    work_in(applied, monkeypatch)
    return applied


@pytest.fixture
def opened(folder: Path) -> Iterator[AtWork]:
    with working() as found:
        yield found


@pytest.fixture
def there(opened: AtWork) -> Callable[[], Connector]:
    """The connector `copy` as the ledger has it."""
    return lambda: opened.ledger.connector("copy")


def caller(role: AccessRole, *connectors: str) -> Caller:
    return Caller("ci", role, connectors or ("*",), "192.0.2.7")


def called(function: Callable[..., Any], name: str = "copy") -> Any:
    """What it answers; the words of its error where there is one."""
    try:
        return NEEDS[function][1](name)
    except NotAllowed:
        raise
    except (ConfigError, Retriable) as error:
        return str(error)


def test_every_function_is_in_the_table() -> None:
    modules = (
        flat,
        kafka,
        visible,
        native,
        native_looks,
        native_reports,
        native_letters,
        native_backfills,
        native_offsets,
        native_documents,
        operations,
        plugins,
        metrics,
        kafka_connect_loggers,
    )
    public = {
        one
        for module in modules
        for name, one in vars(module).items()
        if inspect.isfunction(one) and one.__module__ == module.__name__ and not name.startswith("_")
    }
    assert {label(one) for one in public} == {label(one) for one in NEEDS.keys() | OF_NO_CONNECTOR}


@pytest.mark.parametrize("function", NEEDS, ids=label)
def test_what_a_role_may(function: Callable[..., Any], there: Callable[[], Connector]) -> None:
    needs, before = NEEDS[function][0], there()
    for role in ROLES[: ROLES.index(needs)]:
        with callers.calling(caller(role)):
            for name in ("copy", "unknown"):
                with pytest.raises(
                    NotAllowed, match=rf"Token ci has the role {role}, and this needs {needs}"
                ) as refused:
                    called(function, name)
                assert f"waybill tokens create NAME --role {needs}" in str(refused.value)
        assert there() == before
    for role in ROLES[ROLES.index(needs) :]:
        with callers.calling(caller(role)):
            called(function)


@pytest.mark.parametrize("function", NEEDS, ids=label)
def test_a_connector_of_another_team_is_not_there(function: Callable[..., Any], there: Callable[[], Connector]) -> None:
    before = there()
    with callers.calling(caller("admin", "team-a-*", "Copy", "c")):
        if function in REFUSES_NAMES:
            for name in ("copy", "nobody"):
                with pytest.raises(NotAllowed, match=rf"named team-a-\* or Copy or c, and not for '{name}'"):
                    called(function, name)
        else:
            hidden, unknown = called(function, "copy"), called(function, "nobody")
            assert str(hidden).replace("copy", "NAME") == str(unknown).replace("nobody", "NAME")
    assert there() == before


class AdminOf:
    """A caller who may read every connector, and do everything with one."""

    name, who = "eve", "eve from 192.0.2.7"

    def __init__(self, own: str) -> None:
        self._own = own

    def sees(self, connector: str) -> bool:
        return True

    def may(self, role: AccessRole, connector: str | None) -> bool:
        return role == "viewer" or connector == self._own

    def lacking(self, role: AccessRole, connector: str | None) -> NotAllowed:
        return NotAllowed(f"Eve is no {role} of {connector}")

    def not_named(self, connector: str) -> NotAllowed:
        raise AssertionError("all are seen")


@pytest.mark.parametrize("function", CHANGES, ids=label)
def test_a_role_may_be_for_one_connector_alone(function: Callable[..., Any], there: Callable[[], Connector]) -> None:
    before = there()
    with callers.calling(AdminOf("another")), pytest.raises(NotAllowed, match=f"no {NEEDS[function][0]} of"):
        called(function)
    assert there() == before
    with callers.calling(AdminOf("copy")):
        if function in (kafka_connect_loggers.set_level, plugins.reload, operations.cancel):  # of no connector
            with pytest.raises(NotAllowed, match="of None"):
                called(function)
        else:
            called(function)


@pytest.mark.parametrize("pattern", ["*", "copy", "c*", "c?py", "[a-d]opy"])
def test_a_connector_whose_name_fits_is_there(opened: AtWork, pattern: str) -> None:
    with callers.calling(caller("operator", "nothing", pattern)):
        assert kafka.names() == ["copy"]
        assert [one.name for one in kafka.listed(quiet)] == [one.name for one in flat.listed(quiet)] == ["copy"]
        assert flat.set_all("paused") == ["copy"]


def test_a_token_for_some_counts_these_alone(opened: AtWork) -> None:
    def connectors() -> dict[tuple[str, ...], float]:
        [family] = (one for one in metrics.families() if one.metric.name == "connectors")
        return dict(family.samples)

    assert connectors()[("running",)] == 1
    with callers.calling(caller("viewer", "team-a-*")):
        assert connectors()[("running",)] == 0


@pytest.mark.parametrize("function", NEEDS, ids=label)
def test_nobody_may_do_everything(function: Callable[..., Any], opened: AtWork) -> None:
    called(function)
    called(function, "another")


def test_whoever_shows_a_token_has_done_it(opened: AtWork, folder: Path) -> None:
    uid, who = opened.ledger.connector("copy").uid, "token ci from 192.0.2.7"
    document = (folder / "copy.yaml").read_text()
    with callers.calling(caller("admin")):
        for use in (reading, storing, working):
            with use() as mine:
                assert mine.settings.user == who
        (folder / "copy.yaml").write_text(document + "description: another\n")
        documents.apply([Path("copy.yaml")], say=quiet)
        kafka.set_state("copy", "paused")
        kafka.delete("copy", quiet)
    assert [one.who for one in opened.ledger.revisions(uid)] == ["ann", who]
    deeds = [(one.action, one.who) for one in reversed(opened.ledger.audit(uid))]
    assert [by for _, by in deeds] == ["ann", *[who] * (len(deeds) - 1)]
    assert {"apply", "delete"} <= {action for action, _ in deeds}


def test_afterwards_it_is_nobody_again(opened: AtWork) -> None:
    with suppress(NotAllowed), callers.calling(caller("viewer", "none")):
        flat.set_all("paused")
    assert callers.who() is None
    with reading() as mine:
        assert mine.settings.user == "ann"
        set_state(mine, "copy", "paused")


def test_a_refusal_names_no_connector_of_another_team(opened: AtWork, folder: Path) -> None:
    """The connector `copy` writes out/copy.txt, and reads logs/*.log."""
    wanted = SOURCE | {"file": str(folder / "out" / "copy.txt")}
    with callers.calling(caller("admin", "team-a-*")):
        hidden = str(flat.faults_of("team-a-x", wanted))
    with callers.calling(caller("admin", "team-a-*", "copy")):
        shown = str(flat.faults_of("team-a-x", wanted))
    assert "connector copy" in shown
    assert shown.replace("connector copy", "another connector") == hidden


def test_a_condition_for_rows_needs_an_admin(there: Callable[[], Connector]) -> None:
    """The server of the source runs it, and it tells of what rows hold."""
    before, wish = there(), SnapshotWish(["a"], "card LIKE '4%'")
    with callers.calling(caller("operator")), pytest.raises(NotAllowed, match="this needs admin"):
        native.snapshot("copy", wish)
    with callers.calling(caller("admin")), pytest.raises(ConfigError, match="has no snapshots"):
        native.snapshot("copy", wish)
    assert there() == before
