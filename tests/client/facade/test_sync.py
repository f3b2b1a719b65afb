"""Ledgers through the client for threads, on three of our bookies."""

import asyncio
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bookie.client import BookKeeper, Digest, DigestType, aio
from bookie.client.blocking import appends
from bookie.client.entries.batch import StoredBatch
from bookie.errors import (
    ClientClosed,
    IllegalOperation,
    IncorrectParameter,
    LedgerClosed,
    LedgerFenced,
    NoSuchEntry,
    NoSuchLog,
    RequestTimeout,
)
from tests.metadata.seen import Seen

ROOT = Path(__file__).resolve().parents[3]
PAYLOADS = [b"entry %d" % k * (k % 7) for k in range(500)]


def test_what_is_written_is_read(uri: str) -> None:
    """As a user would do it: append one by one, read by a batch, a range and futures."""
    with BookKeeper(uri) as bk:
        with bk.create_ledger(
            ensemble_size=3, write_quorum_size=3, ack_quorum_size=2, digest_type="CRC32C", password=b"p"
        ) as ledger:
            for payload in PAYLOADS[:20]:
                ledger.append(payload)
            pending = [ledger.append_async(payload) for payload in PAYLOADS[20:]]
            assert [append.result() for append in pending] == list(range(20, 500))
            assert all(append.done() for append in pending)
        with bk.open_ledger(ledger.id, password=b"p") as reader:
            batch = reader.batch_read(0, max_count=500, max_size=1 << 20)
            assert [(entry.id, bytes(entry.data)) for entry in batch] == list(enumerate(PAYLOADS))
            futures: list[Future[Any]] = [reader.batch_read_async(k, max_count=1) for k in range(50)]
            assert [bytes(future.result()[0].data) for future in futures] == PAYLOADS[:50]
            with reader.batches(3, max_count=7) as batches:
                assert [entry.id for entry in next(batches)] == list(range(3, 10))
            assert [bytes(entry.data) for batch in reader.batches() for entry in batch] == PAYLOADS
            assert reader.last_add_confirmed == 499
        assert ledger.id in list(bk.list_ledgers())
        bk.delete_ledger(ledger.id)
        assert ledger.id not in list(bk.list_ledgers())


@pytest.mark.parametrize("config", [{}, {"maxOutstandingAdds": 20}, {"throttle": 100_000}])
def test_a_table_is_appended(uri: str, config: dict[str, Any]) -> None:
    """`append_all` adds all entries of one buffer and its offsets, from a thread and on asyncio, waiting for room."""
    offsets = np.cumsum([0, *map(len, PAYLOADS)])
    with BookKeeper(uri, **config) as bk:
        with bk.create_ledger() as ledger:
            assert ledger.append_all(b"".join(PAYLOADS), offsets) == len(PAYLOADS) - 1
        with bk.open_ledger(ledger.id) as reader:
            assert [bytes(entry.data) for batch in reader.batches() for entry in batch] == PAYLOADS
        with pytest.raises(LedgerClosed):
            ledger.append_all(b"x", offsets[:2])

    async def twin() -> None:
        async with aio.BookKeeper(uri, **config) as bk:
            async with bk.create_ledger() as ledger:
                assert await ledger.append_all(b"".join(PAYLOADS), offsets) == len(PAYLOADS) - 1
                with pytest.raises(IncorrectParameter, match="do not fit 1 bytes"):
                    await ledger.append_all(b"x", offsets[:9])
            assert (await bk.ledger_metadata(ledger.id)).length == offsets[-1]

    asyncio.run(twin())


def test_offsets_of_another_type(uri: str) -> None:
    """The error names the offsets, not the payloads, and says what to pass instead; nothing is added."""
    cases: list[tuple[Any, str]] = [
        ([0, 1], r"offsets=\[0, 1\], of type list"),
        (None, "offsets=None, of type NoneType"),
        (np.array([0, 1], dtype=np.int32), r"of type int32 and shape \(2,\)"),
        (np.zeros((2, 2), dtype=np.int64), r"of type int64 and shape \(2, 2\)"),
        (np.zeros(4, dtype=np.int64)[::2], r"of type int64 and shape \(2,\) with gaps"),
        (b"\0\1", "of type format 'B' and shape"),
    ]
    with BookKeeper(uri) as bk, bk.create_ledger() as ledger:
        for offsets, text in cases:
            for timeout in (None, 60.0):
                with pytest.raises(IncorrectParameter, match=text + r".*; use np\.array\(offsets, dtype=np\.int64\)"):
                    ledger.append_all(b"x", offsets, timeout=timeout)
        with pytest.raises(IncorrectParameter, match="they must ascend from 0 to 1"):
            ledger.append_all(b"x", np.array([0, 2]))
        assert ledger.append_all(b"x", memoryview(np.array([0, 1]))) == 0  # type: ignore[arg-type]  # any buffer


