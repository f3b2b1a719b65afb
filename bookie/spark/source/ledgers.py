"""The ledgers that a source reads, and how far each of them goes. Used on the driver, by one thread."""

import logging
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass

from bookie.client import BookKeeper, DigestType
from bookie.client.blocking.handles import ReadHandle
from bookie.errors import BookKeeperError, ConfigurationError, NoSuchLedgerMetadata
from bookie.metadata.records.ledger_metadata import LedgerMetadata
from bookie.spark.clients import client_of
from bookie.spark.planning import in_groups
from bookie.spark.source.settings import SourceSettings

__all__ = ["LedgerEnd", "Ledgers", "lost", "opened"]

AT_ONCE = 64
"""How many ledgers are opened concurrently."""

log = logging.getLogger("bookie.spark")


@dataclass(frozen=True, slots=True)
class LedgerEnd:
    """The end of a ledger: it has the entries 0 to `end` - 1, with about `length` payload bytes."""

    ledger: int
    end: int
    length: int
    closed: bool


class Ledgers:
    """The ledgers that the settings select, in the order of the log, or in ascending order."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._matches: dict[int, bool] = {}
        self._ends: dict[int, LedgerEnd] = {}

    @property
    def _client(self) -> BookKeeper:
        return client_of(self._settings.cluster)

    def ids(self) -> list[int]:
        """Return the ids of the ledgers that exist now.

        Raises:
            ConfigurationError: ledgers are selected by creation time, and one has none.
            NoSuchLog: there is no log of this name.
        """
        settings = self._settings
        ids: Iterable[int]
        if settings.log:
            ids = self._client.logs.get(settings.log).value.ledgers
        elif settings.ledger_filter:
            ids = self._client.list_ledgers()
        else:
            ids = settings.ledgers
        if settings.ledger_filter or settings.created_from_ms is not None or settings.created_before_ms is not None:
            ids = list(ids)
            self._matches = {ledger: self._matches.get(ledger) or self._match(ledger) for ledger in ids}
            return [ledger for ledger in ids if self._matches[ledger]]
        return list(ids)

    def ends(self, ledgers: Iterable[int]) -> dict[int, LedgerEnd]:
        """Return the current ends of ledgers, in their order.

        Raises:
            NoSuchLedgerMetadata: a ledger was deleted; with failOnDataLoss=false it is left out.
        """
        wanted = list(ledgers)
        found: dict[int, LedgerEnd] = {}
        for group in in_groups((ledger for ledger in wanted if ledger not in self._ends), AT_ONCE):
            opening = [(one, opened(self._client, one, self._settings)) for one in group]
            handles = []
            for ledger, future in opening:
                try:
                    handles.append((ledger, future.result()))
                except NoSuchLedgerMetadata as error:
                    lost(self._settings, f"ledger {ledger} of {self._settings.source} cannot be read", error)
            lacs = [(one, None if one.is_closed else one.read_last_add_confirmed_async()) for _, one in handles]
            for handle, lac in lacs:
                with handle:
                    last = handle.last_add_confirmed if lac is None else lac.result()
                    found[handle.id] = LedgerEnd(handle.id, last + 1, handle.length, handle.is_closed)
        self._ends.update({ledger: end for ledger, end in found.items() if end.closed})
        known = {**self._ends, **found}
        return {ledger: known[ledger] for ledger in wanted if ledger in known}

    def forget(self, finished: Iterable[int]) -> None:
        """Forget the ends of ledgers that will not be asked for again."""
        for ledger in finished:
            self._ends.pop(ledger, None)

    def _match(self, ledger: int) -> bool:
        try:
            metadata = self._client.ledger_metadata(ledger)
        except NoSuchLedgerMetadata as error:
            if self._settings.ledger_filter:
                return False  # the ledger was deleted after it was listed
            lost(self._settings, f"ledger {ledger} of {self._settings.source} cannot be read", error)
            return False
        wanted = self._settings.ledger_filter
        as_wanted = all(
            metadata.custom.get(key) == (None if value is None else value.encode()) for key, value in wanted
        )
        return as_wanted and self._in_time(ledger, metadata)

    def _in_time(self, ledger: int, metadata: LedgerMetadata) -> bool:
        low, high = self._settings.created_from_ms, self._settings.created_before_ms
        if low is None and high is None:
            return True
        if metadata.ctime_ms is None:
            raise ConfigurationError(
                f"ledger {ledger} has no creation time in its metadata: leave out startingTimestamp and"
                " endingTimestamp, or set storeSystemTimeAsLedgerCreationTime in the writers"
            )
        return (low is None or metadata.ctime_ms >= low) and (high is None or metadata.ctime_ms < high)


def opened(client: BookKeeper, ledger: int, settings: SourceSettings) -> Future[ReadHandle]:
    """Open a ledger as the settings say; it is fenced and closed only with openMode=recovery."""
    return client.open_ledger_async(
        ledger,
        password=settings.password,
        digest_type=settings.digest_type or DigestType.CRC32,
        recovery=settings.recovery,
    )


def lost(settings: SourceSettings, what: str, error: BookKeeperError) -> None:
    """Report data that should exist and does not: raise an error, or log a warning with failOnDataLoss=false."""
    if settings.fail_on_data_loss:
        raise type(error)(f"{what}: {error}; set failOnDataLoss=false to continue without it") from error
    log.warning("data loss in %s: %s: %s", settings.source, what, error)
