"""Several bookies as processes, each behind a gate that can be shut, and clients that write a ledger while things
fail.

All events are recorded in a history for the judge of the simulation (tests/sim/judge.py). Everything runs on one
event loop, and waits for acknowledged entries, never for time.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bookie.client.aio import BookKeeper, ReadHandle, WriteHandle
from bookie.errors import BookKeeperError, NoSuchLedger
from tests.fixtures.bookies import BookieProcess
from tests.sim.events import Event
from tests.sim.judge import Violation, judge

__all__ = ["Cluster", "Gate", "Workload"]

HOST = "127.0.0.2"
TOLD = {"advertisedAddress": HOST}
CHUNK = 1 << 16
ASKED_MAX = 3


class Gate:
    """Forwards TCP from `HOST` and the bookie's own port to the bookie. When shut, it holds back what it receives."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open = asyncio.Event()
        self._open.set()
        self._server: asyncio.Server | None = None
        self._carriers: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, HOST, self._port)

    def shut(self) -> None:
        """Keep the connections but forward nothing."""
        self._open.clear()

    def open(self) -> None:
        """Forward what was held back, and everything after it."""
        self._open.set()

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for carrier in self._carriers:
            carrier.cancel()
        await asyncio.gather(*self._carriers, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._carriers.add(task)
        task.add_done_callback(self._carriers.discard)
        back: asyncio.StreamWriter | None = None
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._port)
            ways = [asyncio.ensure_future(self._carry(reader, back)), asyncio.ensure_future(self._carry(there, writer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except OSError:
            return  # the bookie is down, so the connection is closed
        finally:
            for end in (writer, back):
                if end is not None:
                    end.close()

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(CHUNK):
                await self._open.wait()
                sink.write(data)
                await sink.drain()


class Bookie(BookieProcess):
    """A bookie process; with `within`, it runs where that says."""

    within: Callable[[list[str]], list[str]] | None = None

    def command(self, *options: str) -> list[str]:
        command = super().command(*options)
        return self.within(command) if self.within else command


class Cluster:
    """`count` bookies; the first also holds the metadata unless `uri` names a store."""

    def __init__(self, directory: Path, count: int, uri: str = "", **settings: str) -> None:
        self.bookies: list[Bookie] = []
        self.gates: list[Gate] = []
        self.uri = uri
        self._directory = directory
        self._settings = {**TOLD, **settings}
        for _ in range(count):
            self.join()

    def join(self, **settings: str) -> Bookie:
        """Add a bookie, without starting it."""
        uri = self.uri or f"lmdb://{self._directory}/metadata"
        bookie = Bookie(self._directory / f"bookie-{len(self.bookies)}", uri, {**self._settings, **settings})
        self.uri = self.uri or f"grpc://127.0.0.1:{bookie.settings['adminPort']}"
        self.bookies.append(bookie)
        return bookie

    async def start(self) -> None:
        """Start the bookies that are not running, and gates for all."""
        for bookie in self.bookies:
            gate = Gate(bookie.port)
            await gate.start()
            self.gates.append(gate)
            if bookie.process is None:
                await asyncio.to_thread(bookie.start)

    async def close_gates(self) -> None:
        """Close the gates before the end of their event loop."""
        for gate in self.gates:
            await gate.stop()
        self.gates = []

    def kill(self) -> None:
        """Kill all bookies."""
        for bookie in reversed(self.bookies):
            bookie.kill()

    def place(self, bookie_id: str) -> int:
        """Return the index of the bookie with this id."""
        return next(k for k, bookie in enumerate(self.bookies) if bookie.id == bookie_id)


class Workload:
    """One ledger, E = W = 3 and A = 2, from its first entry to the judgement."""

    def __init__(self, cluster: Cluster, **config: Any) -> None:
        self.cluster = cluster
        self.history: list[Event] = []
        self.acked = 0
        self.failed = False
        self.ledger = -1
        self.over = False
        self.silent: dict[str, str] = {}
        """The bookies that would not say in the end what they hold, and why: the judge finds less on them."""
        self._config = {
            "addEntryTimeoutSec": 1,
            "readEntryTimeoutSec": 4,
            "clientConnectTimeoutMillis": 1000,
            "throttle": 300,
            "maxOutstandingAdds": 50,
            "zkTimeout": 4000,
            **config,
        }
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[BookKeeper]:
        """Open a further client."""
        async with BookKeeper(self.cluster.uri, **self._config) as bk:
            yield bk

    def say(self, who: str, what: str, entry: int = -1, **more: Any) -> None:
        """Record an event in the history."""
        self.history.append(Event(time.monotonic(), who, what, self.ledger, entry, **more))

    async def more(self, entries: int) -> None:
        """Wait until `entries` more entries are acknowledged, or the writer has failed."""
        wanted = self.acked + entries
        async with self._changed:
            await self._changed.wait_for(lambda: self.failed or self.acked >= wanted)

    async def play(self, nemesis: Callable[[], Any], *, closes: bool = True) -> list[Violation]:
        """Write and tail while `nemesis` runs, then close or abandon the ledger, recover it, read it, and judge."""
        async with self.client() as writing, self.client() as reading:
            writer = await writing.create_ledger(
                ensemble_size=3, write_quorum_size=3, ack_quorum_size=2, digest_type="CRC32C", password=b"p"
            )
            self.ledger = writer.id
            first = await writing.ledger_metadata(self.ledger)
            self.say("writer", "stored", value=first, number=0)
            tail = asyncio.ensure_future(self._tail(reading))
            write = asyncio.ensure_future(self._write(writer))
            try:
                await nemesis()
            finally:
                self.over = True
            await write
            if closes and not self.failed:
                with contextlib.suppress(BookKeeperError):
                    await writer.close()
            if self.failed:
                self.say("writer", "crashed")  # a recovery may still confirm what was not acknowledged
            last = await self._finish()
            async with asyncio.timeout(120):
                await tail
            self.say("finish", "stored", value=last.metadata, number=1)
        copies = await self._copies()
        return judge(self.history, copies)

    # Clients.

    async def _write(self, writer: WriteHandle) -> None:
        count = 0
        outcomes: set[asyncio.Task[None]] = set()
        while not self.over and not self.failed:
            payload = b"%d of the entries" % count
            self.say("writer", "asked", number=count, value=payload)
            try:
                add = writer.append_async(payload)
            except BookKeeperError as error:
                await self._fail(count, error)
                break
            outcomes.add(asyncio.ensure_future(self._outcome(add, count, payload)))
            count += 1
            with contextlib.suppress(BookKeeperError):  # the outcome of the add tells of it
                await writer.drain()
        if outcomes:
            await asyncio.wait(outcomes)

    async def _outcome(self, add: Any, count: int, payload: bytes) -> None:
        try:
            entry = await add
        except BookKeeperError as error:
            await self._fail(count, error)
            return
        self.say("writer", "acked", entry, number=count, value=payload)
        async with self._changed:
            self.acked += 1
            self._changed.notify_all()

    async def _fail(self, count: int, error: BookKeeperError) -> None:
        self.say("writer", "failed", number=count, code=error.code)
        async with self._changed:
            self.failed = True
            self._changed.notify_all()

    async def _tail(self, bk: BookKeeper) -> None:
        """Read to the end as a tailing reader, checking that entries are confirmed and in order."""
        handle = await bk.open_ledger(self.ledger, password=b"p", recovery=False)
        async for batch in handle.follow(0):
            self.say("tail", "lac", handle.last_add_confirmed, number=1)
            for entry in batch:
                self.say("tail", "read", entry.id, value=bytes(entry.data))
        self.say("tail", "lac", handle.last_add_confirmed, number=1)

    async def _finish(self) -> ReadHandle:
        """Recover from two clients at once, and read everything."""
        async with self.client() as one, self.client() as other:
            handles = await asyncio.gather(*(bk.open_ledger(self.ledger, password=b"p") for bk in (one, other)))
            for number, handle in enumerate(handles):
                self.say(f"recover{number}", "opened", handle.last_add_confirmed, number=handle.length)
            async for batch in handles[0].batches():
                for entry in batch:
                    self.say("finish", "read", entry.id, value=bytes(entry.data))
            return handles[0]

    async def _copies(self) -> dict[str, dict[int, bytes]]:
        """Return the entries that each bookie holds of the ledger, read from each individually."""
        return {bookie.id: await self._held(bookie.id) for bookie in self.cluster.bookies}

    async def _held(self, bookie: str) -> dict[int, bytes]:
        """Return the entries that this bookie holds. An error may be a timeout, so ask again before there are none."""
        entries: dict[int, bytes] = {}
        for _ in range(ASKED_MAX):
            try:
                async with self.client() as bk:
                    available = await bk.bookie_client.list_entries(bookie, self.ledger)
                    for entry in range(available.last() + 1):
                        if entry in available and entry not in entries:
                            answer = await bk.bookie_client.read(bookie, self.ledger, entry)
                            entries[entry] = bytes(answer.stored or b"")
            except NoSuchLedger:
                return {}
            except BookKeeperError as error:
                self.silent[bookie] = f"{len(entries)} entries, then: {error}"
            else:
                self.silent.pop(bookie, None)
                break
        return entries
