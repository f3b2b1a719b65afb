"""The gRPC service for the stored data of one bookie: entry logs, ledgers and entries. See stored_service.proto."""

from collections.abc import Iterable, Iterator
from itertools import islice

import grpc

from bookie.errors import (
    DigestMismatch,
    IncorrectParameter,
    MetadataStoreError,
    NoSuchLedger,
    NoSuchLedgerMetadata,
)
from bookie.metadata.driver import Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata
from bookie.pb import stored_service_pb2 as pb
from bookie.pb.stored_service_pb2_grpc import add_StoredServicer_to_server
from bookie.server.configuration.errors import one_line
from bookie.server.control import Control
from bookie_admin.store_calls import briefly

__all__ = ["StoredService"]

RANGES_MAX = 10_000
AT_A_TIME = 1000
READ_AT_A_TIME = 256
READ_BYTES = 1 << 20
NO_METADATA = "the metadata store does not have the ledger, so the digest was not verified"
NOT_ASKED = "the metadata store could not be asked, so the digest was not verified: "
NO_DIGEST = "the ledger's metadata has no digest type, so the digest was not verified"


class StoredService:
    """Implements the methods of bookie.admin.v1.Stored."""

    NAME = "bookie.admin.v1.Stored"

    def __init__(self, control: Control) -> None:
        self._control = control

    def add_to(self, server: grpc.Server) -> None:
        """Register the service with a server."""
        add_StoredServicer_to_server(self, server)  # type: ignore[no-untyped-call]  # generated

    def close(self) -> None:
        """Do nothing: the streams of this service end by themselves."""

    # The names and arguments of the following methods are those of the service.

    def ListEntryLogs(  # noqa: N802
        self, _request: pb.ListEntryLogsRequest, _context: grpc.ServicerContext
    ) -> pb.EntryLogs:
        logs = (
            pb.EntryLog(directory=one.directory, log_id=one.log_id, bytes=one.bytes, path=str(one.path))
            for one in self._control.stored.logs()
        )
        return pb.EntryLogs(logs=logs)

    def ListLedgersOfLog(  # noqa: N802
        self, request: pb.ListLedgersOfLogRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.LedgersOfLog]:
        found = self._control.stored.log_ledgers(request.directory, request.log_id)
        ledgers = [int(one) for one in found.ledgers]
        active, problem = self._existing(set(ledgers), context)
        rows = zip(ledgers, found.bytes, strict=True)
        for part in _pieces(rows, context):
            yield pb.LedgersOfLog(
                ledgers=[pb.LedgerInLog(ledger=one, bytes=int(size), active=one in active) for one, size in part],
                problem=problem,
            )

    def GetLedger(  # noqa: N802
        self, request: pb.GetLedgerRequest, context: grpc.ServicerContext
    ) -> pb.StoredLedger:
        ledger = _ledger(request.ledger)
        metadata, problem = self._metadata(ledger, context)
        answer = pb.StoredLedger(ledger=ledger, last_confirmed=-1, problem=problem)
        if metadata is not None:
            answer.metadata.CopyFrom(_described(metadata))
        try:
            state = self._control.stored.ledger(ledger)
            ranges = self._control.stored.ranges(ledger)
        except NoSuchLedger:
            if problem:
                raise MetadataStoreError(
                    f"ledger {ledger} is not on this bookie, and the metadata store could not be asked: {problem}"
                ) from None
            if metadata is None:
                raise NoSuchLedger(f"ledger {ledger} is neither on this bookie nor in the metadata store") from None
            return answer
        answer.known_here, answer.fenced, answer.limbo = True, state.fenced, state.limbo
        answer.last_confirmed = state.lac
        answer.entries.extend(pb.EntryRange(first=first, last=last) for first, last in ranges[:RANGES_MAX])
        answer.more_entries = len(ranges) > RANGES_MAX
        return answer

    def LocateEntries(  # noqa: N802
        self, request: pb.EntriesRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.EntryPlaces]:
        first, last = _range(request)
        self._control.stored.ledger(request.ledger)
        directory = self._control.stored.directory_of(request.ledger)
        while context.is_active():
            found = self._control.stored.places(request.ledger, first, AT_A_TIME)
            wanted = [one for one in found if one.entry <= last]
            if wanted:
                yield pb.EntryPlaces(
                    places=[
                        pb.EntryPlace(
                            entry=one.entry, directory=directory, log_id=one.log_id, offset=one.offset, bytes=one.length
                        )
                        for one in wanted
                    ]
                )
            if len(wanted) < AT_A_TIME:
                return
            first = found[-1].entry + 1

    def ReadEntries(  # noqa: N802
        self, request: pb.EntriesRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.ReadEntry]:
        first, last = _range(request)
        check = _Check(request.ledger, *self._metadata(request.ledger, context))
        for start, end in self._control.stored.ranges(request.ledger):
            at, stop = max(first, start), min(last, end)
            while at <= stop and context.is_active():
                count = min(READ_AT_A_TIME, stop - at + 1)
                for stored in self._control.stored.read(request.ledger, at, count, READ_BYTES):
                    yield check(stored, at)
                    at += 1

    def _metadata(self, ledger: int, context: grpc.ServicerContext) -> tuple[Versioned[LedgerMetadata] | None, str]:
        """Return the metadata of a ledger, None if there is none, and why the store could not be asked, or ""."""
        try:
            with briefly(context):
                return self._control.metadata.ledgers.read(ledger), ""
        except NoSuchLedgerMetadata:
            return None, ""
        except MetadataStoreError as error:
            return None, one_line(error)

    def _existing(self, ledgers: set[int], context: grpc.ServicerContext) -> tuple[set[int], str]:
        """Return those of the ledgers that the metadata store has, or some of them if the call has ended; and why it
        could not be asked, or "".
        """
        found: set[int] = set()
        try:
            with briefly(context):
                for part in self._control.metadata.ledgers.ranges():
                    found |= ledgers.intersection(part)
                    if len(found) == len(ledgers) or not context.is_active():
                        break
        except MetadataStoreError as error:
            return set(), one_line(error)
        return found, ""


