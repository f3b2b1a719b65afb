"""Test the location index as a store: transactions, full disks, failed writes, damage, and readers during writes."""

import array
import errno
import itertools
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bookie._fast.index.view import Index, Ledger, Reader
from tests.fast.index_edits import editing_runs


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """Open an empty index."""
    opened = Index.open(tmp_path, 1 << 30)
    yield opened
    opened.close()


def put(index: Index, *runs: tuple[int, int, int, int, list[int]]) -> None:
    """Put runs in one transaction."""
    index.begin()
    for run in runs:
        index.put_run(*run)
    index.commit()


def test_one_transaction(index: Index) -> None:
    """Readers see nothing before the commit, everything after it, and nothing of what was aborted."""
    reader = index.reader()
    index.begin()
    index.put_run(1, 0, 5, 1024, [10, 20])
    index.put_ledger(1, b"key")
    assert (reader.lookup(1, 0), reader.ledgers(), reader.last(1)) == (None, [], None)
    index.commit()
    hit = reader.lookup(1, 1)
    assert hit == (1, 5, 1024 + 14, 20, 24, 1)
    index.begin()
    index.delete_ledger(1)
    index.abort()
    assert reader.lookup(1, 1) == hit
    assert reader.ledgers() == [Ledger(1, b"key", False, False, b"")]


def test_a_ledger_record_keeps_everything(index: Index) -> None:
    """B8: fence, limbo, master key and explicit LAC are read as they were put, and the last put wins."""
    reader = index.reader()
    put(index)
    index.begin()
    index.put_ledger(9, bytes(20))
    index.put_ledger(2, b"k" * 0xFFFF, fenced=True, limbo=True, lac=b"l" * 70_000)
    index.put_ledger(9, bytes(20), fenced=True)
    index.commit()
    last = Ledger(9, bytes(20), fenced=True, limbo=False, lac=b"")
    assert reader.ledgers() == [Ledger(2, b"k" * 0xFFFF, True, True, b"l" * 70_000), last]


def test_the_file_survives_closing(tmp_path: Path) -> None:
    """After reopening, what was committed is there, and what was not is gone."""
    index = Index.open(tmp_path)
    put(index, (1, 0, 5, 1024, [10, 20]))
    index.begin()
    index.put_run(1, 2, 5, 2048, [30])
    index.close()
    index = Index.open(tmp_path)
    assert [run.lengths for run in index.reader().runs(1)] == [[10, 20]]
    index.close()


def test_order_of_calls(index: Index) -> None:
    """Writes outside of a transaction, and a second transaction inside one, are refused and change nothing."""
    calls: tuple[Callable[[], None], ...]
    calls = (lambda: index.put_run(1, 0, 1, 1, [1]), lambda: index.put_ledger(1, b""), index.commit)
    for call in calls:
        with pytest.raises(ValueError, match="no transaction is open"):
            call()
    index.abort()
    index.begin()
    with pytest.raises(ValueError, match="no transaction is open"):
        index.begin()
    index.put_run(1, 0, 1, 1, [1])
    index.commit()
    assert index.reader().last(1) == 0


@pytest.mark.parametrize(
    ("first", "lengths"),
    [(0, []), (0, [0, 1]), (0, [1, 0]), (0, [1] * 1025), (-1, [1]), (2**63 - 1, [1]), (2**63 - 2, [1, 1])],
)
def test_runs_outside_the_limits(index: Index, first: int, lengths: list[int]) -> None:
    """A run outside the limits is refused, and the rest of its transaction is committed."""
    index.begin()
    index.put_run(1, 7, 1, 1, [1])
    with pytest.raises(ValueError, match="a value is outside its limits"):
        index.put_run(1, first, 1, 1, lengths)
    with pytest.raises(ValueError, match="a value is outside its limits"):
        index.put_ledger(1, bytes(0x10000))
    index.commit()
    assert index.reader().last(1) == 7


