"""Consecutive batch reads on a channel, until every requested entry has arrived. Any thread."""

from collections import deque
from collections.abc import Callable, Iterator

from bookie.client.channel.reply import Reply
from bookie.client.entries.batch import StoredBatch
from bookie.errors import IncorrectParameter


def batches(
    request: Callable[[int, int], Reply[StoredBatch]], wanted: range, *, max_count: int, in_flight: int
) -> Iterator[StoredBatch]:
    """Yield all entries of a range in order, with several batch reads in flight.

    When a response has fewer entries than requested, the missing ones are requested again, and later requests ask for
    no more entries than that response had.

    Args:
        request: Sends a batch read of at most so many entries (second argument), beginning with an entry (first
            argument).
        wanted: The ids of the entries.
        max_count: The highest number of entries of one request, at least 1.
        in_flight: The number of requests in flight, at least 1.

    Raises:
        NoSuchEntry: An entry of the range is missing.
        IncorrectParameter: `max_count` or `in_flight` is below 1.
    """
    if max_count < 1 or in_flight < 1:
        raise IncorrectParameter(f"max_count {max_count} and in_flight {in_flight} must be at least 1")
    waiting: deque[tuple[int, Reply[StoredBatch]]] = deque()
    ask = wanted.start
    while waiting or ask < wanted.stop:
        while ask < wanted.stop and len(waiting) < in_flight:
            end = min(ask + max_count, wanted.stop)
            waiting.append((end, request(ask, end - ask)))
            ask = end
        end, reply = waiting.popleft()
        batch = reply.result()
        if batch.end < end:
            max_count = len(batch)
            waiting.appendleft((end, request(batch.end, end - batch.end)))
        yield batch
