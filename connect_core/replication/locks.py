"""Proof that nobody of an epoch is alive, by locks that the kernel drops with their process (delivery rule 3).

Each epoch of a lease has one file. The driver makes it before it takes the lease and shares its lock while it runs;
every lane shares it before its first write. A challenger on the same boot that gets the lock alone has proof that
nobody of the epoch runs; it unlinks the file while it holds the lock, so that a lane that was still queued finds no
file and refuses. Nothing but the driver of an epoch ever makes its file.

Beside them lie the locks of the files `ledger.seen`, which stay (`held_alone`).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from connect_core.errors import Fenced


def lock_path(home: Path, lease_id: str, epoch: int, holder: str) -> Path:
    """The file of one holder's epoch of a lease, in the folder `locks` of the home.

    The holder is part of the name: one that was too late for the lease must not make a file again that was unlinked
    as proof, or a lane that is still queued would find it.
    """
    name = hashlib.blake2b(f"{lease_id}\n{holder}".encode(), digest_size=12).hexdigest()
    return home / "locks" / f"{name}.{epoch}"


class EpochLock:
    """The driver's share of the lock of an epoch that it is about to take, kept until `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    @property
    def is_gone(self) -> bool:
        """Whether somebody has removed the file: no lane can share it any more, and no challenger gets proof."""
        return os.fstat(self._descriptor).st_nlink == 0

    def close(self) -> None:
        """Gives the share back and leaves the file, so that the next holder can prove that the lanes are gone."""
        os.close(self._descriptor)

    def prove_ended(self) -> bool:
        """True when no lane of this epoch is alive, and none can start any more. The driver's own share is given up
        on success and kept otherwise."""
        if not _locked_alone(self._descriptor):
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)
            return False
        self.path.unlink(missing_ok=True)
        self.close()
        return True


def prove_ended(path: Path) -> bool:
    """A challenger's proof: nobody who shares the lock of this epoch is alive, and no lane of it can start any more.

    A file that is gone proves nothing. Its holder, or an earlier challenger, may have proven it before and died then;
    or somebody has cleaned up, and whoever had opened the file lives on. The challenger waits out the time to live.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        if not _locked_alone(descriptor):
            return False
        path.unlink(missing_ok=True)
        return True
    finally:
        os.close(descriptor)


@contextmanager
def shared(paths: tuple[str, ...]) -> Iterator[None]:
    """A lane's share of every lock of its run. Raises Fenced when one is not there any more or held by a challenger."""
    with ExitStack() as held:
        for path in paths:
            held.callback(os.close, _share(path))
        yield


@contextmanager
def held_alone(home: Path, name: str) -> Iterator[bool]:
    """Whether nobody else holds this name; then it is the caller's until the block ends. Waits for nobody."""
    path = home / "locks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield _locked_alone(descriptor)
    finally:
        os.close(descriptor)


def _share(path: str) -> int:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Fenced(
            "The run that planned this work has ended", where=path, next_step="The next run plans it again"
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        alive = os.fstat(descriptor).st_nlink > 0  # unlinked between our open and our lock: ended as well
    except BlockingIOError:
        alive = False
    if not alive:
        os.close(descriptor)
        raise Fenced(
            "A newer run is taking over from the one that planned this work",
            where=path,
            next_step="Nothing was written here; the newer run continues",
        )
    return descriptor


def _locked_alone(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
