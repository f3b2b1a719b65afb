"""`bkadmin recover --force-close`: show what is lost, ask, and close a ledger that no recovery can close."""

import asyncio
from typing import TYPE_CHECKING

from bookie.terminal.output import show
from bookie_admin.bkadmin.options import Cluster, sure

if TYPE_CHECKING:
    from bookie.client.replication.forcing import Loss

__all__ = ["force_close"]


def force_close(ledger: int, *, cluster: Cluster, output: str, yes: bool, dry_run: bool) -> None:
    """Close a ledger by force. Raises IllegalOperation where that is not needed or not certain; see `forcing`."""
    loss = asyncio.run(_look(cluster, ledger))
    closed = False
    if not dry_run:
        sure(f"{_describe_loss(loss)}. Close ledger {ledger} after entry {loss.last_entry} for good?", yes=yes)
        loss = asyncio.run(_close(cluster, loss))
        closed = True
    row = {
        "ledger": ledger,
        "state": "closed" if closed else "to close",
        "last_confirmed": loss.last_confirmed,
        "last_entry": loss.last_entry,
        "length": loss.length,
        "lost": [list(one) for one in loss.lost],
        "more_possible": loss.more_possible,
        "gone": list(loss.gone),
    }
    show(output, "ledgers", [row])


def _describe_loss(loss: "Loss") -> str:
    """Return what is lost, as a sentence without its full stop."""
    ranges = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in loss.lost)
    text = f"Entries {ranges} of ledger {loss.ledger} are lost" if ranges else "No entry that is known is lost"
    if loss.more_possible:
        text += f". Later entries may have been acknowledged by {', '.join(loss.gone)}, and are lost, too"
    return text


async def _look(cluster: Cluster, ledger: int) -> "Loss":
    from bookie.client.replication.forcing import what_is_lost  # noqa: PLC0415
    from bookie.client.replication.service import opened  # noqa: PLC0415

    async with opened("bkadmin", cluster.driver(), cluster.recovery) as environment:
        return await what_is_lost(environment, ledger)


async def _close(cluster: Cluster, loss: "Loss") -> "Loss":
    from bookie.client.replication.forcing import close_by_force  # noqa: PLC0415
    from bookie.client.replication.service import opened  # noqa: PLC0415

    async with opened("bkadmin", cluster.driver(), cluster.recovery) as environment:
        return await close_by_force(environment, loss)
