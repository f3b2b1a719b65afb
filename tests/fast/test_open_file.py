"""Test that files opened by `base.open_file` give errors that name them, whatever kind of path the caller passed."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bookie._fast.entrylog.map import scan_ledgers
from bookie._fast.entrylog.scan import scan_chunk
from bookie._fast.journal.reader import scan_journal
from bookie._fast.testing import faulty

OPENERS: dict[str, Callable[..., Any]] = {
    "a journal": lambda path, **files: scan_journal(path, 1, **files),
    "an entry log": scan_chunk,
    "a ledgers map": scan_ledgers,
}


@pytest.mark.parametrize("opened", OPENERS.values(), ids=OPENERS)
def test_a_missing_file_is_named(opened: Callable[..., Any], tmp_path: Path) -> None:
    """As text, also if the caller passed a Path or text; bytes stay bytes."""
    path = tmp_path / "1f.log"
    for given, named in ((path, str(path)), (str(path), str(path)), (bytes(path), bytes(path))):
        with pytest.raises(FileNotFoundError) as caught:
            opened(given)
        assert caught.value.filename == named


@pytest.mark.parametrize("opened", OPENERS.values(), ids=OPENERS)
def test_a_failure_of_the_disk_is_named(opened: Callable[..., Any], tmp_path: Path) -> None:
    """The error number is that of the call which failed."""
    path = tmp_path / "1f.log"
    path.write_bytes(bytes(2048))
    faulty.plan("open", "EIO", suffix="1f.log")
    try:
        with pytest.raises(OSError, match=r"1f\.log") as caught:
            opened(path, files=faulty.FaultyFiles())
    finally:
        faulty.clear()
    assert caught.value.errno == errno.EIO
