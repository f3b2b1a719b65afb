"""Which bytes of an LMDB 0.9 file its newest commit uses, and for what: a slow oracle for bit flips in an index.

A byte in no stretch belongs to a free page, to the free part of a page, or to padding, and nothing ever reads it.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Stretch", "stretches"]

META_BYTES = 168
FREE_AT, MAIN_AT, COMMIT_AT = 40, 88, 144
HEAD_BYTES, NODE_BYTES = 16, 8
BRANCH, BIG, TABLE = 1, 1, 2
NO_PAGE = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bytes [begin, end) of the file. `part` names what contains them, such as `locations branch`."""

    begin: int
    end: int
    part: str


def stretches(data: bytes) -> list[Stretch]:
    """Return all stretches in use. `data` is a complete, sound file."""
    (size,) = struct.unpack_from("<I", data, FREE_AT)
    commits = [struct.unpack_from("<Q", data, page * size + COMMIT_AT)[0] for page in (0, 1)]
    meta = commits.index(max(commits)) * size
    found = [Stretch(page * size, page * size + META_BYTES, "meta") for page in (0, 1)]
    found += _tree(data, size, meta + FREE_AT, "free list")
    found += _tree(data, size, meta + MAIN_AT, "main")
    return found


def _tree(data: bytes, size: int, at: int, name: str) -> Iterator[Stretch]:
    """Yield the stretches of one tree; `at` is the offset of the struct MDB_db that describes it."""
    (root,) = struct.unpack_from("<Q", data, at + 40)
    if root != NO_PAGE:
        yield from _page(data, size, root, name)


def _page(data: bytes, size: int, number: int, name: str) -> Iterator[Stretch]:
    page = number * size
    flags, lower = struct.unpack_from("<HH", data, page + 10)
    part = f"{name} branch" if flags & BRANCH else f"{name} leaf"
    yield Stretch(page, page + 8, part)
    yield Stretch(page + 10, page + lower, part)
    for slot in range((lower - HEAD_BYTES) // 2):
        (at,) = struct.unpack_from("<H", data, page + HEAD_BYTES + 2 * slot)
        yield from _node(data, size, page + at, name, part)


def _node(data: bytes, size: int, at: int, name: str, part: str) -> Iterator[Stretch]:
    low, high, flags, key_bytes = struct.unpack_from("<HHHH", data, at)
    value = at + NODE_BYTES + key_bytes
    if part.endswith("branch"):
        yield Stretch(at, value, part)
        yield from _page(data, size, low | high << 16 | flags << 32, name)
        return
    value_bytes = low | high << 16
    yield Stretch(at, value + (8 if flags & BIG else value_bytes), part)
    if flags & TABLE:
        yield from _tree(data, size, value, data[at + NODE_BYTES : value].decode())
    elif flags & BIG:
        page = struct.unpack_from("<Q", data, value)[0] * size
        yield Stretch(page, page + 8, part)
        yield Stretch(page + 10, page + HEAD_BYTES + value_bytes, part)
