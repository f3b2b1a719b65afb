"""Test options for reading records as rows: filters of ledgers, digests, and limits, which errors name."""

from pathlib import Path

import numpy as np
import pytest

from bookie._fast.entrylog.rows import LogRows
from bookie._fast.wire.digest import Digester
from bookie._fast.wire.record_rows import RowSheet
from bookie.client.entries.digest import Digest, DigestType
from tests.reference import entry_log as model

DIGESTS = [Digest.of(kind, b"secret") for kind in DigestType]
CANDIDATES = [digest.digester for digest in DIGESTS if digest.type is not DigestType.DUMMY]


def written(tmp_path: Path, entries: list[bytes]) -> Path:
    path = tmp_path / "0.log"
    path.write_bytes(model.build(entries, closed=True))
    return path


def sealed(ledger: int, digest: Digest) -> bytes:
    return digest.seal(ledger, 0, b"payload", lac=-1, length=7)


@pytest.mark.parametrize(
    ("ranges", "expected"), [([[2, 3], [7, 7]], [2, 3, 7]), ([[0, 1]], [0, 1]), ([], []), ([[9, 100]], [9])]
)
def test_only_ledgers_that_are_asked_for(tmp_path: Path, ranges: list[list[int]], expected: list[int]) -> None:
    """The filter takes ranges of ledgers, also none."""
    path = written(tmp_path, [sealed(ledger, DIGESTS[0]) for ledger in range(10)])
    scan = LogRows(path, RowSheet(CANDIDATES, ranges=np.array(ranges, np.int64)))
    rows = scan.read()
    assert (rows.ledger.tolist() if rows else []) == expected
    scan.close()


def test_the_digest_is_found_among_candidates(tmp_path: Path) -> None:
    """The right digest is found for each entry, in any order. An entry that none of them verifies is not ok."""
    order = [0, 2, 1, 1, 0, 2]
    path = written(tmp_path, [sealed(k, DIGESTS[which]) for k, which in enumerate(order)] + [sealed(9, DIGESTS[3])])
    scan = LogRows(path, RowSheet(CANDIDATES, digests=True, values_max=4096))
    rows = scan.read()
    scan.close()
    assert rows is not None
    assert rows.values is not None
    assert rows.ok.tolist() == [1] * 6 + [0, 1]
    assert rows.values.tobytes().startswith(b"payload" * 6)


@pytest.mark.parametrize("rows_max", [1, 3, 100])
def test_the_digest_of_a_ledger_is_asked_for(tmp_path: Path, rows_max: int) -> None:
    """The digest is requested once for each ledger in the filter, and only it verifies the ledger's entries."""
    keys = [Digest.of(DigestType.HMAC, b"key %d" % ledger) for ledger in range(4)]
    order = [3, 1, 1, 7, 2, 3, 0, 7]
    entries = [sealed(ledger, keys[ledger] if ledger < 4 else DIGESTS[0]) for ledger in order]
    entries += [sealed(2, DIGESTS[0]), sealed(0, keys[1])]
    path = written(tmp_path, entries)
    asked: list[int] = []

    def digest_of(ledger: int) -> Digester | None:
        asked.append(ledger)
        return keys[ledger].digester if ledger < 4 else None

    ranges = np.array([[1, 100]])
    sheet = RowSheet(CANDIDATES, digests=True, ranges=ranges, rows_max=rows_max, values_max=4096, digest_of=digest_of)
    scan = LogRows(path, sheet)
    batches = []
    while (rows := scan.read()) is not None:
        assert rows.values is not None
        assert rows.values.tobytes() == b"payload" * int(rows.ok.sum()) or rows.ledger[-1] == 2
        batches.append(rows)
    scan.close()
    assert [one for rows in batches for one in rows.ledger.tolist()] == [3, 1, 1, 7, 2, 3, 7, 2]
    assert [one for rows in batches for one in rows.ok.tolist()] == [1, 1, 1, 1, 1, 1, 1, 0]
    assert asked == [3, 1, 7, 2]


def test_nobody_is_asked_in_vain(tmp_path: Path) -> None:
    """No digest is requested if it is not needed, and an exception of the function ends the scan."""

    def digest_of(ledger: int) -> Digester | None:
        raise LookupError(f"ledger {ledger}")

    path = written(tmp_path, [sealed(5, DIGESTS[0])])
    scan = LogRows(path, RowSheet(CANDIDATES, headers=True, digest_of=digest_of))
    assert scan.read()[0].tolist() == [5, -1]  # type: ignore[index]
    scan.close()
    scan = LogRows(path, RowSheet(CANDIDATES, digests=True, digest_of=digest_of))
    with pytest.raises(LookupError, match="ledger 5"):
        scan.read()
    scan.close()


def test_wrong_arguments() -> None:
    """The error names the invalid argument."""
    with pytest.raises(ValueError, match="0 kinds of digest"):
        RowSheet([])
    with pytest.raises(ValueError, match="rows_max is 0"):
        RowSheet(CANDIDATES, rows_max=0)
    with pytest.raises(ValueError, match="values_max"):
        RowSheet(CANDIDATES, values_max=1 << 31)
    with pytest.raises(ValueError, match="ascending"):
        RowSheet(CANDIDATES, ranges=np.array([[5, 6], [1, 2]]))
