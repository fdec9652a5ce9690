"""The executor of the local stack: Airflow's own, whose workers have loaded what every task needs before they are
forked, and none of which takes a lock or a task with it when it is killed.

Most of the processor time of a short task would be its imports. And an idle worker of Airflow's waits for its task in a
read under a lock that all share; the lock is a semaphore, which nobody gives back for a process that was killed (by the
kernel when memory runs out, for one): no other worker gets a task any more, whatever else is restarted but the
scheduler. Here the kernel gives it back. And a worker that is killed after it took a task, and before the task said
that it runs, leaves it queued for ever: Airflow's own cannot take it back.

Named in a setting, `AIRFLOW__CORE__EXECUTOR`: every part of Airflow imports this module, so nothing else comes with it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
from importlib import import_module
from multiprocessing.sharedctypes import RawValue
from types import TracebackType
from typing import TYPE_CHECKING, Any

from airflow.executors.local_executor import LocalExecutor

if TYPE_CHECKING:
    from airflow.models.taskinstance import TaskInstance

NEEDED_BY_TASKS = (
    "airflow.providers.apache.spark.hooks.spark_connect",
    "connect_core.engine.spark_connect",
    "connect_core.airflow.dags",
    "connect_core.service.scheduled",
    "connect_core.stack",
)
"""Whatever systems they are between."""


class WarmLocalExecutor(LocalExecutor):
    """Modules only: no connection and no thread is carried across a fork."""

    def start(self) -> None:
        """In the scheduler's process, of which each worker, and each task, is a fork."""
        from connect_core.service.scheduled import needed_by_systems

        for name in (*NEEDED_BY_TASKS, *needed_by_systems()):
            import_module(name)
        super().start()

    def revoke_task(self, *, ti: TaskInstance) -> None:
        """The scheduler asks for it when a task was queued for longer than `task_queued_timeout`, and queues it again.
        Should a worker have it after all, the task that says first that it runs is the one; leases keep the other one
        from writing."""
        self.queued_tasks.pop(ti.key, None)
        self.running.discard(ti.key)

    def _spawn_workers_with_gc_freeze(self, spawn_number: int) -> None:
        """The first workers are forked as soon as their queues are made: here is the only place in between."""
        for queue in (self.activity_queue, self.result_queue):
            _free_of_semaphores(queue)
        self._unread_messages = _kernel_counter(self._unread_messages)
        super()._spawn_workers_with_gc_freeze(spawn_number)  # type: ignore[no-untyped-call]


def _free_of_semaphores(queue: Any) -> None:
    """By private names of the standard library's `SimpleQueue`: one message of it is one write and one read of a pipe,
    each under a lock."""
    if not isinstance(queue._rlock, KernelLock):
        queue._rlock, queue._wlock = KernelLock(), KernelLock()


def _kernel_counter(unread: Any) -> Any:
    """In place of the number that Airflow makes, which has a semaphore; the same one for workers that come later."""
    return unread if isinstance(unread, KernelCounter) else KernelCounter()


class KernelLock:
    """Excludes processes that are forks of the one that made it; released when its holder ends, however it ends.

    A record lock of fcntl(2): it belongs to a process, so that a fork does not have what its parent holds. Threads of
    one process it does not part.
    """

    def __init__(self) -> None:
        # Stays open: closing any descriptor of the file would release the lock.
        self._file = os.memfd_create("waybill-lock")

    def __enter__(self) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_EX)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN)


class KernelCounter(KernelLock):
    """A number that processes share, for the executor's count of tasks that no worker has taken yet: the scheduler
    waits for its lock in each of its loops."""

    def __init__(self) -> None:
        super().__init__()
        self._number = RawValue(ctypes.c_uint)

    @property
    def value(self) -> int:
        """To be read and set under the lock."""
        return int(self._number.value)

    @value.setter
    def value(self, value: int) -> None:
        self._number.value = value
