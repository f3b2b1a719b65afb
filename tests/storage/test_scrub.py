"""The scrub on a real ledger directory: which damage it finds, and what it must not mistake for damage."""

import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bookie._fast.index.view import Index
from bookie._fast.wire.digest import Digester
from bookie.client.entries.digest import Digest, DigestType
from bookie.errors import MetadataStoreError
from bookie.storage.scrub.cursor import NAME, CursorFile
from bookie.storage.scrub.findings import Finding, Kind
from bookie.storage.scrub.scrubbing import Scrub
from bookie.storage.scrub.settings import ScrubSettings
from tests.crash.flips.index_pages import stretches
from tests.storage.opened import Opened
from tests.storage.test_kept_fences import fenced_and_deleted, late_add

DIGEST = Digest.of(DigestType.CRC32C, b"secret")
LEDGER = 7
ENTRIES = 200
WAIT_S = 30.0


def sealed(entry: int, ledger: int = LEDGER) -> bytes:
    return DIGEST.seal(ledger, entry, b"payload %d of it " % entry * 5, lac=entry - 1, length=100 * (entry + 1))


def fill(store: Opened, ledger: int = LEDGER, entries: int = ENTRIES) -> None:
    for entry in range(entries):
        store.direct.add(sealed(entry, ledger), DIGEST.master_key)
    assert store.direct.commit()
    store.checkpoint()


@contextmanager
def closed_logs(root: Path) -> Iterator[Opened]:
    """A bookie whose entries are in a closed log, because it was restarted in between."""
    before = Opened(root)
    fill(before)
    before.stop()
    store = Opened(root)
    try:
        yield store
    finally:
        store.stop()


def log_of(store: Opened) -> Path:
    """Return the first log with a record."""
    return min(path for path in (store.ledger_dirs[0] / "current").glob("*.log") if path.stat().st_size > 2048)


def scrubbed(
    store: Opened, ask: Callable[[int], Digester | None] = lambda _: DIGEST.digester
) -> tuple[list[Finding], dict[str, Any]]:
    """Run one pass; return its findings and its counters."""
    found: list[Finding] = []
    scrub = Scrub(ScrubSettings(rate_bytes_per_s=0, interval_s=1 << 20), store.storage.scrubbers(), ask)
    scrub.follow(found.append)
    scrub.start()
    try:
        assert scrub.wait(scrub.begin(), WAIT_S)
        return found, scrub.stats()
    finally:
        scrub.stop()


def flip(path: Path, offset: int, bit: int = 0) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))


def place(store: Opened, entry: int) -> int:
    """Return the offset of an entry's length word."""
    with log_of(store).open("rb") as file:
        data = file.read()
    at = data.index(struct.pack(">qq", LEDGER, entry))
    return at - 4


def test_sound_logs_have_nothing_to_tell(tmp_path: Path) -> None:
    """Every record is read and verified, in closed logs and in the open one, and nothing is found."""
    with closed_logs(tmp_path) as store:
        fill(store, ledger=LEDGER + 1)
        found, counted = scrubbed(store)
        assert found == []
        assert counted["scrub_records"] == counted["scrub_verified"] == 2 * ENTRIES
        assert counted["scrub_passes"] == 1


@pytest.mark.parametrize(
    ("at", "kinds"),
    [
        pytest.param(60, {Kind.DIGEST}, id="payload"),
        pytest.param(30, {Kind.DIGEST}, id="lac"),
        pytest.param(19, {Kind.PLACE}, id="entry id"),
        pytest.param(11, {Kind.PLACE}, id="ledger id"),
        pytest.param(3, {Kind.PLACE, Kind.TORN}, id="length, low"),
        pytest.param(0, {Kind.PLACE, Kind.TORN}, id="length, high"),
    ],
)
def test_a_flipped_bit_is_found_wherever_it_is(tmp_path: Path, at: int, kinds: set[Kind]) -> None:
    """A live record with one changed bit is reported by ledger and entry, and no other entry is."""
    with closed_logs(tmp_path) as store:
        flip(log_of(store), place(store, 50) + at, bit=2)
        found, _ = scrubbed(store)
        assert {(one.ledger, one.entry) for one in found if one.is_entry} == {(LEDGER, 50)}
        assert {one.kind for one in found} <= kinds | {Kind.MAP}
        assert kinds & {one.kind for one in found}


def test_damage_in_the_log_being_written_is_found(tmp_path: Path) -> None:
    """With a damaged length word in an open log, the index leads to the missing record, and to no other."""
    store = Opened(tmp_path)
    fill(store)
    flip(log_of(store), place(store, 50))
    found, _ = scrubbed(store)
    assert [(one.kind, one.ledger, one.entry) for one in found] == [(Kind.PLACE, LEDGER, 50)]
    store.stop()


