"""Test the check of digests of records in a file, right and wrong ones of every kind, against sealing in Python."""

from pathlib import Path

import numpy as np
import pytest

from bookie._fast.entrylog.digest_check import bad_digests
from bookie._fast.entrylog.scan import scan_chunk
from bookie.client.entries.digest import Digest, DigestType
from tests.reference import entry_log as model

KINDS = [Digest.of(kind, b"secret") for kind in DigestType]


def written(tmp_path: Path, entries: list[bytes]) -> Path:
    """Write a log of these entries."""
    path = tmp_path / "0.log"
    path.write_bytes(model.build(entries, closed=True))
    return path


def test_every_kind(tmp_path: Path) -> None:
    """Each flipped byte that a digest covers is found, and nothing else. Records without a digester are skipped."""
    entries: list[bytes] = []
    which: list[int] = []
    expected: list[int] = []
    for kind, digest in enumerate(KINDS):
        whole = digest.seal(7, kind, b"payload" * 9, lac=-1, length=63)
        for at in (None, 4, 17, 33, len(whole) - 1):
            flipped = bytearray(whole)
            if at is not None:
                flipped[at] ^= 0x10
            if at is not None and digest.type is not DigestType.DUMMY:
                expected.append(len(entries))
            entries.append(bytes(flipped))
            which.append(kind)
    path = written(tmp_path, entries)
    rows = scan_chunk(path)
    digesters = [digest.digester for digest in KINDS]
    assert bad_digests(path, rows.offset, rows.length, np.array(which), digesters).tolist() == expected
    assert not len(bad_digests(path, rows.offset, rows.length, np.zeros(len(rows.offset)), [None]))


def test_records_that_cannot_hold_a_digest(tmp_path: Path) -> None:
    """A record that is too short for header and digest, or truncated by the end of the file, counts as bad."""
    whole = KINDS[0].seal(7, 0, b"", lac=-1, length=0)
    path = written(tmp_path, [whole[:39], whole])
    rows = scan_chunk(path)
    which = np.zeros(2)
    assert bad_digests(path, rows.offset, rows.length, which, [KINDS[0].digester]).tolist() == [0]
    path.write_bytes(path.read_bytes()[: int(rows.offset[1]) + 20])
    assert bad_digests(path, rows.offset, rows.length, which, [KINDS[0].digester]).tolist() == [0, 1]


def test_arguments(tmp_path: Path) -> None:
    """The error names a missing file, and columns of different lengths are refused."""
    empty = np.zeros(0)
    with pytest.raises(FileNotFoundError, match=r"1\.log"):
        bad_digests(tmp_path / "1.log", empty, empty, empty, [])
    with pytest.raises(ValueError, match="same length"):
        bad_digests(tmp_path, np.zeros(1), empty, empty, [])
