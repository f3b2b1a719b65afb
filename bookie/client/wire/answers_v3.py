"""The values in V3 responses, decoded from whole Response messages. Any thread.

Each decoder raises ValueError if the sub-message that it decodes is missing; the response then counts as malformed.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from bookie._fast.client import framing_v3
from bookie.availability import AvailableEntries
from bookie.client.entries.batch import StoredBatch
from bookie.client.wire.bookie_space import BookieInfo
from bookie.client.wire.messages import parsed
from bookie.pb import wire_pb2 as pb

T = TypeVar("T")


class ReadAnswer(NamedTuple):
    """The response to a read or to a long poll.

    Attributes:
        entry: The id of the entry, or None if the response has no entry.
        stored: The entry as stored, or None. After a long poll it is the entry that follows the LAC given there.
        lac: The highest LAC that the bookie knows, or None if the response has none.
        lac_risen_ms: When the LAC rose and ended the long poll, in milliseconds since 1970, or None if it ended
            otherwise.
    """

    entry: int | None
    stored: bytes | None
    lac: int | None
    lac_risen_ms: int | None


class LacAnswer(NamedTuple):
    """What a bookie knows about the end of a ledger.

    Attributes:
        packet: The packet of the explicit LAC, or None if the bookie has none.
        last: The last entry as stored, or None if the bookie has none.
    """

    packet: bytes | None
    last: bytes | None


def nothing(_: memoryview) -> None:
    """Decode a response that has only a status."""


def part(body: memoryview, name: str) -> pb.Response:
    """Decode a Response that must have the sub-message `name`."""
    response = parsed(pb.Response, body)
    if not response.HasField(name):
        raise ValueError(f"it has no {name}")
    return response


def read(body: memoryview) -> ReadAnswer:
    """Decode the response to READ_ENTRY."""
    answer = part(body, "readResponse").readResponse
    stored = answer.body if answer.HasField("body") else None
    lac = answer.maxLAC if answer.HasField("maxLAC") else None
    risen_ms = answer.lacUpdateTimestamp if answer.HasField("lacUpdateTimestamp") else None
    return ReadAnswer(answer.entryId if stored is not None else None, stored, lac, risen_ms)


def entry(body: memoryview) -> bytes:
    """Decode the response to READ_ENTRY, and return its entry, which must be there."""
    stored = read(body).stored
    if stored is None:
        raise ValueError("it has no entry")
    return stored


def lacs(body: memoryview) -> LacAnswer:
    """Decode the response to READ_LAC."""
    answer = part(body, "readLacResponse").readLacResponse
    packet = answer.lacBody if answer.HasField("lacBody") else None
    return LacAnswer(packet, answer.lastEntryBody if answer.HasField("lastEntryBody") else None)


def bookie_info(body: memoryview) -> BookieInfo:
    """Decode the response to GET_BOOKIE_INFO."""
    answer = part(body, "getBookieInfoResponse").getBookieInfoResponse
    if not answer.HasField("adds"):
        return BookieInfo(answer.totalDiskCapacity, answer.freeDiskSpace)
    return BookieInfo(
        answer.totalDiskCapacity,
        answer.freeDiskSpace,
        answer.readOnly,
        answer.adds,
        answer.uptimeMillis,
        answer.journalQueueBytes,
    )


def auth(body: memoryview) -> tuple[str, bytes]:
    """Decode the response to AUTH, and return plugin name and token."""
    answer = part(body, "authResponse").authResponse
    return answer.authPluginName, answer.payload


def batch(ledger: int, start: int) -> Callable[[memoryview], StoredBatch]:
    """Return a decoder for the response to BATCH_READ_ENTRY.

    The batch is a view of the response if that is laid out as our bookies do it, and a copy otherwise.
    """

    def decode(body: memoryview) -> StoredBatch:
        run, lac = framing_v3.batch_run(body)
        return StoredBatch(ledger, start, run, lac)

    return decode


def available(body: memoryview) -> AvailableEntries:
    """Decode the response to GET_LIST_OF_ENTRIES_OF_LEDGER."""
    answer = part(body, "getListOfEntriesOfLedgerResponse").getListOfEntriesOfLedgerResponse
    return AvailableEntries.decode(answer.availabilityOfEntriesOfLedger)
