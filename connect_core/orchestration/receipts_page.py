"""The page behind the button *Receipts*: every receipt of one Airflow run, and what became of its attempts.

Part of Airflow's own web server: whoever may read the DAG there may read its receipts here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

from fastapi import Depends, FastAPI
from fastapi.responses import HTMLResponse

from connect_core.errors import WaybillError
from connect_core.ledger import Ledger, Run, SettledRange
from connect_core.orchestration import names

app = FastAPI(title="Waybill")

_HEADINGS = (
    *("partition", "stream", "begin", "end", "read", "filtered", "rejected", "delivered", "already there"),
    *("surplus", "gaps", "bytes written", "seconds", "settled (UTC)", "checksum sent"),
)


def _may_read_the_dag() -> Callable[..., object]:
    """Airflow's own check; internal to it, so it is named in this one place."""
    from airflow.api_fastapi.core_api.security import requires_access_dag

    return requires_access_dag(method="GET")


@app.get("/receipts", response_class=HTMLResponse, dependencies=[Depends(_may_read_the_dag())])
def receipts(dag_id: str, run_id: str) -> HTMLResponse:
    from connect_core.config import database_url, find_home

    connector = names.connector_of(dag_id) or ""
    try:
        with Ledger.glance(database_url(find_home())) as ledger:
            uid = ledger.connector(connector).uid
            of = names.attempt_of(dag_id, run_id)
            runs, settled = ledger.runs_of(uid, of), ledger.ranges_of_run(uid, of)
    except WaybillError as error:
        return HTMLResponse(_page(connector, f"<p>{escape(str(error))}</p>"), status_code=404)
    return HTMLResponse(_page(connector, rendered(run_id, runs, settled)))


def rendered(run_id: str, runs: Sequence[Run], settled: Sequence[SettledRange]) -> str:
    """The body of the page. Pure; all text is escaped."""
    attempts = [
        (run.id, run.task, run.engine, run.state, f"{run.started_at:%H:%M:%S}", run.failure.what if run.failure else "")
        for run in runs
    ]
    rows = [_row(one) for one in sorted(settled, key=lambda one: (one.stream, one.partition.key, one.receipt.begin))]
    total = sum(one.receipt.delivered + one.receipt.already for one in settled)
    return "".join(
        (
            f"<p>{escape(run_id)}: {len(rows)} receipts, {total:,} records delivered or there already</p>",
            _table(_HEADINGS, rows) if rows else "<p>Nothing was settled in this run.</p>",
            "<h2>Attempts</h2>",
            _table(("run", "task", "engine", "state", "began (UTC)", "failure"), attempts),
        )
    )


def _row(one: SettledRange) -> tuple[object, ...]:
    receipt = one.receipt
    counts = (receipt.read, receipt.filtered, receipt.rejected, receipt.delivered, receipt.already, receipt.surplus)
    return (
        *(one.partition.key, one.stream, receipt.begin, receipt.end, *counts, len(receipt.gaps)),
        *(receipt.bytes_written, round(receipt.seconds, 3), f"{one.settled_at:%H:%M:%S}", receipt.digest_sent[:16]),
    )


def _table(headings: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f'<td class="number">{value:,}</td>'
    return f"<td>{'unknown' if value is None else escape(str(value))}</td>"


def _page(connector: str, body: str) -> str:
    title = f"{escape(connector)}: receipts"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>{body}</body></html>"
    )


_STYLE = (
    "body{font:14px system-ui,sans-serif;margin:2rem;color:#1a1a1a;background:#fff}"
    "table{border-collapse:collapse}th,td{padding:.3rem .7rem;border-bottom:1px solid #ddd;text-align:left}"
    ".number{text-align:right;font-variant-numeric:tabular-nums}h1{font-size:1.3rem}h2{font-size:1.05rem}"
)
