"""The peers of a world: each sends requests of its role on one connection, and records what it sent and received.

All of them run on the driver's thread, one `turn` at a time.
"""

import random
from collections import Counter, deque

from tests.engine.entries import fingerprint, is_sound, stored
from tests.engine.events import Invocation, Recorder, heads
from tests.engine.plan import PeerPlan
from tests.engine.runtime import NEVER, Runtime
from tests.engine.sealed import START_TLS, SealedEnd
from tests.engine.wild import wild_frame
from tests.engine.wire import LAST, NO_ENTRY, NO_LEDGER, OK, V2, V3, Answer, Frames, Key

__all__ = ["Connection", "Crowd", "Known", "Peer", "Verifier"]

LOOPBACK = 0x7F000001
DAMAGED = 999
"""The code of an answer whose digest tells the client that it asks another bookie."""
RAW = ("wild", "flood")
"""Roles whose answers nobody looks at."""
NEWS_BITS = 64
REST_NS = 20_000_000
"""The pause after a refusal."""


class Known:
    """What peers know of earlier runs and of each other: the next entry of each ledger, and which ledgers exist."""

    def __init__(self, ledgers: tuple[int, ...]) -> None:
        self.next: dict[int, int] = {}
        self.ledgers = ledgers
        self.existing = set(ledgers)

    def absorb(self, history: bytes) -> None:
        """Learn from the history of a run."""
        for kind, op, ledger, entry in heads(history):
            if kind == "invoke" and op in ("add", "recovery_add"):
                self.next[ledger] = max(self.next.get(ledger, 0), entry + 1)
            elif op == "delete":
                self.existing.discard(ledger)


class Connection:
    """A connection of a peer: unsent bytes, received frames, and the requests that wait for a response."""

    def __init__(
        self, runtime: Runtime, recorder: Recorder, client: int, protocol: V2 | V3, *, sealed: bool = False
    ) -> None:
        self.runtime = runtime
        self.recorder = recorder
        self.client = client
        self.protocol = protocol
        self.outstanding: dict[Key, Invocation] = {}
        self.closed = False
        self.malformed = ""
        self._frames = Frames()
        self._unsent: deque[bytes] = deque()
        self._send, self._receive, self._now = runtime.send, runtime.receive, runtime.now
        self._number = runtime.connect(LOOPBACK + client)
        if self._number < 0:
            self.closed = True
        self._sealed = SealedEnd() if sealed else None
        if sealed:
            self._unsent.append(START_TLS)

    def quiet(self, news: int) -> bool:
        """Whether nothing is left to send, and nothing has arrived; `news` are the bits of `Runtime.news`."""
        return not self._unsent and 0 <= self._number < NEWS_BITS and not news >> self._number & 1

    def ask(self, op: str, ledger: int, entry: int, key: Key, frame: bytes, body: bytes = b"") -> None:
        """Send a request and record it."""
        bodies = (body,) if body else ()
        number = self.recorder.invoke(self.client, op, ledger, entry, bodies)
        self.outstanding[key] = Invocation(number, self.client, op, ledger, entry, body, self._now())
        self.send_raw(frame)

    def send_raw(self, data: bytes) -> None:
        """Send bytes, which need not be a request."""
        if data := self._sealed.seal(data) if self._sealed else data:
            self._unsent.append(data)
        self.push()

    def push(self) -> None:
        """Send what the bookie's socket takes."""
        while self._unsent and not self.closed:
            data = self._unsent.popleft()
            sent = self._send(self._number, data)
            if sent < 0:
                self.closed = True
            elif sent < len(data):
                self._unsent.appendleft(data[sent:])
                return

    def receive(self, most: int = 0) -> list[tuple[Invocation, Answer]]:
        """Return the responses that have arrived, and record them. `most` limits the bytes read; 0 does not."""
        found: list[tuple[Invocation, Answer]] = []
        while self._number >= 0:
            data = self._receive(self._number, most)
            if not data:
                self.closed = self.closed or data is None
                break
            for body in self._frames.feed(data if self._sealed is None else self._opened(data)):
                self._take(body, found)
            if most:
                break
        return found

    def ignore(self) -> None:
        """Read what has arrived, whatever it is."""
        while self._number >= 0 and (data := self._receive(self._number, 0)) != b"":
            if data is None:
                self.closed = True
                return

    def _opened(self, data: bytes) -> bytes:
        """Return what received bytes say."""
        assert self._sealed is not None
        said, answer = self._sealed.receive(data)
        if answer:
            self._unsent.append(answer)
        self.malformed = self.malformed or self._sealed.failed
        return said

    def _take(self, body: bytes, found: list[tuple[Invocation, Answer]]) -> None:
        try:
            answer = self.protocol.answer(body)
        except ValueError as error:
            self.malformed = self.malformed or str(error)
            return
        invocation = self.outstanding.pop(answer.key, None)
        if invocation is None:
            return
        if answer.entries and not all(map(is_sound, answer.entries)) and self.runtime.distrusted():
            answer = Answer(answer.key, DAMAGED)
        entry, lac = invocation.entry, -1
        bodies: tuple[bytes, ...] = (invocation.body,) if invocation.body and answer.code == OK else ()
        if answer.code == OK and answer.entries:
            entry = int.from_bytes(answer.entries[0][8:16], "big", signed=True)
            bodies = tuple(map(fingerprint, answer.entries))
        if answer.entries:
            lac = int.from_bytes(answer.entries[-1][16:24], "big", signed=True)
        self.recorder.answer(invocation, answer.code, entry, bodies, lac=lac)
        found.append((invocation, answer))

    def end(self, how: int) -> None:
        """Half-close (0), close (1) or reset (2) the connection."""
        self.runtime.end(self._number, how)
        self.closed = True
        if how > 0:
            self._number = -1  # another connection may get the number


