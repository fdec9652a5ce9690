"""Names and places that a system gives must not hold a secret: the ledger, receipts and pages show them as they are.

They cannot be masked, for what is stored is compared later with what the system says then.
"""

from __future__ import annotations

from collections.abc import Iterable

from connect_core.errors import ContractBroken
from connect_core.masking import knows_secrets, names_secret


def require_no_secret(where: str, who: str, what: str, given: Iterable[object]) -> None:
    """Raises ContractBroken when one of these has a secret in it. `who` gave them ("sink lake"), and names `what` with
    them ("a target"). Called before the ledger has them."""
    if knows_secrets() and any(names_secret(repr(one)) for one in given):  # a plan may have thousands
        raise ContractBroken(
            f"The {who} names {what} with a secret",
            where=where,
            next_step="Nothing was stored of it. The ledger, receipts and pages show such names: leave the secret out",
        )
