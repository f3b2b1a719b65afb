"""Planted bugs of auto-recovery, each of which was mended once. Clusters must show them:
`python -m tests.engine.cluster 0:100 --plant mark_kept --first`.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from bookie.client.replication.auditor import Auditor
from bookie.client.replication.lost_bookies import LostBookies
from bookie.metadata.key_value.embedded import EmbeddedStore
from bookie.metadata.key_value.replication import KeyValueReplication
from tests.engine.cluster.draw import ClusterDraw

__all__ = ["NOTHING", "Planted", "PLANTED"]


@dataclass(frozen=True, slots=True)
class Planted:
    """A planted bug: what is wrong, how to switch it on, and in which worlds it shows."""

    sentence: str
    patch: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext
    draw: Callable[[ClusterDraw], ClusterDraw] | None = None
    """Draws the worlds in which it shows, if it hardly ever does in ordinary ones."""

    def drawn(self, draw: ClusterDraw) -> ClusterDraw:
        """Return a world with the bug, drawn for it if that is said."""
        return self.draw(draw) if self.draw else draw


@contextmanager
def mark_kept() -> Iterator[None]:
    real = KeyValueReplication.mark

    def mark(self: KeyValueReplication, ledger: int, missing: Collection[str], now_ms: int | None) -> None:
        known = self.marked(ledger)
        if known is None or not set(missing) <= set(known.missing):
            real(self, ledger, missing, now_ms)

    with patch.object(KeyValueReplication, "mark", mark):
        yield


@contextmanager
def lost_at_once() -> Iterator[None]:
    real = LostBookies.due

    def due(self: LostBookies, delay_s: float, now_s: float) -> frozenset[str]:
        waiting = self._waiting()
        return frozenset(waiting) if len(waiting) > 1 else real(self, delay_s, now_s)

    async def registered(self: Auditor) -> frozenset[str]:
        return self._cluster.alive

    with ExitStack() as patches:
        patches.enter_context(patch.object(LostBookies, "due", due))
        patches.enter_context(patch.object(LostBookies, "interrupted", lambda *_: None))
        patches.enter_context(patch.object(Auditor, "_registered", registered))
        patches.enter_context(patch.object(EmbeddedStore, "_notice_stall", lambda _: None))
        yield


def _recovered(draw: ClusterDraw, **more: Any) -> ClusterDraw:
    """Return a world of one ledger and two processes with auto-recovery, in which no client gives up early."""
    config = replace(draw.config, add_timeout_s=5.0, read_timeout_s=5.0, connect_timeout_s=5.0)
    few: dict[str, Any] = {"sizes": (3, 3, 2), "bookies": 4, "recoverers": 0, "readers": 0, "tails": 0, "cancels": 0}
    quick: dict[str, Any] = {"store_s": 0.002, "base_s": (0.001, 0.002), "sync_s": (0.0005, 0.001), "begins_s": 0.1}
    given = few | quick | {"entries": 60, "recoveries": 2} | more
    return replace(draw, config=config, advanced=False, deferred=False, dies_s=0.0, **given)


def marked_often(draw: ClusterDraw) -> ClusterDraw:
    """Bookies die one after the other, and checks mark the ledgers of those that are missing again and again."""
    draw = _recovered(
        draw,
        writer="closes",
        burst=10,
        pace_s=0.05,
        faults=8,
        lasts_s=4.0,
        session_s=0.2,
        sync_s=(0.03, 0.05),
        fault_kinds=("kill",),
    )
    recovery = replace(draw.recovery, lost_bookie_delay_s=0, bookie_check_interval_s=0.02, check_interval_s=0.05)
    config = replace(draw.config, session_timeout_s=draw.session_s)
    return replace(draw, config=config, recovery=replace(recovery, failed_ledger_hold_s=0.1, backoff_s=0.02))


def stalled(draw: ClusterDraw) -> ClusterDraw:
    """The process of the embedded store stands still for longer than a session, while bookies serve."""
    draw = _recovered(
        draw, writer="stays", burst=1, pace_s=0.1, faults=2, lasts_s=8.0, session_s=1.5, fault_kinds=("stall",)
    )
    config = replace(draw.config, session_timeout_s=draw.session_s)
    return replace(draw, config=config, recovery=replace(draw.recovery, lost_bookie_delay_s=60))


NOTHING = Planted("nothing is wrong")

PLANTED = {
    "lost_at_once": Planted(
        "bookies that are missing together are lost at once, also after a stall of the embedded store",
        lost_at_once,
        stalled,
    ),
    "mark_kept": Planted(
        "a mark that is set again for the same bookies keeps its version, so that a worker removes it",
        mark_kept,
        marked_often,
    ),
}
