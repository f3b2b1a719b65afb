"""Rounds of flips: what is flipped, what the bookie then answers, what its scrub finds, and what is repaired.

Logs and index are damaged while the bookie serves; marks, cookies and journals, which are only read at start,
between a kill -9 and the next start. A refused start changes nothing: the flip is undone, as an operator restores
the file, and the next one is tried, so that each round has one start that serves.
"""

import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, fields

import grpc

from bookie.client import Channel, Flags
from bookie.errors import BookKeeperError
from tests.crash.flips.cluster import DIGEST, Answers, Cluster, sealed
from tests.crash.flips.files import Flip, LogTables, change, choose, is_there

__all__ = ["Rounds", "Tally"]

LOG_FLIPS = 20
START_FLIPS = 10
MEND_S = 30.0
TOLD_S = 5.0
FOUND = re.compile(r"the scrub found damage.*")
FACT = re.compile(r"\b(kind|log|ledger|entry)=(\S+)")
TOLD = re.compile(
    r"^(?!.*(?:did not end cleanly|logger=admin\.access|entries (?:were|cannot be) repaired))"
    r".*\blevel=(?:warning|error|critical)\b.*$",
    re.MULTILINE,
)
INDEX_TOLD = re.compile(r"level=(?:warning|error) logger=bookie\.storage\.index_repair|kind=index")


@dataclass(slots=True)
class Tally:
    """The outcomes of the flips of one kind."""

    flips: int = 0
    by_read: int = 0
    by_scrub: int = 0
    at_start: int = 0
    """The start reported it, or refused to serve."""
    refused: int = 0
    """Of these, starts that were refused; the harness undid the flip."""
    harmless: int = 0
    """Nothing read it, because the byte is not in use."""
    missed: int = 0
    """The byte is in use, but nothing reported that it had changed."""
    left: int = 0
    """Found in bytes of a log that no reader needs: header, map, or between records. Reported, and left there."""
    unrepaired: int = 0
    """Damage that was still there when the time for repairs was over; the harness repaired it."""
    wrong: int = 0
    denials: int = 0
    ends: int = 0
    problems: list[str] = field(default_factory=list)

    def row(self) -> list[str]:
        """Return a row of the table; `repaired` counts everything that was found and is gone."""
        found = self.flips - self.harmless - self.missed
        return [str(value) for value in (
            self.flips, self.by_read, self.by_scrub, self.at_start, self.refused, self.harmless, self.missed,
            found - self.left - self.unrepaired, self.left, self.unrepaired, self.wrong, self.denials, self.ends,
        )]  # fmt: skip

    HEAD = ("flips", "found by a read", "found by the scrub", "reported at the start", "start refused", "harmless",
            "missed", "repaired", "left", "not repaired", "wrong answers", "wrong denials", "ends")  # fmt: skip


