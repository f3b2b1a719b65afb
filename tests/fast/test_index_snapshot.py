"""Test reads of an open index during commits and with damage: pinned pages, sums of branches, failing reads."""

import os
import random
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookie._fast.index.view import Hit, Index, Reader
from bookie._fast.testing.faulty import FaultyFiles, clear, plan
from tests.fast.test_index_search import BRANCH, LEAF, PAGE, flipped, interesting_bits, live_pages, nearby, parents

LEDGERS = 400
ENTRIES = 10
GAP = 100


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """Open an index on files that tests can make fail."""
    opened = Index.open(tmp_path, files=FaultyFiles())
    yield opened
    clear()
    opened.close()


def put(index: Index, generation: int, numbers: random.Random) -> None:
    """Put a run of every ledger after those it has, with sizes that let a page hold about six runs."""
    index.begin()
    for ledger in range(LEDGERS):
        sizes = [numbers.randrange(20, 60_000) for _ in range(ENTRIES)]
        index.put_run(ledger, generation * GAP, generation, 1024, sizes)
    index.commit()


def put_one_each(index: Index, generation: int) -> None:
    """Put an entry of every ledger in the open transaction."""
    for ledger in range(LEDGERS):
        index.put_run(ledger, generation * GAP, generation, 1024, [5])


