"""Flips single bits of what a start of an index relies on, the meta pages, main tree and free list, and tries each.

    python -m tests.fast.index_flips LEDGERS_DIRECTORY BITS...

A try opens the index as a start does, reads and writes, and opens it again. It prints the bit before and the outcome
after it, so that the bit is known at which the process died.
"""

import errno
import logging
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from bookie._fast.index.view import Index
from bookie.errors import StartRefused
from bookie.storage.index_mending import mend_index
from bookie.storage.layout import INDEX_NAME
from bookie.storage.ledger_storage import INDEX_DAMAGED

PAGE = 4096
PAGE_HEAD, META_BYTES = 16, 152
NODE = struct.Struct("<HHHH")
MAP_BYTES = 1 << 26
SOUND, MENDED, REFUSED, DENIED = "sound", "mended", "refused", "denied"
NEW_LEDGER = 1 << 40


def newest_meta(raw: bytes) -> int:
    """Return where the meta page of the newest commit begins."""
    return PAGE * max((0, 1), key=lambda page: int(struct.unpack_from("<Q", raw, page * PAGE + 144)[0]))


def roots(raw: bytes) -> tuple[int, int]:
    """Return the roots of the free list and of the main tree, which must be leaves."""
    at = newest_meta(raw)
    found = struct.unpack_from("<Q", raw, at + 80)[0], struct.unpack_from("<Q", raw, at + 128)[0]
    assert all(struct.unpack_from("<H", raw, root * PAGE + 10)[0] == 2 for root in found)
    return found


def bytes_in_use(raw: bytes) -> Iterator[int]:
    """Yield the offsets of the bytes of both meta pages, and of the leaves of main tree and free list."""
    for meta in (0, 1):
        yield from range(meta * PAGE, meta * PAGE + PAGE_HEAD + META_BYTES)
    for root in roots(raw):
        lower, upper = struct.unpack_from("<HH", raw, root * PAGE + 12)
        yield from range(root * PAGE, root * PAGE + lower)
        yield from range(root * PAGE + upper, (root + 1) * PAGE)


def bits_in_use(raw: bytes) -> list[int]:
    """Return the numbers of all bits of `bytes_in_use`."""
    return [8 * at + bit for at in bytes_in_use(raw) for bit in range(8)]


def flipped(raw: bytes, bit: int) -> bytes:
    """Return the file with one other bit."""
    data = bytearray(raw)
    data[bit // 8] ^= 1 << bit % 8
    return bytes(data)


def opened(current: Path) -> tuple[Index, str]:
    """Open the index as a start does, and tell whether it had to be mended first."""
    index = current / INDEX_NAME
    try:
        return Index.open(index, MAP_BYTES), SOUND
    except OSError as error:
        if error.errno != INDEX_DAMAGED:
            raise
    mend_index(current, index, MAP_BYTES)
    return Index.open(index, MAP_BYTES), MENDED


def denied(index: Index, entries: dict[int, int]) -> bool:
    """Return whether the index denies one of the entries 0 to n - 1 of each ledger; an error is no denial."""
    with closing(index.reader()) as reader:
        if {ledger.ledger for ledger in reader.ledgers()} < entries.keys():
            return True
        for ledger, count in entries.items():
            for entry in (0, count // 2, count - 1):
                try:
                    if reader.lookup(ledger, entry) is None:
                        return True
                except OSError as error:
                    if error.errno != errno.EIO:
                        raise
    return False


def written(index: Index, commits: int) -> None:
    """Make some commits, which reuse free pages; damage that is noticed now puts them off."""
    for number in range(commits):
        try:
            index.begin()
            index.put_run(NEW_LEDGER + number, 0, 0, 1024, [100] * 1000)
            index.commit()
        except ValueError:
            index.abort()
            return


def tried(current: Path, entries: dict[int, int]) -> str:
    """Start, read, write, read, start again and read; return how that went."""
    outcomes = []
    for commits in (4, 0):
        try:
            index, outcome = opened(current)
        except (OSError, StartRefused):
            return REFUSED
        outcomes.append(outcome)
        with closing(index):
            if denied(index, entries):
                return DENIED
            written(index, commits)
            if denied(index, entries):
                return DENIED
    return outcomes[0]


def known_entries(current: Path) -> dict[int, int]:
    """Return the number of entries of each ledger of a sound index; they have no gaps."""
    with closing(Index.open(current / INDEX_NAME, MAP_BYTES)) as index, closing(index.reader()) as reader:
        return {ledger.ledger: (reader.last(ledger.ledger) or 0) + 1 for ledger in reader.ledgers()}


def main(current: Path, bits: Sequence[int]) -> None:
    logging.disable()
    file = current / INDEX_NAME / "data.mdb"
    raw = file.read_bytes()
    entries = known_entries(current)
    for bit in bits:
        file.write_bytes(flipped(raw, bit))
        print(bit, end=" ", flush=True)
        print(tried(current, entries), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(bit) for bit in sys.argv[2:]])