def test_logs_by_threads(uri: str) -> None:
    """All operations on a log work through the client's event loop, and are refused once the client is closed."""
    with BookKeeper(uri) as bk:
        logs = bk.logs
        seen = Seen()
        watch = logs.watch("facade", seen)
        assert logs.create("facade", [1]).value.ledgers == (1,)
        assert logs.append("facade", [2, 3], ("job", 0)).value.ledgers == (1, 2, 3)
        assert logs.append("facade", [4], ("job", 0)).value.ledgers == (1, 2, 3)
        assert logs.replace("facade", [3, 5])[1] == (1, 2)
        assert logs.remove("facade", {3}).value.ledgers == (5,)
        assert logs.forget("facade", "job") == logs.get("facade")
        assert logs.update("facade", lambda log: replace(log, settled=4)).value.settled == 4
        seen.wait_for(lambda log: log is not None and log.value.settled == 4, "the last change")
        watch.close()
        assert "facade" in list(logs.names())
        logs.delete("facade")
        with pytest.raises(NoSuchLog):
            logs.get("facade")
    with pytest.raises(ClientClosed):
        logs.get("facade")


def test_what_is_known_of_bookies(uri: str) -> None:
    """Registered bookies have cookies and publish their endpoints; nothing is known about others."""
    with BookKeeper(uri) as bk:
        assert bk.bookies() == bk.known_bookies() != frozenset()
        for bookie in bk.bookies():
            info = bk.service_info(bookie)
            assert info is not None
            assert info.client_endpoint() is not None
        assert bk.bookies(read_only=True) == frozenset()
        assert bk.service_info("10.255.255.1:3181") is None


def test_one_bookie_is_asked_by_a_thread(uri: str) -> None:
    """`batch_read_entries` returns what one bookie stores, and raises its errors unchanged."""
    with BookKeeper(uri) as bk:
        with bk.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1) as ledger:
            for payload in PAYLOADS[:20]:
                ledger.append(payload)
        (bookie,) = bk.ledger_metadata(ledger.id).segments[0].bookies
        batch = bk.bookie_client.batch_read_entries(bookie, ledger.id, 3, 5, 1 << 20, allow_fast_fail=True)
        called: queue.SimpleQueue[Future[StoredBatch]] = queue.SimpleQueue()
        bk.bookie_client.batch_read_entries_async(bookie, ledger.id, 3, 5, 1 << 20).add_done_callback(called.put)
        bk.bookie_client.batch_read_entries_async(bookie, ledger.id, 20, 1, 1).add_done_callback(called.put)
        answers = [called.get(timeout=60) for _ in range(2)]
        assert {len(answer.result()) for answer in answers if answer.exception() is None} == {len(batch)}
        assert [type(error) for answer in answers if (error := answer.exception()) is not None] == [NoSuchEntry]
        batch.verify(Digest.of(DigestType.CRC32, b""))
        assert [entry for entry, _ in batch] == [3, 4, 5, 6, 7]
        with pytest.raises(NoSuchEntry):
            bk.bookie_client.batch_read_entries(bookie, ledger.id, 20, 1, 1)
        with pytest.raises(IncorrectParameter, match="max_count -1"):
            bk.bookie_client.batch_read_entries(bookie, ledger.id, 0, -1, 1)
        calls = bk.bookie_client
    with pytest.raises(ClientClosed):
        calls.batch_read_entries(bookie, ledger.id, 0, 1, 1)


def test_many_threads_append_and_each_entry_is_there_once(uri: str) -> None:
    """Each id is assigned once, and each entry has what its thread wrote."""
    with BookKeeper(uri) as bk, bk.create_ledger(write_quorum_size=3) as ledger:

        def work(worker: int) -> dict[int, bytes]:
            return {ledger.append(payload): payload for payload in (b"%d-%d" % (worker, k) for k in range(50))}

        with ThreadPoolExecutor(8) as pool:
            written = {entry: payload for found in pool.map(work, range(8)) for entry, payload in found.items()}
        assert sorted(written) == list(range(400))
        assert {entry.id: bytes(entry.data) for entry in ledger.read(0, 399)} == written


def test_followed_while_it_is_written(uri: str) -> None:
    """A reader on another thread sees every entry once and in order, and the end."""
    with BookKeeper(uri) as bk:
        writer = bk.create_ledger(write_quorum_size=3)
        tail = bk.open_ledger(writer.id, recovery=False)
        seen: list[bytes] = []
        reader = threading.Thread(
            target=lambda: seen.extend(bytes(entry.data) for batch in tail.follow() for entry in batch)
        )
        reader.start()
        for payload in PAYLOADS:
            writer.append_async(payload)
        writer.flush()
        writer.close()
        reader.join()
        assert seen == PAYLOADS


