"""Test overlapping puts against a dictionary: the latest copy of each entry is found, in whatever order runs were put.

The table is used through the index, with LMDB on real files, and commits, aborts and reopening in between.
"""

import random
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bookie._fast.index.view import Index, Reader
from bookie.storage.tools.verify_index import verify_index
from tests.fixtures.draws import examples
from tests.reference.location_index import Model, Place

LEDGERS = st.sampled_from([0, 1, 2**62])
FLAGS = st.tuples(st.booleans(), st.booleans())


def sizes(count: int, spread: int, gaps: float, seed: int) -> list[int]:
    """Return `count` entry sizes, a share of them gaps, with both ends present."""
    numbers = random.Random(seed)
    found = [0 if numbers.random() < gaps else 20 + numbers.randrange(spread) for _ in range(count)]
    found[0], found[-1] = found[0] or 20, found[-1] or 21
    return found


class OverlappingPuts(RuleBasedStateMachine):
    """Apply the same operations to an index and to its model."""

    index: Index
    reader: Reader

    @initialize()
    def start(self) -> None:
        self.directory = tempfile.TemporaryDirectory(prefix="index-")
        self.open()
        self.committed, self.working = Model(), Model()
        self.writing = False
        self.places = 0

    def open(self) -> None:
        self.index = Index.open(self.directory.name, 1 << 30)
        self.reader = self.index.reader()

    def place(self) -> int:
        """Return an offset above all others, so that no two records overlap."""
        self.places += 1
        return self.places << 42

    def write(self) -> None:
        if not self.writing:
            self.index.begin()
            self.writing = True

    @rule(
        ledger=LEDGERS,
        first=st.integers(0, 60),
        count=st.integers(1, 40),
        gaps=st.sampled_from([0.0, 0.3, 0.8]),
        spread=st.sampled_from([1, 200]),
        log_id=st.integers(0, 2**32 - 1),
        seed=st.integers(0, 1 << 32),
    )
    def put(self, ledger: int, first: int, count: int, gaps: float, spread: int, log_id: int, seed: int) -> None:
        """Put short runs that overlap a lot: entries again, cuts of other runs, and pieces in gaps."""
        self.put_run(ledger, first, log_id, sizes(count, spread, gaps, seed))

    @rule(
        first=st.integers(0, 3_000),
        count=st.integers(1, 1024),
        gaps=st.sampled_from([0.0, 0.01, 0.5]),
        spread=st.sampled_from([1, 250, 60_000, 1 << 20, 1 << 31]),
        seed=st.integers(0, 1 << 32),
    )
    def put_long(self, first: int, count: int, gaps: float, spread: int, seed: int) -> None:
        """Put runs that need several stored values."""
        self.put_run(1, first, seed & 0xFFFF, sizes(count, spread, gaps, seed))

    def put_run(self, ledger: int, first: int, log_id: int, lengths: list[int]) -> None:
        self.write()
        offset = self.place()
        self.index.put_run(ledger, first, log_id, offset, lengths)
        self.working.put_run(ledger, first, log_id, offset, lengths)

    @rule(ledger=LEDGERS, key=st.binary(max_size=30), flags=FLAGS, lac=st.binary(), quarantine=st.integers(0, 7))
    def put_ledger(self, ledger: int, key: bytes, flags: tuple[bool, bool], lac: bytes, quarantine: int) -> None:
        self.write()
        self.index.put_ledger(ledger, key, *flags, lac, quarantine)
        self.working.ledgers[ledger] = (key, *flags, lac, quarantine)

    @rule(ledger=LEDGERS)
    def delete(self, ledger: int) -> None:
        self.write()
        self.index.delete_ledger(ledger)
        self.working.delete_ledger(ledger)

    @rule(ledger=LEDGERS, most=st.integers(0, 3))
    def delete_some(self, ledger: int, most: int) -> None:
        """Delete a ledger piece by piece, and then its record."""
        self.write()
        done = False
        while not done:
            count, done = self.index.delete_runs(ledger, most + 1)
            assert count <= most + 1
        self.index.delete_ledger(ledger)
        self.working.delete_ledger(ledger)

    @rule(data=st.data(), log_id=st.integers(0, 2**32 - 1), cut=st.booleans())
    def relocate(self, data: st.DataObject, log_id: int, cut: bool) -> None:
        """Move records that are adjacent in one log together, as whole runs or cut at any record."""
        if not self.working.entries:
            return
        ledger, entry = data.draw(st.sampled_from(sorted(self.working.entries)))
        start = self.working.entries[ledger, entry]
        last, end = entry, start.offset + 4 + start.length
        while (place := self.working.entries.get((ledger, last + 1))) and (place.log_id, place.offset) == (
            start.log_id,
            end,
        ):
            last, end = last + 1, end + 4 + place.length
            if cut and data.draw(st.integers(0, 3)) == 0:
                break
        self.write()
        source, size = (start.log_id, start.offset), end - start.offset
        moved = self.index.relocate(ledger, entry, last, size, source, target := (log_id, self.place()))
        assert moved == self.working.relocate(ledger, size, source, target) == size

    @precondition(lambda self: self.writing)
    @rule()
    def commit(self) -> None:
        self.index.commit()
        self.writing, self.committed = False, self.working.copy()
        assert verify_index(Path(self.directory.name)).problems == (), "the chain of runs is whole after each commit"

    @precondition(lambda self: self.writing)
    @rule()
    def abort(self) -> None:
        self.index.abort()
        self.writing, self.working = False, self.committed.copy()

    @rule()
    def reopen(self) -> None:
        """Reopen the index, which discards what was not committed and nothing else."""
        self.index.close()
        self.open()
        self.writing, self.working = False, self.committed.copy()

    @rule(ledger=LEDGERS, entry=st.integers(-2, 4_100))
    def look_up(self, ledger: int, entry: int) -> None:
        """Look-ups find the committed entry or nothing, and the next and the last entry."""
        ids = self.committed.ids(ledger)
        hit = self.reader.lookup(ledger, entry)
        place = self.committed.entries.get((ledger, entry))
        assert (hit and Place(hit.log_id, hit.offset, hit.length)) == place
        following = self.reader.next(ledger, entry)
        assert (following and following.entry) == next((found for found in ids if found >= entry), None)
        assert self.reader.last(ledger) == (ids[-1] if ids else None)
        if following:
            assert following == self.reader.lookup(ledger, following.entry)

    @invariant()
    def the_runs_are_the_model(self) -> None:
        """Each run describes adjacent bytes, no entry is in two runs, and together they are the model's entries."""
        if not hasattr(self, "reader"):
            return
        for ledger in (0, 1, 2**62):
            found: dict[tuple[int, int], Place] = {}
            end = -1
            for run in self.reader.runs(ledger):
                assert run.first > end
                assert run.lengths[0]
                assert run.lengths[-1]
                end = run.first + len(run.lengths) - 1
                part = Model()
                part.put_run(ledger, run.first, run.log_id, run.offset, run.lengths)
                found |= part.entries
                last = max(part.entries.values(), key=lambda place: place.offset)
                hit = self.reader.lookup(ledger, run.first)
                assert hit
                assert (hit.span_last, hit.span_bytes) == (end, last.offset + 4 + last.length - run.offset)
            assert found == {key: place for key, place in self.committed.entries.items() if key[0] == ledger}
        walked = [run for ledger in (0, 1, 2**62) for run in self.reader.runs(ledger)]
        for most in (1, 3, 1000):
            assert self.reader.walk(most) == [(r.ledger, r.first, len(r.lengths), r.log_id, r.offset) for r in walked]
        records = {record.ledger: tuple(record[1:]) for record in self.reader.ledgers()}
        assert records == self.committed.ledgers

    def teardown(self) -> None:
        if hasattr(self, "reader"):
            self.index.close()
            self.directory.cleanup()


TestOverlappingPuts = OverlappingPuts.TestCase
TestOverlappingPuts.settings = settings(
    max_examples=examples(60), stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
