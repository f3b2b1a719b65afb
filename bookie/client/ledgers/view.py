"""What a handle knows about its ledger: metadata, LAC and length, and who waits for them to change. Event loop.

They never go back: metadata of an older version and a lower LAC are ignored.
"""

import asyncio
import logging

from bookie.client.contracts import Metadata
from bookie.client.ledgers.metadata_loop import is_another
from bookie.errors import BookKeeperError, NoSuchLedgerMetadata
from bookie.metadata.driver import Subscription, Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment

__all__ = ["LedgerView"]

log = logging.getLogger(__name__)


class LedgerView:
    """One ledger as one handle sees it. `watch` follows its metadata until `close`."""

    def __init__(self, ledger: int, versioned: Versioned[LedgerMetadata]) -> None:
        self.ledger = ledger
        self.versioned = versioned
        self.lac = versioned.value.segments[-1].first_entry - 1
        """The last entry known to be acknowledged, or -1; all entries before the last segment are."""
        self.length = 0
        """Payload bytes up to some entry that was seen; those of the whole ledger once it is closed."""
        self.deleted = False
        self._watch: Subscription | None = None
        self._waiting: set[asyncio.Future[None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._end()

    @property
    def metadata(self) -> LedgerMetadata:
        """The newest metadata that were seen."""
        return self.versioned.value

    @property
    def closed(self) -> bool:
        """Whether the ledger is closed."""
        return self.versioned.value.state is LedgerState.CLOSED

    def watch(self, store: Metadata) -> None:
        """Watch the ledger's metadata, unless they are being watched."""
        if self._watch is None:
            self._watch = store.watch(self.ledger, self._changed)

    def close(self) -> None:
        """End the watch."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def saw_lac(self, lac: int | None, length: int = 0) -> None:
        """Take over a LAC that a bookie sent, or None if it sent none, and a length."""
        if self.closed:
            return
        if lac is not None and lac > self.lac:
            self.lac = lac
            self._wake()
        self.length = max(self.length, length)

    def saw_metadata(self, versioned: Versioned[LedgerMetadata]) -> None:
        """Take over metadata that were read from the store or written to it.

        Those of another ledger with the same id say that this one was deleted.
        """
        if is_another(self.versioned, versioned):
            self.deleted = True
            self._wake()
        elif versioned.version > self.versioned.version:
            self.versioned = versioned
            self._end()
            self._wake()

    async def look_again(self, store: Metadata) -> None:
        """Read the metadata again. Concurrent calls share one read. Errors are logged, and the known metadata stay."""
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look(store))
        await asyncio.shield(self._looking)

    async def _look(self, store: Metadata) -> None:
        try:
            self.saw_metadata(await store.read(self.ledger))
        except BookKeeperError as error:
            log.info("ledger %d: metadata not read again: %s", self.ledger, error)
        finally:
            self._looking = None

    async def change(self) -> None:
        """Wait until the LAC or the metadata change. Raises NoSuchLedgerMetadata if the ledger was deleted."""
        if not self.deleted:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.add(waiting)
            try:
                await waiting
            finally:
                self._waiting.discard(waiting)
        if self.deleted:
            raise NoSuchLedgerMetadata(f"ledger {self.ledger} was deleted while it was read; stop reading it")

    def segment_at(self, entry: int) -> tuple[Segment, int | None]:
        """Return the segment of an entry, and the last entry of that segment, or None while it can still grow."""
        segments = self.versioned.value.segments
        last = self.versioned.value.last_entry if self.closed else None
        for segment in reversed(segments):
            if segment.first_entry <= entry:
                return segment, last
            last = segment.first_entry - 1
        return segments[0], last

    def _changed(self, versioned: Versioned[LedgerMetadata] | None) -> None:
        if versioned is None:
            self.deleted = True
            self._wake()
        else:
            self.saw_metadata(versioned)

    def _end(self) -> None:
        if self.closed:
            self.lac, self.length = self.metadata.last_entry, self.metadata.length
        else:
            self.lac = max(self.lac, self.metadata.segments[-1].first_entry - 1)

    def _wake(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