def wrong(reader: Reader, ledger: int, entry: int, generations: int) -> str:
    """Return what is wrong with the answer about an entry after this many generations. An error counts as right."""
    try:
        hit: Hit | None = reader.lookup(ledger, entry)
    except (ValueError, OSError):
        return ""
    stored = entry % GAP < ENTRIES and entry // GAP < generations
    if (hit is not None) != stored or (hit and hit.log_id != entry // GAP):
        return f"ledger {ledger} entry {entry} of {generations} generations: {hit}"
    return ""


def test_readers_beside_commits_see_whole_snapshots(index: Index) -> None:
    """While a writer puts, moves and deletes, look-ups find what was committed before them and report no damage."""
    numbers = random.Random(1)
    put(index, 0, numbers)
    committed, stop = [1], threading.Event()
    failures: list[str] = []

    def read(seed: int) -> None:
        reader, own = index.reader(), random.Random(seed)
        while not stop.is_set() and not failures:
            ledger, generations = own.randrange(LEDGERS), committed[-1]
            entry = own.randrange(generations) * GAP + own.randrange(ENTRIES)
            try:
                if reader.lookup(ledger, entry) is None:
                    failures.append(f"ledger {ledger} entry {entry} of {generations} generations is denied")
                if reader.lookup(ledger, entry + ENTRIES) is not None:
                    failures.append(f"ledger {ledger} entry {entry + ENTRIES} is none")
                if own.random() < 0.01 and len(reader.runs(ledger)) < generations:
                    failures.append(f"ledger {ledger} has lost runs")
            except (ValueError, OSError) as error:
                failures.append(str(error))

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    try:
        for generation in range(1, 25):
            put(index, generation, numbers)
            committed.append(generation + 1)
            index.begin()
            for ledger in range(LEDGERS, LEDGERS + 50):
                index.put_run(ledger, generation, 1, 1024, [5])
                if generation % 3 == 0:
                    index.delete_ledger(ledger)
            index.commit()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures, failures[0]


def test_b7_flips_under_an_open_index(index: Index, tmp_path: Path) -> None:
    """B7: 5,000 bits of pages in use are flipped one by one, and look-ups by an open reader are right or errors.

    Branches are in memory, so for look-ups most flips damage a leaf. A walk reads all pages again and finds the
    damage.
    """
    numbers = random.Random(2)
    for generation in range(5):
        put(index, generation, numbers)
    reader, path = index.reader(), tmp_path / "data.mdb"
    errors = 0
    for bit in interesting_bits(path, numbers, 5_000):
        with flipped(path, bit):
            for _ in range(20):
                ledger, entry = numbers.randrange(LEDGERS + 5), numbers.randrange(7 * GAP)
                if ledger < LEDGERS:
                    assert not wrong(reader, ledger, entry, 5)
            try:
                assert len(reader.walk(1000)) == 5 * LEDGERS
            except (ValueError, OSError):
                errors += 1
    assert errors > 1_000


def test_b7_what_a_damaged_branch_leads_to_is_not_written_on(index: Index, tmp_path: Path) -> None:
    """B7: a transaction that would copy a branch with a wrong child is refused, because the copy would look valid."""
    numbers = random.Random(3)
    for generation in range(5):
        put(index, generation, numbers)
    path = tmp_path / "data.mdb"
    data = path.read_bytes()
    branches = [number for number, flags in live_pages(path).items() if flags == BRANCH]
    reader = index.reader()
    runs = len(reader.walk(1000))
    for number in branches:
        (node,) = struct.unpack_from("<H", data, number * PAGE + 16 + 2)
        with flipped(path, (number * PAGE + node) * 8):
            index.begin()
            refused = 0
            for ledger in range(LEDGERS):
                try:
                    index.put_run(ledger, 9_000, 9, 1024, [5])
                except (ValueError, OSError):
                    refused += 1
            assert refused
            index.abort()
    assert len(reader.walk(1000)) == runs


def test_a_page_that_the_disk_cannot_read_is_an_error_of_one_look_up(index: Index) -> None:
    """EIO of a page is an error of one look-up, not a signal as with a memory map, and the next look-up succeeds."""
    put(index, 0, random.Random(4))
    reader = index.reader()
    for ledger in (7, LEDGERS // 2, LEDGERS - 7):
        plan("pread", "EIO", nth=1)
        with pytest.raises(OSError, match="the index failed"):
            reader.lookup(ledger, 3)
        clear()
        assert reader.lookup(ledger, 3)
    for nth in (1, 2):
        plan("pread", "EIO", nth=nth)
        with pytest.raises(OSError, match="the index failed"):
            reader.walk(1000)
        clear()
    assert len(reader.walk(1000)) == LEDGERS
    assert reader.lookup(7, ENTRIES) is None


def test_a_page_that_a_write_cannot_read_is_damage(index: Index, tmp_path: Path) -> None:
    """The damage is found before LMDB changes anything, so it is not fatal: writes wait for the repair of the index."""
    numbers = random.Random(7)
    for generation in range(5):
        put(index, generation, numbers)
    path = tmp_path / "data.mdb"
    data = path.read_bytes()
    reader, own = index.reader(), 5
    for number in [number for number, flags in live_pages(path).items() if flags == BRANCH]:
        index.begin()
        os.truncate(path, number * PAGE + PAGE // 2)
        with pytest.raises(ValueError, match="fails its checksum"):
            put_one_each(index, own)
        index.abort()
        path.write_bytes(data)
        assert reader.lookup(7, 3)
    put(index, own, numbers)
    assert len(reader.walk(1000)) == (own + 1) * LEDGERS


def stale_children(path: Path) -> list[tuple[int, int]]:
    """Return where branches point to leaves with older copies in the file, and the page number of such a copy."""
    data, pages = path.read_bytes(), live_pages(path)
    copies: dict[int, list[int]] = {}
    for number in range(2, len(data) // PAGE):
        page = data[number * PAGE : (number + 1) * PAGE]
        if number not in pages and struct.unpack_from("<Q", page)[0] == number and page[10] == LEAF:
            for ledger in nearby(page)[:1]:
                copies.setdefault(ledger, []).append(number)
    found = []
    for number in [number for number, flags in pages.items() if flags == LEAF]:
        for ledger in nearby(data[number * PAGE : (number + 1) * PAGE])[:1]:
            for at, _ in parents(data, pages, number):
                found += [(at, old) for old in copies.get(ledger, [])]
    return found


def name_child(path: Path, at: int, child: int) -> None:
    """Let the branch node at this offset of the file point to another page."""
    with path.open("r+b", buffering=0) as raw:
        raw.seek(at)
        raw.write(struct.pack("<IH", child & 0xFFFFFFFF, child >> 32))


def test_b7_a_child_of_the_past_under_an_open_index(index: Index, tmp_path: Path) -> None:
    """B7: a branch that points to an older copy of a leaf, whose checksums are all right, misleads no reader.

    Look-ups find what was committed, and a walk reports the damage. Both work once the branch is right again.
    """
    numbers = random.Random(5)
    for generation in range(5):
        put(index, generation, numbers)
    path, reader = tmp_path / "data.mdb", index.reader()
    data = path.read_bytes()
    stale = stale_children(path)
    assert len(stale) > 20
    for at, old in numbers.sample(stale, 20):
        name_child(path, at, old)
        for ledger in nearby(data[old * PAGE : (old + 1) * PAGE]):
            for entry in range(0, 6 * GAP, GAP // 2):
                assert not wrong(reader, ledger, entry, 5)
        with pytest.raises(ValueError, match="walk over all runs"):
            reader.walk(1000)
        path.write_bytes(data)
    assert len(reader.walk(1000)) == 5 * LEDGERS


def test_b7_a_leaf_whose_last_write_was_lost_is_found_at_the_start(tmp_path: Path) -> None:
    """B7: a leaf that holds an older state of itself looks sound, but has fewer values than the commit says."""
    numbers = random.Random(8)
    built = Index.open(tmp_path)
    for generation in range(5):
        put(built, generation, numbers)
    built.close()
    path = tmp_path / "data.mdb"
    data = path.read_bytes()
    for at, old in numbers.sample(stale_children(path), 20):
        low, high = struct.unpack_from("<IH", data, at)
        number = low | high << 32
        with path.open("r+b", buffering=0) as raw:
            raw.seek(number * PAGE)
            raw.write(struct.pack("<Q", number) + data[old * PAGE + 8 : (old + 1) * PAGE])
        with pytest.raises(OSError, match="cannot be opened"):
            Index.open(tmp_path)
        path.write_bytes(data)
    Index.open(tmp_path).close()


@pytest.mark.thorough
def test_b7_damage_that_was_there_at_the_start(tmp_path: Path) -> None:
    """B7: after 1,000 flips, or with branches to older copies, the open refuses, or answers are right or errors."""
    numbers, refused = random.Random(6), 0
    built = Index.open(tmp_path)
    for generation in range(5):
        put(built, generation, numbers)
    built.close()
    path = tmp_path / "data.mdb"
    data = path.read_bytes()
    for at, old in numbers.sample(stale_children(path), 20):
        name_child(path, at, old)
        with pytest.raises(OSError, match="cannot be opened"):
            Index.open(tmp_path)
        path.write_bytes(data)
    for bit in interesting_bits(path, numbers, 1_000):
        with path.open("r+b", buffering=0) as raw:
            raw.seek(bit // 8)
            raw.write(bytes([data[bit // 8] ^ 1 << bit % 8]))
        try:
            opened = Index.open(tmp_path)
        except OSError:
            refused += 1
        else:
            reader = opened.reader()
            start = bit // 8 // PAGE * PAGE
            for ledger in nearby(data[start : start + PAGE])[:20]:
                assert not wrong(reader, ledger, numbers.randrange(6 * GAP), 5), bit
            opened.close()
        path.write_bytes(data)
    assert refused > 100
