"""What V3 answers carry, as values: decoders from a whole Response. Any thread.

Each raises ValueError when the part that it is about is missing, which makes the answer a malformed one.
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
    """A read, or the end of a wait for a LAC. `lac`: the highest one that the bookie knows, None when it said nothing.

    `entry` and `stored`: the entry as asked for, or the one after the LAC that was waited to pass; None when none came.
    `lac_risen_ms`: epoch milliseconds of the rise that ended the wait, None when something else ended it.
    """

    entry: int | None
    stored: bytes | None
    lac: int | None
    lac_risen_ms: int | None


class LacAnswer(NamedTuple):
    """What a bookie knows of a ledger's end: explicit-LAC packet and last entry, as stored; None: it has none."""

    packet: bytes | None
    last: bytes | None


def nothing(_: memoryview) -> None:
    """The status says all."""


def part(body: memoryview, name: str) -> pb.Response:
    """The Response in `body`, with the sub-message `name`."""
    response = parsed(pb.Response, body)
    if not response.HasField(name):
        raise ValueError(f"no {name} in it")
    return response


def read(body: memoryview) -> ReadAnswer:
    """Of READ_ENTRY."""
    answer = part(body, "readResponse").readResponse
    stored = answer.body if answer.HasField("body") else None
    lac = answer.maxLAC if answer.HasField("maxLAC") else None
    risen_ms = answer.lacUpdateTimestamp if answer.HasField("lacUpdateTimestamp") else None
    return ReadAnswer(answer.entryId if stored is not None else None, stored, lac, risen_ms)


def entry(body: memoryview) -> bytes:
    """Of READ_ENTRY, where there is nothing to do without the entry."""
    stored = read(body).stored
    if stored is None:
        raise ValueError("no entry in it")
    return stored


def lacs(body: memoryview) -> LacAnswer:
    """Of READ_LAC."""
    answer = part(body, "readLacResponse").readLacResponse
    packet = answer.lacBody if answer.HasField("lacBody") else None
    return LacAnswer(packet, answer.lastEntryBody if answer.HasField("lastEntryBody") else None)


def bookie_info(body: memoryview) -> BookieInfo:
    """Of GET_BOOKIE_INFO, asked for both."""
    answer = part(body, "getBookieInfoResponse").getBookieInfoResponse
    return BookieInfo(answer.totalDiskCapacity, answer.freeDiskSpace)


def auth(body: memoryview) -> tuple[str, bytes]:
    """Of AUTH: plugin name and token."""
    answer = part(body, "authResponse").authResponse
    return answer.authPluginName, answer.payload


def batch(ledger: int, start: int) -> Callable[[memoryview], StoredBatch]:
    """Of BATCH_READ_ENTRY. The batch is a view of the answer where that is laid out as our bookies do."""

    def decode(body: memoryview) -> StoredBatch:
        run, lac = framing_v3.batch_run(body)
        return StoredBatch(ledger, start, run, lac)

    return decode


def available(body: memoryview) -> AvailableEntries:
    """Of GET_LIST_OF_ENTRIES_OF_LEDGER."""
    answer = part(body, "getListOfEntriesOfLedgerResponse").getListOfEntriesOfLedgerResponse
    return AvailableEntries.decode(answer.availabilityOfEntriesOfLedger)
