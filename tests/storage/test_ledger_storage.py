"""The stores compared with a dictionary (store.storage, store.checkpoint, store.replay, store.read_path) under any
order of adds, fences, flushes, reads and restarts (B4, B5, B6, B7, B8, B10, B11, B21).
"""

import errno
import itertools
import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bookie._fast.entrylog.scan import scan_entry_log
from bookie._fast.store.direct import Refused
from tests.fixtures.draws import examples
from tests.reference import storage as reference
from tests.storage.opened import KIB, MIB, Opened, check_index

LEDGERS = st.integers(0, 5)
IDS = st.one_of(st.integers(0, 12), st.integers(0, 60), st.sampled_from([1000, 2000, 1 << 40]))
KEYS = st.sampled_from([b"right" * 4] * 6 + [b"wrong" * 4, bytes(20), b""])
SMALL_CACHE = 192 * KIB
SIZES = st.one_of(st.integers(0, 200), st.integers(0, 3000), st.sampled_from([16_000, 40_000, 70_000]))


class StoresMachine(RuleBasedStateMachine):
    """Rules apply the same operations to the stores and to the model, and compare the results."""

    @initialize(ledger_dirs=st.integers(1, 3), journals=st.integers(1, 3), sparse=st.booleans())
    def open(self, ledger_dirs: int, journals: int, *, sparse: bool) -> None:
        """Open new directories."""
        self.root = Path(tempfile.mkdtemp(prefix="stores-"))
        self.shape = (ledger_dirs, journals)
        self.readahead = 1 if sparse else 1000
        self.model = reference.Stores()
        self.versions = 0
        self.opened = self.reopened()

    def reopened(self, write_cache_bytes: int = 4 * MIB) -> Opened:
        """Serve what the directories hold again."""
        return Opened(
            self.root,
            ledger_dirs=self.shape[0],
            journals=self.shape[1],
            readahead_entries=self.readahead,
            write_cache_bytes=write_cache_bytes,
        )

    def closed(self) -> Opened:
        """Give up what is about to be closed: if opening it again fails, nothing is left to stop."""
        opened = self.opened
        del self.opened
        return opened

    def tried(self, expected: str, call: object, *args: object, **kwargs: object) -> None:
        """Check that the call ends as the model says; where the caches are full, after a flush."""
        status = self.status_of(call, *args, **kwargs)
        if status == "FULL":
            assert self.opened.direct.commit()
            self.opened.checkpoint()
            status = self.status_of(call, *args, **kwargs)
        assert status == expected

    def status_of(self, call: object, *args: object, **kwargs: object) -> str:
        """Return how a call ends."""
        try:
            call(*args, **kwargs)  # type: ignore[operator]
        except Refused as refused:
            return refused.status
        return "OK"

    def payload(self, size: int) -> bytes:
        """Return bytes that no other add has."""
        self.versions += 1
        return f"{self.versions:08}".encode() + bytes(size)

    @rule(ledger=LEDGERS, entry=IDS, size=SIZES, key=KEYS, recovery=st.booleans())
    def add(self, ledger: int, entry: int, size: int, key: bytes, *, recovery: bool) -> None:
        """Add one entry: a new one, one out of order, or one again with other bytes."""
        data = reference.entry(ledger, entry, entry - 1, self.payload(size))
        expected = self.model.add(data, key, recovery=recovery)
        self.tried(expected, self.opened.direct.add, data, key, recovery=recovery)

    @rule(ledger=LEDGERS, first=IDS, count=st.integers(1, 40), size=st.integers(0, 300))
    def add_run(self, ledger: int, first: int, count: int, size: int) -> None:
        """Add many entries in order, as a writer sends them."""
        for entry in range(first, first + count):
            data = reference.entry(ledger, entry, entry - 1, self.payload(size))
            expected = self.model.add(data, b"", recovery=True)
            self.tried(expected, self.opened.direct.add, data, b"", recovery=True)

    @rule(ledger=LEDGERS, key=KEYS)
    def fence(self, ledger: int, key: bytes) -> None:
        """Fence a ledger, possibly again."""
        self.tried(self.model.fence(ledger, key), self.opened.direct.fence, ledger, key)

    @rule(ledger=LEDGERS, lac=st.integers(-1, 50), rest=st.binary(max_size=20), key=KEYS)
    def write_lac(self, ledger: int, lac: int, rest: bytes, key: bytes) -> None:
        """B10: write an explicit LAC that is higher or lower than the last."""
        packet = reference.lac_packet(ledger, lac, rest)
        self.tried(self.model.write_lac(packet, key), self.opened.direct.write_lac, packet, key)

    @rule()
    def checkpoint(self) -> None:
        """Write memory to disk."""
        self.opened.checkpoint()

    @rule()
    def commit(self) -> None:
        """Write the journal groups to disk."""
        assert self.opened.direct.commit()

    @rule(small=st.booleans())
    def crash(self, *, small: bool) -> None:
        """B4, B5: nothing that was committed is lost, whether it was flushed or not, and whether the replay finds room
        for it or must wait for flushes beside it.
        """
        assert self.opened.direct.commit()
        self.closed().crash()
        if small:
            self.reopened(SMALL_CACHE).crash()
        self.opened = self.reopened()

    @rule()
    def restart(self) -> None:
        """After a clean shutdown there is nothing to replay."""
        self.closed().stop()
        self.opened = self.reopened()
        assert self.opened.report.entries == 0

    @rule(ledger=LEDGERS, entry=st.one_of(IDS, st.just(-1)), count=st.integers(1, 40), size=st.integers(0, 100_000))
    def read(self, ledger: int, entry: int, count: int, size: int) -> None:
        """B7, B21: reads return the newest stored entries, however they are spread over memory and disk."""
        expected, entries = self.model.read(ledger, entry, count, size)
        held = self.opened.direct.read(ledger, entry, count=count, size=size)
        assert (held.status, held.entries()) == (expected, entries)
        held.release()

    @rule(ledger=LEDGERS, count=st.integers(1, 5))
    def read_all(self, ledger: int, count: int) -> None:
        """Read every entry of a ledger, a few at a time."""
        for entry in self.model.ledgers[ledger].entries if ledger in self.model.ledgers else ():
            self.read(ledger, entry, count, 1 << 30)

    @invariant()
    def ledgers_are_known(self) -> None:
        """B8, B10, B11: keys, fences and LACs are right at any time."""
        for ledger, known in self.model.ledgers.items():
            state = self.opened.direct.ledger(ledger)
            assert state is not None
            assert (state.key, state.fenced, state.explicit_lac) == (known.key, known.fenced, known.explicit_lac)

    @invariant()
    def nothing_stays_pinned(self) -> None:
        """Every response was released."""
        assert self.opened.direct.pins() == {"halves": 0, "ring": 0}

    def teardown(self) -> None:
        """B6: in the end everything is where the index says."""
        if not hasattr(self, "opened"):
            return
        self.opened.stop()
        check_index(self.opened.ledger_dirs, self.model)
        shutil.rmtree(self.root)


