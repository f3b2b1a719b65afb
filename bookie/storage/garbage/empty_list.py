"""When an empty list of ledgers is believed. A store that lost its ledgers looks like one whose ledgers were deleted.

An empty list counts if the store shows the instance id of this bookie's cookie, and the same session shows the same
cluster before and after a second listing. It is believed if a later cycle finds that again, and nothing else between.
Apache BookKeeper believes every empty list at once.

Thread `garbage`.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence

from bookie.storage.garbage.contracts import Metadata
from bookie.storage.garbage.decision import whole_listing
from bookie.storage.garbage.settings import GarbageSettings

__all__ = ["EmptyList"]

log = logging.getLogger(__name__)


class EmptyList:
    """Remembers since when the metadata store has listed no ledgers."""

    def __init__(self, settings: GarbageSettings, metadata: Metadata, own_instance: Callable[[], str | None]) -> None:
        self._settings = settings
        self._metadata = metadata
        self._own_instance = own_instance
        self._since: float | None = None

    def forget(self) -> None:
        """Note that ledgers were listed, or that the store could not be asked."""
        self._since = None

    def is_believed(self, ledgers: int, listing: Callable[[], Iterable[Sequence[int]]]) -> bool:
        """Return whether the empty list that was just read is believed; `ledgers` are on this bookie.

        `listing` lists all ledgers once more. Raises what it and the store raise.
        """
        if not self._settings.on_empty_list:
            log.warning("the metadata store lists no ledgers at all, so none is deleted", extra={"ledgers": ledgers})
            return False
        if not self._is_certain(listing):
            self.forget()
            log.warning(
                "the metadata store lists no ledgers at all, but it was not the same cluster all the time, so none is"
                " deleted", extra={"ledgers": ledgers},
            )  # fmt: skip
            return False
        now = time.monotonic()
        if self._since is None:
            self._since = now
        left_s = self._since + self._settings.empty_list_wait_ms / 1000 - now
        if left_s > 0:
            log.warning(
                "the metadata store lists no ledgers at all; all are deleted here if it still does so later",
                extra={"ledgers": ledgers, "seconds": int(left_s) + 1},
            )
            return False
        log.warning("the metadata store still lists no ledgers at all, so all are deleted", extra={"ledgers": ledgers})
        return True

    def _is_certain(self, listing: Callable[[], Iterable[Sequence[int]]]) -> bool:
        ours = self._own_instance()
        before = self._metadata.seen()
        if ours is None or self._metadata.instance_id() != ours:
            return False
        return not whole_listing(listing()).size and self._metadata.seen() == before
