"""The metadata store for garbage collection: what it says about the ledgers on this bookie. Thread `garbage`."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager

from bookie.errors import NoSuchLedgerMetadata
from bookie.metadata.driver import ClusterSeen, MetadataDriver
from bookie.metadata.records.ledger_metadata import LedgerState
from bookie.storage.garbage.contracts import Standing

__all__ = ["LedgersOfBookie"]


class LedgersOfBookie:
    """Implements `garbage.contracts.Metadata` for one bookie."""

    def __init__(self, driver: MetadataDriver, bookie_ids: Collection[str]) -> None:
        self._driver = driver
        self._bookie_ids = frozenset(bookie_ids)

    def instance_id(self) -> str | None:
        """The contract describes all of these methods."""
        return self._driver.cluster.instance_id()

    def seen(self) -> ClusterSeen:
        return self._driver.cluster.seen()

    def ranges(self) -> Iterator[Sequence[int]]:
        return self._driver.ledgers.ranges()

    def standing(self, ledger: int) -> Standing:
        try:
            metadata = self._driver.ledgers.read(ledger, latest=True).value
        except NoSuchLedgerMetadata:
            return Standing.ABSENT
        if any(self._bookie_ids.intersection(segment.bookies) for segment in metadata.segments):
            return Standing.OURS
        return Standing.ELSEWHERE if metadata.state is LedgerState.CLOSED else Standing.UNSETTLED

    def replication_lock(self, ledger: int) -> AbstractContextManager[bool]:
        return self._driver.replication.lock(ledger)
