"""Move all ledgers away from a bookie, and report what is left, at which rate it goes, and what blocks it (OP1).
Event loop.

The replication workers of the cluster do the work. Here ledgers are marked, and then checked until none is left. A
ledger that cannot be copied is reported at once and not waited for.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from bookie.client.replication.contracts import Environment
from bookie.client.replication.fragments import stored_on
from bookie.client.replication.walking import each_ledger
from bookie.errors import IllegalOperation
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState

__all__ = ["decommission", "Progress"]

POLL_S = 5.0
RATE_OVER = 60
"""The number of looks from which the rate is computed."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a decommission. `remaining` are the ledgers left; `blocked` has, by ledger, why it cannot be
    moved.
    """

    remaining: tuple[int, ...]
    total: int
    blocked: Mapping[int, str]
    per_s: float
    """Ledgers per second in recent time."""
    eta_s: float | None
    """Seconds until the end, or None while nothing moves."""
    paused: bool
    """Whether replication is disabled in the cluster."""
    homeless: frozenset[int] = frozenset()
    """Those of `remaining` of which every writable bookie has entries already, so that none can take more."""

    @property
    def done(self) -> bool:
        """Whether nothing is left but blocked ledgers."""
        return not self.remaining


async def decommission(
    environment: Environment, bookie: str, *, poll_s: float = POLL_S, dry_run: bool = False
) -> AsyncIterator[Progress]:
    """Mark all ledgers of a bookie, and yield the progress until none remains.

    The caller may stop at any time: the marks stay, and the next call continues.

    Args:
        environment: What the parts of auto-recovery share.
        bookie: The id of the bookie.
        poll_s: The time between two looks, in seconds.
        dry_run: Mark nothing, and look only once.

    Raises:
        IllegalOperation: The bookie is registered. It must be stopped first, since it would get new ledgers.
    """
    if bookie in environment.cluster.alive:
        raise IllegalOperation(f"bookie {bookie} is registered: stop it first, then decommission it")
    found: set[int] = set()
    homeless: set[int] = set()
    blocked: dict[int, str] = {}
    at_once = environment.settings.ledgers_at_once

    async def look(ledger: int, metadata: LedgerMetadata) -> None:
        if not _left_on(metadata, bookie):
            return
        reason = _unrecoverable(metadata, bookie, environment.cluster.alive)
        if reason:
            blocked[ledger] = reason
        else:
            found.add(ledger)
            if _is_homeless(metadata, bookie, environment.cluster.writable):
                homeless.add(ledger)

    async def mark(ledger: int, metadata: LedgerMetadata) -> None:
        await look(ledger, metadata)
        if ledger in found:
            await environment.queue.mark(
                ledger, [bookie], environment.epoch_ms() if environment.settings.mark_time_stored else None
            )

    await each_ledger(environment.metadata, look if dry_run else mark, at_once=at_once)
    clock = asyncio.get_running_loop().time
    looks: deque[tuple[float, int]] = deque([(clock(), len(found))], maxlen=RATE_OVER)
    total = len(found) + len(blocked)
    while True:
        paused = not await environment.queue.enabled()
        rate = _rate(looks)
        eta_s = len(found) / rate if rate else None
        yield Progress(tuple(sorted(found)), total, dict(blocked), rate, eta_s, paused, frozenset(homeless))
        if dry_run or not found:
            return
        await asyncio.sleep(poll_s)
        before = sorted(found)
        found.clear()
        homeless.clear()
        await each_ledger(environment.metadata, look, at_once=at_once, among=before)
        looks.append((clock(), len(found)))


def _left_on(metadata: LedgerMetadata, bookie: str) -> bool:
    """Return whether the bookie holds entries of a ledger, or may receive some."""
    if metadata.state is not LedgerState.CLOSED:
        return any(bookie in segment.bookies for segment in metadata.segments)
    return bool(stored_on(metadata, bookie, metadata.last_entry))


def _is_homeless(metadata: LedgerMetadata, bookie: str, writable: frozenset[str]) -> bool:
    """Return whether no bookie can take the place of this one in some ensemble of a ledger."""
    ensembles = [one.bookies for one in metadata.segments if bookie in one.bookies]
    return any(not writable.difference(ensemble) for ensemble in ensembles)


def _unrecoverable(metadata: LedgerMetadata, bookie: str, alive: frozenset[str]) -> str:
    """Return why a bookie's entries of a ledger cannot be copied; empty if they can."""
    if metadata.write_quorum == 1:
        return f"written with writeQuorum=1: its only replica is on {bookie}; start that bookie, or delete the ledger"
    last = metadata.last_entry if metadata.state is LedgerState.CLOSED else metadata.segments[-1].first_entry
    for part in stored_on(metadata, bookie, last):
        if part.stored is None:
            continue
        for entry in range(part.stored[0], min(part.stored[1], part.stored[0] + metadata.ensemble_size) + 1):
            write_set = metadata.write_set(entry)
            if bookie in write_set and not alive.intersection(write_set):
                return f"no replica of entry {entry} is on a running bookie: start one of {', '.join(write_set)}"
    return ""


def _rate(looks: deque[tuple[float, int]]) -> float:
    (began, before), (now, left) = looks[0], looks[-1]
    return (before - left) / (now - began) if now > began and left < before else 0.0