@pytest.mark.parametrize("part", ["ledgers leaf", "fences leaf", "locations leaf"])
def test_damage_in_the_index_is_found_by_a_pass(tmp_path: Path, part: str) -> None:
    """Records of ledgers and kept fences are otherwise read only at start, where damage that was years old refused
    the start. A pass reads them, and the index repair restores them from memory.
    """
    collecting = fenced_and_deleted(tmp_path)
    collecting.add(2, range(20))
    store = collecting.one
    assert store.direct.commit()
    store.checkpoint()
    path = tmp_path / "ledgers-0/current/locations.lmdb/data.mdb"
    last = max(each.end for each in stretches(path.read_bytes()) if each.part == part)
    flip(path, last - 1)
    found, _ = scrubbed(store, lambda _: None)
    assert {one.kind for one in found} == {Kind.INDEX}
    while store.storage.repairs[0].step(0):
        pass
    assert scrubbed(store, lambda _: None)[0] == []
    store.crash()
    collecting.one = Opened(tmp_path)
    assert late_add(collecting, 1) == "FENCED"
    collecting.one.stop()


def test_a_log_cut_short_loses_no_entry_in_silence(tmp_path: Path) -> None:
    """Every entry after the cut is reported."""
    with closed_logs(tmp_path) as store:
        with log_of(store).open("r+b") as file:
            file.truncate(place(store, 150) + 10)
        found, _ = scrubbed(store)
        assert {one.entry for one in found if one.is_entry} == set(range(150, ENTRIES))


def test_a_log_that_is_gone_or_no_log_any_more(tmp_path: Path) -> None:
    """With its first bytes changed a log cannot be scanned, but the index leads to every record, and all are good."""
    with closed_logs(tmp_path) as store:
        flip(log_of(store), 0)
        found, _ = scrubbed(store)
        assert [one.kind for one in found] == [Kind.UNREADABLE]


def test_an_entry_that_the_index_lost_is_an_orphan(tmp_path: Path) -> None:
    """An entry of a known ledger that is in the log but missing from the index is reported as an orphan."""
    before = Opened(tmp_path)
    fill(before)
    before.stop()
    store = Opened(tmp_path)
    store.stop()
    path = store.ledger_dirs[0] / "current" / "locations.lmdb"
    index = Index.open(path, 64 << 20)
    reader = index.reader()
    runs = list(reader.runs(LEDGER))
    records = [row for row in reader.ledgers() if row.ledger == LEDGER]
    reader.close()
    index.begin()
    index.delete_ledger(LEDGER)
    for row in records:
        index.put_ledger(row.ledger, row.key, row.fenced, row.limbo, row.lac)
    kept = runs[0].lengths[: ENTRIES // 2]
    index.put_run(LEDGER, runs[0].first, runs[0].log_id, runs[0].offset, kept)
    index.commit()
    index.close()
    lost = set(range(runs[0].first + len(kept), ENTRIES))
    store = Opened(tmp_path)
    found, _ = scrubbed(store)
    assert {(one.kind, one.entry) for one in found if one.is_entry} == {(Kind.ORPHAN, entry) for entry in lost}
    store.stop()


def test_without_digests_structure_and_ids_are_checked(tmp_path: Path) -> None:
    """If the metadata store does not answer, nothing is mistaken for damage, and changed ids are still found."""

    def ask(_ledger: int) -> Digester | None:
        raise MetadataStoreError("it does not answer")

    with closed_logs(tmp_path) as store:
        flip(log_of(store), place(store, 50) + 60)
        assert scrubbed(store, ask)[0] == []
        flip(log_of(store), place(store, 50) + 19, bit=7)
        assert (LEDGER, 50) in {(one.ledger, one.entry) for one in scrubbed(store, ask)[0]}


def test_a_pass_goes_on_where_a_stop_cut_it_short(tmp_path: Path) -> None:
    """The cursor names the next log; with a damaged cursor the pass begins from the start."""
    with closed_logs(tmp_path) as store:
        keep_in = store.ledger_dirs[0] / "current"
        slow = Scrub(ScrubSettings(), store.storage.scrubbers(), lambda _: None, keep_in=keep_in)
        slow.pause(paused=True)
        slow.start()
        slow.begin()
        deadline = time.monotonic() + WAIT_S
        while not slow.status().log:
            assert time.monotonic() < deadline
            os.sched_yield()
        slow.stop()
        cursor = CursorFile(keep_in).read()
        assert (cursor.number, cursor.began_ms > 0) == (1, True)
        again = Scrub(ScrubSettings(rate_bytes_per_s=0), store.storage.scrubbers(), lambda _: None, keep_in=keep_in)
        again.start()
        assert again.wait(again.begin(), WAIT_S)
        assert again.status().number == 1
        again.stop()
        cursor = CursorFile(keep_in).read()
        assert (cursor.number, cursor.began_ms) == (1, 0)
        flip(keep_in / NAME, 2)
        assert CursorFile(keep_in).read().number == 0
