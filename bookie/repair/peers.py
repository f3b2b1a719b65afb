"""Channels to the other bookies, opened when first needed. Unreachable ones are not tried again in the same run."""

import logging
from collections.abc import Callable
from typing import Self

from bookie.client import BookieChannel, Channel, Security
from bookie.errors import BookieUnavailable, BookKeeperError
from bookie.metadata.bookies.service_info import parse_service_info
from bookie.metadata.driver import MetadataDriver

__all__ = ["Connect", "connect_by_metadata", "Peers"]

log = logging.getLogger(__name__)

Connect = Callable[[str], BookieChannel]
"""Opens a channel to the bookie with this id, or raises BookKeeperError."""


def connect_by_metadata(driver: MetadataDriver, security: Security | None = None) -> Connect:
    """Return a function that opens V2 channels to the address in a bookie's registration."""

    def connect(bookie_id: str) -> BookieChannel:
        info = driver.bookies.info(bookie_id)
        if info is None:
            raise BookieUnavailable(f"bookie {bookie_id} is not registered; start it, or repair without it")
        endpoint = parse_service_info(bookie_id, info).client_endpoint()
        if endpoint is None:
            raise BookieUnavailable(f"bookie {bookie_id} publishes no client port; check its version")
        return Channel.connect(endpoint.host, endpoint.port, security=security)

    return connect


class Peers:
    """A context manager with open channels; leaving it closes them."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._open: dict[str, BookieChannel] = {}
        self.unreachable: dict[str, str] = {}
        """The reason, by bookie id."""
        self.served_batches: set[str] = set()
        self.singly: set[str] = set()
        """Bookies without batch reads: those of Apache BookKeeper before 4.17 close the connection on the first one."""

    def channel(self, bookie_id: str) -> BookieChannel | None:
        """Return the channel to a bookie, or None if it cannot be reached."""
        if bookie_id in self.unreachable:
            return None
        if bookie_id not in self._open:
            try:
                self._open[bookie_id] = self._connect(bookie_id)
            except BookKeeperError as error:
                self.give_up(bookie_id, error)
                return None
        return self._open[bookie_id]

    def give_up(self, bookie_id: str, error: BookKeeperError) -> None:
        """Mark a bookie as unreachable, because its channel failed or could not be opened."""
        log.warning("a replica cannot be reached bookie=%s reason=%s", bookie_id, error)
        self.unreachable[bookie_id] = str(error)
        self._drop(bookie_id)

    def read_singly(self, bookie_id: str) -> None:
        """Use single reads for a bookie that closed the connection on a batch read and never answered one."""
        if bookie_id not in self.singly:
            log.info("a replica does not support batch reads bookie=%s", bookie_id)
            self.singly.add(bookie_id)
            self._drop(bookie_id)

    def _drop(self, bookie_id: str) -> None:
        channel = self._open.pop(bookie_id, None)
        if channel is not None:
            channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            self._open.popitem()[1].close()
