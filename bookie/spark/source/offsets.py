"""The position of a stream in its ledgers, and the end of its next batch. Pure values; any process.

Spark stores an offset as `{"v":1,"done":<ledger>,"l":{"<ledger>":<next entry>}}`. In the order of the source, all
ledgers up to `done` are finished (-1: none), and of those after it only the ones in `l` have been read from. A
finished ledger leaves `l` one batch later. So the two offsets of a batch alone say what the batch reads, even if it is
repeated after the ledger was deleted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bookie.errors import ConfigurationError
from bookie.spark.source.ledgers import LedgerEnd
from bookie.spark.source.ranges import Range

__all__ = ["advance", "behind", "between", "Offset"]

VERSION = 1
NONE_DONE = -1


@dataclass(frozen=True, slots=True)
class Offset:
    """A position: `next` has the next entry to read of each ledger."""

    done: int = NONE_DONE
    next: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> "Offset":
        """Parse an offset as Spark stores it.

        Raises:
            ConfigurationError: it is not an offset of this source.
        """
        if given.get("v") != VERSION:
            raise ConfigurationError(
                f"offset {given!r} is not an offset of format bookkeeper: use another checkpointLocation"
            )
        return cls(given["done"], {int(ledger): entry for ledger, entry in given["l"].items()})

    def plain(self) -> dict[str, Any]:
        """Return the offset as values for JSON."""
        return {"v": VERSION, "done": self.done, "l": {str(ledger): entry for ledger, entry in self.next.items()}}


def behind(order: Sequence[int], done: int) -> Sequence[int]:
    """Return the ledgers that are not finished: those after `done`, or all if `done` is no longer in the order."""
    return order[order.index(done) + 1 :] if done in order else order


def advance(
    start: Offset,
    order: Sequence[int],
    ends: Mapping[int, LedgerEnd],
    rows_max: int | None = None,
    bytes_max: int | None = None,
) -> Offset:
    """Return the end of the next batch; `start` itself if there is nothing to read.

    Args:
        start: the position so far.
        order: the ledgers in their order.
        ends: the ends of all ledgers after `start.done` that can be read.
        rows_max: the most entries of a batch; None: no limit. Limits are shared in proportion to the unread entries.
        bytes_max: the most payload bytes of a batch, by the mean sizes of entries; None: no limit.
    """
    live = [ledger for ledger in behind(order, start.done) if ledger in ends]
    at = {ledger: start.next.get(ledger, 0) for ledger in live}
    waiting = {ledger: max(ends[ledger].end - at[ledger], 0) for ledger in live}
    if not any(waiting.values()):
        return start
    take = dict(waiting)
    if rows_max is not None:
        take = _shares(take, rows_max)
    if bytes_max is not None:
        take = _within(take, ends, bytes_max)
    done, finished = start.done, True
    reached: dict[int, int] = {}
    for ledger in live:
        # The ledger was finished in the previous batch, whose offset records that, so it can leave.
        finished = finished and ledger in start.next and ends[ledger].closed and not waiting[ledger]
        if finished:
            done = ledger
        else:
            reached[ledger] = at[ledger] + take[ledger]
    return Offset(done, reached)


def between(start: Offset, end: Offset, entry_bytes: Mapping[int, float]) -> Iterable[Range]:
    """Yield the ranges of entries that a batch reads."""
    for ledger, upto in end.next.items():
        first = start.next.get(ledger, 0)
        if upto > first:
            yield Range(ledger, first, upto, int((upto - first) * entry_bytes.get(ledger, 1024)))


def _shares(waiting: Mapping[int, int], limit: int) -> dict[int, int]:
    """Share `limit` entries among the ledgers; return all unread entries if they are fewer."""
    total = sum(waiting.values())
    if total <= limit:
        return dict(waiting)
    shares = {ledger: limit * count // total for ledger, count in waiting.items()}
    left = limit - sum(shares.values())
    for ledger, count in waiting.items():
        more = min(left, 1, count - shares[ledger])
        shares[ledger] += more
        left -= more
    return shares


def _within(take: Mapping[int, int], ends: Mapping[int, LedgerEnd], limit: int) -> dict[int, int]:
    """Reduce the numbers of entries to about `limit` bytes in total, but to one entry at least."""
    each = {ledger: ends[ledger].length / max(ends[ledger].end, 1) for ledger in take}
    total = sum(count * each[ledger] for ledger, count in take.items())
    if total <= limit:
        return dict(take)
    shares = {ledger: int(count * limit / total) for ledger, count in take.items()}
    if not any(shares.values()):
        shares[next(ledger for ledger, count in take.items() if count)] = 1
    return shares