def test_the_highest_ids(index: Index) -> None:
    """Ids up to 2^63 - 2 and offsets beyond 4 GiB are stored like any other."""
    put(index, (2**63 - 1, 2**63 - 3, 2**32 - 1, 2**40, [2**32 - 1, 1]))
    reader = index.reader()
    assert reader.lookup(2**63 - 1, 2**63 - 2) == (2**63 - 2, 2**32 - 1, 2**40 + 2**32 + 3, 1, 5, 2**63 - 2)
    assert reader.last(2**63 - 1) == 2**63 - 2
    assert reader.next(2**63 - 1, 2**63 - 1) is None


# --- failures ---


def test_a_full_map_is_no_space(tmp_path: Path) -> None:
    """NO_SPACE discards its transaction. What was there is served, and the index can be written again."""
    index = Index.open(tmp_path, 128 * 1024)
    put(index, (1, 0, 1, 1024, [100] * 1000))
    numbers = random.Random(1)
    index.begin()
    with pytest.raises(OSError, match="no space left") as full:
        fill(index, 2, 0, [numbers.randrange(1, 1 << 30) for _ in range(100_000)])
    assert full.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match="no space left"):
        index.commit()
    reader = index.reader()
    assert reader.last(2) is None
    assert reader.count_present(1, array.array("q", range(1000))) == 1000
    put(index, (1, 1000, 1, 200_000, [100] * 10))
    assert reader.last(1) == 1009
    index.close()


def test_a_full_map_grows_under_readers(tmp_path: Path) -> None:
    """The map doubles for the next transaction, again and again, and threads that read meanwhile miss nothing."""
    index = Index.open(tmp_path, 128 * 1024)
    put(index, (1, 0, 1, 1024, [100] * 1000))
    stop, wrong, reads = threading.Event(), [], [0, 0, 0]

    def read(number: int) -> None:
        reader = index.reader()
        while not stop.is_set():
            reads[number] += 1
            if reader.lookup(1, reads[number] % 1000) is None or reader.last(1) != 999:
                wrong.append(reads[number])

    threads = [threading.Thread(target=read, args=(number,)) for number in range(len(reads))]
    for thread in threads:
        thread.start()
    numbers, failed = random.Random(1), 0
    lengths = [numbers.randrange(1, 1 << 30) for _ in range(400_000)]

    def put_all() -> bool:
        index.begin()
        try:
            fill(index, 2, 0, lengths)
            index.commit()
        except OSError:
            index.abort()
            return False
        return True

    try:
        while not put_all():
            failed += 1
            assert failed < 1000, "the map does not grow"
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failed >= 3
    assert not wrong
    assert all(reads)
    reader = index.reader()
    assert reader.last(2) == len(lengths) - 1
    assert reader.stat().file_bytes > 1 << 20
    index.close()


FULL_DISK = """
import random, sys
from bookie._fast.index.view import Index

index = Index.open(sys.argv[1])
reader = index.reader()
index.begin()
index.put_run(1, 0, 1, 1024, [100] * 1000)
index.commit()
for attempt in range(3):
    try:
        index.begin()
        for first in range(0, 500_000, 1000):
            index.put_run(2, first, 1, 1024, [random.randrange(1, 60_000) for _ in range(1000)])
        index.commit()
    except OSError as error:
        print(error.errno, reader.last(1), reader.last(2))
        index.abort()
"""


def test_a_full_disk_is_no_space(tmp_path: Path) -> None:
    """On a real, small file system the writer gets NO_SPACE, whatever LMDB's error is, and readers continue."""
    script = 'mount -t tmpfs -o size=700k none "$1" && exec "$2" -c "$3" "$1"'
    directory = str(tmp_path)
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh", directory, sys.executable, FULL_DISK]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no file system of our own here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{errno.ENOSPC} 999 None"] * 3


FAILING_COMMIT = """
import resource, sys
from bookie._fast.index.view import Index

def refused(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        print(error.errno, end=" ")
        return
    sys.exit(f"{call} did not fail")

index = Index.open(sys.argv[1])
reader = index.reader()
index.begin()
index.put_run(1, 0, 1, 1024, [100] * 1000)
index.commit()
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (reader.stat().file_bytes, hard))
index.begin()
for first in range(1000, 101_000, 1000):
    index.put_run(1, first, 2, 1024, list(range(1, 1001)))
refused(index.commit)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
for call in (index.begin, index.commit, index.reader, reader.stat, reader.ledgers):
    refused(call)
refused(reader.lookup, 1, 0)
refused(reader.next, 1, 0)
refused(reader.last, 1)
refused(reader.runs, 1)
refused(index.put_run, 1, 0, 1, 1024, [1])
index.close()
"""