class Peer:
    """A peer with a role. `turn` lets it receive and send; `due` is when it wants its next turn."""

    def __init__(
        self, runtime: Runtime, recorder: Recorder, client: int, plan: PeerPlan, known: Known, most: int
    ) -> None:
        self.plan = plan
        self._role, self._window, self._pause_ns, self._sip_bytes = (
            plan.role,
            plan.window,
            plan.pause_ns,
            plan.sip_bytes,
        )
        self.refused = ""
        self._free = plan.free
        self._raw, self._slow = plan.role in RAW, plan.role == "silent" or plan.sip_bytes > 0
        self._known = known
        self._most = most
        self._rng = random.Random(f"peer-{plan.seed}")
        self._runtime, self._recorder, self._client = runtime, recorder, client
        self._connection: Connection | None = None
        self._left = plan.requests
        self.due = runtime.now() + plan.begin_ns

    def waiting(self) -> int:
        """Return how many requests have no response, on a connection that is open and that the peer reads fast."""
        if self._connection is None or self._connection.closed or self._slow:
            return 0
        return len(self._connection.outstanding)

    def adding(self) -> int:
        """Return how many of these requests are adds; 0 for a peer that reads as well, and may wait for that."""
        return self.waiting() if self._role == "writer" else 0

    def spared(self) -> int:
        """Return how many of these requests need no disk that hangs."""
        return self.waiting() if self._free else 0

    def oldest_ns(self) -> int:
        """Return when the first of the requests that `waiting` counts was sent; NEVER if there is none."""
        if self._connection is None or not self.waiting():
            return NEVER
        return min(invocation.at_ns for invocation in self._connection.outstanding.values())

    def oldest(self) -> str:
        """Return what was asked first of the requests that `waiting` counts, of which there is one."""
        assert self._connection is not None
        first = min(self._connection.outstanding.values(), key=lambda invocation: invocation.at_ns)
        return f"{first.op} of entry {first.entry} of ledger {first.ledger}"

    def malformed(self) -> str:
        """Return what was received that is no response."""
        return self._connection.malformed if self._connection else ""

    def done(self) -> bool:
        """Whether nothing is left to ask."""
        return self._left <= 0

    def idle(self, now: int, news: int) -> bool:
        """Whether a turn would do nothing."""
        if self._connection is None or now >= self.due:
            return False
        return not self._connection.closed and self._connection.quiet(news)

    def turn(self, now: int) -> None:
        """Receive and record responses, and send requests if it is time."""
        if self._connection is None:
            if now < self.due:
                return
            self._connection = Connection(
                self._runtime, self._recorder, self._client, V3() if self.plan.v3 else V2(), sealed=self.plan.sealed
            )
        connection = self._connection
        if self._raw:
            connection.ignore()
        elif self._role != "silent" and (now >= self.due or not self._sip_bytes):
            for invocation, answer in connection.receive(self._sip_bytes):
                self._answered(invocation, answer, now)
        connection.push()
        if connection.closed and self._role == "wild" and self._left > 0:
            connection.end(1)
            self._connection, self.due = None, now + REST_NS
            return
        if connection.closed:
            self.due, self._left = NEVER, 0
            return
        if now >= self.due:
            self._act(now)

    def drain(self) -> None:
        """Record what has arrived, before the process dies."""
        if self._connection is not None:
            self._connection.receive()

    def _act(self, now: int) -> None:
        connection = self._connection
        assert connection is not None
        ask = getattr(self, f"_{self._role}")
        while self._left > 0 and len(connection.outstanding) < self._window and not connection.closed:
            self._left -= 1
            ask(connection)
            if self._pause_ns:
                break
        self.due = now + self._pause_ns if self._pause_ns and self._left > 0 else NEVER
        if self._sip_bytes and (connection.outstanding or self._left > 0):
            self.due = now + REST_NS
        if self._left > 0 and not self._pause_ns and not connection.outstanding:
            self.due = now + REST_NS

    def _answered(self, invocation: Invocation, answer: Answer, now: int) -> None:
        if self._free and answer.code not in (OK, NO_ENTRY, NO_LEDGER):
            self.refused = self.refused or f"{invocation.op} of ledger {invocation.ledger}: code {answer.code}"
        if invocation.op in ("add", "recovery_add") and answer.code > NO_ENTRY:
            self.due = max(now + REST_NS, min(self.due, now + REST_NS))
        elif not self._pause_ns:
            self.due = now

    # --- what a role asks next ----------------------------------------------------------------------------------------

    def _ledger(self) -> int:
        existing = [ledger for ledger in self.plan.ledgers if ledger in self._known.existing]
        return self._rng.choice(existing or self.plan.ledgers)

    def _some_entry(self, ledger: int) -> int:
        end = self._known.next.get(ledger, 0)
        return self._rng.randrange(end) if end and self._rng.random() < 0.9 else end + self._rng.randrange(3)

    def _add(self, connection: Connection, ledger: int, entry: int, *, recovery: bool) -> None:
        data = stored(ledger, entry, entry - 1, self._most)
        key, frame = connection.protocol.add(data, recovery=recovery)
        if key in connection.outstanding:
            return
        connection.ask("recovery_add" if recovery else "add", ledger, entry, key, frame, fingerprint(data))

    def _writer(self, connection: Connection) -> None:
        ledger = self._ledger()
        if self._rng.random() < 0.02 and (end := self._known.next.get(ledger, 0)):
            entry = self._rng.randrange(end)  # a second time
        else:
            entry = self._known.next.get(ledger, 0)
            self._known.next[ledger] = entry + 1
        self._add(connection, ledger, entry, recovery=False)

    def _reader(self, connection: Connection) -> None:
        ledger = self._ledger()
        entry = self._some_entry(ledger)
        last = self._rng.random() < 0.2
        key, frame = connection.protocol.read(ledger, LAST if last else entry)
        if key not in connection.outstanding:
            connection.ask("last" if last else "read", ledger, LAST if last else entry, key, frame)

    def _batch(self, connection: Connection) -> None:
        ledger = self._ledger()
        start = self._some_entry(ledger)
        count, size = self._rng.choice((0, 1, 10, 100)), self._rng.choice((1, 1000, 100_000))
        number = self._rng.getrandbits(40)
        key, frame = connection.protocol.batch(ledger, start, count, size, number)
        connection.ask("batch_read", ledger, start, key, frame)

    def _fencer(self, connection: Connection) -> None:
        ledger = self._ledger()
        kind = self._rng.random()
        if kind < 0.1:
            self._fence(connection, ledger)
        elif kind < 0.4 and (end := self._known.next.get(ledger, 0)):
            self._add(connection, ledger, self._rng.randrange(end), recovery=True)
        else:
            self._reader(connection)

    def _recoverer(self, connection: Connection) -> None:
        """Fence a ledger, as a recovery does first."""
        self._fence(connection, self._ledger())

    def _fence(self, connection: Connection, ledger: int) -> None:
        key, frame = connection.protocol.read(ledger, LAST, fence=True)
        if key not in connection.outstanding:
            connection.ask("fence", ledger, LAST, key, frame)

    def _silent(self, connection: Connection) -> None:
        """Ask, and never read the answers."""
        self._batch(connection)

    def _flood(self, connection: Connection) -> None:
        """Ask for the same hundreds of times at once."""
        ledger = self._ledger()
        frame = connection.protocol.read(ledger, self._some_entry(ledger))[1]
        connection.send_raw(frame * self._rng.choice((10, 100, 400)))

    def _wild(self, connection: Connection) -> None:
        connection.send_raw(wild_frame(self._rng, self._known.ledgers))

    def _rude(self, connection: Connection) -> None:
        """Write, then end the connection somehow, perhaps after bytes that are no request."""
        self._writer(connection)
        if self._rng.random() < 0.1:
            if self._rng.random() < 0.5:
                connection.send_raw(self._rng.randbytes(self._rng.randrange(1, 100)))
            connection.end(self._rng.randrange(3))