class _Check:
    """Verifies the entries of one ledger."""

    def __init__(self, ledger: int, metadata: Versioned[LedgerMetadata] | None, not_asked: str) -> None:
        from bookie.client.entries.digest import Digest, DigestType  # noqa: PLC0415  # importing the client would slow down every start

        self._ledger = ledger
        kind = metadata.value.digest_type if metadata is not None else None
        self._problem = "" if kind is not None else NO_DIGEST if metadata is not None else NO_METADATA
        if not_asked:
            self._problem = f"{NOT_ASKED}{not_asked}"
        password = metadata.value.password if metadata is not None else b""
        self._digest = Digest.of(DigestType.DUMMY if kind is None else DigestType(int(kind)), password)

    def __call__(self, stored: bytes, entry: int) -> pb.ReadEntry:
        """Return an entry as a message; one with an invalid digest has no payload."""
        try:
            opened = self._digest.open(stored, self._ledger, entry)
        except DigestMismatch as error:
            return pb.ReadEntry(entry=entry, last_confirmed=-1, problem=str(error))
        return pb.ReadEntry(
            entry=entry,
            last_confirmed=opened.lac,
            length=opened.length,
            payload=bytes(opened.payload),
            digest_ok=not self._problem,
            problem=self._problem,
        )


def _ledger(ledger: int) -> int:
    if ledger < 0:
        raise IncorrectParameter(f"ledger={ledger} is negative; ledger ids are 0 or larger")
    return ledger


def _range(request: pb.EntriesRequest) -> tuple[int, int]:
    """Return the first and last entry of a request; -1 for the end becomes the largest id."""
    _ledger(request.ledger)
    if request.first < 0 or request.last < -1 or -1 < request.last < request.first:
        raise IncorrectParameter(
            f"entries {request.first} to {request.last} are not a valid range: first must be 0 or larger, and last must"
            " not be smaller than first, or be -1 for the end"
        )
    return request.first, request.last if request.last >= 0 else (1 << 63) - 1


def _pieces(rows: Iterable[tuple[int, int]], context: grpc.ServicerContext) -> Iterator[list[tuple[int, int]]]:
    left = iter(rows)
    while context.is_active() and (part := list(islice(left, AT_A_TIME))):
        yield part


def _described(found: Versioned[LedgerMetadata]) -> pb.LedgerDescription:
    value = found.value
    return pb.LedgerDescription(
        state=value.state.name.lower(),
        ensemble_size=value.ensemble_size,
        write_quorum=value.write_quorum,
        ack_quorum=value.ack_quorum,
        digest_type=value.digest_type.name if value.digest_type else "",
        last_entry=value.last_entry,
        length=value.length,
        created_ms=found.created_ms if value.ctime_ms is None else value.ctime_ms,
        version=found.version,
        segments=[pb.LedgerSegment(first_entry=one.first_entry, bookies=one.bookies) for one in value.segments],
        custom=value.custom,
    )
