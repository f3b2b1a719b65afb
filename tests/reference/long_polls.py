"""Reads that wait for a higher LAC, as a dictionary: the oracle of the module server.long_polls."""

from dataclasses import dataclass, field

TICK_MS = 10


@dataclass
class Ledger:
    """The state of a ledger that decides when a long poll ends."""

    lac: int = -1
    events: int = 0


@dataclass
class Poll:
    """A long poll that waits for the LAC to rise."""

    owner: int
    ledger: int
    previous_lac: int
    deadline_ms: int
    events: int


@dataclass
class Polls:
    """All waits of a loop, by their number."""

    waiting_max: int
    per_owner_max: int
    ledgers: dict[int, Ledger] = field(default_factory=dict)
    polls: dict[int, Poll] = field(default_factory=dict)

    def wait(self, owner: int, number: int, ledger: int, previous_lac: int, timeout_ms: int, now_ms: int) -> str:
        """Add a wait and return its status. OK means that there is nothing to wait for."""
        known = self.ledgers.get(ledger)
        if known is None:
            return "NO_LEDGER"
        if known.lac > previous_lac or timeout_ms <= 0:
            return "OK"
        mine = sum(poll.owner == owner for poll in self.polls.values())
        if mine >= self.per_owner_max or len(self.polls) >= self.waiting_max:
            return "TOO_MANY_REQUESTS"
        deadline = -(-(now_ms + timeout_ms) // TICK_MS) * TICK_MS
        self.polls[number] = Poll(owner, ledger, previous_lac, deadline, known.events)
        return "PENDING"

    def take(self, now_ms: int) -> list[tuple[int, bool]]:
        """Return the waits that are over, and whether by a rise of the LAC. A negative `now_ms` ends all."""
        over = []
        for number, poll in self.polls.items():
            known = self.ledgers[poll.ledger]
            rose = known.lac > poll.previous_lac
            if rose or known.events != poll.events or poll.deadline_ms <= now_ms or now_ms < 0:
                over.append((number, rose))
        for number, _ in over:
            del self.polls[number]
        return sorted(over)

    def cancel(self, owner: int) -> int:
        """Forget the polls of a connection."""
        mine = [number for number, poll in self.polls.items() if poll.owner == owner]
        for number in mine:
            del self.polls[number]
        return len(mine)

    def nearest_ms(self) -> int | None:
        """Return the next deadline."""
        return min((poll.deadline_ms for poll in self.polls.values()), default=None)
