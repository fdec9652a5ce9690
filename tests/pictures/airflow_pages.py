"""The pages of Airflow that an operator looks at: what they say is asserted, and what they look like is kept.

Run by `make pictures`; its name keeps it out of `make test`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from connect_core.orchestration.names import backfill_dag, live_dag
from connect_core.orchestration.rest import DagRun
from tests.pictures.browser import Browser, chromium
from tests.pictures.shop import INWARD, ORDERS, OUTWARD, PAYMENTS, Shop, eventually, opened

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
FAULTS = ("Import Error", "Broken Dag", "Traceback", "An unexpected error", "Page Not Found", "Failed to")
LARGEST_BYTES = 250_000


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with opened() as made:
        yield made


@pytest.fixture(scope="module")
def lost(shop: Shop) -> DagRun:
    """The run in which the task was killed, and tried again; the other connectors come after it."""
    shop.write("orders.log", ORDERS)
    shop.site.fault("executed")
    shop.apply(INWARD)
    run = shop.succeeded(live_dag(INWARD))
    shop.write("payments.log", 600)
    shop.apply(OUTWARD, PAYMENTS)
    return run


@pytest.fixture(scope="module")
def page(shop: Shop, lost: DagRun, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Logged in, as a person does it."""
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        browser.open(shop.address)
        for field, words in zip(("username", "password"), shop.login, strict=True):
            browser.find(f"input[name={field}]").send_keys(words)
        browser.press("Sign in")
        browser.wait_for("Dags")
        yield browser


def keep(page: Browser, name: str, height: int) -> None:
    """A page on which anything is wrong is no picture."""
    seen = [fault for fault in FAULTS if fault in page.text]
    assert seen == [], page.text
    picture = PICTURES / f"{name}.png"
    page.keep(picture, height)
    assert picture.stat().st_size < LARGEST_BYTES


def task(shop: Shop, dag_id: str, run: DagRun) -> str:
    return f"{shop.address}/dags/{dag_id}/runs/{quote(run.run_id)}/tasks/task_0"


def test_the_log_of_the_retry_says_which_attempt_was_lost_and_where_it_goes_on(
    shop: Shop, lost: DagRun, page: Browser
) -> None:
    page.open(task(shop, live_dag(INWARD), lost))
    page.wait_for("Task Tries", "was lost: its process was killed", "an earlier attempt left 3 ranges open")
    page.wait_for("resuming at 0; ", "records of the 3 open ranges are already in the target", "100%, 120,000 records")
    page.wait_for("120,000 read in", f"receipts: waybill receipts {INWARD} --run ")
    keep(page, "retry", 700)


def test_the_lost_attempt_has_no_stack_trace(shop: Shop, lost: DagRun, page: Browser) -> None:
    page.open(f"{task(shop, live_dag(INWARD), lost)}?try_number=1")
    page.wait_for("SIGKILL")
    assert "Traceback" not in page.text


def test_the_button_receipts_leads_to_what_was_moved_and_back(shop: Shop, lost: DagRun, page: Browser) -> None:
    page.open(f"{task(shop, live_dag(INWARD), lost)}/details")
    page.press("Receipts")
    page.wait_for(f"{INWARD}: receipts", "Attempts", "lost", "done", f"{ORDERS:,} read in")
    keep(page, "receipts", 460)
    page.press(lost.run_id)
    page.wait_for("reconcile", "Dag Run")


def test_the_list_says_what_moves_where_and_when(shop: Shop, page: Browser) -> None:
    for connector in (OUTWARD, PAYMENTS):
        shop.succeeded(live_dag(connector))
    page.open(f"{shop.address}/dags")
    page.wait_for(
        "6 Dags",
        *(f"{INWARD}: file → rocketmq, every 20s", f"{INWARD}: file → rocketmq, backfill and replay"),
        *(f"{OUTWARD}: rocketmq → file, cron */5 * * * *", f"{PAYMENTS}: file → rocketmq, on change"),
        *("live", "waybill", "*/5 * * * *", f"waybill.{PAYMENTS}.source"),
    )
    keep(page, "dags", 1100)


def test_the_form_of_a_live_dag_asks_for_nothing_but_gaps(shop: Shop, page: Browser) -> None:
    page.open(f"{shop.address}/dags/{live_dag(INWARD)}")
    page.find('[data-testid="trigger-dag-button"]').click()
    page.wait_for("Run Parameters", "Accept gaps", "Record lost offsets as gaps")
    keep(page, "form-live", 760)


def test_a_backfill_begun_by_its_form_says_how_far_it_is(shop: Shop, page: Browser) -> None:
    dag = backfill_dag(OUTWARD)
    eventually(lambda: shop.airflow.dag(dag), "the DAG")
    page.open(f"{shop.address}/dags/{dag}")
    page.find('[data-testid="trigger-dag-button"]').click()
    page.wait_for("From", "how long ago (2h)", "Ranges", "Run to replay", "Another target", "Accept gaps")
    page.write("element_from", "1d")
    page.write("element_sink", "path=archive/november.log\n")
    page.write("element_id", "november")
    keep(page, "form-backfill", 1545)
    page.find('[data-testid="trigger-dag-submit"]').click()
    (run,) = eventually(lambda: shop.airflow.runs(dag), "the run of the backfill")

    page.open(task(shop, dag, run))
    page.wait_for(f"{ORDERS:,} positions in 3 partitions: waybill backfills show {OUTWARD} backfill-november")
    page.wait_for("records, ", "/s, about ", " left", "Running")
    keep(page, "backfill", 700)
    assert shop.airflow.run(dag, run.run_id).state == "running"
    shop.succeeded(dag, run.run_id)
    moved = (shop.site.folder / "archive" / "november.log").read_text().splitlines()
    assert len(moved) == len(set(moved)) == ORDERS
