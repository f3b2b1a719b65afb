"""The interface `Bookies` for one client, over the modelled network: senders, single requests and their timeouts."""

import asyncio
import struct
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.client.read_run import ReadRun
from bookie.availability import AvailableEntries
from bookie.client.config import ClientConfig
from bookie.client.contracts import Fallback, SenderOwner
from bookie.client.entries.batch import StoredBatch
from bookie.client.entries.read_answers import ReadAnswers
from bookie.client.wire.answers_v3 import LacAnswer, ReadAnswer
from bookie.client.wire.bookie_space import BookieInfo
from bookie.client.wire.flags import LAST_ENTRY
from bookie.errors import (
    BookieUnavailable,
    BookKeeperError,
    ClientClosed,
    IllegalOperation,
    RequestTimeout,
    error_from_client_code,
)
from tests.sim.events import Event
from tests.sim.loop import VirtualLoop
from tests.sim.model_bookie import ModelBookie, Reply
from tests.sim.network import Connection, Link

__all__ = ["ClientBookies", "ModelSender"]

Ask = Callable[[ModelBookie, Reply], None]


class ModelSender:
    """Implements `AddSender`. Each entry travels by itself, in order; answers that arrive together come together."""

    def __init__(
        self, bookies: "ClientBookies", bookie: str, key: bytes, owner: SenderOwner, flags: int, *, deferred: bool
    ) -> None:
        self.bookies = bookies
        self.bookie = bookie
        self.key = key
        self.owner = owner
        self.flags = flags
        self.deferred = deferred
        self.open = True
        self._unanswered: dict[int, float] = {}
        self._answers: list[tuple[int, int]] = []
        self._timer: Any = None
        self._was_full = False
        self._connection: Connection | None = None

    def send(self, records: Buffer, offsets: NDArray[np.int64], entries: NDArray[np.int64]) -> None:
        if not self.open:
            return
        view = memoryview(records).cast("B")
        edges = offsets.tolist()
        now = self.bookies.loop.time()
        for k, entry in enumerate(entries.tolist()):
            record = bytes(view[edges[k] : edges[k + 1]])
            length, ledger, number = struct.unpack_from(">iqq", record)
            assert length == len(record) - 4, "a record whose length is not its own"
            assert number == entry, f"ledger {ledger}: a record of entry {number} was sent as entry {entry}"
            self._unanswered[entry] = now
            self.bookies.sender_add(self, entry, record[4:])
        if self._timer is None and self._unanswered:
            self._arm()

    def add(self, entry: int, stored: bytes) -> None:
        """Send one entry."""
        connection = self._connection
        if connection is None:
            connection = self._connection = self.bookies.connection(self.bookie)
            self.bookies.senders[self.bookie].append(self)
        bookie = connection.link.bookie

        def reply(code: int, _: Any, __: bool) -> None:
            connection.answer(lambda: self.answered(entry, code))

        connection.request(lambda: bookie.add(stored, self.key, self.flags, reply, deferred=self.deferred))

    @property
    def full(self) -> bool:
        connection, limit = self._connection, self.bookies.sender_limit
        if connection is None or connection.in_flight <= limit:
            return False
        if not self._was_full:
            self._was_full = True
            connection.when_drained(limit, self._drained)
        return True

    def close(self) -> None:
        self.open = False
        self._unanswered.clear()
        self._answers.clear()
        if self._timer is not None:
            self._timer.cancel()
        if self._connection is not None and self in self.bookies.senders[self.bookie]:
            self.bookies.senders[self.bookie].remove(self)

    def answered(self, entry: int, code: int) -> None:
        """Handle an answer."""
        if not self.open or entry not in self._unanswered:
            return
        del self._unanswered[entry]
        if not self._answers:
            self.bookies.loop.event(0, self._tell)
        self._answers.append((entry, code))

    def lose(self, error: BookKeeperError) -> None:
        """Handle the loss of the connection."""
        if self.open:
            self._tell()
            self.close()
            if self.bookies.alive:
                self.owner.lost(error)

    def _tell(self) -> None:
        answers, self._answers = self._answers, []
        if answers and self.open and self.bookies.alive:
            entries = np.array([entry for entry, _ in answers], np.int64)
            codes = np.array([code for _, code in answers], np.int32)
            self.owner.answered(entries, codes)

    def _drained(self) -> None:
        self._was_full = False
        if self.open and self.bookies.alive:
            self.owner.on_room()

    def _arm(self) -> None:
        due = min(self._unanswered.values()) + self.bookies.config.add_timeout_s
        self._timer = self.bookies.loop.event_at(due, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if not self._unanswered:
            return
        if min(self._unanswered.values()) + self.bookies.config.add_timeout_s <= self.bookies.loop.time() + 1e-9:
            self.lose(RequestTimeout(f"bookie {self.bookie}: no answer to an add in time"))
        else:
            self._arm()


class ClientBookies:
    """The bookies as one client reaches them.

    `history` records the answers to fencing reads. `no_batches` are bookies that do not support batch reads.
    """

    def __init__(
        self, loop: VirtualLoop, links: dict[str, Link], config: ClientConfig, who: str, history: list[Event]
    ) -> None:
        self.loop = loop
        self.links = links
        self.config = config
        self.who = who
        self.history = history
        self._v2 = config.use_v2_wire_protocol
        self.alive = True
        self.sender_limit = 1000
        self.sender_add: Callable[[ModelSender, int, bytes], None] = ModelSender.add
        self.no_batches: frozenset[str] = frozenset()
        self.senders: dict[str, list[ModelSender]] = {bookie: [] for bookie in links}
        self._connections: dict[str, Connection] = {}
        self._waiting: dict[str, dict[int, Callable[[BookKeeperError], None]]] = {bookie: {} for bookie in links}
        self._numbers = 0
        self._closed = False

    def connection(self, bookie: str) -> Connection:
        """Return the connection to this bookie, and make one if there is none."""
        found = self._connections.get(bookie)
        if found is None:
            found = self._connections[bookie] = Connection(self.links[bookie], lambda: self._lost(bookie))
            self.loop.event(self.config.connect_timeout_s, found.give_up)
        return found

    def crash(self) -> None:
        """End the process: nothing is called any more, and requests that were sent stay sent."""
        self.alive = False
        for connection in self._connections.values():
            connection.close()

    # The interface.

    def adds(
        self,
        bookie: str,
        ledger: int,
        master_key: bytes,
        owner: SenderOwner,
        *,
        flags: int = 0,
        deferred_sync: bool = False,
    ) -> ModelSender:
        del ledger  # the records contain the ledger id
        return ModelSender(self, bookie, master_key, owner, flags, deferred=deferred_sync)

    async def add(
        self, bookie: str, ledger: int, entry: int, stored: Buffer, master_key: bytes, *, flags: int = 0
    ) -> None:
        data = bytes(stored)
        what = f"add of ledger {ledger}, entry {entry}"
        await self._ask(bookie, lambda there, reply: there.add(data, master_key, flags, reply), what, adds=True)

    async def read(
        self, bookie: str, ledger: int, entry: int, *, flags: int = 0, master_key: bytes | None = None
    ) -> ReadAnswer:
        def ask(there: ModelBookie, reply: Reply) -> None:
            there.read(ledger, entry, flags, master_key, reply)

        answer: ReadAnswer = await self._ask(bookie, ask, f"read of ledger {ledger}, entry {entry}", (ledger, entry))
        return answer._replace(lac=None) if self._v2 else answer

    async def read_many(self, bookie: str, ledger: int, entries: NDArray[np.int64]) -> ReadAnswers:
        wanted = entries.tolist()
        answers = await asyncio.gather(*(self.read(bookie, ledger, entry) for entry in wanted), return_exceptions=True)
        run = ReadRun(ledger, entries)
        errors: dict[int, BookKeeperError] = {}
        for entry, answer in zip(wanted, answers, strict=True):
            if isinstance(answer, ReadAnswer):
                run.answer(entry, 0, answer.stored, answer.lac)
            elif isinstance(answer, BookKeeperError):
                run.answer(entry, 1)
                errors[entry] = answer
            else:
                raise answer
        return ReadAnswers(run, errors)

    async def batch_read(
        self,
        bookie: str,
        ledger: int,
        start: int,
        max_count: int,
        max_size: int,
        *,
        flags: int = 0,
        master_key: bytes | None = None,
    ) -> StoredBatch:
        if not self.batches(bookie):
            raise IllegalOperation(f"bookie {bookie}: knows no batch reads")

        def ask(there: ModelBookie, reply: Reply) -> None:
            there.batch_read(ledger, start, (max_count, max_size), flags, master_key, reply)

        run, lac = await self._ask(bookie, ask, f"batch read of ledger {ledger} from entry {start}", (ledger, start))
        return StoredBatch(ledger, start, memoryview(run), None if self._v2 else lac)

    def batches(self, bookie: str) -> bool:
        return bookie not in self.no_batches

    def fell_back(self, reason: Fallback) -> None:
        """Count nothing: `batch_read` shows which entries were requested in a batch."""

    async def wait_for_lac(self, bookie: str, ledger: int, previous_lac: int, timeout_ms: int) -> ReadAnswer:
        if self._v2:
            return await self.read(bookie, ledger, LAST_ENTRY)

        def ask(there: ModelBookie, reply: Reply) -> None:
            there.wait_for_lac(ledger, previous_lac, timeout_ms / 1000, reply)

        answer: ReadAnswer = await self._ask(bookie, ask, "long poll", extra_s=timeout_ms / 1000)
        return answer

    async def read_lac(self, bookie: str, ledger: int) -> LacAnswer:
        answer: LacAnswer = await self._ask(
            bookie, lambda there, reply: there.read_lac(ledger, reply), "read of the LAC"
        )
        return answer

    async def write_lac(self, bookie: str, ledger: int, lac: int, packet: bytes, master_key: bytes) -> None:
        await self._ask(bookie, lambda there, reply: there.write_lac(ledger, lac, packet, master_key, reply), "LAC")

    async def force(self, bookie: str, ledger: int) -> None:
        await self._ask(bookie, lambda there, reply: there.force(ledger, reply), "force")

    async def list_entries(self, bookie: str, ledger: int) -> AvailableEntries:
        found: AvailableEntries = await self._ask(
            bookie, lambda there, reply: there.list_entries(ledger, reply), "list"
        )
        return found

    async def bookie_info(self, bookie: str) -> BookieInfo:
        found: BookieInfo = await self._ask(bookie, lambda there, reply: there.bookie_info(reply), "bookie info")
        return found

    def announce_end(self, ledger: int, master_key: bytes, bookies: Collection[str]) -> None:
        """Do nothing, since these bookies do not advertise it."""

    def pending(self, bookie: str) -> int:
        return len(self._waiting[bookie])

    async def close(self) -> None:
        self._closed = True
        for bookie in list(self._connections):
            self._fail(bookie, ClientClosed(f"the client was closed while bookie {bookie} was asked"))
            self._connections.pop(bookie).close()

    # Inside.

    async def _ask(
        self,
        bookie: str,
        ask: Ask,
        what: str,
        fencing: tuple[int, int] | None = None,
        *,
        adds: bool = False,
        extra_s: float = 0.0,
    ) -> Any:
        """Send a request and wait. `fencing` has ledger and entry of a read, whose negative answers the history has."""
        if self._closed:
            raise ClientClosed(f"the client is closed; bookie {bookie} cannot be asked")
        done: asyncio.Future[Any] = self.loop.create_future()
        connection = self.connection(bookie)
        there = connection.link.bookie
        self._numbers += 1
        number = self._numbers

        def end(error: BookKeeperError | None, value: Any = None) -> None:
            if self._waiting[bookie].pop(number, None) is not None:
                timer.cancel()
                if not done.done() and self.alive:
                    done.set_exception(error) if error else done.set_result(value)

        def arrived(code: int, value: Any, fenced: bool) -> None:
            if fencing and fenced and self.alive and number in self._waiting[bookie]:
                ledger, entry = fencing
                self.history.append(Event(self.loop.time(), self.who, "answered", ledger, entry, bookie, code))
            end(error_from_client_code(code)(f"bookie {bookie}: {what} failed") if code else None, value)

        def reply(code: int, value: Any, fenced: bool) -> None:
            connection.answer(lambda: arrived(code, value, fenced))

        limit = (self.config.add_timeout_s if adds else self.config.read_timeout_s) + extra_s
        self._waiting[bookie][number] = end
        timer = self.loop.event(limit, lambda: end(RequestTimeout(f"bookie {bookie}: {what}: no answer in time")))
        connection.request(lambda: ask(there, reply))
        return await done

    def _lost(self, bookie: str) -> None:
        self._connections.pop(bookie, None)
        self._fail(bookie, BookieUnavailable(f"bookie {bookie}: the connection was lost"))

    def _fail(self, bookie: str, error: BookKeeperError) -> None:
        for sender in list(self.senders[bookie]):
            sender.lose(error)
        self.senders[bookie] = []
        for end in list(self._waiting[bookie].values()):
            end(type(error)(*error.args))
