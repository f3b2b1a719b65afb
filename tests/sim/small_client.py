"""A small client of the ledger protocol, written for clarity: it shows that the world is fair and that the judge
works.

It follows the rules of the protocol and does nothing else: no pipelining limits, no speculation, no batches. Each
rule can be broken on purpose: `bugs` has the names of those that are.
"""

import asyncio
import contextlib
import random
from collections.abc import Collection, Sequence
from dataclasses import replace

from bookie.client.config import ClientConfig
from bookie.client.contracts import Bookies, Metadata
from bookie.client.entries.digest import Digest, DigestType, OpenedEntry
from bookie.client.wire.flags import LAST_ENTRY, Flags
from bookie.errors import (
    BookKeeperError,
    LedgerClosed,
    LedgerFenced,
    LedgerRecoveryError,
    MetadataStoreError,
    MetadataVersionConflict,
    NoSuchEntry,
    NoSuchLedger,
    NotEnoughBookies,
    RequestTimeout,
)
from bookie.metadata.records.ledger_metadata import DigestType as StoredDigest
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from tests.sim.face import Client, Following, MakeClient, Reader, Writer
from tests.sim.world import World

__all__ = ["small_client", "SmallClient"]

RECOVERY = Flags.RECOVERY_ADD | Flags.HIGH_PRIORITY
NEGATIVE = (NoSuchEntry, NoSuchLedger)


def small_client(bugs: Collection[str] = ()) -> MakeClient:
    """Return a small client, for `play`."""

    async def make(world: World, who: str, config: ClientConfig, rng: random.Random) -> Client:
        del config
        return SmallClient(world.clients[who], world.store_of(who), rng, bugs)

    return make


