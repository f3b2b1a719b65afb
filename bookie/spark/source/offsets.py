"""Where a stream stands in its ledgers, and how far its next batch goes. Pure values; any process.

An offset as Spark keeps it: `{"v":1,"done":<ledger>,"l":{"<ledger>":<next entry>}}`. In the source's order of ledgers
all up to `done` are finished (-1: none), and of those behind it only the ones in `l` were ever touched. A ledger that
is finished leaves `l` one batch later, so that the two offsets of a batch alone say what it reads, also when it is
repeated after the ledger is gone.
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
    """`next`: entries to be read next, by ledger."""

    done: int = NONE_DONE
    next: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> "Offset":
        """As Spark hands it back. ConfigurationError: not of this source."""
        if given.get("v") != VERSION:
            raise ConfigurationError(
                f"offset {given!r} is not one of format bookkeeper: use another checkpointLocation"
            )
        return cls(given["done"], {int(ledger): entry for ledger, entry in given["l"].items()})

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {"v": VERSION, "done": self.done, "l": {str(ledger): entry for ledger, entry in self.next.items()}}


def behind(order: Sequence[int], done: int) -> Sequence[int]:
    """The ledgers that are not finished: those behind `done`, or all when it left the order: they came later."""
    return order[order.index(done) + 1 :] if done in order else order


def advance(
    start: Offset,
    order: Sequence[int],
    ends: Mapping[int, LedgerEnd],
    rows_max: int | None = None,
    bytes_max: int | None = None,
) -> Offset:
    """How far the next batch goes; `start` itself when there is nothing to read.

    `ends` has all ledgers behind `start.done` that can be read. Limits are shared in proportion to what waits.
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
        # Finished in the batch before, and so recorded in its offset: it may go.
        finished = finished and ledger in start.next and ends[ledger].closed and not waiting[ledger]
        if finished:
            done = ledger
        else:
            reached[ledger] = at[ledger] + take[ledger]
    return Offset(done, reached)


def between(start: Offset, end: Offset, entry_bytes: Mapping[int, float]) -> Iterable[Range]:
    """What a batch reads."""
    for ledger, upto in end.next.items():
        first = start.next.get(ledger, 0)
        if upto > first:
            yield Range(ledger, first, upto, int((upto - first) * entry_bytes.get(ledger, 1024)))


def _shares(waiting: Mapping[int, int], limit: int) -> dict[int, int]:
    """`limit` in all, or what waits."""
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
    """No more bytes than the limit by the ledgers' mean sizes of entries; one entry in any case."""
    each = {ledger: ends[ledger].length / max(ends[ledger].end, 1) for ledger in take}
    total = sum(count * each[ledger] for ledger, count in take.items())
    if total <= limit:
        return dict(take)
    shares = {ledger: int(count * limit / total) for ledger, count in take.items()}
    if not any(shares.values()):
        shares[next(ledger for ledger, count in take.items() if count)] = 1
    return shares
