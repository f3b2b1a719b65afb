"""What the metadata store keeps about ledgers with too few replicas: values, names and bytes. Any thread.

The functions are pure. Names and texts are those of Apache BookKeeper, in ZooKeeper below `underreplication`:

    LAYOUT                                  type and version
    ledgers/0000/0000/4996/02d2/urL1234567890   a mark: the missing bookies
    locks/urL1234567890                     the worker that copies the ledger, ephemeral
    disable                                 replication is disabled while it exists
    lostBookieRecoveryDelay                 seconds, decimal
    checkallledgersctime, placementpolicycheckctime, replicascheckctime    last runs
    fullcheckctime                          the same for a check that only our auditors have
    auditorelection/V_0000000007            votes, ephemeral, the lowest is the auditor
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from bookie.errors import MetadataSerializationError
from bookie.pb.data_formats_pb2 import (
    AuditorVoteFormat,
    CheckTimeFormat,
    LedgerRereplicationLayoutFormat,
    LockDataFormat,
    UnderreplicatedLedgerFormat,
)

__all__ = [
    "Check",
    "Claim",
    "ledger_of",
    "Mark",
    "mark_path",
    "merge",
    "node_name",
]

MARK = re.compile(r"urL(\d+)")
M = TypeVar("M", bound=Message)


class Check(Enum):
    """The checks of an auditor whose last run is recorded; the value is the name of the node."""

    ALL_LEDGERS = "checkallledgersctime"
    PLACEMENT = "placementpolicycheckctime"
    REPLICAS = "replicascheckctime"
    HOLES = "fullcheckctime"
    """Ours; Java's auditors have no such check."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A ledger that has lost its replicas on the bookies `missing`; `marked_ms` is None if its writer did not
    record it.
    """

    ledger: int
    missing: tuple[str, ...]
    marked_ms: int | None


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to copy a ledger. `version` is that of the ledger's mark when it was claimed."""

    ledger: int
    version: int


def node_name(ledger_id: int) -> str:
    """Return the name of a mark and of a lock."""
    return f"urL{ledger_id:010d}"


def ledger_of(name: str) -> int | None:
    """Return the ledger of such a name, or None for another name."""
    found = MARK.fullmatch(name)
    return int(found.group(1)) if found else None


def mark_path(ledger_id: int) -> str:
    """Return the path of a mark below `ledgers`: four nodes of four hexadecimal digits, then the name."""
    digits = f"{ledger_id:016x}"
    return "/".join((*(digits[at : at + 4] for at in range(0, 16, 4)), node_name(ledger_id)))


def merge(known: Mark | None, ledger_id: int, missing: Collection[str], now_ms: int | None) -> Mark:
    """Return the mark with `missing` added. If it contained all of that before, it is the same mark.

    It must be written even then: only its new version tells a worker, of either kind, that it was set again.
    """
    before = known.missing if known else ()
    new = tuple(bookie for bookie in dict.fromkeys(missing) if bookie not in before)
    if known and not new:
        return known
    at_ms = known.marked_ms if known and now_ms is None else now_ms
    return Mark(ledger_id, before + new, at_ms)


def mark_to_bytes(mark: Mark) -> bytes:
    """Serialize a mark as Apache BookKeeper does."""
    return _text(UnderreplicatedLedgerFormat(replica=mark.missing, ctime=mark.marked_ms))


def parse_mark(ledger_id: int, data: bytes) -> Mark:
    """Parse a mark. Raises MetadataSerializationError."""
    found = _parse(UnderreplicatedLedgerFormat(), data, f"the mark of ledger {ledger_id}")
    return Mark(ledger_id, tuple(found.replica), found.ctime if found.HasField("ctime") else None)


def holder_to_bytes(owner: str) -> bytes:
    """Serialize the owner of a lock."""
    return _text(LockDataFormat(bookieId=owner))


def parse_holder(data: bytes) -> str:
    """Parse the owner of a lock. Raises MetadataSerializationError."""
    return str(_parse(LockDataFormat(), data, "a replication lock").bookieId)


def vote_to_bytes(bookie_id: str) -> bytes:
    """Serialize a vote, and the content of the election's node once a candidate has won."""
    return _text(AuditorVoteFormat(bookieId=bookie_id))


def parse_vote(data: bytes) -> str:
    """Parse a vote. Raises MetadataSerializationError."""
    return str(_parse(AuditorVoteFormat(), data, "a vote for the auditor").bookieId)


def layout_to_bytes() -> bytes:
    """Serialize the only layout that there is."""
    return _text(LedgerRereplicationLayoutFormat(type="BASIC", version=1))


def check_layout(data: bytes) -> None:
    """Raise MetadataSerializationError if the layout is another one."""
    found = _parse(LedgerRereplicationLayoutFormat(), data, "the layout of under-replicated ledgers")
    if (found.type, found.version) != ("BASIC", 1):
        raise MetadataSerializationError(
            f"the layout of under-replicated ledgers is {found.type}:{found.version}; only BASIC:1 is supported"
        )


def check_time_to_bytes(at_ms: int) -> bytes:
    """Serialize the time of a check's last run."""
    return CheckTimeFormat(ctime=at_ms).SerializeToString()


def parse_check_time(data: bytes) -> int | None:
    """Parse the time of a check's last run. Raises MetadataSerializationError."""
    found = CheckTimeFormat()
    try:
        found.ParseFromString(data)
    except DecodeError as error:
        raise MetadataSerializationError(f"the time of a check cannot be read: {data!r}") from error
    return found.ctime if found.HasField("ctime") else None


def parse_delay(data: bytes) -> int:
    """Parse a delay in seconds. Raises MetadataSerializationError."""
    try:
        return int(data)
    except ValueError as error:
        raise MetadataSerializationError(f"lostBookieRecoveryDelay is {data!r}, not a number of seconds") from error


def _text(message: Message) -> bytes:
    from google.protobuf import text_format  # noqa: PLC0415 - it is slow to import, and few commands need it

    text: str = text_format.MessageToString(message)
    return text.encode()


def _parse(message: M, data: bytes, what: str) -> M:
    from google.protobuf import text_format  # noqa: PLC0415

    try:
        text_format.Parse(data.decode("utf-8", "replace"), message)
    except text_format.ParseError as error:
        raise MetadataSerializationError(f"{what} cannot be read: {data!r} ({error})") from error
    return message
