"""Test the Python interface of the index: errors that name their cause, and objects that are closed."""

import errno
from pathlib import Path

import pytest

from bookie._fast.index.view import Hit, Index, Ledger, Run


def test_opening_a_directory_that_is_not_there(tmp_path: Path) -> None:
    """The error has the path and LMDB's reason."""
    with pytest.raises(OSError, match="cannot be opened: No such file or directory") as missing:
        Index.open(tmp_path / "nowhere")
    assert missing.value.errno == errno.ENOENT
    assert missing.value.filename == str(tmp_path / "nowhere")


def test_opening_a_file_that_is_no_index(tmp_path: Path) -> None:
    """A foreign data.mdb is refused and left as it is."""
    (tmp_path / "data.mdb").write_bytes(b"not a database" * 1000)
    with pytest.raises(OSError, match="cannot be opened: MDB_INVALID"):
        Index.open(tmp_path)
    assert (tmp_path / "data.mdb").read_bytes() == b"not a database" * 1000


def test_closed_objects(tmp_path: Path) -> None:
    """Closing twice is allowed, and using a closed object is an error. The index closes its readers."""
    index = Index.open(tmp_path)
    reader, other = index.reader(), index.reader()
    other.close()
    other.close()
    with pytest.raises(ValueError, match="this reader is closed"):
        other.last(1)
    index.close()
    index.close()
    for call in (index.begin, index.commit, index.abort, index.reader):
        with pytest.raises(ValueError, match="this index is closed"):
            call()
    for look in (reader.stat, reader.ledgers):
        with pytest.raises(ValueError, match="this reader is closed"):
            look()


def test_named_results(tmp_path: Path) -> None:
    """Results have names, so that callers need no positions."""
    index = Index.open(tmp_path)
    index.begin()
    index.put_run(3, 4, 5, 600, [70, 0, 80])
    index.put_ledger(3, b"k", fenced=True, lac=b"l")
    index.commit()
    reader = index.reader()
    assert reader.lookup(3, 6) == Hit(entry=6, log_id=5, offset=674, length=80, span_bytes=84, span_last=6)
    assert reader.lookup(3, 5) is None
    assert reader.runs(3) == [Run(ledger=3, first=4, log_id=5, offset=600, lengths=[70, 0, 80])]
    assert reader.ledgers() == [Ledger(ledger=3, key=b"k", fenced=True, limbo=False, lac=b"l")]
    index.close()


@pytest.mark.parametrize("commits", range(1, 6))
def test_pages_that_later_commits_use_again(tmp_path: Path, commits: int) -> None:
    """A reader that keeps the last leaf sees each commit at once, though LMDB writes new ones to freed pages."""
    index = Index.open(tmp_path)
    reader = index.reader()
    for number in range(20 * commits):
        index.begin()
        index.put_run(3, number, number, 1024, [70])
        index.commit()
        if number % commits == 0:
            hit = reader.lookup(3, number)
            assert hit is not None
            assert hit.log_id == number
            assert reader.lookup(3, number + 1) is None
            assert reader.last(3) == number
    index.close()
