"""The factory of DAGs: `replicate.<connector>` for the live stream, `backfill.<connector>` for backfills and replays,
`verify.<connector>` where its document says when.

One query of the ledger a parse; a task process asks for its own connector only. What is in a DAG is a pure function of
the connector's row: Airflow writes a new version of a DAG whenever anything in it differs, so positions, times and
secrets have no place here. Nothing of the network or of Spark is touched. A row that makes no DAG makes one that says
why, and harms no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Asset, AssetWatcher, BaseOperator, CronTriggerTimetable, Param, get_parsing_context
from airflow.sdk.definitions.param import ParamsDict

from connect_core.airflow.operators import Broken, Reconcile, Replicate, Verify
from connect_core.airflow.retrying import patience
from connect_core.airflow.triggers import SourceTrigger
from connect_core.errors import WaybillError
from connect_core.orchestration import names
from connect_core.sdk.values import Json
from connect_core.service import schedules
from connect_core.service.durations import show_seconds
from connect_core.service.schedules import Connector, ConnectorDocument, Endpoint, Schedule, document_of, masked

BACKFILLS_AT_ONCE = 4

_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
"""Where the first interval of a continuous DAG begins. Without one it is empty and the second begins where it began:
Airflow takes that for the same run, and never makes another."""

TaskOperator = type[BaseOperator]


def made() -> dict[str, DAG]:
    """The DAGs by id: of every connector while Airflow parses, in a task process of its own connector only."""
    wanted = get_parsing_context().dag_id
    name = None if wanted is None else names.connector_of(wanted) or ""
    kind = schedules.kinds()
    return {dag.dag_id: dag for row in schedules.connectors(name) for dag in dags_of(row, kind)}


def dags_of(connector: Connector, kind_of_engine: Callable[[Json], str] = lambda _: "spark") -> list[DAG]:
    """Pure: equal rows make equal DAGs."""
    try:
        document = document_of(connector)
        task = _operator(kind_of_engine(connector.document))
        return [_live(connector, document, task), _backfill(connector, document, task), *_verify(document)]
    except (WaybillError, ValueError) as error:
        return [_broken(connector, str(error))]


def _operator(kind_of_engine: str) -> TaskOperator:
    if kind_of_engine != "submit":
        return Replicate
    from connect_core.airflow.submitting import (
        SubmittedReplicate,
    )  # brings the provider, half a second of imports

    return SubmittedReplicate


def _live(connector: Connector, document: ConnectorDocument, task: TaskOperator) -> DAG:
    dag = DAG(
        dag_id=names.live_dag(connector.name),
        schedule=_schedule(connector, document.schedule),
        start_date=_LONG_AGO if document.schedule.continuous else None,
        max_active_runs=1,
        is_paused_upon_creation=connector.target_state != "running",
        **_told(document, f"{_way(document)}, {document.schedule.words()}", _live_words(document), "live"),
    )
    _fill(dag, document, task, _run_params())
    return dag


def _backfill(connector: Connector, document: ConnectorDocument, task: TaskOperator) -> DAG:
    dag = DAG(
        dag_id=names.backfill_dag(connector.name),
        schedule=None,
        max_active_runs=BACKFILLS_AT_ONCE,
        is_paused_upon_creation=False,
        **_told(document, f"{_way(document)}, backfill and replay", _backfill_words(document), "backfill"),
    )
    _fill(dag, document, task, _backfill_params())
    return dag


def _verify(document: ConnectorDocument) -> Iterator[DAG]:
    """It reads only, so it goes on while the connector is paused."""
    if document.verify is None:
        return
    every, share = show_seconds(document.verify.every), f"{document.verify.share * 100:g}%"
    dag = DAG(
        dag_id=names.verify_dag(document.name),
        schedule=timedelta(seconds=document.verify.every),
        max_active_runs=1,
        is_paused_upon_creation=False,
        **_told(document, f"target read again every {every}", _verify_words(document, share), "verify"),
    )
    Verify(task_id=names.VERIFY, connector=document.name, share=document.verify.share, dag=dag, **patience())
    yield dag


def _broken(connector: Connector, error: str) -> DAG:
    dag = DAG(
        dag_id=names.live_dag(connector.name),
        dag_display_name=f"{connector.name}: its document cannot be used",
        schedule=None,
        catchup=False,
        doc_md=f"**This connector cannot run.**\n\n```\n{error}\n```\n\nCorrect the document and `waybill apply` it.",
        tags=["waybill", "broken"],
    )
    Broken(task_id=names.task_id(0), connector=connector.name, error=error, dag=dag)
    return dag


def _told(document: ConnectorDocument, title: str, words: str, kind: str) -> dict[str, Any]:
    """What each DAG of a connector tells people, and what all have of Airflow's own settings. The tag `kind` divides
    the list of DAGs."""
    return {
        "dag_display_name": f"{document.name}: {title}",
        "description": document.description or None,
        "doc_md": words,
        "tags": sorted({"waybill", kind, document.source.system, document.sink.system}),
        "catchup": False,
        # Said here, Airflow does not look them up for each DAG: all tasks of a run at once, and no connector is paused
        # because its target was away for some time.
        "max_active_tasks": document.tasks,
        "max_consecutive_failed_dag_runs": 0,
        "default_args": {"owner": "waybill", **document.airflow.model_dump(exclude_none=True)},
    }


def _fill(dag: DAG, document: ConnectorDocument, operator: TaskOperator, params: dict[str, Param]) -> None:
    settled = Reconcile(
        task_id=names.RECONCILE,
        connector=document.name,
        outlets=[receipts_asset(document.name)],
        trigger_rule="none_failed",
        doc_md="Adds up the receipts of this run; fails when what was read does not equal what was delivered.",
        dag=dag,
        **patience(),
    )
    for number in range(document.tasks):
        task = operator(
            task_id=names.task_id(number),
            connector=document.name,
            number=number,
            alone=document.tasks == 1,
            doc_md=f"Task {number} of {document.tasks}; `waybill plan {document.name}` shows its partitions.",
            dag=dag,
            **patience(),
        )
        task >> settled
    # Last, because a task made under them carries a copy, which would be most of the cost of parsing; and past the
    # attribute's validator, which would check what is constant here for each DAG with a schedule: a tenth of that cost.
    object.__setattr__(dag, "params", ParamsDict(params))


def receipts_asset(connector: str) -> Asset:
    """The asset whose events carry the sum of the receipts of each run that moved something."""
    return Asset(name=f"waybill.{connector}.receipts", uri=f"waybill://{connector}/receipts", group="waybill")


def _schedule(connector: Connector, schedule: Schedule) -> Any:
    if schedule.every is not None:
        return timedelta(seconds=schedule.every)
    if schedule.cron is not None:
        return CronTriggerTimetable(schedule.cron, timezone="UTC")
    if schedule.continuous:
        return "@continuous"
    if schedule.on_change:
        watcher = AssetWatcher(name="source", trigger=SourceTrigger(connector=connector.name))
        name = f"waybill.{connector.name}.source"
        return [Asset(name=name, uri=f"waybill://{connector.name}/source", group="waybill", watchers=[watcher])]
    return None


def _run_params() -> dict[str, Param]:
    return {
        "accept_gaps": Param(
            False,
            type=["null", "boolean"],  # without null the form takes it for something that must be given
            title="Accept gaps",
            description="Record lost offsets as gaps and continue after them (this run only).",
        )
    }


def _backfill_params() -> dict[str, Param]:
    def text(title: str, description: str) -> Param:
        return Param(None, type=["null", "string"], title=title, description=description)

    def texts(title: str, description: str) -> Param:
        """None as well: that is what the form makes of a list in which nothing is left."""
        return Param([], type=["null", "array"], items={"type": "string"}, title=title, description=description)

    return {
        "from": text(
            "From",
            "Records stored since: a time with its zone (2026-11-01T00:00:00Z), or how long ago (2h). A file does not"
            " say when its lines were stored: give Ranges.",
        ),
        "to": text("To", "Records stored before: written the same way; empty: now."),
        "ranges": texts(
            "Ranges", "Instead of times: PARTITION:BEGIN-END, one a line, with the partitions that waybill plan shows."
        ),
        "run": text("Run to replay", "Instead of both: the id of a run; what it delivered is delivered again."),
        "sink": texts(
            "Another target", "Options of the sink to override: KEY=VALUE, one a line, such as path=/data/again.log."
        ),
        "id": text("Id", "Id of a new backfill, or of one to resume."),
        **_run_params(),
    }


def _way(document: ConnectorDocument) -> str:
    return f"{document.source.system} → {document.sink.system}"


def _live_words(document: ConnectorDocument) -> str:
    name = document.name
    return "\n".join(
        (
            f"### {name}",
            *_paragraph(document.description),
            f"Moves records from **{document.source.system}** to **{document.sink.system}**"
            f" ({document.schedule.words()}), {_tasks(document.tasks)}. Every batch has a receipt.",
            "",
            f"- From {_end(document.source)}",
            f"- To {_end(document.sink)}",
            f"- Receipts: `waybill receipts {name}`, and the button *Receipts* under *Details* of each task",
            f"- What the next run would move: `waybill plan {name}`",
            f"- Pause: the switch here, or `waybill connectors pause {name}`; in effect at the next range boundary",
            f"- Again: DAG `{names.backfill_dag(name)}`, or `waybill backfill {name} --help`",
        )
    )


def _backfill_words(document: ConnectorDocument) -> str:
    name = document.name
    return "\n".join(
        (
            f"### {name}: backfill and replay",
            *_paragraph(document.description),
            "Moves a stretch of the past again, in a stream of its own: its offsets and receipts are its own, and the"
            f" live DAG `{names.live_dag(name)}` is never in its way.",
            "",
            "- *Trigger* opens the form: times, or ranges, or the id of a run",
            f"- Or `waybill backfill {name} --from 2h`, `waybill replay {name} --run ID`",
        )
    )


def _verify_words(document: ConnectorDocument, share: str) -> str:
    name = document.name
    return "\n".join(
        (
            f"### {name}: its target, read again",
            *_paragraph(document.description),
            f"Reads {share} of what was settled again, in whole runs chosen by chance, and compares it with the"
            " receipts. Nothing is written. A run fails when a range differs, and its log says which, and where.",
            "",
            f"- All of it, by hand, and how what differs is sent again: `waybill verify {name}`",
        )
    )


def _end(end: Endpoint) -> str:
    """As the document has it, without its secrets."""
    options = ", ".join(f"`{name}: {value}`" for name, value in masked(end.options).items())
    return f"{end.system}: {options}" if options else end.system


def _paragraph(text: str) -> Iterator[str]:
    if text:
        yield from (text, "")


def _tasks(number: int) -> str:
    return "one task" if number == 1 else f"{number} tasks"
