"""Batch reads that follow each other on a channel until every entry that is wanted has come. Any thread."""

from collections import deque
from collections.abc import Callable, Iterator

from bookie.client.channel.reply import Reply
from bookie.client.entries.batch import StoredBatch
from bookie.errors import IncorrectParameter


def batches(
    request: Callable[[int, int], Reply[StoredBatch]], wanted: range, *, max_count: int, in_flight: int
) -> Iterator[StoredBatch]:
    """All entries that are wanted, in order, with `in_flight` batches on their way. NoSuchEntry at a gap.

    `request` asks for a batch from an entry on, of so many entries at most. When answers bring fewer than asked for,
    what is missing is asked for again, and later requests are made that much smaller.
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