class SmallClient:
    """A second, small implementation of the client, for one simulated process."""

    def __init__(self, bookies: Bookies, store: Metadata, rng: random.Random, bugs: Collection[str] = ()) -> None:
        self.bookies = bookies
        self.store = store
        self.rng = rng
        self.bugs = frozenset(bugs)

    async def create(
        self,
        sizes: tuple[int, int, int],
        digest: DigestType,
        password: bytes,
        *,
        advanced: bool = False,
        deferred: bool = False,
    ) -> Writer:
        assert not advanced, "the small client counts entries itself"
        assert not deferred, "the small client has each add synced"
        ensemble, write, ack = sizes
        chosen = await self.choose(ensemble, ())
        metadata = LedgerMetadata(
            ensemble_size=ensemble,
            write_quorum=write,
            ack_quorum=ack,
            segments=(Segment(0, tuple(chosen)),),
            digest_type=StoredDigest(digest),
            password=password,
        )
        ledger = await self.store.new_id()
        stored = await self.store.create(ledger, metadata)
        return _Handle(self, ledger, stored.value, stored.version, Digest.of(digest, password))

    async def open(self, ledger: int, password: bytes, *, recovery: bool) -> Reader:
        stored = await self.store.read(ledger)
        digest = Digest.of(DigestType(stored.value.digest_type or 0), password)
        handle = _Handle(self, ledger, stored.value, stored.version, digest)
        if stored.value.state is LedgerState.CLOSED:
            handle.take_end()
        elif recovery:
            await handle.recover()
        else:
            await handle.read_lac()
        return handle

    async def choose(self, count: int, excluded: Collection[str]) -> list[str]:
        """Choose this many bookies at random."""
        free = sorted(await self.store.bookies(read_only=False) - set(excluded))
        if len(free) < count:
            raise NotEnoughBookies(f"{len(free)} bookies are left, {count} are needed")
        return self.rng.sample(free, count)

    async def replicate(self, ledger: int, patience_s: float) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing, since there is nothing to close."""


class _Add:
    """An entry that is not acknowledged yet."""

    def __init__(self, entry: int, stored: bytes, size: int, result: "asyncio.Future[int]") -> None:
        self.entry = entry
        self.stored = stored
        self.size = size
        self.result = result
        self.acks: set[int] = set()


class _Handle:
    """A ledger, for its writer, a recovery or a reader."""

    def __init__(
        self, client: SmallClient, ledger: int, metadata: LedgerMetadata, version: int, digest: Digest
    ) -> None:
        self.client = client
        self.ledger = ledger
        self.metadata = metadata
        self.version = version
        self.digest = digest
        self.lac = -1
        self.length = 0
        self.closed = False
        self.error: BookKeeperError | None = None
        self._pushed = -1
        self._sent_length = 0
        self._flags = Flags.NONE
        self._pending: list[_Add] = []
        self._bookies = list(metadata.segments[-1].bookies)
        self._failed: dict[int, str] = {}
        self._changing: asyncio.Task[None] | None = None
        self._in_memory: Segment | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # Writing.

    async def append(self, payload: bytes, entry: int = -1) -> "asyncio.Future[int]":
        result: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if self.error:
            result.set_exception(type(self.error)(*self.error.args))
            return result
        self._pushed += 1
        self._sent_length += len(payload)
        entry = self._pushed
        stored = self.digest.seal(self.ledger, entry, payload, lac=self.lac, length=self._sent_length)
        add = _Add(entry, stored, len(payload), result)
        self._pending.append(add)
        for place in self._places(entry):
            self._send(add, place)
        return result

    async def force(self) -> int:
        raise AssertionError("each add was synced")

    async def close(self) -> tuple[int, int]:
        self._fail(LedgerClosed(f"ledger {self.ledger}: closed"))
        await self._close(LedgerState.OPEN)
        return self.metadata.last_entry, self.metadata.length

    def _places(self, entry: int) -> list[int]:
        return [(entry + k) % self.metadata.ensemble_size for k in range(self.metadata.write_quorum)]

    def _send(self, add: _Add, place: int) -> None:
        task = asyncio.get_running_loop().create_task(self._store(add, place, self._bookies[place]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _store(self, add: _Add, place: int, bookie: str) -> None:
        key = self.digest.master_key
        try:
            if not (self._flags and "no_writeback" in self.client.bugs):
                await self.client.bookies.add(bookie, self.ledger, add.entry, add.stored, key, flags=self._flags)
        except LedgerFenced as error:
            self._fail(error)
        except BookKeeperError:
            if self._bookies[place] == bookie and not self.error:
                self._failed[place] = bookie
                if self._changing is None:
                    self._changing = asyncio.get_running_loop().create_task(self._change())
        else:
            if self._bookies[place] == bookie:
                add.acks.add(place)
                self._complete()

    def _complete(self) -> None:
        enough = self.metadata.ack_quorum - ("ack_early" in self.client.bugs)
        while self._pending and not self._changing and len(self._pending[0].acks) >= enough:
            add = self._pending.pop(0)
            self.lac = add.entry
            self.length += add.size
            add.result.set_result(add.entry)

    def _fail(self, error: BookKeeperError) -> None:
        self.error = self.error or error
        pending, self._pending = self._pending, []
        for add in pending:
            add.result.set_exception(type(error)(*error.args))

    async def _change(self) -> None:
        replaced: set[int] = set()
        try:
            while self._failed and not self.error:
                failed, self._failed = self._failed, {}
                bookies = list(self._bookies)
                new = await self.client.choose(len(failed), set(bookies) | set(failed.values()))
                for place, bookie in zip(failed, new, strict=True):
                    bookies[place] = bookie
                first = self.lac + 1
                if self._flags:
                    self._in_memory = Segment(first, tuple(bookies))
                else:
                    await self._write_segment(Segment(first, tuple(bookies)))
                self._bookies = bookies
                replaced |= set(failed)
        except BookKeeperError as error:
            self._fail(error)
        self._changing = None
        for add in list(self._pending):
            for place in replaced & set(self._places(add.entry)):
                if "keep_old_acks" not in self.client.bugs:
                    add.acks.discard(place)
                self._send(add, place)
        self._complete()

    async def _write_segment(self, segment: Segment) -> None:
        kept = tuple(one for one in self.metadata.segments if one.first_entry < segment.first_entry)
        wanted = replace(self.metadata, segments=(*kept, segment))
        try:
            stored = await self.client.store.write(self.ledger, wanted, self.version)
        except MetadataVersionConflict:
            raise LedgerFenced(f"ledger {self.ledger}: somebody else changed it") from None
        self.metadata, self.version = stored.value, stored.version

    async def _close(self, state: LedgerState) -> None:
        """Close the ledger at the LAC, unless another client was faster."""
        while True:
            found = self.metadata
            if found.state is LedgerState.CLOSED:
                if state is LedgerState.OPEN and (found.last_entry, found.length) != (self.lac, self.length):
                    raise MetadataVersionConflict(
                        f"ledger {self.ledger}: closed by somebody else at {found.last_entry}"
                    )
                return
            if found.state is not state:
                raise LedgerFenced(f"ledger {self.ledger}: somebody recovers it")
            segments = found.segments
            if self._in_memory is not None:
                kept = tuple(one for one in segments if one.first_entry < self._in_memory.first_entry)
                segments = (*kept, self._in_memory)
            closed = replace(
                found, segments=segments, state=LedgerState.CLOSED, last_entry=self.lac, length=self.length
            )
            await self._write(closed, forced="close_no_cas" in self.client.bugs)

    async def _write(self, wanted: LedgerMetadata, *, forced: bool = False) -> bool:
        version = (await self.client.store.read(self.ledger)).version if forced else self.version
        try:
            stored = await self.client.store.write(self.ledger, wanted, version)
        except MetadataVersionConflict:
            stored = await self.client.store.read(self.ledger)
            self.metadata, self.version = stored.value, stored.version
            return False
        self.metadata, self.version = stored.value, stored.version
        return True

    # Recovery.

    async def recover(self) -> None:
        while self.metadata.state is LedgerState.OPEN:
            await self._write(replace(self.metadata, state=LedgerState.IN_RECOVERY))
        if self.metadata.state is not LedgerState.CLOSED:
            self._bookies = list(self.metadata.segments[-1].bookies)
            self._flags = RECOVERY
            await self._fence()
            await self._read_forward()
            await self._close(LedgerState.IN_RECOVERY)
        self.take_end()

    def take_end(self) -> None:
        """Take over the end from the metadata of a closed ledger."""
        self.closed, self.lac, self.length = True, self.metadata.last_entry, self.metadata.length

    async def _fence(self) -> None:
        async def ask(bookie: str) -> OpenedEntry | None:
            key = self.digest.master_key
            try:
                answer = await self.client.bookies.read(
                    bookie, self.ledger, LAST_ENTRY, flags=Flags.FENCE, master_key=key
                )
            except NEGATIVE:
                return None
            return self.digest.open(answer.stored or b"", self.ledger)

        known = await asyncio.gather(*(ask(bookie) for bookie in self._bookies), return_exceptions=True)
        sizes = self.metadata
        for start in range(sizes.ensemble_size):
            window = [known[(start + k) % sizes.ensemble_size] for k in range(sizes.write_quorum)]
            unknown = sum(isinstance(one, BaseException) for one in window)
            if unknown >= sizes.ack_quorum + ("short_fence" in self.client.bugs):
                raise LedgerRecoveryError(f"ledger {self.ledger}: too few bookies could be fenced")
        best = max((one for one in known if isinstance(one, OpenedEntry)), key=lambda one: one.lac, default=None)
        self.lac = max(best.lac if best else -1, sizes.segments[-1].first_entry - 1)
        self._pushed = self.lac
        if self.lac >= 0:
            self.length = (await self._entry(self.lac, 0)).length
        self._sent_length = self.length

    async def _read_forward(self) -> None:
        sent: list[asyncio.Future[int]] = []
        flags = Flags.NONE if "no_read_fence" in self.client.bugs else Flags.FENCE
        while not self.error:
            try:
                entry = await self._entry(self._pushed + 1, flags | Flags.HIGH_PRIORITY)
            except NEGATIVE:
                break
            self._sent_length = entry.length - len(entry.payload)
            sent.append(await self.append(bytes(entry.payload)))
        for outcome in await asyncio.gather(*sent, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    # Reading.

    async def _entry(self, entry: int, flags: int) -> OpenedEntry:
        """Read an entry from the first replica that has it; it is missing if W - A + 1 replicas deny it."""
        sizes = self.metadata
        enough = sizes.write_quorum - sizes.ack_quorum + 1
        if "noent_short" in self.client.bugs:
            enough = max(1, enough - 1)
        missing = 0
        error: BookKeeperError = NoSuchEntry(f"ledger {self.ledger}, entry {entry}: no replica")
        key = self.digest.master_key if flags else None
        for bookie in sizes.write_set(entry):
            try:
                answer = await self.client.bookies.read(bookie, self.ledger, entry, flags=flags, master_key=key)
                return self.digest.open(answer.stored or b"", self.ledger, entry)
            except BookKeeperError as refusal:
                if isinstance(refusal, NEGATIVE) or (
                    "timeout_is_noent" in self.client.bugs and isinstance(refusal, RequestTimeout)
                ):
                    missing += 1
                else:
                    error = refusal
                if flags and missing >= enough:
                    raise NoSuchEntry(f"ledger {self.ledger}, entry {entry}: missing") from None
        raise error

    async def read(self, first: int, last: int) -> Sequence[tuple[int, bytes]]:
        return [(entry, bytes((await self._entry(entry, 0)).payload)) for entry in range(first, last + 1)]

    async def batch_read(self, first: int, count: int, size: int) -> Sequence[tuple[int, bytes]]:
        del size
        return await self.read(first, min(first + max(count, 1) - 1, self.lac))

    async def read_lac(self) -> int:
        with contextlib.suppress(MetadataStoreError):
            stored = await self.client.store.read(self.ledger)
            self.metadata, self.version = stored.value, stored.version
        if self.metadata.state is LedgerState.CLOSED:
            self.take_end()
            return self.lac
        for bookie in self.metadata.segments[-1].bookies:
            with contextlib.suppress(BookKeeperError):
                answer = await self.client.bookies.read(bookie, self.ledger, LAST_ENTRY)
                self.lac = max(self.lac, self.digest.open(answer.stored or b"", self.ledger).lac)
        return self.lac

    async def wait(self, lac: int, timeout_s: float) -> int:
        del lac
        await asyncio.sleep(timeout_s)
        return await self.read_lac()

    def follow(self) -> Following:
        raise AssertionError("this client has tails only")
