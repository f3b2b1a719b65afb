"""The runs of a ledger as a dictionary: the oracle of the modules runs and write_cache."""

import struct

NONE = (1 << 63) - 1


class Runs:
    """Entries by id, where the last put wins."""

    def __init__(self) -> None:
        self.entries: dict[int, bytes] = {}

    def put(self, entry_id: int, data: bytes) -> None:
        """Put one entry, in any order."""
        self.entries[entry_id] = data

    def above(self, entry_id: int) -> int:
        """Return the first id that is higher, or NONE when there is none."""
        return min((other for other in self.entries if other > entry_id), default=NONE)

    def take(self, entry_id: int, upper: int, count: int, size: int, *, first_free: bool) -> bytes:
        """Return records of consecutive ids, as many as a run may give."""
        out = b""
        for at in range(entry_id, min(upper, entry_id + count)):
            data = self.entries.get(at)
            if data is None or len(out) + 4 + len(data) > size:
                if data is not None and at == entry_id and first_free:
                    return struct.pack(">I", len(data)) + data
                break
            out += struct.pack(">I", len(data)) + data
        return out
