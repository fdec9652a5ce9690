"""Dead letters that were on their way to a former `errors.sink`, which may never come back, go to the one of today."""

from __future__ import annotations

from connect_core.ledger import task_lease_id
from connect_core.replication.driver.leases import LeaseRequest, acquire
from connect_core.replication.driver.prepare import holder, times
from connect_core.sdk.values import ERRORS_SINK, Json
from connect_core.service.dead_letters import Agree, Count, LettersPreview
from connect_core.service.opened import AtWork, Opened, Say

__all__ = ["on_their_way", "redirect"]


def on_their_way(opened: Opened, name: str) -> list[Count]:
    """What `redirect` would be asked to agree to."""
    return opened.ledger.letters_on_their_way(opened.ledger.connector(name).uid)


def redirect(opened: AtWork, name: str, agree: Agree, say: Say, *, why: str = "") -> Json:
    """Gives up what was begun there, once somebody has agreed: nobody looks in that target for it, and the next run
    sends these letters. Raises LeaseHeld while a run sends some."""
    ledger, uid = opened.ledger, opened.ledger.connector(name).uid
    counts = ledger.letters_on_their_way(uid)
    if not counts:
        return {"connector": name, "redirected": 0}
    agree(LettersPreview(name, tuple(counts), {}))
    assignment = ledger.assignment(uid)
    tasks = sorted({share.task for share in assignment.shares.values()})
    wanted = [
        LeaseRequest(task_lease_id(uid, ERRORS_SINK, assignment.version, task), uid, ERRORS_SINK, assignment.version)
        for task in tasks
    ]
    held = acquire(ledger, wanted, holder=holder(), home=opened.home, times=times(opened.settings), say=say)
    try:
        redirected = ledger.redirect_letters(held.leases, uid, who=opened.settings.user, why=why)
    finally:
        held.release()
    return {"connector": name, "redirected": redirected}
