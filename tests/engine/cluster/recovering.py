"""What auto-recovery did in a cluster's world, and what it must not do.

R1  a mark that was set while a worker had the ledger is still there when the worker has finished
R2  a bookie that serves, and has served for two sessions, is not lost
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from random import Random

from bookie.client.bookies.stores import MetadataStore
from bookie.client.replication.audits import Audits
from bookie.client.replication.stores import StoredQueue
from bookie.metadata.records.replication import Claim
from tests.engine.cluster.draw import ClusterDraw
from tests.sim.events import Event

__all__ = ["misjudged", "record_lost", "RecordedQueue"]


class RecordedQueue(StoredQueue):
    """The queue of one process. `value` of an event is when its call began, and of `finished` also when its claim
    ended.
    """

    def __init__(self, store: MetadataStore, who: str, history: list[Event]) -> None:
        super().__init__(store)
        self._who = who
        self._history = history
        self._claimed: dict[int, float] = {}
        self._now = asyncio.get_running_loop().time

    async def mark(self, ledger: int, missing: Collection[str], now_ms: int | None) -> None:
        begun = self._now()
        await super().mark(ledger, missing, now_ms)
        self._history.append(Event(self._now(), self._who, "marked", ledger, value=(begun, tuple(missing))))

    async def claim(self, owner: str, random: Random, changed: Callable[[], None]) -> Claim | None:
        claim = await super().claim(owner, random, changed)
        if claim is not None:
            self._claimed[claim.ledger] = self._now()
        return claim

    async def finish(self, claim: Claim) -> bool:
        begun = self._now()
        done = await super().finish(claim)
        if done:
            self._history.append(
                Event(self._now(), self._who, "finished", claim.ledger, value=(begun, self._claimed[claim.ledger]))
            )
        return done


def record_lost(history: list[Event], serves: Callable[[str], float]) -> None:
    """Record which bookies auditors take for lost, and since when they serve. The process ends with the world."""
    real = Audits.mark_ledgers_of

    async def mark(self: Audits, lost: frozenset[str]) -> int:
        loop = asyncio.get_running_loop()
        who = self._environment.name
        for bookie in sorted(lost):
            history.append(Event(loop.time(), who, "lost", value=(bookie, serves(bookie))))
        return await real(self, lost)

    Audits.mark_ledgers_of = mark  # type: ignore[method-assign]


def misjudged(history: Iterable[Event], draw: ClusterDraw) -> list[str]:
    """Return the violations of R1 and R2."""
    events = list(history)
    return [*_marks_lost(events), *_lost_too_early(events, draw)]


def _marks_lost(events: list[Event]) -> Iterable[str]:
    marks = [event for event in events if event.what == "marked"]
    for event in events:
        if event.what != "finished":
            continue
        begun, claimed = event.value
        for mark in marks:
            if mark.ledger == event.ledger and claimed < mark.value[0] and mark.at < begun:
                yield (
                    f"R1: ledger {event.ledger}, {event.who} had it from {claimed:.6f} s, and removed at {begun:.6f} s "
                    f"the mark that {mark.who} had set at {mark.at:.6f} s"
                )


def _lost_too_early(events: list[Event], draw: ClusterDraw) -> Iterable[str]:
    least_s = 2 * draw.session_s  # what an auditor has read of the store may be that old
    for event in events:
        if event.what == "lost" and event.at - event.value[1] > least_s:
            bookie, since = event.value
            yield f"R2: {bookie} is lost at {event.at:.6f} s for {event.who}, but it serves since {since:.6f} s"
