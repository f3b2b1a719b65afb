"""Test reads that fail because of a wrong index or a missing log: they return EIO, are counted, and are logged once
however many there are (failed_reads, B7).
"""

import logging
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from bookie._fast.index.view import Index
from tests.reference.storage import entry
from tests.storage.opened import MIB, Opened

KEY = b"k" * 20


def stored(root: Path, ledger: int) -> list[Path]:
    """Write ten entries of each of two ledgers into a log."""
    one = Opened(root)
    for at in range(10):
        for each in (ledger, ledger + 1):
            one.direct.add(entry(each, at, payload=bytes(300)), KEY)
    assert one.direct.commit()
    one.stop()
    return sorted((one.ledger_dirs[0] / "current").glob("*.log"))


def point_elsewhere(log: Path, offset: int) -> None:
    """Let the index locate entries 0 to 9 of ledger 1 at this offset."""
    index = Index.open(log.parent / "locations.lmdb", 64 * MIB)
    index.begin()
    index.put_run(1, 0, int(log.stem, 16), offset, [324] * 10)
    index.commit()
    index.close()


def past_the_end(log: Path) -> None:
    point_elsewhere(log, log.stat().st_size + 4096)


def at_another_ledger(log: Path) -> None:
    (found,) = struct.unpack_from(">q", log.read_bytes(), 1028)
    assert found == 1  # the log is sorted by ledger: the records of ledger 2 follow the ten of ledger 1
    point_elsewhere(log, 1024 + 10 * 328)


def into_a_record(log: Path) -> None:
    point_elsewhere(log, 1030)


def gone(log: Path) -> None:
    log.unlink()


@pytest.mark.parametrize("damage", [past_the_end, at_another_ledger, into_a_record, gone])
def test_what_cannot_be_read(damage: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """B7: damage gives EIO, never "no such entry". Other ledgers are served, and one line tells how often and where."""
    (log,) = stored(tmp_path, 1)
    damage(log)
    one = Opened(tmp_path)
    one.storage.tell_failed_reads()
    assert not [record for record in caplog.records if record.getMessage().startswith("the disk failed reads")]
    for at in range(10):
        held = one.direct.read(1, at, count=1, size=MIB)
        assert held.status == "IO_ERROR"
        held.release()
    if damage is not gone:
        held = one.direct.read(2, 0, count=10, size=MIB)
        assert len(held.entries()) == 10
        held.release()
    assert one.storage.stats()["failed_reads"] == 10
    one.storage.tell_failed_reads()
    one.storage.tell_failed_reads()
    reported = [record for record in caplog.records if record.getMessage().startswith("the disk failed reads")]
    facts = [tuple(getattr(record, name) for name in ("times", "ledger", "entry")) for record in reported]
    assert facts == [(10, 1, 0)]
    assert reported[0].levelno == logging.ERROR
    held = one.direct.read(1, 7, count=1, size=MIB)
    held.release()
    one.storage.tell_failed_reads()
    again = caplog.records[-1]
    assert tuple(getattr(again, name) for name in ("times", "ledger", "entry")) == (1, 1, 7)
    one.stop()
