"""A log: a named, ordered list of ledgers, with the last batch of each of its writers. Pure values; any thread.

Its bytes are one value of the metadata store, so that a change is one compare-and-set:

    u8 format | varint commits, each: varint n, n bytes writer, varint batch, varint at_ms
              | varint settled | varint ledgers, each: zigzag varint of the step from the one before, modulo 2^63
              | u32 CRC32C of all before, big-endian

Consecutive ids take one or two bytes each, random ones nine, so a hundred thousand ledgers fit in any case.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bookie._fast.base import crc
from bookie.errors import IncorrectParameter, LogTooLarge, MetadataSerializationError

__all__ = ["check_name", "Commit", "Log", "parse_log", "serialize_log"]

FORMAT = 1
LOG_BYTES_MAX = 1_040_000
"""ZooKeeper accepts 1,048,575 bytes, including the name and the rest of the request."""
NAME_BYTES_MAX = 200
IDS = 1 << 63
CRC_BYTES = 4
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Commit:
    """The last batch that a writer committed, and when, in milliseconds since 1970.

    Attributes:
        batch: The number of the batch.
        at_ms: The time of the commit.
    """

    batch: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Log:
    """A named list of ledgers.

    Attributes:
        ledgers: The ids of the ledgers, in order.
        commits: The last commit of each writer, which is a query or a job; a repeated batch is recognised by it.
        settled: No ledger with a smaller id is an orphan of this log; see `bookie.spark.sink`.
    """

    ledgers: tuple[int, ...] = ()
    commits: Mapping[str, Commit] = field(default_factory=dict)
    settled: int = 0


def check_name(name: str, what: str = "log") -> str:
    """Return the name of a log or of a writer: 1 to 200 bytes of UTF-8 without control characters.

    Raises IncorrectParameter if it is invalid.
    """
    if not isinstance(name, str):
        raise IncorrectParameter(f"{what} {name!r}: a name is text, not {type(name).__name__}")
    if CONTROL.search(name) or not 0 < len(name.encode(errors="replace")) <= NAME_BYTES_MAX:
        raise IncorrectParameter(
            f"{what} {name[:NAME_BYTES_MAX]!r}: a name has 1 to {NAME_BYTES_MAX} bytes of UTF-8, no control characters"
        )
    return name


def serialize_log(name: str, log: Log) -> bytes:
    """Serialize a log. Raises IncorrectParameter if it is invalid, and LogTooLarge."""
    if len(set(log.ledgers)) != len(log.ledgers):
        raise IncorrectParameter(f"log {name!r}: a ledger is twice in the list; list each ledger once")
    out = bytearray([FORMAT])
    _put(out, len(log.commits))
    for writer, commit in sorted(log.commits.items()):
        text = check_name(writer, "writer").encode()
        _put(out, len(text))
        out += text
        _put(out, _natural(name, "batch", commit.batch))
        _put(out, _natural(name, "time", commit.at_ms))
    _put(out, _natural(name, "ledger", log.settled))
    _put(out, len(log.ledgers))
    before = 0
    for ledger in log.ledgers:
        step = (_natural(name, "ledger", ledger) - before) % IDS
        _put(out, step << 1 if step < IDS >> 1 else (IDS - step << 1) - 1)
        before = ledger
    out += crc.crc32c(out).to_bytes(CRC_BYTES, "big")
    if len(out) > LOG_BYTES_MAX:
        raise LogTooLarge(
            f"log {name!r} with {len(log.ledgers)} ledgers and {len(log.commits)} writers takes {len(out)} bytes, "
            f"more than {LOG_BYTES_MAX}: remove old ledgers from it, or forget writers that are gone"
        )
    return bytes(out)


def parse_log(name: str, data: bytes) -> Log:
    """Parse a log. Raises MetadataSerializationError for any bytes that `serialize_log` does not make."""
    body = data[:-CRC_BYTES]
    if len(data) <= CRC_BYTES or crc.crc32c(body).to_bytes(CRC_BYTES, "big") != data[-CRC_BYTES:]:
        raise MetadataSerializationError(
            f"log {name!r}: {len(data)} bytes with a wrong checksum: restore the metadata store"
        )
    if body[0] != FORMAT:
        raise MetadataSerializationError(
            f"log {name!r} has format {body[0]}, only {FORMAT} is supported: upgrade this program"
        )
    varints = _Varints(body)
    commits = {}
    for _ in range(varints.next()):
        writer = varints.take(varints.next()).decode()
        commits[writer] = Commit(varints.next(), varints.next())
    settled = varints.next()
    ledgers, before = [], 0
    for _ in range(varints.next()):
        coded = varints.next()
        before = (before + (coded >> 1 if coded & 1 == 0 else -(coded + 1 >> 1))) % IDS
        ledgers.append(before)
    return Log(tuple(ledgers), commits, settled)


def without(log: Log, ledgers: Iterable[int]) -> tuple[int, ...]:
    """Return the list of a log without these ledgers."""
    gone = frozenset(ledgers)
    return tuple(ledger for ledger in log.ledgers if ledger not in gone)


class _Varints:
    """Reads varints, little-endian in base 128 like protobuf's. The checksum was verified, so the bytes are valid."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 1

    def next(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]


def _put(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _natural(name: str, what: str, value: int) -> int:
    if not 0 <= value < IDS:
        raise IncorrectParameter(f"log {name!r}: {what} {value} is not in [0, {IDS - 1}]")
    return value
