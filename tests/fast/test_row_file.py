"""Test that reading files as rows closes the descriptor in every case."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bookie._fast.entrylog.rows import LogRows
from bookie._fast.journal.rows import JournalRows
from bookie._fast.wire.record_rows import RowSheet
from bookie._fast.wire.row_file import RowFile
from bookie.client.entries.digest import Digest
from tests.reference import entry_log, journal

DIGEST = Digest.of()

KINDS: dict[str, tuple[Callable[[Path, RowSheet], RowFile], bytes]] = {
    "0.log": (LogRows, entry_log.build([bytes(32)], closed=True)),
    "0.txn": (lambda path, sheet: JournalRows(path, 0, sheet), journal.build([journal.record(3, journal.FENCE)], 0)),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_descriptor_is_given_back(tmp_path: Path, name: str) -> None:
    """The descriptor is closed by close(), which may be called twice, when the object is freed, and after an error."""
    opened, content = KINDS[name]
    path = tmp_path / name
    path.write_bytes(content)

    def is_open() -> bool:
        return any(fd.resolve() == path for fd in Path("/proc/self/fd").iterdir())

    scan = opened(path, RowSheet([DIGEST.digester]))
    assert is_open()
    assert scan.path == str(path)
    assert scan.read() is not None
    scan.close()
    scan.close()
    assert not is_open()
    assert scan.read() is None

    scan = opened(path, RowSheet([DIGEST.digester]))
    del scan
    assert not is_open()

    path.write_bytes(b"BKLG" + b"\xff" * 4092)
    with pytest.raises(ValueError, match=name):
        opened(path, RowSheet([DIGEST.digester])).read()
    assert not is_open()


def test_nothing_reads_a_file_of_no_kind() -> None:
    """The base class reads no records."""
    assert RowFile().read() is None
