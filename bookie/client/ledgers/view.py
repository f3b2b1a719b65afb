"""What a handle knows of its ledger: metadata, LAC and length, and who waits for them to change. Event loop.

Both only go up: a metadata of an older version and a lower LAC are ignored.
"""

import asyncio
import logging

from bookie.client.contracts import Metadata
from bookie.errors import BookKeeperError, NoSuchLedgerMetadata
from bookie.metadata.driver import Subscription, Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment

__all__ = ["LedgerView"]

log = logging.getLogger(__name__)


class LedgerView:
    """One ledger as one handle sees it. `watch` follows the metadata store until `close`."""

    def __init__(self, ledger: int, versioned: Versioned[LedgerMetadata]) -> None:
        self.ledger = ledger
        self.versioned = versioned
        self.lac = versioned.value.segments[-1].first_entry - 1
        """The last entry known to be acknowledged, -1 for none; -1 + the start of the last segment at least."""
        self.length = 0
        """Payload bytes up to some entry that was seen; all of them once the ledger is closed."""
        self.deleted = False
        self._watch: Subscription | None = None
        self._waiting: set[asyncio.Future[None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._end()

    @property
    def metadata(self) -> LedgerMetadata:
        """The newest that was seen."""
        return self.versioned.value

    @property
    def closed(self) -> bool:
        """Whether the ledger has its last entry, for ever."""
        return self.versioned.value.state is LedgerState.CLOSED

    def watch(self, store: Metadata) -> None:
        """Follow the ledger's metadata; twice changes nothing."""
        if self._watch is None:
            self._watch = store.watch(self.ledger, self._changed)

    def close(self) -> None:
        """Follow it no more."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def saw_lac(self, lac: int | None, length: int = 0) -> None:
        """A bookie told one; None is nothing."""
        if self.closed:
            return
        if lac is not None and lac > self.lac:
            self.lac = lac
            self._wake()
        self.length = max(self.length, length)

    def saw_metadata(self, versioned: Versioned[LedgerMetadata]) -> None:
        """The store told it, or took it."""
        if versioned.version > self.versioned.version:
            self.versioned = versioned
            self._end()
            self._wake()

    async def look_again(self, store: Metadata) -> None:
        """Read the metadata; calls of one moment share one read. Raises nothing: then what is known stays."""
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
        """Wait until LAC or metadata have changed. NoSuchLedgerMetadata when the ledger was deleted."""
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
        """The segment of an entry, and that segment's last entry; None while more may be added to it."""
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