class Rounds:
    """One cluster under bit flips. `say` is called after each round."""

    def __init__(self, cluster: Cluster, rng: random.Random, say: Callable[[str], None] = lambda _: None) -> None:
        self._cluster = cluster
        self._rng = rng
        self._say = say
        self._tables = LogTables(cluster.victim.ledgers / "current")
        self.tallies: dict[str, Tally] = {}

    def run(self, kind: str, flips: int) -> int:
        """Run one round of at most `flips` flips, and return how many there were."""
        tally = self.tallies.setdefault(kind, Tally())
        before = tally.flips
        begun = time.monotonic()
        if kind == "logs":
            self._logs(tally, min(flips, LOG_FLIPS))
        elif kind == "index":
            self._index(tally)
        else:
            self._between_starts(kind, tally, min(flips, 1 if kind == "marks" else START_FLIPS))
        facts = " ".join(f"{one.name}={getattr(tally, one.name)}" for one in fields(tally) if one.name != "problems")
        self._say(f"{kind} {time.monotonic() - begun:.1f}s {facts}")
        return tally.flips - before

    # Flips while the bookie serves.

    def _logs(self, tally: Tally, count: int) -> None:
        cluster = self._cluster
        with cluster.quiet():
            cluster.flush()
            self._tables.look()
            flips = [self._tables.choose(self._rng) for _ in range(count)]
            seen = cluster.victim.log_size()
            for one in flips:
                change(one)
        met = self._ask(tally, "logs")
        self._alive(tally, cluster.scrub)
        self._alive(tally, cluster.settled)
        entries, logs = self._found(seen)
        self._mended(tally, "logs")
        for one in flips:
            tally.flips += 1
            read = one.entry in met.errors
            scrubbed = one.entry in entries if one.entry else one.path.name in logs
            tally.by_read += read
            tally.by_scrub += scrubbed
            tally.left += scrubbed and one.entry is None
            if not read and not scrubbed:
                if one.live and flips.count(one) == 1:
                    tally.missed += 1
                    tally.problems.append(f"logs: {one} was found by nobody")
                else:
                    tally.harmless += 1

    def _index(self, tally: Tally) -> None:
        """Make one flip, since LMDB's pages depend on each other. A flush reads what leads to all tables."""
        cluster = self._cluster
        with cluster.quiet():
            cluster.flush()
            one = choose("index", cluster.victim.directory, self._rng)
            seen = cluster.victim.log_size()
            change(one)
        met = self._ask(tally, "index")
        self._alive(tally, cluster.scrub)
        if one.live and not self._told(INDEX_TOLD, seen):
            with suppress(grpc.RpcError):
                cluster.flush()
        deadline = time.monotonic() + TOLD_S
        while not (reported := self._told(INDEX_TOLD, seen)) and is_there(one) and time.monotonic() < deadline:
            cluster.rest()
        tally.flips += 1
        tally.by_read += bool(met.errors)
        tally.by_scrub += reported
        tally.harmless += not one.live and not reported and not met.errors
        if one.live and not reported and not met.errors:
            tally.missed += 1
            tally.problems.append(f"index: {one} was found by nobody")
        if not one.live and not reported and not met.errors:
            return
        self._mended(tally, "index")
        deadline = time.monotonic() + MEND_S
        while one.live and is_there(one) and time.monotonic() < deadline:
            cluster.rest()
        if one.live and is_there(one):
            tally.unrepaired += 1
            tally.problems.append(f"index: {one} is still there")
            self._remedy(tally, "index")

    # Flips between two starts.

    def _between_starts(self, kind: str, tally: Tally, count: int) -> None:
        cluster, victim = self._cluster, self._cluster.victim
        cluster.written()
        victim.kill()
        flips = [choose(kind, victim.directory, self._rng) for _ in range(count)]
        serves = False
        for one in flips:
            if one.live and not serves:
                tally.flips += 1
                serves = self._one_start(kind, tally, one)
        if serves:
            return
        idle = [one for one in flips if not one.live]
        for one in idle:
            change(one)
        tally.flips += len(idle)
        tally.harmless += len(idle)
        try:
            victim.start()
        except AssertionError:
            tally.problems.append(f"{kind}: no start with {idle}: {victim.log_text()[-600:]}")
            raise
        _take_back(idle)
        self._ask(tally, kind)
        self._mended(tally, kind)

    def _one_start(self, kind: str, tally: Tally, one: Flip) -> bool:
        """Start with a flip that matters, and return whether the bookie served with it."""
        victim = self._cluster.victim
        seen = victim.log_size()
        change(one)
        try:
            victim.start()
        except AssertionError:
            words = _last_line(victim.log_since(seen))
            self._say(f"  refused: {words[:300]}")
            tally.refused += 1
            tally.at_start += 1
            change(one)
            return False
        if self._told(TOLD, seen):
            tally.at_start += 1
        else:
            tally.missed += 1
            tally.problems.append(f"{kind}: {one} was found by nobody")
            _take_back([one])  # otherwise a damaged mark in a later round would cause it to be replayed
        self._ask(tally, kind)
        self._mended(tally, kind)
        return True

    # Judging the answers.

    def _ask(self, tally: Tally, kind: str) -> Answers:
        """Read everything from the damaged bookie alone. Wrong answers and denials are counted, and repaired, so
        that a later round does not count them again.
        """
        try:
            answers = self._cluster.ask()
        except BookKeeperError:
            if self._alive(tally, lambda: None):
                raise
            answers = self._cluster.ask()
        tally.wrong += len(answers.wrong)
        tally.denials += len(answers.denied)
        if answers.denied or answers.wrong:
            some = [*answers.denied.items(), *answers.wrong][:3]
            tally.problems.append(f"{kind}: {len(answers.denied)} denied, {len(answers.wrong)} wrong, as {some}")
            self._heal([*answers.denied, *answers.wrong])
        return answers

    def _alive(self, tally: Tally, act: Callable[[], object]) -> bool:
        """Call `act` and return True; if the process ends, count that, restart the bookie, and return False."""
        victim = self._cluster.victim
        try:
            act()
        except Exception:
            if victim.process is not None and victim.process.poll() is None:
                raise
        if victim.process is not None and victim.process.poll() is not None:
            tally.ends += 1
            tally.problems.append(f"it ended with {victim.process.poll()}: {victim.log_text()[-1500:]}")
            victim.kill()
            victim.start()
            return False
        return True

    def _mended(self, tally: Tally, kind: str) -> None:
        """Read all that the bookie must have, from it alone; what was not repaired in time is counted, and repaired."""
        deadline = time.monotonic() + MEND_S
        answers = self._ask(tally, kind)
        while answers.errors and time.monotonic() < deadline:
            self._alive(tally, self._cluster.scrub)  # an older, damaged copy may have returned to an index
            self._alive(tally, self._cluster.settled)
            self._cluster.rest()
            answers = self._ask(tally, kind)
        if answers.errors:
            some = list(answers.errors.items())[:2]
            tally.unrepaired += 1
            tally.problems.append(f"{kind}: {len(answers.errors)} entries are not repaired, as {some}")
            self._remedy(tally, kind)

    def _remedy(self, tally: Tally, kind: str) -> None:
        """Restart it as an operator would, with a new index if the start is refused, and copy missing entries."""
        victim = self._cluster.victim
        victim.kill()
        try:
            victim.start()
        except AssertionError:
            tally.problems.append(f"{kind}: no start: {_last_line(victim.log_text())}")
            self._new_index()
            victim.start()
        answers = self._ask(tally, kind)
        self._heal(list(answers.errors))
        left = self._cluster.ask()
        if left.errors or left.denied:
            raise AssertionError(f"{kind}: beyond repair: {list((left.errors | left.denied).items())[:5]}")

    def _new_index(self) -> None:
        victim = self._cluster.victim
        words = ["rebuild-db-ledgers-index", "--yes", "--conf", str(victim.conf), "-u", self._cluster.uri]
        done = subprocess.run(
            [sys.executable, "-m", "bookie_admin.bkadmin.main", *words], capture_output=True, text=True, check=False
        )
        self._say(f"  a new index: {done.returncode} {_last_line(done.stdout + done.stderr)}")

    def _heal(self, ids: list[tuple[int, int]]) -> None:
        with Channel.connect(*self._cluster.victim.address, timeout_s=60.0) as channel:
            adds = [channel.add_stored_async(sealed(*one), DIGEST.master_key, flags=Flags.RECOVERY_ADD) for one in ids]
            for add in adds:
                try:
                    add.result()
                except BookKeeperError as error:
                    self._say(f"  cannot be healed: {error}")
                    return

    def _found(self, seen: int) -> tuple[set[tuple[int, int]], set[str]]:
        """Return the entries and logs that the scrub reported since the bookie's log had `seen` bytes."""
        entries, logs = set(), set()
        for line in FOUND.findall(self._cluster.victim.log_since(seen)):
            facts = dict(FACT.findall(line))
            if "entry" in facts:
                entries.add((int(facts["ledger"]), int(facts["entry"])))
            elif "log" in facts:
                logs.add(facts["log"])
        return entries, logs

    def _told(self, what: re.Pattern[str], seen: int) -> bool:
        return bool(what.search(self._cluster.victim.log_since(seen)))


def _take_back(flips: Iterable[Flip]) -> None:
    for one in flips:
        if one.path.exists():
            change(one)


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]
