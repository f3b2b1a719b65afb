"""A set of entry logs in plain Python, the slow oracle of `entrylog.set`: which logs there are and what each holds."""

from collections import OrderedDict
from dataclasses import dataclass, field

from tests.reference import entry_log


@dataclass
class Log:
    """One file with its entries.

    A settle covered the first `settled` of them. The log takes no more when it is `ended`, has its map when it is
    `closed` (for `reason`), and is whole on disk when it is `complete`.
    """

    entries: list[bytes] = field(default_factory=list)
    settled: int = 0
    ended: bool = False
    closed: bool = False
    reason: str = ""
    complete: bool = False
    open: bool = True

    def image(self) -> bytes:
        """Return what the file has to hold from its front. Nothing but zeros may follow."""
        return entry_log.build(self.entries, closed=self.closed)


class LogSet:
    """A set with the same names as the room's. `logs` are the files by id, `taking` the ledgers' own, coldest first."""

    def __init__(self, active_max: int) -> None:
        self.active_max = active_max
        self.logs: dict[int, Log] = {}
        self.taking: OrderedDict[int, int] = OrderedDict()
        self.touched: set[int] = set()
        self.marks: set[int] = set()
        self.next_id = 0
        self.closed = {"displaced": 0, "write_closed": 0, "expired": 0}
        self.several = 0
        self.counts: dict[int, int] = {}
        self.noted: list[int] = []

    def append(self, ledger: int, entry: bytes) -> int:
        """Append the entry and return the id of the log that takes it."""
        key = ledger if self.active_max else -1
        if key not in self.taking:
            if self.active_max and len(self.taking) == self.active_max:
                self.close(next(iter(self.taking)), "displaced")
            if self.active_max:
                self.count(ledger)
            self.taking[key] = self.next_id
            self.logs[self.next_id] = Log()
            self.next_id += 1
        self.taking.move_to_end(key)
        self.touched.add(key)
        self.logs[self.taking[key]].entries.append(entry)
        return self.taking[key]

    def count(self, ledger: int) -> None:
        """Count that the ledger begins a log.

        Of ten ledgers for each log that may be active, the oldest is noted.
        """
        if ledger not in self.counts and len(self.counts) == 10 * self.active_max:
            self.noted.append(self.counts.pop(next(iter(self.counts))))
        self.counts[ledger] = self.counts.get(ledger, 0) + 1
        self.several += self.counts[ledger] == 2

    def close(self, ledger: int, reason: str) -> None:
        """Close the ledger's log, which takes nothing more. It is counted under its reason once it is complete."""
        log = self.logs[self.taking.pop(ledger)]
        log.ended = log.closed = True
        log.reason = reason
        self.touched.discard(ledger)

    def mark(self, ledger: int) -> None:
        """Note that the ledger expects no more entries."""
        if self.active_max:
            self.marks.add(ledger)

    def end_marked(self, ledger: int | None = None) -> None:
        """Close what is marked."""
        for one in sorted(self.marks) if ledger is None else {ledger} & self.marks:
            if one in self.counts:
                self.noted.append(self.counts.pop(one))
            if one in self.taking:
                self.close(one, "write_closed")

    def sync(self) -> None:
        """Complete the logs that were to be closed."""
        for log in self.logs.values():
            if log.closed and not log.complete:
                self.closed[log.reason] += 1
            log.complete = log.closed

    def settle(self) -> None:
        """Let a commit cover everything."""
        for log in self.logs.values():
            log.settled = len(log.entries)
            log.open = log.open and not log.ended
        self.touched.clear()
        self.marks.clear()

    def give_up(self) -> None:
        """Drop what no commit covers. Nobody appends to a log that was cut."""
        for key in self.touched:
            self.logs[self.taking.pop(key)].ended = True
        self.touched.clear()
        for log_id, log in list(self.logs.items()):
            if log.ended and not log.settled:
                del self.logs[log_id]
            elif log.ended and not log.complete:
                log.closed = False
                del log.entries[log.settled :]
