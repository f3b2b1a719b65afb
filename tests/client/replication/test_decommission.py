"""The progress of a decommission, and the time it will take, on modelled ledgers under modelled time."""

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Any

from bookie.client.config import ClientConfig
from bookie.client.replication.contracts import Cluster, Environment
from bookie.client.replication.decommission import Progress, decommission
from bookie.client.replication.settings import RecoverySettings
from bookie.metadata.driver import Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from tests.sim.loop import VirtualLoop

LEDGERS = 10


class Shrinking:
    """Metadata and queue of ten ledgers on "old" and "one"; from second 5 on one ledger leaves "old" each second.

    Replication is disabled until then.
    """

    def moved(self) -> int:
        """Return how many ledgers have left "old"."""
        return min(max(int(asyncio.get_running_loop().time()) - 4, 0), LEDGERS)

    async def ledgers(self) -> AsyncIterator[list[int]]:
        """Yield all ledgers."""
        yield list(range(LEDGERS))

    async def read(self, ledger: int) -> Versioned[LedgerMetadata]:
        """Return metadata of a closed ledger with an entry."""
        bookies = ("new" if ledger < self.moved() else "old", "one")
        closed = {"state": LedgerState.CLOSED, "last_entry": 0, "length": 1}
        value = LedgerMetadata(ensemble_size=2, write_quorum=2, ack_quorum=2, segments=(Segment(0, bookies),), **closed)  # type: ignore[arg-type]
        return Versioned(value, 0, 0)

    async def mark(self, *_: object) -> None:
        """Record a mark."""

    async def enabled(self) -> bool:
        """Return whether replication is enabled."""
        return self.moved() > 0


def test_ledgers_that_no_other_bookie_can_take() -> None:
    """Without a writable bookie outside their ensembles, ledgers are homeless; with one, none is."""
    for writable, homeless in ({"one"}, range(LEDGERS)), ({"one", "new"}, []):
        looks = VirtualLoop().run(_looks(frozenset(writable), dry_run=True))
        assert [look.homeless for look in looks] == [frozenset(homeless)]


async def _looks(writable: frozenset[str], *, dry_run: bool = False) -> list[Progress]:
    """Decommission "old" in the model, and return all progress."""
    model: Any = Shrinking()
    nothing: Any = None
    environment = Environment(
        name="tool",
        queue=model,
        metadata=model,
        bookies=nothing,
        ledgers=nothing,
        placement=nothing,
        cluster=Cluster(writable=writable),
        config=ClientConfig(),
        settings=RecoverySettings(),
        random=Random(1),
        epoch_ms=lambda: 0,
    )
    return [look async for look in decommission(environment, "old", poll_s=1, dry_run=dry_run)]


def test_op1_rate_and_time_left() -> None:
    """OP1: the remaining ids, ledgers per second and seconds left are reported; no time while nothing moves."""
    looks = VirtualLoop().run(_looks(frozenset({"one", "new"})))
    assert [len(look.remaining) for look in looks] == [10] * 5 + list(range(9, -1, -1))
    assert looks[7].remaining == tuple(range(3, 10))
    assert [look.paused for look in looks] == [True] * 5 + [False] * 10
    assert all(look.per_s == 0 and look.eta_s is None for look in looks[:5])
    assert [look.per_s for look in looks[5:]] == [(at - 4) / at for at in range(5, 15)]
    assert [look.eta_s for look in looks[5:]] == [(14 - at) / ((at - 4) / at) for at in range(5, 15)]
    assert (looks[-1].done, looks[-1].total, looks[-1].blocked) == (True, 10, {})
