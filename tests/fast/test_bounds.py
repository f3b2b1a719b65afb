"""Test the limits and what is derived from them: each stage can process what the stage before it accepts."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.base.bounds import BOUNDS, entry_bytes_max, group_entry_bytes, half_entry_bytes
from bookie._fast.base.file import Files
from bookie._fast.cache.write import WriteHalf
from bookie._fast.index.codec import pack_run, unpack_run
from bookie._fast.journal.commit import JournalCommitter
from bookie._fast.store.direct import JournalWriter

KIB, MIB = 1 << 10, 1 << 20


def entry_of(entry: int, size: int, ledger: int = 1) -> bytes:
    """Return an entry of `size` bytes in total."""
    return struct.pack(">qqqq", ledger, entry, -1, 0).ljust(size, b"x")[:size]


def test_limits_do_not_contradict_each_other() -> None:
    """A frame's entry fits a record, a record a group, and offsets the 32 bits of a group and the 31 of a log."""
    assert entry_bytes_max(BOUNDS.frame_bytes) + 4 <= BOUNDS.record_bytes
    assert BOUNDS.record_bytes < BOUNDS.group_bytes
    assert BOUNDS.journal_file_bytes + BOUNDS.group_bytes < 1 << 32
    assert BOUNDS.log_limit_bytes + BOUNDS.record_bytes < 1 << 31


def test_the_last_entry_can_be_indexed() -> None:
    """The highest entry id that is admitted can end a run, and no run holds a higher one."""
    key, value, _ = pack_run(1, BOUNDS.entry_id, 0, 1024, [100])
    assert unpack_run(key, value)[1] == BOUNDS.entry_id
    with pytest.raises(ValueError, match="not a packed run"):
        unpack_run(*pack_run(1, BOUNDS.entry_id + 1, 0, 1024, [100])[:2])


@given(st.sampled_from([-(2**63), -1, 0, 1, 2**62, BOUNDS.entry_id - 1, BOUNDS.entry_id, 2**63 - 1]), st.integers(1, 4))
def test_the_write_cache_takes_what_a_flush_can_index(entry: int, times: int) -> None:
    """The write cache refuses ids that the index cannot hold, and keeps one run for an id that is added repeatedly."""
    half = WriteHalf(64 * KIB)
    if not 0 <= entry <= BOUNDS.entry_id:
        with pytest.raises(ValueError, match="refused"):
            half.put(entry_of(entry, 32))
        return
    for turn in range(times):
        assert half.put(entry_of(entry, 32 + turn))
    assert half.runs(1) == [(entry, entry, 1)]


@pytest.mark.parametrize("cache_bytes", [8 * KIB, 10_001, 2 * MIB, 16 * MIB])
def test_a_half_takes_the_entry_that_is_said_to_fit(cache_bytes: int) -> None:
    """An entry of the size that is said to fit fits, together with the half's page and the rounding."""
    half = WriteHalf(cache_bytes // 2)
    assert half.put(entry_of(0, half_entry_bytes(cache_bytes)))


@pytest.mark.parametrize("alignment", [512, 4096, 65536])
@pytest.mark.parametrize("buffer_bytes", [MIB, MIB + 4095, 8 * MIB])
def test_a_group_takes_the_entry_that_is_said_to_fit(
    buffer_bytes: int, alignment: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A group takes an entry of the size that is said to fit and not a byte more, since padding needs the rest."""
    committer = JournalCommitter(
        str(tmp_path_factory.mktemp("journal")), Files(), buffer_bytes=buffer_bytes, alignment_bytes=alignment,
        file_bytes_max=16 * MIB, prealloc_bytes=MIB, backups_max=0, group_wait_ms=0, group_bytes=0, group_entries=0,
        flush_when_empty=True, sync_data=True, reuse_files=False,
    )  # fmt: skip
    writer = JournalWriter(committer)
    most = group_entry_bytes(buffer_bytes, alignment)
    assert writer.append(entry_of(0, most + 1)) == 0
    assert writer.append(entry_of(0, most)) == 1
    writer.close()
    committer.close()


def test_the_journals_groups_end_where_their_numbers_do() -> None:
    """The size of a group fits 32 bits, however large the buffer is."""
    assert group_entry_bytes(1 << 40, 4096) < BOUNDS.group_bytes
    assert group_entry_bytes(4096, 65536) == 0
