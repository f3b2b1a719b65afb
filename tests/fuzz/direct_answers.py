"""Fuzz targets for what a bookie sends over a direct connection, in either protocol, to each kind of request.

The bookie may send anything. Whatever is returned was requested and has a valid digest, and after an answer that
belongs to no request the connection is not used any more. To run one target alone:

    python -m tests.fuzz.direct_answers v2 [libFuzzer options] [corpus directory]
"""

import contextlib
import socket
import sys
from collections.abc import Callable
from functools import partial

from bookie._fast.client.direct_link import INVALID, LOST, MALFORMED, REFUSED
from bookie.client.wire.security import FRAME_PREFIX
from tests.fast.direct_peer import DIGEST, LONG_S, Peer, sealed
from tests.reference import wire_v2 as frames

ENTRIES = [sealed(entry) for entry in range(6)]
BATCH = 3
READS, BATCHES, EXCHANGES = 0, 1, 2
"""What the first byte of the data, divided by 3, says that the client asks for."""


def conversation(data: bytes, *, v3: bool) -> None:
    """Send the data behind its first byte, hang up, and let the client ask until the connection ends."""
    with contextlib.closing(Peer(v3=v3)) as peer:
        peer.sock.sendall(data[1:])
        peer.sock.shutdown(socket.SHUT_WR)
        (reads, batches, exchanges)[data[0] % 3 if data else READS](peer)
        assert peer.link.outcome in (LOST, MALFORMED)
        assert not peer.link.usable


def reads(peer: Peer) -> None:
    """Read the same entry again and again."""
    while peer.link.usable:
        stored = peer.read(2)
        assert stored in (None, ENTRIES[2])
        assert stored is not None or peer.link.outcome in (LOST, MALFORMED, REFUSED, INVALID)


def batches(peer: Peer) -> None:
    """Keep two batch reads outstanding."""
    link = peer.link
    for start in (0, BATCH):
        if not link.ask_batch(7, start, BATCH, 1 << 10, LONG_S):
            return
    while link.outstanding:
        got = link.take_batch(DIGEST.digester, LONG_S)
        if got is not None:
            start, run, offsets, _ = got
            assert start in (0, BATCH)
            assert 1 < len(offsets) <= BATCH + 1
            for k in range(len(offsets) - 1):
                assert run[offsets[k] + FRAME_PREFIX : offsets[k + 1]] == ENTRIES[start + k]
        elif link.outcome not in (REFUSED, INVALID):
            return
        if not link.ask_batch(7, 0, BATCH, 1 << 10, LONG_S):
            return


def exchanges(peer: Peer) -> None:
    """Log in for ever."""
    while peer.link.usable:
        answer = peer.link.exchange(b"\0\0\0\1x", LONG_S)
        assert answer is None or answer


def seeds(*, v3: bool) -> list[bytes]:
    """Return good answers to each kind of request, several of them, one cut short, and refusals."""
    peer = Peer(v3=v3)
    with contextlib.closing(peer):
        peer.sent = bytearray()
        for number in (1, 2):
            peer.send_entry(2, ENTRIES[2], number)
        entries = bytes(peer.sent)
        peer.sent.clear()
        for number, start in ((2, BATCH), (1, 0), (3, 0)):
            peer.send_batch(start, ENTRIES[start : start + BATCH], number)
        runs = bytes(peer.sent)
    refusal = frames.encode_response(frames.Response(frames.READ, 2, 7, 2))
    return [
        bytes([READS]) + entries,
        bytes([READS]) + refusal + entries,
        bytes([BATCHES]) + runs,
        bytes([BATCHES]) + runs[:-7],
        bytes([EXCHANGES]) + entries + runs,
        b"",
    ]


TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[], list[bytes]]]] = {
    name: (partial(conversation, v3=v3), partial(seeds, v3=v3)) for name, v3 in (("v2", False), ("v3", True))
}


def main() -> None:
    """Fuzz one target, from its seeds, until stopped."""
    import atheris

    target, given = TARGETS[sys.argv.pop(1)]
    for seed in given():
        target(seed)
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
