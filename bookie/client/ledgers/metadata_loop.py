"""Change a ledger's metadata by compare-and-set, also while other clients change them. Event loop only.

`Known` is what one handle knows about its ledger. Only newer versions replace it, whether they come from its own
change, from a conflict, or from a watch.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from bookie.client.contracts import Metadata
from bookie.errors import LedgerFenced, MetadataVersionConflict, NoSuchLedgerMetadata
from bookie.metadata.driver import Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment

__all__ = ["Change", "change_metadata", "close_written", "closed_at", "is_another", "Known", "with_segment"]

Change = Callable[[LedgerMetadata], LedgerMetadata | None]
"""Returns the new metadata, or None if no change is needed. An exception ends the loop."""


def is_another(known: Versioned[LedgerMetadata], stored: Versioned[LedgerMetadata]) -> bool:
    """Return whether `stored` are the metadata of a ledger that was created with the same id after the known one was
    deleted. Its versions may count from 0 again. It cannot be told where the store records no creation time.
    """
    return 0 not in (known.created_ms, stored.created_ms) and known.created_ms != stored.created_ms


class Known:
    """The newest metadata of one ledger that were seen. `listener` is called with every newer version."""

    __slots__ = ("_replaced", "created_ms", "ledger", "listener", "metadata", "version")

    def __init__(self, ledger: int, stored: Versioned[LedgerMetadata]) -> None:
        self.ledger = ledger
        self.metadata = stored.value
        self.version = stored.version
        self.created_ms = stored.created_ms
        self.listener: Callable[[LedgerMetadata], None] | None = None
        self._replaced = False

    @property
    def closed(self) -> bool:
        """Whether the ledger is closed."""
        return self.metadata.state is LedgerState.CLOSED

    @property
    def stored(self) -> Versioned[LedgerMetadata]:
        """The metadata with their version."""
        return Versioned(self.metadata, self.version, self.created_ms)

    def learn(self, stored: Versioned[LedgerMetadata]) -> bool:
        """Take over metadata that are newer than the known ones. Returns whether they are.

        Raises NoSuchLedgerMetadata if they are those of another ledger, which has the same id.
        """
        self.require_same(stored)
        if stored.version <= self.version:
            return False
        self.metadata, self.version = stored.value, stored.version
        if self.listener is not None:
            self.listener(stored.value)
        return True

    def require_same(self, stored: Versioned[LedgerMetadata] | None = None, *, at_least: int = 0) -> None:
        """Raise NoSuchLedgerMetadata if the store has, or had before, another ledger with the same id.

        The versions of one ledger only rise: any below `at_least` is that of another one.
        """
        if stored is not None and (is_another(self.stored, stored) or stored.version < at_least):
            self._replaced = True
        if self._replaced:
            raise NoSuchLedgerMetadata(
                f"ledger {self.ledger} was deleted, and another one was created with its id; open that one anew"
            )


async def change_metadata(store: Metadata, known: Known, change: Change) -> LedgerMetadata:
    """Apply `change` until it is stored, or until it returns None.

    It is applied to the known metadata first, without reading them: if they are stale, that costs one conflict.
    Raises errors of the store other than a conflict: NoSuchLedgerMetadata, also if another ledger has the id by now;
    ClientClosed; or MetadataStoreError, after which the change may have been made.
    """
    while True:
        known.require_same()  # or a version of the other ledger might be taken for ours
        version = known.version
        wanted = change(known.metadata)
        if wanted is None:
            return known.metadata
        try:
            known.learn(await store.write(known.ledger, wanted, version))
        except MetadataVersionConflict:
            stored = await store.read(known.ledger)
            if stored.version == version:
                raise  # if the store refuses its own version, trying again would never end
            known.require_same(stored, at_least=version)
            known.learn(stored)
        else:
            return wanted


def with_segment(metadata: LedgerMetadata, first_entry: int, bookies: Sequence[str]) -> LedgerMetadata:
    """Return metadata with another ensemble from `first_entry` on. It replaces the last segment if that starts
    there.
    """
    kept = metadata.segments if metadata.segments[-1].first_entry < first_entry else metadata.segments[:-1]
    return replace(metadata, segments=(*kept, Segment(first_entry, tuple(bookies))))


def closed_at(metadata: LedgerMetadata, last_entry: int, length: int) -> LedgerMetadata:
    """Return metadata of the closed ledger with this last entry and length."""
    return replace(metadata, state=LedgerState.CLOSED, last_entry=last_entry, length=length)


async def close_written(store: Metadata, known: Known, last_entry: int, length: int) -> LedgerMetadata:
    """Close a ledger on behalf of its writer, which knows the end.

    Raises the errors of `change_metadata`, MetadataVersionConflict if another client closed the ledger with a
    different end, and LedgerFenced if another client is recovering it.
    """

    def change(metadata: LedgerMetadata) -> LedgerMetadata | None:
        if metadata.state is LedgerState.IN_RECOVERY:
            # The recovery may have shown entries above our LAC to readers as confirmed, so we must not set the end.
            raise LedgerFenced(f"ledger {known.ledger}: another client is recovering it; open it to read")
        if metadata.state is not LedgerState.CLOSED:
            return closed_at(metadata, last_entry, length)
        if (metadata.last_entry, metadata.length) != (last_entry, length):
            raise MetadataVersionConflict(
                f"ledger {known.ledger}: another client closed it at entry {metadata.last_entry}, length"
                f" {metadata.length}; this writer's end is entry {last_entry}, length {length}"
            )
        return None

    return await change_metadata(store, known, change)
