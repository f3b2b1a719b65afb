"""Entries whose contents follow from their ids, written and read with each protocol, by peers with small buffers.

One thread at a time.
"""

import random
from functools import cache
from typing import Any

from bookie.pb import wire_pb2 as wire
from tests.fixtures.certificates import Authority
from tests.hostile import v3
from tests.hostile.local import LocalBookie
from tests.hostile.peer import Peer, add, batch, entry_of, read, records
from tests.hostile.tls_peer import TlsPeer, client_context

BYTES = 6000
"""The size of an entry, which is sent from where it is stored."""
SLOW: dict[str, Any] = {"receive_bytes": 4096, "segment_bytes": 1400}


@cache
def stored(ledger: int, entry: int) -> bytes:
    """Return the expected entry."""
    return entry_of(ledger, entry, random.Random(ledger << 32 | entry).randbytes(BYTES))


def fill(peer: Peer, ledger: int, entries: range) -> None:
    """Write entries and wait until they are acknowledged."""
    peer.send(*(add(ledger, entry, stored(ledger, entry)[32:]) for entry in entries))
    assert {peer.answer().code for _ in entries} == {0}


class Wire:
    """One protocol for these tests: sending reads, and receiving entries."""

    def __init__(self, name: str, bookie: LocalBookie, ca: Authority | None = None) -> None:
        self.v3 = name != "v2"
        self.bookie = bookie
        self.context = client_context(ca) if ca is not None and name == "tls" else None

    def slow(self) -> Peer:
        """Return a connection with small buffers for unread bytes."""
        if self.context is not None:
            return TlsPeer(self.bookie.address, self.context, **SLOW)
        return self.bookie.peer(**SLOW)

    def batch(self, peer: Peer, ledger: int, start: int, count: int) -> None:
        """Request `count` entries."""
        if self.v3:
            v3.send(peer, v3.batch3(ledger, start, maxCount=count))
        else:
            peer.send(batch(ledger, start, count=count))

    def single(self, peer: Peer, ledger: int, entry: int) -> None:
        """Request one entry."""
        if self.v3:
            v3.send(peer, v3.read3(ledger, entry))
        else:
            peer.send(read(ledger, entry))

    def check(self, peer: Peer) -> tuple[int, int, int]:
        """Check the next response; return its ledger, its first entry and the number of entries."""
        if not self.v3:
            answer = peer.answer()
            assert answer.code == 0
            found = records(answer.body) if answer.request_id else [answer.body]
            return checked(answer.ledger, answer.entry, found)
        response = v3.answer(peer)
        assert response.status == wire.EOK
        body = v3.part(response)
        if response.header.operation == wire.READ_ENTRY:
            return checked(body.ledgerId, body.entryId, [body.body])
        return checked(body.ledgerId, body.startEntryId, list(body.body))


def checked(ledger: int, first: int, found: list[bytes]) -> tuple[int, int, int]:
    """Check the entries, and return how many there are and from which one."""
    assert found == [stored(ledger, first + at) for at in range(len(found))]
    return ledger, first, len(found)
