"""A channel that speaks V3: the operations of V2, and LACs, long polls, deferred sync and bookie info.

A response names the transaction id of its request, so requests for the same entry never wait for each other.
"""

from typing_extensions import Buffer

from bookie.availability import AvailableEntries
from bookie.client.channel.connection import Connection
from bookie.client.channel.operations import BookieChannel, named
from bookie.client.channel.reply import Reply
from bookie.client.channel.stream import AddStream
from bookie.client.entries.batch import StoredBatch
from bookie.client.entries.digest import Digest
from bookie.client.wire.answers_v3 import LacAnswer, ReadAnswer
from bookie.client.wire.bookie_space import BookieInfo
from bookie.client.wire.extensions import BATCH_READ, WRITE_CLOSE, Extensions
from bookie.client.wire.flags import MIB
from bookie.client.wire.v3 import WireV3
from bookie.errors import IllegalOperation
from bookie.pb import wire_pb2 as pb


class ChannelV3(BookieChannel):
    """A connection to one bookie that speaks V3. `BookieChannel` describes the methods that V2 has, too.

    Attributes:
        extensions: What the bookie advertises beyond Apache BookKeeper's operations; set it after connecting. Batch
            reads and write closes that are not in it are refused with IllegalOperation.
    """

    protocol = WireV3
    wire: WireV3

    def __init__(self, connection: Connection, wire: WireV3) -> None:
        super().__init__(connection, wire)
        self.extensions = Extensions()

    # --- adds ---------------------------------------------------------------------------------------------------------

    def add_stored_async(
        self, stored: Buffer, master_key: bytes, *, flags: int = 0, deferred_sync: bool = False
    ) -> Reply[None]:
        """Store an entry that already has its header and digest.

        Args:
            stored: The entry as stored.
            master_key: The ledger's master key.
            flags: Bits of `Flags`.
            deferred_sync: Acknowledge the entry when it is written; only `force` makes it durable.

        Returns:
            The pending reply; its `result` returns None or raises an error of `add`.
        """
        ledger, entry = named(stored)
        return self.connection.submit(
            self.wire.add(ledger, entry, stored, master_key, flags, self.timeout_s, deferred_sync=deferred_sync)
        )

    def add_stream(
        self,
        ledger: int,
        first: int,
        *,
        digest: Digest,
        lac: int = -1,
        length: int = 0,
        outstanding: int = 10_000,
        flags: int = 0,
        deferred_sync: bool = False,
    ) -> AddStream:
        """Open a stream of adds.

        Args:
            ledger: The id of the ledger.
            first: The id of the first entry.
            digest: The digest of the ledger.
            lac: The LAC of the ledger before `first`.
            length: Payload bytes of the ledger before `first`.
            outstanding: The highest number of unanswered adds.
            flags: Bits of `Flags`.
            deferred_sync: Acknowledge entries when they are written; only `force` makes them durable.

        Returns:
            The stream, which is a context manager.

        Raises:
            IncorrectParameter: An argument is outside its range.
        """
        return self._add_stream(
            ledger, first, outstanding, digest, flags, lac=lac, length=length, deferred_sync=deferred_sync
        )

    def force(self, ledger: int) -> None:
        """Wait until every entry of the ledger that was acknowledged before this call is durable.

        Args:
            ledger: The id of the ledger.

        Raises:
            WriteError: The bookie failed to sync the entries.
        """
        self.connection.submit(self.wire.force(ledger, self.timeout_s)).result()

    def write_close(self, ledger: int, master_key: bytes) -> None:
        """Announce that the ledger gets no more entries. This is advisory: it neither fences the ledger nor refuses
        any add.

        Args:
            ledger: The id of the ledger.
            master_key: The ledger's master key.

        Raises:
            IllegalOperation: The bookie does not advertise the operation.
            UnauthorizedAccess: The master key is wrong.
        """
        self._needs(WRITE_CLOSE)
        self.connection.submit(self.wire.write_close(ledger, master_key, self.timeout_s)).result()

    # --- reads --------------------------------------------------------------------------------------------------------

    def read_with_lac(self, ledger: int, entry: int) -> ReadAnswer:
        """Read an entry as stored, together with the highest LAC that the bookie knows.

        Args:
            ledger: The id of the ledger.
            entry: The id of the entry; -1 means the last one that the bookie holds.

        Raises:
            NoSuchLedger: The bookie has no data of this ledger.
            NoSuchEntry: The bookie does not hold the entry.
            ReadError: The bookie failed to read the entry.
        """
        answer: ReadAnswer = self.connection.submit(self.wire.read(ledger, entry, 0, None, self.timeout_s)).result()
        return answer

    def wait_for_lac(self, ledger: int, previous_lac: int, timeout_ms: int) -> ReadAnswer:
        """Wait at the bookie until its LAC exceeds `previous_lac`.

        The wait also ends when the ledger is fenced and when the time is up; the LAC in the response is then what it
        was.

        Args:
            ledger: The id of the ledger.
            previous_lac: The LAC that must be exceeded.
            timeout_ms: How long the bookie may wait, in milliseconds.

        Returns:
            The LAC, with entry previous_lac + 1 if the bookie holds it.

        Raises:
            NoSuchLedger: The bookie has no data of this ledger.
            NoSuchEntry: The bookie holds no entry of the ledger.
            ReadError: The bookie failed to read the entry.
        """
        return self.wait_for_lac_async(ledger, previous_lac, timeout_ms).result()

    def wait_for_lac_async(self, ledger: int, previous_lac: int, timeout_ms: int) -> Reply[ReadAnswer]:
        """Start a `wait_for_lac`, without waiting for the response here.

        Args:
            ledger: The id of the ledger.
            previous_lac: The LAC that must be exceeded.
            timeout_ms: How long the bookie may wait, in milliseconds.

        Returns:
            The pending reply; its `result` returns or raises what `wait_for_lac` does.
        """
        return self.connection.submit(self.wire.wait_for_lac(ledger, previous_lac, timeout_ms, self.timeout_s))

    def batch_read_async(
        self,
        ledger: int,
        start: int,
        max_count: int = 0,
        max_size: int = MIB,
        *,
        flags: int = 0,
        master_key: bytes | None = None,
    ) -> Reply[StoredBatch]:
        """Read consecutive entries like `batch_read`, without waiting for the response.

        Args:
            ledger: See `batch_read`, as for all further arguments.
            start: See `batch_read`.
            max_count: See `batch_read`.
            max_size: See `batch_read`.
            flags: See `batch_read`.
            master_key: See `batch_read`.

        Returns:
            The pending reply; its `result` returns the entries, or raises an error of `batch_read`, or
                IllegalOperation if the bookie answers that it does not support batch reads.

        Raises:
            IllegalOperation: The bookie does not advertise batch reads.
        """
        self._needs(BATCH_READ)
        request = self._batch_read(ledger, start, max_count, max_size, flags, master_key)
        request.on_refusal = self._refused
        return self.connection.submit(request)

    # --- the end of a ledger ------------------------------------------------------------------------------------------

    def write_lac(self, ledger: int, lac: int, *, digest: Digest) -> None:
        """Store an explicit LAC, and return when it is durable.

        Args:
            ledger: The id of the ledger.
            lac: The LAC.
            digest: The digest of the ledger.

        Raises:
            UnauthorizedAccess: The master key is wrong.
            BookieReadOnly: The bookie is read-only.
            WriteError: The bookie failed to store the LAC.
        """
        packet = digest.seal_lac(ledger, lac)
        self.connection.submit(self.wire.write_lac(ledger, lac, packet, digest.master_key, self.timeout_s)).result()

    def read_lac(self, ledger: int) -> LacAnswer:
        """Read the explicit LAC and the last entry of a ledger, both as stored.

        Args:
            ledger: The id of the ledger.

        Raises:
            NoSuchLedger: The bookie has no data of this ledger.
            NoSuchEntry: The bookie has neither an explicit LAC nor an entry.
            ReadError: The bookie failed to read them.
        """
        answer: LacAnswer = self.connection.submit(self.wire.read_lac(ledger, self.timeout_s)).result()
        return answer

    # --- the bookie ---------------------------------------------------------------------------------------------------

    def bookie_info(self) -> BookieInfo:
        """Return the total and the free bytes of the bookie's ledger disks.

        Raises:
            ReadError: The bookie failed to tell them.
        """
        answer: BookieInfo = self.connection.submit(self.wire.bookie_info(self.timeout_s)).result()
        return answer

    def list_entries(self, ledger: int) -> AvailableEntries:
        """Return which entries of a ledger the bookie holds.

        Some versions of Java bookies never answer; the call then ends with RequestTimeout.

        Args:
            ledger: The id of the ledger.

        Raises:
            NoSuchLedger: The bookie has no data of this ledger.
            ReadError: The bookie failed to list the entries.
        """
        answer: AvailableEntries = self.connection.submit(self.wire.list_entries(ledger, self.timeout_s)).result()
        return answer

    def _refused(self, code: int) -> None:
        if code == pb.EBADREQ:
            self.extensions.withdraw(BATCH_READ)

    def _needs(self, extension: str) -> None:
        if extension not in self.extensions:
            raise IllegalOperation(f"{self.address}: the bookie does not advertise {extension}; use other operations")
