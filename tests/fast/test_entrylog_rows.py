"""Test reading entry logs as rows against the model's scan, with digests, filters, large entries and damage."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.entrylog.rows import LogRows
from bookie._fast.wire.record_rows import Rows, RowSheet
from bookie.client.entries.digest import Digest, DigestType
from tests.reference import entry_log as model

DIGESTS = [Digest.of(kind, b"secret") for kind in (DigestType.CRC32C, DigestType.CRC32, DigestType.HMAC)]
CANDIDATES = [digest.digester for digest in DIGESTS]


def sealed(ledger: int, entry: int, payload: bytes, which: int = 0) -> bytes:
    return DIGESTS[which].seal(ledger, entry, payload, lac=entry - 1, length=(entry + 1) * 100)


def every(path: Path, **asked: object) -> list[Rows]:
    """Return all batches."""
    scan = LogRows(path, RowSheet(CANDIDATES, **asked))  # type: ignore[arg-type]
    found = []
    while (rows := scan.read()) is not None:
        found.append(rows)
    scan.close()
    return found


def column(batches: list[Rows], name: str) -> list[int]:
    return [value for rows in batches for value in getattr(rows, name).tolist()]


def payloads(rows: Rows) -> list[bytes]:
    assert rows.values is not None
    assert rows.ends is not None
    ends = rows.ends.tolist()
    return [rows.values[a:b].tobytes() for a, b in pairwise(ends)]


@given(
    entries=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.binary(max_size=80)), max_size=30),
    rows_max=st.integers(1, 9),
    values_max=st.sampled_from([1, 70, 4096]),
)
def test_every_record(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[int, int, bytes]], rows_max: int, values_max: int
) -> None:
    """Whatever the size of batches, each record comes once and in order, with its digest verified and its payload."""
    path = tmp_path_factory.mktemp("log") / "0.log"
    stored = [sealed(ledger, k, payload, which) for k, (ledger, which, payload) in enumerate(entries)]
    path.write_bytes(model.build(stored, closed=bool(stored)))
    batches = every(path, headers=True, digests=True, rows_max=rows_max, values_max=values_max)
    assert column(batches, "entry") == [*range(len(entries)), *([-2] if stored else [])]
    assert column(batches, "ledger") == [ledger for ledger, _, _ in entries] + ([-1] if stored else [])
    assert column(batches, "kind") == [0] * len(entries) + ([1] if stored else [])
    assert all(column(batches, "ok"))
    assert [one for rows in batches for one in payloads(rows)][: len(entries)] == [one for _, _, one in entries]
    assert all(len(rows.ledger) <= rows_max for rows in batches)
    data = path.read_bytes()
    for position, entry in zip(column(batches, "position"), stored, strict=False):
        assert data[position : position + len(entry)] == entry


def test_fields_of_the_header(tmp_path: Path) -> None:
    """LAC, length and size are those in the entry."""
    path = tmp_path / "0.log"
    path.write_bytes(model.build([sealed(5, 7, b"x" * 10)], closed=False))
    [rows] = every(path)
    assert (rows.lac[0], rows.length[0], rows.size[0]) == (6, 800, 46)
    assert rows.values is None


def test_flipped_bytes_are_found(tmp_path: Path) -> None:
    """A flipped byte in header, digest or payload is found; an impossible header is found without digests, too."""
    for at, headers_see in ((23, True), (33, False), (45, False)):
        bad = bytearray(sealed(1, 1, b"y" * 20))
        bad[at] ^= 0x40
        path = tmp_path / "0.log"
        path.write_bytes(model.build([sealed(1, 0, b"y"), bytes(bad), sealed(1, 2, b"z")], closed=False))
        assert column(every(path, headers=True, digests=True), "ok") == [1, 0, 1]
        assert column(every(path, headers=True), "ok") == [1, int(not headers_see), 1]
        assert column(every(path), "ok") == [1, 1, 1]


def test_behind_damage(tmp_path: Path) -> None:
    """After an impossible length the scan continues with the next valid entry, not with bytes that look like one."""
    entries = [sealed(1, k, bytes(50)) for k in range(6)]
    data = bytearray(model.build(entries, closed=True))
    size = len(entries[0]) + 4
    second = model.HEADER + 2 * size
    data[second : second + 4] = b"\xff\xff\xff\xff"
    path = tmp_path / "0.log"
    path.write_bytes(data)
    scan = LogRows(path, RowSheet(CANDIDATES))
    assert scan.read()[1].tolist() == [0, 1]  # type: ignore[index]
    assert (scan.read(), scan.torn, scan.position) == (None, True, second)
    assert scan.skip()
    assert scan.position == second + size
    assert scan.read()[1].tolist() == [3, 4, 5, -2]  # type: ignore[index]
    assert (scan.read(), scan.torn) == (None, False)
    scan.close()


@pytest.mark.parametrize("byte", [b"\0", b"\7"])
def test_a_wrong_length_is_suspected(tmp_path: Path, byte: bytes) -> None:
    """A length that is too large swallows following entries, so the search starts inside the entry that failed."""
    entries = [sealed(1, k, byte * 50) for k in range(6)]
    data = bytearray(model.build(entries, closed=False))
    size = len(entries[0]) + 4
    data[model.HEADER : model.HEADER + 4] = (len(entries[0]) + 2 * size + 9).to_bytes(4, "big")
    path = tmp_path / "0.log"
    path.write_bytes(data)
    scan = LogRows(path, RowSheet(CANDIDATES, digests=True))
    assert not any(scan.read()[7])  # type: ignore[index]
    assert scan.suspected
    assert scan.skip()
    assert scan.read()[1].tolist() == [1, 2, 3, 4, 5]  # type: ignore[index]
    scan.close()


def test_nothing_behind_damage(tmp_path: Path) -> None:
    """If no entry follows the damage, the search ends with the file and says so."""
    path = tmp_path / "0.log"
    path.write_bytes(model.build([sealed(1, 0, b"")], closed=False) + b"\xff" * 5000)
    scan = LogRows(path, RowSheet(CANDIDATES))
    scan.read()
    assert scan.torn
    assert not scan.skip()
    assert scan.read() is None
    with pytest.raises(ValueError, match="there is no damage to skip"):
        scan.skip()
    scan.close()
    scan.close()


def test_direct_layout(tmp_path: Path) -> None:
    """Padded blocks, as Java's direct writer leaves them, are skipped."""
    flushes = [[sealed(1, 0, b"a"), sealed(1, 1, b"b")], [sealed(1, 2, b"c")]]
    path = tmp_path / "0.log"
    path.write_bytes(model.build_direct(flushes, zeros=4096))
    assert column(every(path, digests=True), "entry") == [0, 1, 2]


def test_no_entry_log(tmp_path: Path) -> None:
    """The error names a file that is missing or not an entry log."""
    with pytest.raises(FileNotFoundError, match=r"1\.log"):
        LogRows(tmp_path / "1.log", RowSheet(CANDIDATES))
    (tmp_path / "2.log").write_bytes(b"no entry log".ljust(2000))
    with pytest.raises(ValueError, match=r"2\.log: not an entry log"):
        LogRows(tmp_path / "2.log", RowSheet(CANDIDATES))
