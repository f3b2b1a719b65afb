"""Entries that are told from their ids, written and read over each protocol, by peers with hardly any room.

Used by one thread at a time.
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
"""Of an entry: it is sent from where it lies."""
SLOW: dict[str, Any] = {"receive_bytes": 4096, "segment_bytes": 1400}


@cache
def stored(ledger: int, entry: int) -> bytes:
    """What the entry must be."""
    return entry_of(ledger, entry, random.Random(ledger << 32 | entry).randbytes(BYTES))


def fill(peer: Peer, ledger: int, entries: range) -> None:
    """Write them and see them acknowledged."""
    peer.send(*(add(ledger, entry, stored(ledger, entry)[32:]) for entry in entries))
    assert {peer.answer().code for _ in entries} == {0}


class Wire:
    """One protocol as these tests speak it: reads go out, entries come back."""

    def __init__(self, name: str, bookie: LocalBookie, ca: Authority | None = None) -> None:
        self.v3 = name != "v2"
        self.bookie = bookie
        self.context = client_context(ca) if ca is not None and name == "tls" else None

    def slow(self) -> Peer:
        """A connection with hardly any room for what it does not read."""
        if self.context is not None:
            return TlsPeer(self.bookie.address, self.context, **SLOW)
        return self.bookie.peer(**SLOW)

    def batch(self, peer: Peer, ledger: int, start: int, count: int) -> None:
        """Ask for `count` entries."""
        if self.v3:
            v3.send(peer, v3.batch3(ledger, start, maxCount=count))
        else:
            peer.send(batch(ledger, start, count=count))

    def single(self, peer: Peer, ledger: int, entry: int) -> None:
        """Ask for one entry."""
        if self.v3:
            v3.send(peer, v3.read3(ledger, entry))
        else:
            peer.send(read(ledger, entry))

    def check(self, peer: Peer) -> tuple[int, int, int]:
        """The next answer: its ledger, first entry and number of entries, each of which is what was stored."""
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
    """How many were found from where, when all are right."""
    assert found == [stored(ledger, first + at) for at in range(len(found))]
    return ledger, first, len(found)