TestStores = StoresMachine.TestCase
TestStores.settings = settings(
    max_examples=examples(30), stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def test_indexes_that_the_address_space_cannot_hold(tmp_path: Path) -> None:
    """The error says which file, why, and what to do."""
    with pytest.raises(OSError, match="lower dbStorage_indexMapSizeGb") as caught:
        Opened(tmp_path, ledger_dirs=3, index_map_bytes=1 << 46)
    assert caught.value.errno == errno.ENOMEM
    assert Path(caught.value.filename).name == "locations.lmdb.new"


def test_a_flush_sorts_by_ledger_and_entry(tmp_path: Path) -> None:
    """In whatever order entries arrive, those of a ledger are contiguous and ascending in the entry log, which is what
    readahead relies on.
    """
    one = Opened(tmp_path)
    wanted = sorted(itertools.product((0, 1, 5, 1 << 40), range(50)))
    for ledger, at in random.Random(5).sample(wanted, len(wanted)):
        one.direct.add(reference.entry(ledger, at))
    assert one.direct.commit()
    one.checkpoint()
    one.stop()
    (log,) = (tmp_path / "ledgers-0" / "current").glob("*.log")
    chunks = list(scan_entry_log(log))
    found = [pair for chunk in chunks for pair in zip(chunk.ledger.tolist(), chunk.entry.tolist(), strict=True)]
    assert found == wanted
