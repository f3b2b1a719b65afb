"""A model of the bookie's table of readers that go forward by short steps (decision 0013)."""

from dataclasses import dataclass

__all__ = ["Readers", "shard_of"]

KNOWN = 32
STEP_REQUESTS = 16
STEPS_CERTAIN = 2
SHARD_BITS = 6


def shard_of(ledger: int) -> int:
    """Return the number of the shard of a ledger, of which each has a table of its own."""
    return (ledger * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 64 - SHARD_BITS


@dataclass(slots=True)
class Reader:
    """A reader whose last disk read brought the entries [first, end)."""

    ledger: int
    first: int
    end: int
    stretch: int
    steps: int


class Readers:
    """The readers of one shard, those that have read from disk last at the end."""

    def __init__(self) -> None:
        self._known: list[Reader] = []

    def advance(
        self, ledger: int, entry: int, requested: int, record: int, entries_max: int, bytes_max: int
    ) -> tuple[int, int]:
        """Note a disk read. Return the stretch of its reader and where the one before ended; (0, -1) if unknown."""
        step_max = min(STEP_REQUESTS * requested, entries_max, bytes_max // record)
        mine = [reader for reader in self._known if reader.ledger == ledger]
        behind = [reader for reader in mine if 0 <= entry - reader.end <= step_max]
        if behind:
            reader = max(behind, key=lambda one: one.end)
            self._known.remove(reader)
            stretch, end, steps = min(entry - reader.first, entries_max), reader.end, reader.steps + 1
        else:
            again = [reader for reader in mine if reader.first <= entry < reader.end]
            if again:
                self._known.remove(again[-1])
            elif len(self._known) == KNOWN:
                del self._known[0]
            stretch, end, steps = 0, -1, STEPS_CERTAIN if entry == 0 else 0
        self._known.append(Reader(ledger, entry, entry + 1, stretch, steps))
        return (stretch, end) if behind and steps >= STEPS_CERTAIN else (0, -1)

    def brought(self, ledger: int, first: int, last: int) -> None:
        """Note what the disk read that began with `first` brings."""
        for reader in self._known:
            if reader.ledger == ledger and reader.first == first:
                reader.end = last + 1
                return