def test_b2_after_a_failed_commit_nothing_goes_on(tmp_path: Path) -> None:
    """B2: after the disk refused a write of a commit, each later call fails, even if the disk is intact again.

    The next open finds the state of the last successful commit. A file-size limit stands in for the failing disk, in
    another process.
    """
    command = [sys.executable, "-c", FAILING_COMMIT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(errno.EIO)] * 11
    index = Index.open(tmp_path)
    put(index, (2, 0, 1, 1, [5]))
    assert [(run.first, run.log_id, len(run.lengths)) for run in index.reader().runs(1)] == [(0, 1, 1000)]
    index.close()


@pytest.mark.parametrize("position", [0, 4, 12, 23])
def test_b7_a_damaged_value_is_never_a_missing_entry(tmp_path: Path, position: int) -> None:
    """B7: look-ups that need the damaged run fail. Other runs are served, and the ledger can still be deleted."""
    index = Index.open(tmp_path)
    put(index, (1, 0, 1, 1024, [100] * 10), (1, 20, 1, 9000, [100] * 10), (2, 0, 1, 20_000, [1]))
    index.close()
    damage(tmp_path, 0, position)
    index = Index.open(tmp_path)
    reader = index.reader()
    broken: tuple[Callable[[], object], ...] = (
        lambda: reader.lookup(1, 5),
        lambda: reader.lookup(1, 15),
        lambda: reader.next(1, 0),
        lambda: reader.runs(1),
    )
    for call in broken:
        with pytest.raises(ValueError, match="fails its checksum"):
            call()
    assert reader.lookup(1, 25) is not None
    assert reader.last(1) == 29
    index.begin()
    with pytest.raises(ValueError, match="fails its checksum"):
        index.put_run(1, 5, 2, 2048, [1])
    with pytest.raises(ValueError, match="fails its checksum"):
        index.commit()
    index.begin()
    index.delete_ledger(1)
    index.commit()
    assert (reader.last(1), reader.last(2)) == (None, 0)
    index.close()


def damage(directory: Path, number: int, position: int) -> None:
    """Flip a bit in the value of run `number`. The head of the chain of runs is before run 0."""
    with editing_runs(directory) as transaction, transaction.cursor() as cursor:
        key, value = list(cursor)[1 + number]
        changed = bytearray(value)
        changed[position] ^= 0x10
        transaction.put(key, bytes(changed))


# --- readers during writes ---


def test_readers_beside_a_writer(index: Index) -> None:
    """While a writer puts every entry again and again, each is found, and never older than the last commit."""
    entries, generations = 2_000, 40
    sizes = [100 + entry % 7 for entry in range(entries)]
    offsets = [1024 + sum(sizes[:entry]) + 4 * entry for entry in range(entries)]
    put_generation(index, 0, sizes, offsets)
    done = threading.Event()
    failures: list[str] = []
    committed = [0]

    def read(seed: int) -> None:
        reader, numbers = index.reader(), random.Random(seed)
        while not done.is_set() and not failures:
            entry, oldest = numbers.randrange(entries), committed[-1]
            hit = reader.lookup(1, entry)
            if hit is None or hit.log_id < oldest or hit[2:4] != (offsets[entry], sizes[entry]):
                failures.append(f"entry {entry}, not older than {oldest}: {hit}")
                return

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    try:
        for generation in range(1, generations):
            put_generation(index, generation, sizes, offsets)
            committed.append(generation)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not failures


def put_generation(index: Index, generation: int, sizes: list[int], offsets: list[int]) -> None:
    """Put every entry once more, with other ends of runs each time."""
    cut = random.Random(generation).randrange(1, 1000)
    edges = [*range(0, len(sizes), cut), len(sizes)]
    put(index, *((1, a, generation, offsets[a], sizes[a:b]) for a, b in itertools.pairwise(edges)))