class Crowd:
    """All peers of a run."""

    def __init__(self, runtime: Runtime, peers: list[Peer]) -> None:
        self._news = runtime.news
        self._peers = peers

    def turn(self, now: int) -> None:
        """Let each peer receive and send."""
        news = self._news()
        for peer in self._peers:
            if not peer.idle(now, news):
                peer.turn(now)

    def waiting(self) -> int:
        """Return how many requests have no response that must get one."""
        count = 0
        for peer in self._peers:
            count += peer.waiting()
        return count

    def adding(self) -> int:
        """Return how many adds of writers have no response."""
        return sum(peer.adding() for peer in self._peers)

    def spared(self) -> int:
        """Return how many requests have no response that need no disk that hangs."""
        return sum(peer.spared() for peer in self._peers)

    def refused(self) -> str:
        """Return what was refused first of the requests that need no disk that hangs."""
        return next((peer.refused for peer in self._peers if peer.refused), "")

    def asking(self) -> bool:
        """Return whether a peer has something left to ask."""
        for peer in self._peers:  # noqa: SIM110 - a generator would not be compiled to a loop
            if not peer.done():
                return True
        return False

    def due(self) -> int:
        """Return when the first of the peers that have something left to ask wants its next turn."""
        first = NEVER
        for peer in self._peers:
            if not peer.done() and peer.due < first:
                first = peer.due
        return first

    def oldest_ns(self, *, spared: bool) -> int:
        """Return when the first of the requests that `waiting` counts was sent; NEVER if there is none. `spared` are
        only those that need no disk that hangs.
        """
        return min((peer.oldest_ns() for peer in self._peers if peer.plan.free or not spared), default=NEVER)

    def oldest(self, *, spared: bool) -> str:
        """Return which request `oldest_ns` means."""
        peers = [peer for peer in self._peers if peer.plan.free or not spared]
        return min(peers, key=Peer.oldest_ns).oldest()

    def drain(self) -> None:
        """Let each peer record what has arrived."""
        for peer in self._peers:
            peer.drain()

    def malformed(self) -> str:
        """Return what the first peer has received that is no response."""
        return next((peer.malformed() for peer in self._peers if peer.malformed()), "")


