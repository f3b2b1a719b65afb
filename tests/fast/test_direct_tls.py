"""Test encrypted direct connections by TLS records: parts of them, long responses, ends, and what Java sends."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from OpenSSL import SSL

from bookie._fast.client.direct_link import LATE, LOST, MALFORMED, DirectLink
from tests.fast.direct_peer import DIGEST, FRAME_BYTES_MAX, LONG_S, SOON_S, Peer, sealed
from tests.fixtures.certificates import Authority

GREETING = bytes.fromhex("0000000d0a0608031009180a1000d20600")
"""The response to START_TLS, golden vector 31."""


class SealedPeer(Peer):
    """A direct connection through TLS. The bookie's end is Python's ssl module on memory buffers."""

    def __init__(self, context: ssl.SSLContext, *, v3: bool) -> None:
        ours, self.sock = socket.socketpair()
        self.v3 = v3
        self.sent: bytearray | None = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        answering = threading.Thread(target=self._shake_hands)
        answering.start()
        connection = SSL.Connection(SSL.Context(SSL.TLS_CLIENT_METHOD), ours)
        connection.set_connect_state()
        connection.do_handshake()
        answering.join()
        ours.setblocking(False)
        self.link = DirectLink(connection, FRAME_BYTES_MAX, LONG_S, v3=v3, encrypted=True)

    def _shake_hands(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self.sock.sendall(self._outgoing.read())
                self._incoming.write(self.sock.recv(1 << 16))
            else:
                self.sock.sendall(self._outgoing.read())
                return

    def sealed(self, data: bytes) -> bytes:
        """Encrypt bytes."""
        self._tls.write(data)
        return self._outgoing.read()

    def asked(self) -> bytes:
        """Receive a request, and return it."""
        while True:
            with contextlib.suppress(ssl.SSLWantReadError):
                return self._tls.read(1 << 16)
            self._incoming.write(self.sock.recv(1 << 16))

    def send(self, data: bytes) -> None:
        """Encrypt and send bytes, or keep them in `sent`."""
        if self.sent is None:
            super().send(self.sealed(data))
        else:
            self.sent += data

    def unsent(self, send: Callable[[], None]) -> bytes:
        """Return what `send` would send, in clear."""
        self.sent = bytearray()
        send()
        data, self.sent = bytes(self.sent), None
        return data


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """The bookie's side of TLS."""
    ca = Authority(Path(tmp_path_factory.mktemp("ca")))
    party = ca.issue("bookie", hosts=["localhost"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(party.certificate, party.key)
    return context


@pytest.fixture(params=[2, 3])
def peer(request: pytest.FixtureRequest, context: ssl.SSLContext) -> Iterator[SealedPeer]:
    """A connection in each protocol."""
    with contextlib.closing(SealedPeer(context, v3=request.param == 3)) as peer:
        yield peer


def test_reads(peer: SealedPeer) -> None:
    """Requests are encrypted; responses of any size come back, whole or in records that end anywhere."""
    peer.send_entry(1, sealed(1))
    assert peer.read(1) == sealed(1)
    assert peer.asked()
    entries = [sealed(k, bytes([k]) * 9000) for k in range(60)]
    peer.send_batch(0, entries, number=2)
    assert peer.batch(0) == entries
    data = peer.unsent(lambda: peer.send_entry(5, sealed(5), number=3))
    for at in range(0, len(data), 7):
        peer.sock.sendall(peer.sealed(data[at : at + 7]))
    assert peer.read(5) == sealed(5)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_time_limits(peer: SealedPeer, share: float) -> None:
    """A response that comes late, or of which only a part of a TLS record comes, ends the connection."""
    record = peer.sealed(peer.unsent(lambda: peer.send_entry(1, sealed(1))))
    peer.sock.sendall(record[: int(share * len(record))])
    assert peer.link.read(7, 1, DIGEST.digester, SOON_S) is None
    assert (peer.link.outcome, peer.link.usable) == (LATE, False)


def test_a_record_in_two_parts(peer: SealedPeer) -> None:
    """The rest of a TLS record is waited for."""
    record = peer.sealed(peer.unsent(lambda: peer.send_entry(1, sealed(1))))
    peer.sock.sendall(record[:20])
    rest = threading.Timer(SOON_S, peer.sock.sendall, [record[20:]])
    rest.start()
    assert peer.read(1) == sealed(1)
    rest.join()


def test_requests_that_do_not_fit_into_the_socket(peer: SealedPeer) -> None:
    """A long request is sent piece by piece, as the bookie receives it."""
    received = bytearray()
    frame = bytes(4) + bytes(4 << 20)

    def answer() -> None:
        while len(received) < len(frame):
            received.extend(peer.asked())
        peer.send(b"\0\0\0\1x")

    answering = threading.Thread(target=answer)
    answering.start()
    assert peer.link.exchange(frame, LONG_S) == b"x"
    answering.join()
    assert received == frame


def test_ends(peer: SealedPeer) -> None:
    """The end of the TLS session, or of the connection by another thread, loses it."""
    shutdown = threading.Timer(SOON_S, peer.link.close)
    shutdown.start()
    assert peer.read(1) is None
    assert (peer.link.outcome, peer.link.usable) == (LOST, False)
    shutdown.join()


def test_the_end_of_the_session(peer: SealedPeer) -> None:
    """A bookie that ends the TLS session in the middle of a response has lost it."""
    data = peer.unsent(lambda: peer.send_entry(1, sealed(1)))
    peer.send(data[:10])
    with contextlib.suppress(ssl.SSLWantReadError):
        peer._tls.unwrap()
    peer.sock.sendall(peer._outgoing.read())
    assert peer.read(1) is None
    assert (peer.link.outcome, peer.link.usable) == (LOST, False)


def test_bytes_that_are_no_records(peer: SealedPeer) -> None:
    """Whatever is not TLS loses the connection."""
    peer.sock.sendall(bytes(64))
    assert peer.read(1) is None
    assert peer.link.outcome == LOST


def test_what_javas_bookie_repeats_inside_tls(peer: SealedPeer) -> None:
    """The response to START_TLS is skipped once, before a response or together with it; a second one is not one."""
    peer.send(GREETING + peer.unsent(lambda: peer.send_entry(1, sealed(1))))
    assert peer.read(1) == sealed(1)
    peer.send(GREETING)
    assert peer.read(2) is None
    assert peer.link.outcome == MALFORMED


def test_what_javas_bookie_repeats_in_clear() -> None:
    """Without TLS, a response to START_TLS answers nothing that was asked."""
    with contextlib.closing(Peer(v3=False)) as peer:
        peer.send(GREETING)
        assert peer.read(1) is None
        assert peer.link.outcome == MALFORMED