def test_look_ups_without_the_gil(index: Index) -> None:
    """A million hits and as many misses end while two Python threads spin, which would take hours with the GIL."""
    put(index, (1, 0, 1, 1024, [100] * 1000))
    reader = index.reader()
    done = threading.Event()

    def spin() -> None:
        while not done.is_set():
            pass

    threads = [threading.Thread(target=spin) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        assert reader.count_present(1, array.array("q", range(2000)) * 1000) == 1_000_000
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_reader_slots_are_limited_and_come_back(index: Index) -> None:
    """The 513th reader is refused with a reason, and accepted once another one is closed."""
    readers = [index.reader() for _ in range(512)]
    with pytest.raises(OSError, match="all reader slots are taken"):
        index.reader()
    readers[7].close()
    assert index.reader().last(1) is None


def test_an_idle_reader_pins_no_pages(index: Index) -> None:
    """A reader that is idle between calls does not make the file grow with each commit."""
    reader = index.reader()
    for _ in range(3):
        put(index, (1, 0, 1, 1024, list(range(1, 1001))))
    size = reader.stat().file_bytes
    for _ in range(50):
        put(index, (1, 0, 1, 1024, list(range(1, 1001))))
    assert reader.stat().file_bytes <= size + 4 * 4096


# --- size on disk ---


@pytest.mark.parametrize(
    ("sizes", "bytes_max"), [((1024, 1025), 0.2), ((1000, 1200), 2.0), ((20, 60_000), 4.0), ((20, 1 << 20), 6.0)]
)
def test_bytes_per_entry(index: Index, sizes: tuple[int, int], bytes_max: float) -> None:
    """Sequential ledgers, alone and ten side by side over twenty flushes, need far less than eight bytes an entry."""
    numbers, entries, pages = random.Random(1), 0, 0
    reader = index.reader()
    for ledgers in ([1], list(range(10, 20))):
        for flush in range(20):
            index.begin()
            for ledger in ledgers:
                entries += fill(index, ledger, flush * 2000, [numbers.randrange(*sizes) for _ in range(2000)])
            index.commit()
        pages = reader.stat().run_pages
        assert pages * 4096 / entries <= bytes_max
    assert pages


def fill(index: Index, ledger: int, first: int, sizes: list[int]) -> int:
    """Put a long run in pieces, as a flush does; return the number of entries."""
    offset = 1024
    for start in range(0, len(sizes), 1024):
        part = sizes[start : start + 1024]
        index.put_run(ledger, first + start, first // 2000, offset, part)
        offset += sum(part) + 4 * len(part)
    return len(sizes)


def test_statistics(index: Index) -> None:
    """The statistics have the number of values and pages of both tables."""
    reader: Reader = index.reader()
    index.begin()
    index.put_run(1, 0, 1, 1, [1] * 1024)
    index.put_run(1, 1024, 1, 1, [1])
    index.put_ledger(1, b"")
    index.commit()
    stat = reader.stat()
    assert (stat.runs, stat.run_pages, stat.ledgers, stat.ledger_pages) == (2, 1, 1, 1)
    assert stat.file_bytes >= 4 * stat.page_bytes


def test_a_transaction_among_many_ledgers_reads_pages_once(index: Index, tmp_path: Path) -> None:
    """A put checks the pages on its path and their neighbours, but not those that an earlier put has checked."""
    ledgers = 60_000
    put(index, *((ledger, 0, 5, 1024 + 24 * ledger, [20]) for ledger in range(ledgers)))
    pages = (tmp_path / "data.mdb").stat().st_size // 4096
    index.begin()
    before = reads_of_this_process()
    for ledger in range(0, ledgers, 5):
        index.put_run(ledger, 1, 6, 1024 + 24 * ledger, [20])
    assert reads_of_this_process() - before <= 2 * pages < ledgers // 5
    index.commit()
    assert index.reader().lookup(5, 1) == (1, 6, 1024 + 24 * 5, 20, 24, 1)


def reads_of_this_process() -> int:
    """Return the number of its system calls that read."""
    [line] = [line for line in Path("/proc/self/io").read_text().splitlines() if line.startswith("syscr")]
    return int(line.split()[1])
