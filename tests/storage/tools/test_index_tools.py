"""The index tools: an index is listed, verified page by page, and compared with its logs, intact and damaged."""

import os
import random
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from bookie._fast.index.view import Index
from bookie.errors import ToolRefused
from bookie.storage.tools.check_index import check_index
from bookie.storage.tools.read_index import EntryPlace, list_entries, reading
from bookie.storage.tools.verify_index import table_values, verify_index
from tests.reference import entry_log as model
from tests.storage.opened import Opened

PAGE = 4096


def entry(ledger: int, entry_id: int) -> bytes:
    """Return an entry with a size of its own."""
    return struct.pack(">qqqq", ledger, entry_id, -1, 0) + bytes(entry_id % 50)


@pytest.fixture
def current(tmp_path: Path) -> Path:
    """The directory of a real bookie: 8 ledgers, two flushes."""
    opened = Opened(tmp_path)
    for half in (0, 1):
        for ledger in range(8):
            for entry_id in range(half * 300, half * 300 + 300):
                opened.direct.add(entry(ledger, entry_id), b"k" * 20)
        opened.checkpoint()
    opened.stop()
    return opened.ledger_dirs[0] / "current"


def test_listed(current: Path) -> None:
    """Every entry is listed with the place of its record; nothing is changed, and not even a lock file is created."""
    index = current / "locations.lmdb"
    (index / "lock.mdb").unlink()
    before = {path: path.stat().st_mtime_ns for path in current.rglob("*")}
    places = list(list_entries(index, 5))
    assert [place.entry for place in places] == list(range(600))
    for place in places[::97]:
        with (current / f"{place.log_id:x}.log").open("rb") as log:
            log.seek(place.offset + 4)
            assert log.read(place.length) == entry(5, place.entry)
    assert list(list_entries(index, 99)) == []
    with reading(index) as file:
        assert [(row.ledger, row.key) for row in file.ledgers()] == [(ledger, b"k" * 20) for ledger in range(8)]
    assert verify_index(index).sound
    assert check_index(index, current).sound
    assert {path: path.stat().st_mtime_ns for path in current.rglob("*")} == before


def test_gaps(tmp_path: Path) -> None:
    """Ids that a run only spans are not listed."""
    index = Index.open(tmp_path)
    index.begin()
    index.put_run(1, 10, 3, 1024, [5, 0, 7])
    index.commit()
    index.close()
    assert list(list_entries(tmp_path, 1)) == [EntryPlace(10, 3, 1024, 5), EntryPlace(12, 3, 1033, 7)]


def test_a_sound_index_of_any_size(tmp_path: Path) -> None:
    """Branch pages, values on pages of their own, and freed pages are followed."""
    index = Index.open(tmp_path)
    for commit in range(4):
        index.begin()
        for ledger in range(600):
            index.put_run(ledger, commit * 10, commit, 1024, [random.Random(ledger).randrange(1, 9999)] * 9)
        index.put_ledger(commit, b"k" * 20, lac=b"l" * 70_000)
        if commit == 2:
            index.delete_ledger(0)
        index.commit()
    index.close()
    found = verify_index(tmp_path)
    assert found.problems == ()
    assert (found.runs, found.ledgers, found.transaction >= 4) == (4 * 600 - 3, 3, True)
    assert found.pages > 20


