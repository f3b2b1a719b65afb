"""Test reading journals as rows: batches, which may end within a group, have what the scan of the whole file finds."""

from itertools import pairwise
from pathlib import Path

import pytest

from bookie._fast.journal.reader import scan_journal
from bookie._fast.journal.rows import JournalRows
from bookie._fast.wire.record_rows import RowSheet
from bookie.client.entries.digest import Digest
from tests.reference import journal as model

DIGEST = Digest.of(password=b"p")
KEY, FENCE, LAC = model.MASTER_KEY, model.FENCE, model.LAC


def entry(number: int, size: int = 40) -> bytes:
    """Return a journal's record of an entry."""
    stored = DIGEST.seal(3, number, bytes([number]) * size, lac=number - 1, length=number)
    return len(stored).to_bytes(4, "big") + stored


def written(tmp_path: Path, groups: list[bytes]) -> Path:
    path = tmp_path / "1a.txn"
    path.write_bytes(model.build(groups, 0x1A))
    return path


@pytest.mark.parametrize("rows_max", [1, 2, 5, 100])
@pytest.mark.parametrize("values_max", [1, 90, 4096])
def test_every_record_once(tmp_path: Path, rows_max: int, values_max: int) -> None:
    """Kinds, positions and payloads are right, and a batch that ends within a group loses and repeats nothing."""
    key = model.record(3, KEY, b"\0\0\0\x14" + DIGEST.master_key)
    groups = [
        key + b"".join(entry(k) for k in range(5)),
        entry(5, 700) + model.record(3, FENCE) + entry(6),
        model.record(3, LAC, bytes(20)) + entry(7),
    ]
    path = written(tmp_path, groups)
    whole = scan_journal(path, 0x1A)
    scan = JournalRows(path, 0x1A, RowSheet([DIGEST.digester], digests=True, rows_max=rows_max, values_max=values_max))
    ledgers, kinds, positions, values = [], [], [], []
    while (rows := scan.read()) is not None:
        assert all(rows.ok)
        assert rows.values is not None
        assert rows.ends is not None
        ledgers += rows.ledger.tolist()
        kinds += rows.kind.tolist()
        positions += rows.position.tolist()
        ends = rows.ends.tolist()
        values += [rows.values[a:b].tobytes() for a, b in pairwise(ends)]
    assert positions == whole.position.tolist()
    assert ledgers == whole.ledger.tolist()
    assert kinds == [3, 0, 0, 0, 0, 0, 0, 4, 0, 6, 0]
    assert (scan.torn, scan.damaged_at, scan.version) == (False, None, 6)
    scan.close()
    assert scan.read() is None


def test_how_it_ends(tmp_path: Path) -> None:
    """A truncated tail ends the rows. A bad group before a valid one is damage, with its offset."""
    path = written(tmp_path, [entry(0), entry(1), entry(2)])
    data = path.read_bytes()
    path.write_bytes(data[:-512])
    scan = JournalRows(path, 0x1A, RowSheet([DIGEST.digester]))
    assert scan.read()[1].tolist() == [0, 1]  # type: ignore[index]
    assert scan.read() is None
    assert scan.damaged_at is None
    scan.close()
    bad = bytearray(data)
    bad[1024 + 30] ^= 1
    path.write_bytes(bad)
    scan = JournalRows(path, 0x1A, RowSheet([DIGEST.digester]))
    assert scan.read()[1].tolist() == [0]  # type: ignore[index]
    assert (scan.read(), scan.damaged_at) == (None, 1024)
    scan.close()


def test_what_is_no_journal(tmp_path: Path) -> None:
    """The error names a file that is missing or not a journal."""
    with pytest.raises(FileNotFoundError, match=r"7\.txn"):
        JournalRows(tmp_path / "7.txn", 7, RowSheet([DIGEST.digester]))
    (tmp_path / "8.txn").write_bytes(b"BKLG\0\0\0\x63".ljust(600))
    with pytest.raises(ValueError, match=r"8\.txn: not a journal"):
        JournalRows(tmp_path / "8.txn", 8, RowSheet([DIGEST.digester])).read()
