"""Which bookies take copies: none that is short of room, as long as others have room. Event loop.

A bookie is short of room if a copy would fill its disks beyond `diskUsageWarnThreshold`. What clients know about free
space is up to a day old, and other workers copy at the same time. So the bookie that placement chose is asked at once,
before a copy of many megabytes, and if it is short, placement chooses another one.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from bookie.client.config import ClientConfig
from bookie.client.contracts import Bookies, Placement
from bookie.client.replication.counters import Counters
from bookie.client.replication.fragments import Fragment
from bookie.errors import BookKeeperError, ClientClosed, NotEnoughBookies
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["Targets"]

MARGIN = 0.01
"""The share of a bookie's disks that is left for copies which other workers send to it at the same time."""
SHORT_S = 60.0
"""How long a bookie that was short of room is not asked again."""
log = logging.getLogger(__name__)


class Targets:
    """Chooses the targets of copies. One instance serves all ledgers of a worker."""

    def __init__(self, placement: Placement, bookies: Bookies, config: ClientConfig, counters: Counters) -> None:
        self._placement = placement
        self._bookies = bookies
        self._config = config
        self._counters = counters
        self._short: dict[str, float] = {}

    async def choose(
        self, metadata: LedgerMetadata, ensemble: Sequence[str], bad: Sequence[Fragment], doubted: frozenset[str]
    ) -> dict[int, str]:
        """Return a bookie for each place of `bad` in an ensemble.

        If only bookies that are short of room are left, it waits for `weightPacedReplicationMaxPauseMs` and then
        takes them: an entry with too few replicas is worse than a disk that fills up. Raises NotEnoughBookies if
        there is no bookie at all.
        """
        members = list(ensemble)
        chosen: dict[int, str] = {}
        waited = False
        for part in bad:

            def drawn(avoided: frozenset[str], part: Fragment = part) -> str:
                return self._placement.replacement(
                    metadata.write_quorum,
                    metadata.ack_quorum,
                    tuple(members),
                    part.index,
                    excluded=doubted | avoided | frozenset(chosen.values()),
                    custom=metadata.custom,
                )

            bookie = await self._with_room(drawn, needed_bytes(metadata, part))
            if bookie is None:
                if not waited:
                    await self._wait()
                    waited = True
                bookie = drawn(frozenset())
            members[part.index] = chosen[part.index] = bookie
        return chosen

    async def _with_room(self, drawn: Callable[[frozenset[str]], str], needed: int) -> str | None:
        """Return a bookie with room; None if there is none, but some that are short."""
        if not self._config.copies_need_room:
            return drawn(frozenset())
        now = asyncio.get_running_loop().time
        while True:
            self._short = {bookie: until for bookie, until in self._short.items() if until > now()}
            short = frozenset(self._short)
            try:
                bookie = drawn(short)
            except NotEnoughBookies:
                if short:
                    return None
                raise
            if await self._has_room(bookie, needed):
                return bookie
            self._short[bookie] = now() + SHORT_S
            self._counters.targets_short += 1

    async def _has_room(self, bookie: str, needed: int) -> bool:
        """Return whether the bookie is below the threshold after a copy. If it does not tell, the copy is tried."""
        try:
            info = await self._bookies.bookie_info(bookie)
        except ClientClosed:
            raise
        except BookKeeperError as error:
            log.info("the room of a target is unknown bookieId=%s error=%s", bookie, error)
            return True
        left = info.free - (1 - self._config.copy_usage_max + MARGIN) * info.total
        return info.total <= 0 or left >= needed

    async def _wait(self) -> None:
        seconds = self._config.weight_paced_pause_max_s
        log.warning("every bookie that may take a copy is short of room, waiting seconds=%g", seconds)
        self._counters.paused_ms += round(seconds * 1000)
        await asyncio.sleep(seconds)


def needed_bytes(metadata: LedgerMetadata, part: Fragment) -> int:
    """Estimate the bytes of a fragment: the mean entry of its ledger, for each entry of its place; 0 if unknown."""
    entries = metadata.last_entry + 1
    if metadata.length <= 0 or entries <= 0:
        return 0
    share = (part.last - part.first + 1) * metadata.write_quorum / metadata.ensemble_size / entries
    return round(metadata.length * share)
