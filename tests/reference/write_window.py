"""The pending adds of one ledger in plain Python: the oracle of the module client.write_window."""

import itertools

from tests.reference import record


class Entry:
    """A pending add."""

    def __init__(self, stored: bytes, payload_bytes: int, length: int) -> None:
        self.stored = stored
        self.payload_bytes = payload_bytes
        self.length = length
        self.acked: set[int] = set()
        self.sent = False
        self.complete = False


class WriteWindow:
    """The window. Sizes are E, W, A; ensemble indices stand for bookies. It uses CRC32C and no password."""

    def __init__(self, ledger: int, sizes: tuple[int, int, int], *, first: int, count_max: int, advanced: bool) -> None:
        self.ledger = ledger
        self.sizes = sizes
        self.count_max = count_max
        self.advanced = advanced
        self.next = self.head = first
        self.length = self.head_length = 0
        self.pending: dict[int, Entry] = {}
        self.holding = False

    @property
    def lac(self) -> int:
        """The last id that was acknowledged."""
        return self.head - 1

    @property
    def first_missing(self) -> int:
        """The lowest id that was not added."""
        return next(id_ for id_ in itertools.count(self.head) if id_ not in self.pending)

    @property
    def stuck(self) -> bool:
        """Whether all pending adds wait for an id that was not added."""
        return bool(self.pending) and self.head not in self.pending

    def write_set(self, entry: int) -> set[int]:
        """Return the indices that hold an entry."""
        size, copies, _ = self.sizes
        return {(entry + k) % size for k in range(copies)}

    def append(self, payload: bytes, entry: int | None) -> int | None:
        """Return the id, or None while there is no room. Raises KeyError for an id that was added."""
        chosen = self.next if entry is None else entry
        if chosen < self.head or chosen in self.pending:
            raise KeyError(chosen)
        if len(self.pending) >= self.count_max and chosen != self.head:
            return None
        self.length += len(payload)
        fields = (self.ledger, chosen, self.lac, self.length)
        self.pending[chosen] = Entry(record.seal(record.CRC32C, b"", fields, payload), len(payload), self.length)
        self.next = max(self.next, chosen + 1)
        return chosen

    def answered(self, index: int, entry: int, code: int) -> tuple[int, int, bool] | None:
        """Note an answer, and return the failure if it is one."""
        found = self.pending.get(entry)
        if code:
            return entry, code, found is not None and not found.complete
        if found and index in self.write_set(entry):
            found.acked.add(index)
            found.complete |= len(found.acked) >= self.sizes[2]
        return None

    def unack(self, index: int) -> None:
        """Forget the acknowledgements of this index, where another bookie is now."""
        for entry in self.pending.values():
            entry.acked.discard(index)
            entry.complete &= len(entry.acked) >= self.sizes[2]

    def unacked(self, index: int) -> list[int]:
        """Return what the bookie at this index was to hold and has not acknowledged."""
        return sorted(
            id_
            for id_, entry in self.pending.items()
            if entry.sent and index in self.write_set(id_) and index not in entry.acked
        )

    def release(self) -> int:
        """Acknowledge entries in order, and return how many."""
        before = self.head
        while not self.holding and (entry := self.pending.get(self.head)) and entry.complete:
            self.head_length = self.head_length + entry.payload_bytes if self.advanced else entry.length
            del self.pending[self.head]
            self.head += 1
        return self.head - before