def test_closing_the_client_wakes_all_threads(uri: str) -> None:
    """Each waiting thread gets ClientClosed."""
    bk = BookKeeper(uri)
    bk.start()
    writer = bk.create_ledger_advanced()
    writer.append(0, b"first")
    tail = bk.open_ledger(writer.id, recovery=False)
    assert bytes(tail.read_unconfirmed_async(0).result()[0].data) == b"first"
    pending = writer.append_async(5, b"behind a gap")
    with pytest.raises(RequestTimeout, match="entry 5"):
        pending.result(timeout=0)
    with ThreadPoolExecutor(4) as pool:
        waiting: list[Future[Any]] = [
            pool.submit(pending.result),
            pool.submit(writer.flush),
            pool.submit(next, tail.follow(9)),
        ]
        bk.close()
        for one in waiting:
            assert isinstance(one.exception(), ClientClosed), one.exception()
    bk.close()
    calls: list[Callable[[], object]] = [lambda: list(bk.list_ledgers()), tail.read_last_add_confirmed, writer.flush]
    for call in calls:
        with pytest.raises(ClientClosed):
            call()
    with pytest.raises(ClientClosed):
        writer.append(6, b"")
    with pytest.raises(IllegalOperation, match="make another"):
        bk.start()


def test_a_call_that_waits_is_refused_on_the_clients_own_thread(uri: str) -> None:
    """In a future's callback a call that waits would wait for itself, so it is refused."""
    with BookKeeper(uri) as bk, bk.create_ledger() as ledger:
        reported: Future[Any] = Future()

        def callback(_: Future[Any]) -> None:
            if threading.current_thread() is threading.main_thread():
                reported.set_result("the read was done before it was asked")
                return
            try:
                reported.set_result(ledger.append(b"y"))
            except IllegalOperation as error:
                reported.set_result(str(error))

        ledger.read_last_add_confirmed_async().add_done_callback(callback)
        assert reported.result() in (
            "the read was done before it was asked",
            "a call that waits was made on the client's own thread: use another thread, or bookie.client.aio",
        )


def test_leaving_with_an_error_closes_behind_what_was_acknowledged(uri: str) -> None:
    """ST7: the caller gets its own error, and the ledger is closed after the last acknowledged entry."""
    with BookKeeper(uri) as bk:
        ledger = bk.create_ledger_advanced()
        ledger.append(0, b"kept")
        pending = ledger.append_async(2, b"behind a gap")
        with pytest.raises(ZeroDivisionError), ledger:
            raise ZeroDivisionError
        with pytest.raises(LedgerClosed):
            pending.result()
        with bk.open_ledger(ledger.id) as reader:
            assert reader.last_add_confirmed == 0


@pytest.mark.thorough
def test_leaving_after_a_fence_tells_the_fence(uri: str) -> None:
    """The error is the fence; that the ledger could not be closed is only a note."""
    with BookKeeper(uri) as bk:
        ledger = bk.create_ledger()
        ledger.append(b"x")
        bk.open_ledger(ledger.id)
        with pytest.raises(LedgerFenced), ledger:
            ledger.append_async(b"late")


@pytest.mark.thorough
def test_a_forked_child_is_refused_and_the_parent_goes_on(uri: str) -> None:
    """A child cannot use the parent's connections, and leaving its with blocks does no harm to the parent."""
    with BookKeeper(uri) as bk, bk.create_ledger() as ledger:
        ledger.append(b"parent")
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            said = b"nothing"
            try:
                with ledger:
                    ledger.append(b"child")
            except ClientClosed as error:
                said = str(error).encode()
            finally:
                os.write(write, said)
                os._exit(0)
        os.waitpid(child, 0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            assert b"was forked" in pipe.read()
        assert ledger.append(b"parent again") == 1


def test_a_child_that_is_forked_while_a_future_is_made() -> None:
    """The lock that the parent's thread holds then does not stop the futures of the child's own client."""
    ended: Any = SimpleNamespace(done=lambda: True, result=lambda: 5, wait=lambda _: True, entry=5, tell=lambda _: None)
    with appends._making:
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            told: list[int] = []
            appends.Append(ended).add_done_callback(lambda done: told.append(done.result()))
            os._exit(0 if told == [5] else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["end", "sys.exit(3)", "raise SystemExit(3)"])
def test_an_interpreter_that_ends_without_closing(uri: str, how: str) -> None:
    """The interpreter exits with its own code and without output."""
    program = f"""
import sys, threading
from bookie.client import BookKeeper
from bookie.errors import ClientClosed
bk = BookKeeper({uri!r})
bk.start()
writer = bk.create_ledger_advanced()
writer.append(0, b"x")
writer.append_async(2, b"behind a gap")
tail = bk.open_ledger(writer.id, recovery=False)
def follow():
    try:
        list(tail.follow())
    except ClientClosed:
        pass
threading.Thread(target=follow, daemon=True).start()
{"" if how == "end" else how}
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == (0 if how == "end" else 3), done.stderr
    assert not done.stderr
