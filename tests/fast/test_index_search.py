"""Test searches in the pages of an index file with every kind of damage: the answer is right or an error, and never
that an existing entry does not exist.
"""

import errno
import os
import random
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from bookie._fast.index.search import RunFile
from bookie._fast.index.view import Index
from bookie._fast.testing.faulty import FaultyFiles, clear, plan
from tests.fixtures.draws import examples

PAGE = 4096
BRANCH, LEAF = 1, 2
LEDGERS = range(0, 3_000, 3)
GENERATIONS = 6
ENTRIES = 20

FoundRun = tuple[int, int, int, int, int]
Runs = dict[tuple[int, int], FoundRun]


def build(directory: Path) -> Path:
    """Build an index of three levels. Its commits left older copies of pages, which still look valid."""
    index = Index.open(directory)
    numbers = random.Random(1)
    for generation in range(GENERATIONS):
        index.begin()
        for ledger in LEDGERS:
            if numbers.random() < 0.8:
                sizes = [numbers.randrange(20, 60_000) for _ in range(ENTRIES)]
                index.put_run(ledger, generation * 100, generation, 1024, sizes)
        for ledger in numbers.sample(LEDGERS, 40):
            index.delete_ledger(ledger)
        index.commit()
    index.close()
    return directory / "data.mdb"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the index once; tests do not change it."""
    return build(tmp_path_factory.mktemp("index"))


@pytest.fixture
def file(built: Path, tmp_path: Path) -> Path:
    """Return a copy of the index, which tests may damage."""
    path = tmp_path / "data.mdb"
    path.write_bytes(built.read_bytes())
    return path


def truth(path: Path) -> Runs:
    """Return every run by its key, from an undamaged file."""
    with closing(RunFile(path)) as found:
        return {run[:2]: run for run in found.walk()}


@pytest.fixture
def found(file: Path) -> Iterator[RunFile]:
    """Open the file before it is damaged."""
    with closing(RunFile(file)) as opened:
        yield opened


def expected(runs: Runs, ledger: int, entry: int) -> FoundRun | None:
    """Return the run that spans an entry; the test's index has one run for each hundred ids."""
    run = runs.get((ledger, entry // 100 * 100))
    return run if run and entry < run[1] + run[2] else None


def test_finds_what_is_there_and_nothing_else(file: Path, found: RunFile) -> None:
    """Each run is found by its first and last entry; gaps are empty; the last run and the walk in order are right."""
    runs = truth(file)
    assert list(runs) == sorted(runs)
    assert len(runs) > 4_000
    firsts: dict[int, list[FoundRun]] = {}
    for run in runs.values():
        firsts.setdefault(run[0], []).append(run)
    for ledger in range(-1, 3_003):
        own = firsts.get(ledger, [])
        assert found.last(ledger) == (own[-1] if own else None)
        for entry in (-5, 0, ENTRIES - 1, ENTRIES, 100, 319, 320, 599, 10**12, 2**63 - 1):
            spanning = expected(runs, ledger, entry) if entry >= 0 else None
            assert found.spanning(ledger, entry) == spanning
            behind = next((run for run in own if run[1] + run[2] > max(entry, 0)), None)
            assert found.next(ledger, entry) == behind


# --- flipped bits ---


def live_pages(path: Path) -> dict[int, int]:
    """Return the flags, by page number, of every page that the newest commit reaches."""
    data = path.read_bytes()
    metas = [data[at : at + 152 + 16] for at in (0, PAGE)]
    newest = max(metas, key=lambda meta: int.from_bytes(meta[144:152], "little"))
    found: dict[int, int] = {}

    def visit(number: int) -> None:
        page = data[number * PAGE : (number + 1) * PAGE]
        flags, lower = struct.unpack_from("<HH", page, 10)
        found[number] = flags
        for at in struct.unpack_from(f"<{(lower - 16) // 2}H", page, 16):
            low, high, node_flags, key_size = struct.unpack_from("<HHHH", page, at)
            if flags == BRANCH:
                visit(low | high << 16 | node_flags << 32)
            elif node_flags & 2:
                (root,) = struct.unpack_from("<Q", page, at + 8 + key_size + 40)
                if root < 2**63:
                    visit(root)

    visit(int.from_bytes(newest[128:136], "little"))
    return found


@contextmanager
def flipped(path: Path, bit: int) -> Iterator[None]:
    """Flip one bit of the file during the block."""
    with path.open("r+b", buffering=0) as raw:
        for _ in range(2):
            raw.seek(bit // 8)
            byte = raw.read(1)[0]
            raw.seek(bit // 8)
            raw.write(bytes([byte ^ 1 << bit % 8]))
            if not _:
                yield


def interesting_bits(path: Path, numbers: random.Random, count: int) -> list[int]:
    """Return bits of pages in use: in headers, node pointers, keys, children and values, most often of branches."""
    data, pages = path.read_bytes(), live_pages(path)
    branches = [number for number, flags in pages.items() if flags == BRANCH]
    bits = []
    for _ in range(count):
        number = numbers.choice(branches if numbers.random() < 0.4 else list(pages))
        (lower,) = struct.unpack_from("<H", data, number * PAGE + 12)
        nodes = (lower - 16) // 2
        (node,) = struct.unpack_from("<H", data, number * PAGE + 16 + 2 * numbers.randrange(nodes))
        start, size = numbers.choice([(0, 16), (16, 2 * nodes), (node, 8), (node, 24), (node + 24, 40), (0, PAGE)])
        bits.append((number * PAGE + min(start, PAGE - 1)) * 8 + numbers.randrange(8 * max(1, min(size, PAGE - start))))
    return bits


def questions(runs: Runs, numbers: random.Random, ledgers: list[int], count: int) -> list[tuple[int, int]]:
    """Return random entries of these ledgers, some of which exist."""
    return [(numbers.choice(ledgers), numbers.randrange(650)) for _ in range(count)]


@pytest.mark.thorough
def test_b7_no_flip_makes_a_wrong_denial(file: Path, found: RunFile) -> None:
    """B7: single bits are flipped in the pages of an open index, 10,000 in turn, and every answer is right or an error.

    After each flip, the questions are about random entries of all ledgers, ledgers with runs on the damaged page, and
    last entries.
    """
    numbers = random.Random(7)
    runs = truth(file)
    data = file.read_bytes()
    errors = 0
    for bit in interesting_bits(file, numbers, examples(10_000)):
        start = bit // 8 // PAGE * PAGE
        near = nearby(data[start : start + PAGE])
        with flipped(file, bit):
            for ledger, entry in questions(runs, numbers, near or list(LEDGERS), 24) + questions(
                runs, numbers, list(range(3_000)), 6
            ):
                try:
                    assert found.spanning(ledger, entry) == expected(runs, ledger, entry), bit
                    assert (found.last(ledger) or (ledger, 0))[:2] == max(
                        (key for key in ((ledger, first) for first in range(0, 600, 100)) if key in runs),
                        default=(ledger, 0),
                    ), bit
                except ValueError:
                    errors += 1
    assert errors > examples(10_000) // 2


def nearby(page: bytes) -> list[int]:
    """Return the ledgers whose runs have a value or a branch's key on a page of the file."""
    lower, _ = struct.unpack_from("<HH", page, 12)
    ledgers = set()
    for at in struct.unpack_from(f"<{max(lower - 16, 0) // 2}H", page, 16):
        if at + 24 <= PAGE and struct.unpack_from("<H", page, at + 6)[0] == 16:
            ledgers.add(int.from_bytes(page[at + 8 : at + 16], "big"))
    return sorted(ledgers)


def parents(data: bytes, pages: dict[int, int], child: int) -> Iterator[tuple[int, int]]:
    """Return the file offsets at which branches point to this page, and the branches' flags."""
    for number, flags in pages.items():
        if flags == BRANCH:
            page = data[number * PAGE : (number + 1) * PAGE]
            (lower,) = struct.unpack_from("<H", page, 12)
            for at in struct.unpack_from(f"<{(lower - 16) // 2}H", page, 16):
                low, high, top = struct.unpack_from("<HHH", page, at)
                if low | high << 16 | top << 32 == child:
                    yield number * PAGE + at, flags


def test_b7_a_flip_that_was_there_at_the_start(file: Path) -> None:
    """B7: if a bit was flipped before the open, the open refuses the file, or every answer is right or an error."""
    numbers = random.Random(8)
    runs, data = truth(file), file.read_bytes()
    metas = [numbers.randrange(2 * PAGE * 8) for _ in range(100)]
    metas += [(page * PAGE + numbers.randrange(168)) * 8 + numbers.randrange(8) for page in (0, 1) for _ in range(100)]
    refused = 0
    for bit in interesting_bits(file, numbers, 300) + metas:
        start = bit // 8 // PAGE * PAGE
        near = nearby(data[start : start + PAGE]) if start >= 2 * PAGE else []
        with flipped(file, bit):
            try:
                found = RunFile(file)
            except ValueError:
                refused += 1
                continue
            with closing(found):
                for ledger, entry in questions(runs, numbers, near or list(LEDGERS), 24):
                    with suppress(ValueError):
                        assert found.spanning(ledger, entry) == expected(runs, ledger, entry), bit
    assert refused > 50


def test_pages_of_noise(file: Path, found: RunFile) -> None:
    """With pages of random bytes, zeros or copies of other pages, searches are bounded and answers right or errors."""
    numbers = random.Random(9)
    runs = truth(file)
    data = file.read_bytes()
    for number in numbers.sample(sorted(live_pages(file)), 60):
        other = numbers.randrange(2, len(data) // PAGE)
        for image in (numbers.randbytes(PAGE), bytes(PAGE), data[other * PAGE : (other + 1) * PAGE]):
            with file.open("r+b", buffering=0) as raw:
                raw.seek(number * PAGE)
                raw.write(image)
            for ledger, entry in questions(runs, numbers, nearby(data[number * PAGE :][:PAGE]) or list(LEDGERS), 10):
                with suppress(ValueError):
                    assert found.spanning(ledger, entry) == expected(runs, ledger, entry)
            with suppress(ValueError):
                found.walk()
        file.write_bytes(data)


def test_a_page_that_the_disk_cannot_read(file: Path) -> None:
    """A read that fails is an error of that search alone, and the next search succeeds."""
    runs = truth(file)
    found = RunFile(file, FaultyFiles())
    run = next(iter(runs.values()))
    try:
        assert found.spanning(run[0], run[1]) == run
        for nth in (1, 2, 3):
            plan("pread", "EIO", nth=nth, suffix="data.mdb")
            with pytest.raises(OSError, match="cannot be read") as failed:
                found.spanning(run[0], run[1])
            assert failed.value.errno == errno.EIO
            assert found.spanning(run[0], run[1]) == run
            clear()
    finally:
        clear()
        found.close()


def test_a_file_that_was_cut_off(file: Path, found: RunFile) -> None:
    """A search beyond the end of a truncated file is an error and no SIGBUS."""
    runs = truth(file)
    os.truncate(file, file.stat().st_size // 2 + 100)
    answers = 0
    for ledger, first in list(runs)[::7]:
        with suppress(ValueError, OSError):
            assert found.spanning(ledger, first) == runs[ledger, first]
            answers += 1
    assert 0 < answers < len(runs) // 7


def test_what_is_no_index(tmp_path: Path) -> None:
    """A file that is no index, or missing, is refused."""
    (tmp_path / "noise").write_bytes(bytes(10_000))
    with pytest.raises(ValueError, match="damaged"):
        RunFile(tmp_path / "noise")
    with pytest.raises(FileNotFoundError):
        RunFile(tmp_path / "nothing")
