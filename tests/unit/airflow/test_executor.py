"""Workers of the executor die, and nobody waits for what they held. Processes are real forks; no Airflow runs."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from multiprocessing import SimpleQueue
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from airflow.models.taskinstancekey import TaskInstanceKey

from connect_core.airflow.executor import KernelLock, WarmLocalExecutor, _free_of_semaphores

LIMIT_S = 60
FORKS = multiprocessing.get_context("fork")


def _hold(lock: KernelLock, held: Path) -> None:
    with lock:
        held.touch()
        time.sleep(60)


def _take(work: SimpleQueue[str], results: SimpleQueue[str]) -> None:
    while True:
        results.put(work.get())


def test_a_lock_is_free_when_its_holder_was_killed(tmp_path: Path) -> None:
    lock, held = KernelLock(), tmp_path / "held"
    holder = FORKS.Process(target=_hold, args=(lock, held))
    holder.start()
    while not held.exists():
        time.sleep(0.01)
    second = FORKS.Process(target=_hold, args=(lock, tmp_path / "again"))
    second.start()
    time.sleep(0.2)
    assert not (tmp_path / "again").exists(), "it excludes nobody"
    holder.kill()
    while not (tmp_path / "again").exists():
        time.sleep(0.01)
    second.kill()
    for process in (holder, second):
        process.join()


def test_a_killed_worker_takes_no_queue_with_it() -> None:
    work, results = FORKS.SimpleQueue(), FORKS.SimpleQueue()
    for queue in (work, results):
        _free_of_semaphores(queue)
    workers = [FORKS.Process(target=_take, args=(work, results), daemon=True) for _ in range(3)]
    for worker in workers:
        worker.start()
    for number, worker in enumerate(workers):
        work.put(str(number))
        assert results._reader.poll(LIMIT_S), "nobody takes what is there to do"  # type: ignore[attr-defined]
        assert results.get() == str(number)
        if worker is not workers[-1]:
            os.kill(worker.pid or 0, signal.SIGKILL)
            worker.join()
    workers[-1].kill()
    workers[-1].join()


def _count_down(unread: Any, counted: Path) -> None:
    with unread:
        unread.value -= 1
    counted.touch()


def test_a_worker_that_is_killed_while_it_counts_stops_neither_scheduler_nor_workers(tmp_path: Path) -> None:
    executor = WarmLocalExecutor(parallelism=2)
    executor.activity_queue, executor.result_queue = FORKS.SimpleQueue(), FORKS.SimpleQueue()
    executor._unread_messages = FORKS.Value("I")
    executor._spawn_workers_with_gc_freeze(0)
    unread: Any = executor._unread_messages
    with unread:
        unread.value += 2
    killed = FORKS.Process(target=_hold, args=(unread, tmp_path / "held"))
    killed.start()
    while not (tmp_path / "held").exists():
        time.sleep(0.01)
    killed.kill()
    killed.join()
    other = FORKS.Process(target=_count_down, args=(unread, tmp_path / "counted"))
    other.start()
    other.join(10)
    other.kill()
    assert (tmp_path / "counted").exists(), "what was locked by the one that was killed stays locked"
    executor._spawn_workers_with_gc_freeze(0)  # later, for a worker that has died
    assert executor._unread_messages.value == 1


def test_a_task_that_a_worker_took_to_its_death_can_be_queued_again() -> None:
    executor = WarmLocalExecutor(parallelism=2)
    lost: Any = SimpleNamespace(id="", key=TaskInstanceKey("replicate.orders", "task_0", "manual__1"))
    executor.running.add(lost.key)
    executor.revoke_task(ti=lost)
    assert not executor.has_task(lost)
    executor.revoke_task(ti=lost)
