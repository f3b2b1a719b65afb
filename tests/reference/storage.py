"""The contents and answers of a bookie's stores, as dictionaries: the oracle of storage, checkpoint, read_path."""

import struct
from dataclasses import dataclass, field


def entry(ledger: int, entry_id: int, lac: int = -1, payload: bytes = b"") -> bytes:
    """Return an entry as far as a bookie looks into it."""
    return struct.pack(">qqq", ledger, entry_id, lac) + payload


def lac_packet(ledger: int, lac: int, rest: bytes = b"") -> bytes:
    """Return an explicit LAC as a client sends it."""
    return struct.pack(">qq", ledger, lac) + rest


@dataclass
class Ledger:
    """A ledger's key, fence, packet and entries, where the last add of an entry wins."""

    key: bytes
    fenced: bool = False
    explicit_lac: bytes | None = None
    entries: dict[int, bytes] = field(default_factory=dict)


class Stores:
    """The stores. Each method returns the status that the real one raises as Refused, or "OK"."""

    def __init__(self) -> None:
        self.ledgers: dict[int, Ledger] = {}
        self.kept_fences: set[int] = set()

    def delete(self, ledger: int) -> None:
        """Delete everything of the ledger but its fence."""
        if ledger in self.ledgers and self.ledgers.pop(ledger).fenced:
            self.kept_fences.add(ledger)

    def authorize(self, ledger: int, key: bytes, *, is_writer: bool = False) -> str:
        """Check the key. The first key is the key; a stored one of zeros, of any length, is no key yet."""
        if ledger in self.kept_fences and ledger not in self.ledgers and is_writer:
            return "FENCED"
        known = self.ledgers.setdefault(ledger, Ledger(key, fenced=ledger in self.kept_fences))
        if known.key == key:
            return "OK"
        if any(known.key):
            return "UNAUTHORIZED"
        if any(key):
            known.key = key
        return "OK"

    def add(self, data: bytes, key: bytes, *, recovery: bool) -> str:
        """Keep the bytes, unless key or fence say no."""
        ledger, entry_id = struct.unpack_from(">qq", data)
        if ledger < 0 or entry_id < 0:
            return "BAD_REQUEST"
        status = self.authorize(ledger, key, is_writer=not recovery)
        if status == "OK" and self.ledgers[ledger].fenced and not recovery:
            return "FENCED"
        if status == "OK":
            self.ledgers[ledger].entries[entry_id] = data
        return status

    def fence(self, ledger: int, key: bytes) -> str:
        """Fence the ledger for ever. One that was fenced and deleted is not created again for it."""
        if ledger in self.kept_fences and ledger not in self.ledgers:
            return "NO_LEDGER"
        status = self.authorize(ledger, key)
        if status == "OK":
            self.ledgers[ledger].fenced = True
        return status

    def write_lac(self, packet: bytes, key: bytes) -> str:
        """Keep the packet with the highest LAC, and the newest of equal ones."""
        ledger, lac = struct.unpack_from(">qq", packet)
        status = self.authorize(ledger, key, is_writer=True)
        if status == "FENCED":
            return "NO_LEDGER"
        if status == "OK":
            known = self.ledgers[ledger]
            if known.explicit_lac is None or lac >= struct.unpack_from(">q", known.explicit_lac, 8)[0]:
                known.explicit_lac = packet
        return status

    def read(self, ledger: int, entry_id: int, count: int, size: int) -> tuple[str, list[bytes]]:
        """Return consecutive entries: `count` at most, within `size` bytes of records, but always the first."""
        known = self.ledgers.get(ledger)
        if known is None:
            return "NO_LEDGER", []
        if entry_id == -1:
            entry_id = max(known.entries, default=-1)
        if entry_id not in known.entries:
            return "NO_ENTRY", []
        found = [known.entries[entry_id]]
        used = len(found[0]) + 4
        while len(found) < count and (data := known.entries.get(entry_id + len(found))) is not None:
            used += len(data) + 4
            if used > size:
                break
            found.append(data)
        return "OK", found