def test_damage_is_told_not_followed(current: Path) -> None:
    """Each page of the file in turn is cut off, zeroed, or has a flipped bit, which never causes an exception."""
    index = current / "locations.lmdb"
    data = index / "data.mdb"
    whole = data.read_bytes()
    reported = 0
    draw = random.Random(3)
    for page in range(2, len(whole) // PAGE):
        for damaged in (
            whole[: page * PAGE],
            whole[: page * PAGE] + bytes(PAGE) + whole[(page + 1) * PAGE :],
            flipped(whole, page * PAGE + draw.randrange(PAGE), 1 << draw.randrange(8)),
        ):
            data.write_bytes(damaged)
            found = verify_index(index)
            reported += not found.sound
            if not found.sound:
                with pytest.raises(ToolRefused, match="rebuild the index"):
                    check_index(index, current)
            assert all("rebuild the index" in problem for problem in found.problems)
    assert reported > 4
    for nothing in (b"", bytes(100), bytes(3 * PAGE), b"foreign" * 5000):
        data.write_bytes(nothing)
        assert "neither of its first two pages" in verify_index(index).problems[0]
    data.unlink()
    assert "cannot be read" in verify_index(index).problems[0]
    with pytest.raises(ToolRefused, match="holds no index"), reading(index):
        pass


def flipped(data: bytes, at: int, bit: int) -> bytes:
    """Return the data with one bit flipped."""
    out = bytearray(data)
    out[at] ^= bit
    return bytes(out)


@pytest.mark.parametrize("name", [b"locations", b"ledgers", b"fences", b"doubts", b"commit"])
def test_a_flipped_name_is_told(current: Path, name: bytes) -> None:
    """A name with one wrong bit is damage, and its table is read all the same."""
    index = current / "locations.lmdb"
    data = index / "data.mdb"
    whole = data.read_bytes()
    sound = {table: table_values(index, table) for table in (b"locations", b"ledgers", b"fences", b"doubts")}
    assert sound[b"ledgers"][0]
    assert not any(problems for _, problems in sound.values())
    for bit in range(8 * len(name)):
        for at in occurrences(whole, name):
            data.write_bytes(flipped(data.read_bytes(), at + bit // 8, 1 << bit % 8))
        assert "is no table of an index" in "".join(verify_index(index).problems)
        for table, (values, _) in sound.items():
            assert table_values(index, table)[0] == values
        data.write_bytes(whole)


def occurrences(data: bytes, name: bytes) -> list[int]:
    """Return where a name is, in pages of all commits."""
    return [found.start() for found in re.finditer(re.escape(name), data)]


def test_a_torn_meta_page(current: Path) -> None:
    """The other meta page counts, as for LMDB: an older, complete commit."""
    data = current / "locations.lmdb" / "data.mdb"
    whole = data.read_bytes()
    newest = verify_index(data.parent).transaction
    transactions = [verify_after(data, whole[:at] + bytes(PAGE) + whole[at + PAGE :]) for at in (0, PAGE)]
    assert max(transactions) == newest
    assert min(transactions) < newest


def verify_after(data: Path, content: bytes) -> int:
    """Return the commit that a file with this content shows."""
    data.write_bytes(content)
    return verify_index(data.parent).transaction


def test_b6_an_index_that_lies(current: Path) -> None:
    """Runs that point at other records, beyond a log, at missing logs, or of unknown ledgers are reported."""
    path = current / "locations.lmdb"
    with (current / "7f.log").open("wb") as log:
        log.write(model.build([model.entry(50, 0, b"abc"), model.entry(50, 1)], closed=True))
    end = (current / "7f.log").stat().st_size
    index = Index.open(path)
    index.begin()
    index.put_ledger(50, b"")
    index.put_run(50, 0, 0x7F, 1024, [19, 16])
    index.put_run(50, 5, 0x7F, 1024, [19])
    index.put_run(50, 7, 0x7F, end - 3, [19])
    index.put_run(51, 0, 0x77, 1024, [19, 0, 19])
    index.commit()
    index.close()
    seen: list[int] = []
    found = check_index(path, current, on_run=seen.append)
    assert [(one.ledger, one.entry, one.log_id) for one in found.wrong] == [
        (50, 5, 0x7F),
        (50, 7, 0x7F),
        (51, 0, 0x77),
        (51, 2, 0x77),
    ]
    assert found.wrong[0].why == "entry 0 of ledger 50, 19 bytes, is there instead"
    assert found.wrong[1].why == "the log ends before the end of the record"
    assert found.wrong[2].why == "77.log is missing"
    assert (found.wrong_count, found.missing_logs, found.without_record) == (4, (0x77,), (51,))
    assert (found.entries, seen[-1], found.sound) == (8 * 600 + 6, 8 * 600 + 6, False)


def test_large_entries_are_not_read_whole(tmp_path: Path) -> None:
    """Of a run of megabytes only the headers of its records are read."""
    data = [model.entry(1, entry_id, bytes(1 << 20)) for entry_id in range(6)]
    (tmp_path / "0.log").write_bytes(model.build(data, closed=True))
    index = Index.open(tmp_path, 1 << 24)
    index.begin()
    index.put_ledger(1, b"")
    index.put_run(1, 0, 0, 1024, [16 + (1 << 20)] * 6)
    index.commit()
    index.close()
    assert check_index(tmp_path, tmp_path, entries_per_s=1e9).sound
    with (tmp_path / "0.log").open("r+b") as log:
        log.seek(1024 + 4 * (20 + (1 << 20)) + 4)
        log.write(struct.pack(">q", 3))
    assert [one.entry for one in check_index(tmp_path, tmp_path).wrong] == [4]


def test_in_another_process_while_it_is_open(current: Path) -> None:
    """Listing takes no lock of LMDB, so a process that has the index open is not affected."""
    index = Index.open(current / "locations.lmdb")
    program = (
        "import sys; from pathlib import Path; from bookie.storage.tools.check_index import check_index;"
        "p = Path(sys.argv[1]); sys.exit(not check_index(p / 'locations.lmdb', p).sound)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(current)], check=False, timeout=60, env=os.environ)
    assert done.returncode == 0
    assert index.reader().last(3) == 599
    index.close()
