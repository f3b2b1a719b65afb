"""Direct reads where a bookie wants more than a connection, or the other end does not behave as a bookie does.

What answers the direct connections here is a socket of the test; the event loop goes on to use the real bookies.
"""

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import pytest

from bookie.auth.token import TokenClient
from bookie.client import BookKeeper
from bookie.client.blocking.handles import ReadHandle
from bookie.client.direct import pool as direct_pool
from bookie.client.direct.connect import Endpoint
from bookie.client.direct.pool import DirectPool
from tests.client.facade.direct_adds import WAIT_S, wait_until
from tests.client.facade.test_direct import PAYLOADS, contents, only_direct, warm, written
from tests.fast.direct_peer import sealed
from tests.fixtures.bookies import BookieProcess, metadata_of
from tests.reference import wire_v2 as v2

TOKEN = "a-token-of-enough-bytes"
REQUEST_BYTES = 24
"""A V2 read, with its length."""
TRICKLE_S = 0.02


def pool_of(bk: BookKeeper) -> DirectPool:
    """Return the direct connections to the one bookie that the client has read from."""
    (pool,) = {peer.direct for peer in bk._aio.bookie_client._peers.values() if peer.direct.endpoint is not None}
    return pool


def dropped(pool: DirectPool) -> None:
    """Close all idle connections, and those that are being established."""
    wait_until(lambda: not pool._connecting)
    while pool._idle:
        link = pool._idle.pop()
        link.close()
        pool.give(link)


