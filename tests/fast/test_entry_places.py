"""Test module store.entry_places: entries are where a reader of the entry log finds them."""

from pathlib import Path

import pytest

from bookie._fast.store.entry_places import entry_places
from bookie.storage.tools.list_records import LogRecords
from tests.reference.storage import entry
from tests.storage.opened import Opened


def test_places_are_those_in_the_logs(tmp_path: Path) -> None:
    """After a checkpoint each entry has its place, listed from any entry on. Entries only in memory have none."""
    opened = Opened(tmp_path)
    stores = opened.storage.stores
    assert stores is not None
    for number in (0, 1, 2, 5, 9):
        opened.direct.add(entry(4, number), b"k" * 20)
        opened.direct.add(entry(5, number), b"k" * 20)
    opened.direct.commit()
    assert entry_places(stores, 4) == []
    opened.checkpoint()
    opened.direct.add(entry(4, 10), b"k" * 20)
    found = entry_places(stores, 4)
    assert [one.entry for one in found] == [0, 1, 2, 5, 9]
    assert entry_places(stores, 4, 2, 2) == found[2:4]
    assert entry_places(stores, 4, 10) == entry_places(stores, 77) == []
    (log,) = {one.log_id for one in found}
    path = next(tmp_path.rglob(f"{log:x}.log"))
    lie = {record.entry: (record.offset, record.bytes) for record in LogRecords(path, ledger=4)}
    assert {one.entry: (one.offset, one.length) for one in found} == lie
    with pytest.raises(ValueError, match="most is 0"):
        entry_places(stores, 4, most=0)
    opened.direct.write_close(4, b"k" * 20)
    opened.direct.write_close(78, b"k" * 20)
    opened.stop()
