"""Test that a read never goes beyond the runs in the index (store.read_path).

Older copies of entries that were written again may follow a run, and must not enter the read cache.
"""

from pathlib import Path

from tests.reference.storage import entry
from tests.storage.opened import MIB, Opened

KEY = b"k" * 20


def test_older_copies_behind_a_run(tmp_path: Path) -> None:
    """With a first entry much longer than the others, the estimated stretch used to reach beyond its run."""
    one = Opened(tmp_path, readahead_entries=9)
    for at in range(16):
        one.direct.add(entry(1, at, payload=b"old" + bytes(8000 if at == 0 else 20)), KEY)
    assert one.direct.commit()
    one.checkpoint()
    fresh = [entry(1, at, payload=b"new" + bytes(20)) for at in range(10, 16)]
    for data in fresh:
        one.direct.add(data, KEY, recovery=True)
    assert one.direct.commit()
    one.stop()
    one = Opened(tmp_path, readahead_entries=9)
    held = one.direct.read(1, 0, count=9, size=MIB)
    assert len(held.entries()) == 9
    held.release()
    held = one.direct.read(1, 10, count=6, size=MIB)
    found = held.entries()
    held.release()
    assert found == fresh
    one.stop()
