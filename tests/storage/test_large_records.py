"""Entries and journal groups of the largest size pass a real journal, a kill, a replay, a flush and every scan.

Every acknowledged entry is present after a start, even with a configuration that would no longer accept it.
"""

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie._fast.base.bounds import BOUNDS, entry_bytes_max, group_entry_bytes, half_entry_bytes
from bookie._fast.entrylog.scan import scan_entry_log
from bookie._fast.index.rebuild import Rebuild
from bookie._fast.index.view import Index
from tests.fixtures.draws import examples
from tests.storage.opened import MIB, STORAGE, Opened

LARGE: dict[str, Any] = {
    "write_cache_bytes": 640 * MIB,
    "buffer_bytes": 640 * MIB,
    "file_bytes_max": 512 * MIB,
    "frame_bytes_max": 128 * MIB,
    "log_bytes_max": BOUNDS.log_limit_bytes,
}
SMALL: dict[str, Any] = {"write_cache_bytes": 4 * MIB, "buffer_bytes": 2 * MIB}


def entry_of(entry: int, size: int) -> bytes:
    """Return an entry of ledger 1 that has `size` bytes and differs from every other."""
    return struct.pack(">qqqq", 1, entry, -1, 0) + bytes([entry + 1]) * (size - 32)


def check(opened: Opened, entries: dict[int, int]) -> None:
    """Check that every entry reads as it was written."""
    for entry, size in entries.items():
        held = opened.direct.read(1, entry)
        assert held.status == "OK", entry
        assert held.entries() == [entry_of(entry, size)]
        held.release()


def add(opened: Opened, entries: dict[int, int]) -> None:
    """Add all entries in one group that is written and synced, and so acknowledged."""
    groups = {opened.direct.add(entry_of(entry, size)) for entry, size in entries.items()}
    assert len(groups) == 1
    assert opened.direct.commit()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("entries", "later"),
    [
        ({0: 70 * MIB}, LARGE),
        ({0: 70 * MIB, 1: 100, 2: 9 * MIB}, SMALL),
        (dict.fromkeys(range(65), 4 * MIB), LARGE),
    ],
    ids=["an entry of 70 MiB", "the same, and caches of 4 MiB after it", "a group of 260 MiB"],
)
def test_what_a_group_took_survives_a_kill(entries: dict[int, int], later: dict[str, Any], tmp_path: Path) -> None:
    """A group is synced and replayed after a kill; then it is flushed, indexed and scanned, and the index rebuilt."""
    opened = Opened(tmp_path, **LARGE)
    add(opened, entries)
    opened.crash()
    opened = Opened(tmp_path, **later)
    assert opened.report.entries == len(entries)
    check(opened, entries)
    opened.direct.add(entry_of(100, 1000))
    opened.stop()
    current = tmp_path / "ledgers-0" / "current"
    found = {
        int(entry): int(length)
        for log in current.glob("*.log")
        for chunk in scan_entry_log(log)
        for entry, length in zip(chunk.entry, chunk.length, strict=True)
    }
    assert found == {**entries, 100: 1000}
    index = Index.open(tmp_path_for_index(tmp_path), STORAGE["index_map_bytes"])
    rebuild = Rebuild(index)
    for log in current.glob("*.log"):
        rebuild.scan(log, int(log.stem, 16))
    rebuild.finish()
    reader = index.reader()
    assert all(reader.lookup(1, entry) is not None for entry in found)
    reader.close()
    index.close()


def tmp_path_for_index(tmp_path: Path) -> Path:
    """A directory for a separate index."""
    path = tmp_path / "rebuilt"
    path.mkdir()
    return path


@settings(max_examples=examples(15), deadline=None)
@given(
    st.sampled_from([64 << 10, 1 * MIB - 1, 1 * MIB, 2 * MIB + 512]),
    st.sampled_from([512, 4096, 65536]),
    st.integers(0, 2),
)
def test_what_a_permitted_configuration_admits_every_stage_carries(
    tmp_path_factory: pytest.TempPathFactory, frame: int, alignment: int, less: int
) -> None:
    """With the smallest caches and buffers that a frame size permits, its largest entry survives a kill and a start
    with smaller ones, a flush, a read, and the scan of a compaction.
    """
    size = entry_bytes_max(frame) - less
    cache, buffer = 2 * (entry_bytes_max(frame) + 1024), 2 * (frame + 3 * alignment + 4096)
    assert half_entry_bytes(cache) >= size
    assert group_entry_bytes(buffer, alignment) >= size
    root = tmp_path_factory.mktemp("largest")
    tight: dict[str, Any] = {"write_cache_bytes": cache, "buffer_bytes": buffer, "alignment_bytes": alignment}
    opened = Opened(root, **tight)
    for entry in range(3):
        opened.direct.add(entry_of(entry, size))
        assert opened.direct.commit()
        opened.checkpoint()
    opened.direct.add(entry_of(3, size))
    assert opened.direct.commit()
    opened.crash()
    opened = Opened(root, **{**tight, "write_cache_bytes": 128 << 10})
    check(opened, dict.fromkeys(range(4), size))
    opened.checkpoint()
    (collector,) = opened.storage.collectors()
    for log_id in collector.closed_logs().ids.tolist():
        assert collector.compact(log_id).outcome == "unlinked"
    collector.finish()
    check(opened, dict.fromkeys(range(4), size))
    opened.crash()
