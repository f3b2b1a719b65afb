"""Changing a ledger's metadata by compare-and-set, however many others change it too. Event loop only.

`Known` is what one handle knows of its ledger. It is replaced only by newer versions, whether they come from a change
of its own, from a conflict, or from a watch.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from bookie.client.contracts import Metadata
from bookie.errors import LedgerFenced, MetadataVersionConflict
from bookie.metadata.driver import Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment

__all__ = ["Change", "change_metadata", "close_written", "closed_at", "Known", "with_segment"]

Change = Callable[[LedgerMetadata], LedgerMetadata | None]
"""The metadata as it should become, or None when it needs no change. What it raises ends the loop."""


class Known:
    """The newest metadata of one ledger that was seen. `listener` is told of every newer one, with that."""

    __slots__ = ("created_ms", "ledger", "listener", "metadata", "version")

    def __init__(self, ledger: int, stored: Versioned[LedgerMetadata]) -> None:
        self.ledger = ledger
        self.metadata = stored.value
        self.version = stored.version
        self.created_ms = stored.created_ms
        self.listener: Callable[[LedgerMetadata], None] | None = None

    @property
    def closed(self) -> bool:
        """Whether the ledger has its last entry, for ever."""
        return self.metadata.state is LedgerState.CLOSED

    @property
    def stored(self) -> Versioned[LedgerMetadata]:
        """Metadata and version."""
        return Versioned(self.metadata, self.version, self.created_ms)

    def learn(self, stored: Versioned[LedgerMetadata]) -> bool:
        """Take it if it is newer than what is known; whether it was."""
        if stored.version <= self.version:
            return False
        self.metadata, self.version = stored.value, stored.version
        if self.listener is not None:
            self.listener(stored.value)
        return True


async def change_metadata(store: Metadata, known: Known, change: Change) -> LedgerMetadata:
    """Apply `change` to what is stored, and to what somebody else made of it meanwhile, until it holds.

    What is known is not read anew first: a stale copy costs one conflict. Errors of the store other than a conflict
    end it: NoSuchLedgerMetadata, MetadataStoreError (then the change may have been made), ClientClosed.
    """
    while True:
        version = known.version
        wanted = change(known.metadata)
        if wanted is None:
            return known.metadata
        try:
            known.learn(await store.write(known.ledger, wanted, version))
        except MetadataVersionConflict:
            stored = await store.read(known.ledger)
            if stored.version == version:
                raise  # a store that refuses its own version would keep us here for ever
            known.learn(stored)
        else:
            return wanted


def with_segment(metadata: LedgerMetadata, first_entry: int, bookies: Sequence[str]) -> LedgerMetadata:
    """With another ensemble from `first_entry` on, in place of the last segment if that starts there."""
    kept = metadata.segments if metadata.segments[-1].first_entry < first_entry else metadata.segments[:-1]
    return replace(metadata, segments=(*kept, Segment(first_entry, tuple(bookies))))


def closed_at(metadata: LedgerMetadata, last_entry: int, length: int) -> LedgerMetadata:
    """Closed with that end."""
    return replace(metadata, state=LedgerState.CLOSED, last_entry=last_entry, length=length)


async def close_written(store: Metadata, known: Known, last_entry: int, length: int) -> LedgerMetadata:
    """Close a ledger for its writer, whose end that is. As `change_metadata`.

    MetadataVersionConflict: somebody else closed it elsewhere; LedgerFenced: is about to, by recovery.
    """

    def change(metadata: LedgerMetadata) -> LedgerMetadata | None:
        if metadata.state is LedgerState.IN_RECOVERY:
            # What it found behind our LAC may have been shown to readers as confirmed: the end is not ours to say.
            raise LedgerFenced(f"ledger {known.ledger}: somebody else recovers and closes it; open it to read")
        if metadata.state is not LedgerState.CLOSED:
            return closed_at(metadata, last_entry, length)
        if (metadata.last_entry, metadata.length) != (last_entry, length):
            raise MetadataVersionConflict(
                f"ledger {known.ledger}: somebody else closed it at entry {metadata.last_entry}, length"
                f" {metadata.length}; this writer's end is entry {last_entry}, length {length}"
            )
        return None

    return await change_metadata(store, known, change)