@pytest.mark.parametrize("protocol", [2, 3])
def test_authentication(
    bookies: Callable[..., list[BookieProcess]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: int
) -> None:
    """A direct connection logs in like the others; with a token that the bookie does not know any more, none is made
    and the event loop reads over the connection that it has.
    """
    tokens = tmp_path / "tokens"
    tokens.write_text(f"admin:one:{TOKEN}\n")
    monkeypatch.setenv("BOOKIE_AUTH_TOKEN", TOKEN)
    (one,) = bookies(1, bookieAuthProviderFactoryClass="token", authTokenFile=str(tokens))
    settings: dict[str, Any] = {"useV2WireProtocol": protocol == 2, "clientAuthProviderFactoryClass": "token"}
    uri = metadata_of([one])
    ledger = written(uri, **settings)
    with BookKeeper(uri, **settings) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        with only_direct(reader):
            assert contents(reader.read(5)) == [(5, PAYLOADS[5])]
            assert contents(reader.batch_read(5, 2)) == list(enumerate(PAYLOADS))[5:7]
        pool = pool_of(bk)
        pool._connector._auth = TokenClient(b"another-token-of-enough-bytes")
        for link in list(pool._links):
            link.shutdown()
        for _ in range(2):  # by the connection that has ended, and by one that is not made
            assert contents(reader.read(6)) == [(6, PAYLOADS[6])]
        assert not pool._links


class Impostor:
    """A socket that direct connections are led to. `answer` is called for each of them, after its first request."""

    def __init__(self, answer: Callable[[socket.socket, threading.Event], None]) -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        self.asked = 0
        """How many connections had a request."""
        self.stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while not self.stopped.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with sock, contextlib.suppress(OSError):
                if len(sock.recv(REQUEST_BYTES, socket.MSG_WAITALL)) == REQUEST_BYTES:
                    self.asked += 1
                    self._answer(sock, self.stopped)

    def stop(self) -> None:
        """End the thread."""
        self.stopped.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@contextlib.contextmanager
def misled(
    uri: str, answer: Callable[[socket.socket, threading.Event], None], **settings: float
) -> Iterator[tuple[ReadHandle, Impostor, DirectPool]]:
    """Yield a handle whose direct connections lead to an impostor. One is established."""
    ledger = written(uri)
    impostor = Impostor(answer)
    try:
        with (
            BookKeeper(uri, useV2WireProtocol=True, maxDirectConnectionsPerBookie=1, **settings) as bk,
            bk.open_ledger(ledger) as reader,
        ):
            warm(reader)
            pool = pool_of(bk)
            pool.endpoint = Endpoint("127.0.0.1", impostor.address)
            dropped(pool)
            with patch.object(direct_pool, "WAIT_S", WAIT_S):
                link = pool.take(WAIT_S)
                assert link is not None
                pool.give(link)
                yield reader, impostor, pool
    finally:
        impostor.stop()


def trickle(sock: socket.socket, stopped: threading.Event) -> None:
    """Send a byte of a long response now and then, so that the bookie is never silent."""
    sock.sendall(b"\0\1\0\0")
    while not stopped.wait(TRICKLE_S):
        sock.sendall(b"\0")


@pytest.mark.parametrize("given", ["timeout", "callTimeoutSec"])
def test_a_response_that_never_ends(uri: str, given: str) -> None:
    """A call with a limit leaves a good part of it to the event loop, however the limit was given."""
    settings = {"readEntryTimeoutSec": 60.0} | ({given: 4.0} if given == "callTimeoutSec" else {})
    with misled(uri, trickle, **settings) as (reader, impostor, _):
        timeout = 4.0 if given == "timeout" else None
        assert contents(reader.read(5, timeout=timeout)) == [(5, PAYLOADS[5])]
        assert impostor.asked == 1
        assert contents(reader.batch_read(5, 2, timeout=timeout)) == list(enumerate(PAYLOADS))[5:7]
        assert impostor.asked == 1  # it was late, so it is not asked for a while


def read_answer(entry: int, stored: bytes) -> bytes:
    """Return the response to a read of ledger 7, whose entries have another password and ledger than those here."""
    return v2.encode_response(v2.Response(v2.READ, 0, 7, entry, body=stored))


HOSTILE: dict[str, bytes] = {
    "nothing": b"",
    "a part": b"\0\0\1\0abc",
    "an endless frame": b"\xff\xff\xff\xff",
    "another ledger": read_answer(5, sealed(5)),
    "no frame": bytes(64),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_answers(uri: str, case: str) -> None:
    """Whatever arrives over a direct connection, the caller gets the entry, and the connection is not used again."""
    with misled(uri, lambda sock, _: sock.sendall(HOSTILE[case])) as (reader, impostor, pool):
        for count in (1, 2):
            assert contents(reader.read(5)) == [(5, PAYLOADS[5])]
            assert impostor.asked == count
            assert not pool._links


def test_a_digest_of_another_password(uri: str) -> None:
    """An entry whose digest is wrong is read again by the event loop."""
    ledger = 0

    def answer(sock: socket.socket, _: threading.Event) -> None:
        sock.sendall(v2.encode_response(v2.Response(v2.READ, 0, ledger, 5, body=sealed(5, ledger=ledger))))

    with misled(uri, answer) as (reader, impostor, _):
        ledger = reader.id
        assert contents(reader.read(5)) == [(5, PAYLOADS[5])]
        assert impostor.asked == 1


def test_an_interrupt_inside_a_response(uri: str) -> None:
    """Ctrl-C ends a read that has received half of a response, and the rest is never taken for another entry."""
    ledger = 0
    interrupted = threading.Event()
    main = threading.main_thread().ident
    assert main is not None

    def answer(sock: socket.socket, _: threading.Event) -> None:
        frame = v2.encode_response(v2.Response(v2.READ, 0, ledger, 5, body=sealed(5, ledger=ledger)))
        sock.sendall(frame[: len(frame) // 2])
        signal.pthread_kill(main, signal.SIGUSR1)
        interrupted.wait()
        sock.sendall(frame[len(frame) // 2 :])

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with misled(uri, answer) as (reader, _, pool):
            ledger = reader.id
            with pytest.raises(KeyboardInterrupt):
                reader.read(5)
            assert not pool._links
            interrupted.set()
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            assert contents(reader.read(6)) == [(6, PAYLOADS[6])]
    finally:
        interrupted.set()
        signal.signal(signal.SIGUSR1, before)