class Verifier:
    """Reads back every entry that any peer ever sent. A read is repeated while the bookie answers with another error,
    at most `tries` times if that is not 0.

    It asks for single entries, in order, and remembers nothing but what is left to ask.
    """

    def __init__(self, runtime: Runtime, recorder: Recorder, sent: dict[int, set[int]], *, tries: int) -> None:
        self._tries = tries
        self._failed: Counter[tuple[int, int]] = Counter()
        self._connection = Connection(runtime, recorder, 99, V2())
        self._left = deque((ledger, entry) for ledger in sorted(sent) for entry in sorted(sent[ledger]))

    def turn(self) -> bool:
        """Receive and ask. Return whether everything was answered."""
        for invocation, answer in self._connection.receive():
            if answer.code in (OK, NO_ENTRY, NO_LEDGER):
                continue
            self._failed[invocation.ledger, invocation.entry] += 1
            if self._failed[invocation.ledger, invocation.entry] != self._tries:
                self._left.append((invocation.ledger, invocation.entry))
        self._connection.push()
        while self._left and len(self._connection.outstanding) < 100 and not self._connection.closed:
            ledger, entry = self._left.popleft()
            key, frame = self._connection.protocol.read(ledger, entry)
            self._connection.ask("read", ledger, entry, key, frame)
        return not self._connection.outstanding or self._connection.closed
