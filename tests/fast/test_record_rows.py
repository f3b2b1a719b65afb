"""What is written down of records: which ledgers, which digest, and bounds that are named when they are wrong."""

from pathlib import Path

import numpy as np
import pytest

from bookie._fast.log_rows import LogRows
from bookie._fast.record_rows import RowSheet
from bookie.client.digest import Digest, DigestType
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
    """The filter knows ranges, and an empty one."""
    path = written(tmp_path, [sealed(ledger, DIGESTS[0]) for ledger in range(10)])
    scan = LogRows(path, RowSheet(CANDIDATES, ranges=np.array(ranges, np.int64)))
    rows = scan.read()
    assert (rows.ledger.tolist() if rows else []) == expected
    scan.close()


def test_the_digest_is_found_among_candidates(tmp_path: Path) -> None:
    """Kinds in any order, each payload behind its own digest; what none of them seals is not ok."""
    order = [0, 2, 1, 1, 0, 2]
    path = written(tmp_path, [sealed(k, DIGESTS[which]) for k, which in enumerate(order)] + [sealed(9, DIGESTS[3])])
    scan = LogRows(path, RowSheet(CANDIDATES, digests=True, values_max=4096))
    rows = scan.read()
    scan.close()
    assert rows is not None
    assert rows.values is not None
    assert rows.ok.tolist() == [1] * 6 + [0, 1]
    assert rows.values.tobytes().startswith(b"payload" * 6)


def test_wrong_arguments() -> None:
    """Each is named."""
    with pytest.raises(ValueError, match="0 kinds of digest"):
        RowSheet([])
    with pytest.raises(ValueError, match="rows_max is 0"):
        RowSheet(CANDIDATES, rows_max=0)
    with pytest.raises(ValueError, match="values_max"):
        RowSheet(CANDIDATES, values_max=1 << 31)
    with pytest.raises(ValueError, match="ascending"):
        RowSheet(CANDIDATES, ranges=np.array([[5, 6], [1, 2]]))
