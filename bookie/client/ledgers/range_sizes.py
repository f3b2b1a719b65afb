"""How large the requests for a range of entries are, and how many of them are outstanding. One thread, which reads it.

A response is worth a round trip from some hundred KiB on, so a batch that is handed out may be a part of one.
Responses that wait in the socket have left the processor's caches when they are handled, which doubles the cost of an
entry; so there are two requests, and more only where the latency is high.
"""

import math

from bookie.client.config import ClientConfig
from bookie.client.entries.verified import EntryBatch

__all__ = ["COUNT_START", "RangeSizes"]

REQUESTS_MIN, REQUESTS_MAX = 2, 16
"""The number of requests in flight."""
FILLED_S = 0.0004
"""One more request is sent for each such time in the latency of the quickest response; it transfers about as long
at 10 Gbit/s.
"""
ANSWER_BYTES = 512 << 10
"""The size of a response that is worth a request, whatever the limits of a batch are."""
COUNT_START = 500
"""The entries of the first requests; later ones ask for as many as fill a response."""
COUNT_MAX = 1 << 16


class RangeSizes:
    """The sizes for one range, which follow its responses.

    `batch_max` is the highest number of entries in a batch that is handed out. `count` and `size` are the entries and
    the bytes that a request asks for, `requests` says how many may be outstanding, and `bytes_max` how many bytes all
    of them and what has arrived may have.
    """

    def __init__(self, max_count: int, max_size: int, config: ClientConfig) -> None:
        self.batch_max = max_count or COUNT_MAX
        self.count = COUNT_START
        self.bytes_max = config.bytes_in_flight_max
        frame = min(max_size, config.frame_bytes_max) if max_size > 0 else config.frame_bytes_max
        self.size = min(frame, self.bytes_max)
        self.requests = REQUESTS_MIN
        self._worth = min(self.size * 7 // 8, ANSWER_BYTES)  # less than all of it, since entry sizes vary
        self._quickest_s = math.inf

    def learn(self, batch: EntryBatch, end: int, seconds: float) -> None:
        """Learn from a response to a request for the entries before `end`, and from its latency in seconds."""
        if batch.last + 1 < end:
            self.count = len(batch)
        elif len(batch) >= self.count:
            self.count = min(COUNT_MAX, 2 * self.count, max(1, self._worth * len(batch) // batch.nbytes))
        if seconds < self._quickest_s:
            self._quickest_s = seconds
            self.requests = min(REQUESTS_MIN + int(seconds / FILLED_S), REQUESTS_MAX)
