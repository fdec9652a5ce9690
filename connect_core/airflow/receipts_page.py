"""The page behind the button *Receipts*: every receipt of one Airflow run, and what became of its attempts.

Part of Airflow's own web server: whoever may read the DAG there may read its receipts here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from urllib.parse import quote

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse

from connect_core.errors import WaybillError
from connect_core.orchestration import names
from connect_core.sdk.values import Json

routes = APIRouter()

_HEADINGS = (
    *("partition", "stream", "begin", "end", "read", "filtered", "rejected", "delivered", "already there"),
    *("duplicates", "gaps", "bytes written", "seconds", "settled (UTC)", "checksum sent"),
)


def _may_read_the_dag() -> Callable[..., object]:
    """Airflow's own check; internal to it, so it is named in this one place."""
    from airflow.api_fastapi.core_api.security import requires_access_dag

    return requires_access_dag(method="GET")


@routes.get("/receipts", response_class=HTMLResponse, dependencies=[Depends(_may_read_the_dag())])
def receipts(dag_id: str, run_id: str) -> HTMLResponse:
    from connect_core.service.reports import of_scheduled_run

    connector = names.connector_of(dag_id) or ""
    try:
        told = of_scheduled_run(connector, names.attempt_of(dag_id, run_id))
    except WaybillError as error:
        return HTMLResponse(_page(connector, f"<p>{escape(str(error))}</p>"), status_code=404)
    return HTMLResponse(_page(connector, rendered(dag_id, run_id, told)))


def rendered(dag_id: str, run_id: str, told: Json) -> str:
    """The body of the page, from `reports.of_scheduled_run`. Pure; all text is escaped."""
    from connect_core.service.reports import target_lines
    from connect_core.service.run_report import counts

    attempts = [
        (run["id"], run["task"], run["engine"], run["state"], f"{run['started_at']:%Y-%m-%d %H:%M:%S}", _failure(run))
        for run in told["runs"]
    ]
    in_order = sorted(told["receipts"], key=lambda one: (one["stream"], one["partition"], one["begin"]))
    of_targets = [f"{one['partition']} from {one['begin']}: {line}" for one in in_order for line in target_lines(one)]
    rows = [_row(one) for one in in_order]
    sums = counts(told["total"])
    back = f"../dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe='')}"
    return "".join(
        (
            f'<p>Run <a href="{back}">{escape(run_id)}</a> of {escape(dag_id)}: {sums}</p>',
            _table(_HEADINGS, rows) if rows else "<p>Nothing was settled in this run.</p>",
            *(f"<p>{escape(line)}</p>" for line in of_targets),
            "<h2>Attempts</h2>",
            _table(("run", "task", "engine", "state", "began (UTC)", "failure"), attempts),
        )
    )


def _failure(run: Json) -> str:
    return str(run["failure"]["what"]) if run["failure"] else ""


def _row(receipt: Json) -> tuple[object, ...]:
    numbers = (receipt[key] for key in ("read", "filtered", "rejected", "delivered", "deduplicated", "duplicates"))
    return (
        *(receipt["partition"], receipt["stream"], receipt["begin"], receipt["end"], *numbers, receipt["gaps"]),
        *(receipt["bytes_written"], round(receipt["seconds"], 1), f"{receipt['settled_at']:%H:%M:%S}"),
        receipt["digest_sent"][:16],
    )


def _table(headings: Iterable[str], rows: Sequence[Sequence[object]]) -> str:
    kinds = map(_kind, rows[0]) if rows else iter(())
    head = "".join(f"<th{next(kinds, '')}>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int | float) else "unknown" if value is None else escape(str(value))
    return f"<td{_kind(value)}>{text}</td>"


def _kind(value: object) -> str:
    return ' class="number"' if isinstance(value, int | float) else ""


def _page(connector: str, body: str) -> str:
    title = f"{escape(connector)}: receipts"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>{body}</body></html>"
    )


_STYLE = (
    "body{font:13px system-ui,sans-serif;margin:1.5rem;color:#1a1a1a;background:#fff}a{color:#1a5fb4}"
    "table{border-collapse:collapse}th,td{padding:.3rem .45rem;border-bottom:1px solid #ddd;text-align:left}"
    "th{vertical-align:bottom}.number{text-align:right;font-variant-numeric:tabular-nums}"
    "h1{font-size:1.3rem}h2{font-size:1.05rem;margin-top:1.5rem}"
)
