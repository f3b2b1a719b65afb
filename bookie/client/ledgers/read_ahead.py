"""How many entries a recovery reads at the same time. Event loop.

A recovery does not know where its ledger ends, and each read beyond the end asks several bookies for nothing. A ledger
without entries after its LAC therefore costs one such read, and any other one at most as many as it has entries.
"""

from bookie.client.config import ClientConfig

__all__ = ["ReadAhead"]


class ReadAhead:
    """The reads of one recovery: one at first, and twice as many with each entry that is found.

    There are at most `recovery_read_batch`, and no more than `bytes_in_flight_max` holds of the largest entry that was
    found.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._count_max = config.recovery_read_batch
        self._bytes_max = config.bytes_in_flight_max
        self._largest = 1
        self.count = 1

    def found(self, nbytes: int) -> None:
        """Note that an entry of so many bytes was found."""
        self._largest = max(self._largest, nbytes)
        self.count = min(2 * self.count, self._count_max, max(1, self._bytes_max // self._largest))
