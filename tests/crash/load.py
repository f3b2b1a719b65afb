"""Load on one bookie until it dies, and verification of everything that it had acknowledged.

There are writers, a client that fences and recovers, and a reader, each a thread with its own connection. A ledger
belongs to one writer; the fencing client only tells it that the ledger is fenced. What was sent but not answered is
sent again after the restart, with the same bytes, as a writer would do.
"""

import itertools
import random
import threading
import time
from collections.abc import Callable

from tests.crash.peer import NO_ENTRY, OK, Ledger, Peer, PeerLost
from tests.history.events import History

Part = Callable[[Peer, random.Random], None]

__all__ = ["Load"]

WRITERS = 2
LEDGERS_EACH = 4
WINDOW = 200
FIRST_WRITER = 2
"""After the fencing client and the reader."""
WRONG_KEY = b"\7" * 20
FENCED_PROBES = 4
PATIENCE_S = 60.0


class Load:
    """Half of the writers use V3. Call `run` for each life of the process, then `verify` on the next one."""

    def __init__(self, history: History, rng: random.Random) -> None:
        self.history = history
        self.ledgers: list[Ledger] = []
        self._rng = rng
        self._ids = itertools.count(rng.randrange(1 << 40))
        self._owned = [[self.open() for _ in range(LEDGERS_EACH)] for _ in range(WRITERS)]
        self._failures: list[BaseException] = []
        self._over = threading.Event()
        self.acknowledged = 0

    def open(self) -> Ledger:
        """Open a further ledger to verify."""
        ledger = Ledger(next(self._ids))
        self.ledgers.append(ledger)
        return ledger

    def run(self, address: tuple[str, int], until: Callable[[], None]) -> None:
        """Load the bookie while `until` runs, which returns when the bookie is dead, or shall get no more load."""
        self._over.clear()
        parts: list[Part] = [self._meddle, self._read]
        parts += [self._writer(owned) for owned in self._owned]
        threads = [
            threading.Thread(target=self._play, args=(part, number, address, self._rng.randrange(1 << 60)))
            for number, part in enumerate(parts)
        ]
        for thread in threads:
            thread.start()
        try:
            until()
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
        if self._failures:
            raise self._failures[0]

    def go_on(self, count: int = 100) -> None:
        """Block, while `run` runs, until `count` more adds were acknowledged, so that a slow machine has got going."""
        goal, deadline = self.acknowledged + count, time.monotonic() + PATIENCE_S
        while self.acknowledged < goal:
            assert time.monotonic() < deadline, f"{self.acknowledged} of {goal} adds acknowledged"
            self._over.wait(0.01)

    def _play(self, part: Part, number: int, address: tuple[str, int], seed: int) -> None:
        peer = None
        try:
            peer = Peer(self.history, f"{number}", address, protocol=3 if number == FIRST_WRITER else 2)
            while not self._over.is_set():
                part(peer, random.Random(seed))
        except (PeerLost, ConnectionRefusedError, ConnectionResetError):
            pass  # the bookie was killed
        except BaseException as failure:  # noqa: BLE001 - an exception of a thread would be lost; `run` raises it
            self._failures.append(failure)
        finally:
            if peer is not None:
                peer.close()

    # The threads.

    def _writer(self, owned: list[Ledger]) -> Part:
        def write(peer: Peer, rng: random.Random) -> None:
            following = {ledger.id: ledger.lac + 1 for ledger in owned}
            while not self._over.is_set():
                if len(peer.outstanding) < WINDOW:
                    at = rng.randrange(len(owned))
                    if owned[at].closed:
                        owned[at] = self.open()
                    ledger, count = owned[at], rng.choice((1, 1, 5, 40))
                    first = following.get(ledger.id, 0)
                    ledger.sent = max(ledger.sent, first + count)
                    following[ledger.id] = first + count
                    peer.send_adds(ledger, first, count)
                self._acknowledge(peer.take_adds(wait=len(peer.outstanding) >= WINDOW), owned)
            while peer.outstanding:
                self._acknowledge(peer.take_adds(), owned)

        return write

    def _acknowledge(self, taken: list[tuple[int, int, int]], owned: list[Ledger]) -> None:
        by_id = {ledger.id: ledger for ledger in owned}
        for number, entry, code in taken:
            ledger = by_id.get(number) or next(ledger for ledger in self.ledgers if ledger.id == number)
            if code == OK:
                ledger.acknowledge(entry)
                self.acknowledged += 1
            else:
                ledger.closed = True  # fenced or refused: its writer continues with another one

    def _meddle(self, peer: Peer, rng: random.Random) -> None:
        """Fence a ledger now and then, and write its last entries again, as a recovery does."""
        while not self._over.wait(rng.uniform(0.01, 0.1)):
            ledger = rng.choice([ledger for ledger in self.ledgers if not ledger.fenced][-WRITERS * LEDGERS_EACH :])
            if rng.random() < 0.3 and ledger.acked:
                peer.add(ledger, ledger.sent + 1000, key=WRONG_KEY)
                continue
            if peer.fence(ledger) not in (OK, NO_ENTRY):
                continue
            ledger.fenced = ledger.closed = True
            for entry in range(max(ledger.lac - rng.randrange(5), 0), ledger.lac + 1):
                peer.add(ledger, entry, recovery=True)

    def _read(self, peer: Peer, rng: random.Random) -> None:
        while not self._over.wait(rng.uniform(0, 0.003)):
            ledger = rng.choice(self.ledgers)
            entry = rng.randrange(ledger.sent + 1)
            kind = rng.randrange(3)
            if kind == 0:
                peer.read(ledger.id, entry)
            elif kind == 1:
                peer.batch_read(ledger.id, entry, rng.choice((1, 10, 500)), 1 << 20)
            else:
                peer.last(ledger.id)

    # The verification.

    def verify(self, address: tuple[str, int]) -> None:
        """Read back every acknowledged entry; the checker of the history judges the result."""
        peer = Peer(self.history, "verifier", address)
        try:
            self.history.nemesis("verify")
            for ledger in self.ledgers:
                self._verify_ledger(peer, ledger)
            self.history.nemesis("verified")
            fenced = [ledger for ledger in self.ledgers if ledger.fenced]
            for ledger in self._rng.sample(fenced, min(len(fenced), FENCED_PROBES)):
                peer.add(ledger, ledger.sent + 2000)
        finally:
            peer.close()

    def _verify_ledger(self, peer: Peer, ledger: Ledger) -> None:
        if not ledger.acked:
            return
        last = max(ledger.acked)
        at, code = 0, OK
        while at <= last:
            code, count = peer.batch_read(ledger.id, at, 1000, 1 << 20)
            at += count if code == OK else 1
        while at < ledger.sent and code == OK:  # unacknowledged entries may exist, but must then be complete
            code, count = peer.batch_read(ledger.id, at, 1000, 1 << 20)
            at += count
        peer.read(ledger.id, self._rng.randrange(last + 1))
        peer.last(ledger.id)
