"""The closing fields of groups at start: where a group ends, and whether a damaged one was written completely."""

from pathlib import Path

import pytest

from bookie._fast.journal.reader import scan_journal
from bookie.storage.group_ends import ends_at, was_written
from tests.fixtures.draws import some
from tests.reference import journal as model

FILE = 0x1A2B
RECORDS = [model.record(1, entry, bytes([entry]) * 90) for entry in range(6)]


@pytest.mark.thorough
def test_every_bit_of_the_last_group(tmp_path: Path) -> None:
    """Whichever bit of the last group is flipped, nothing is lost, or it is known that the group was complete."""
    path = tmp_path / f"{FILE:x}.txn"
    content = model.build([RECORDS[0], b"".join(RECORDS[1:4])], FILE) + bytes(1024)
    start = len(model.build(RECORDS[:1], FILE))
    lost = 0
    bits = some(range(8 * start, 8 * (len(content) - 1024)))
    for bit in bits:
        data = bytearray(content)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        found = scan_journal(path, FILE)
        if found.records != 4:
            lost += 1
            assert found.records == 1
            assert found.damaged or was_written(path, FILE, start), f"bit {bit % 8} of byte {bit // 8 - start}"
    assert lost > 8 * 3 * 110 // bits.step


def test_what_a_cut_leaves(tmp_path: Path) -> None:
    """Zeros, the end of the file or an older journal before the closing fields do not count as an end."""
    path = tmp_path / f"{FILE:x}.txn"
    whole = model.build([RECORDS[0], b"".join(RECORDS[1:])], FILE)
    start = len(model.build(RECORDS[:1], FILE))
    older = model.build([RECORDS[0], b"".join(RECORDS[1:])], FILE - 7)
    for cut in range(start + 1, len(whole) - 512):
        for rest in (b"", bytes(4096), older[cut:]):
            path.write_bytes(whole[:cut] + rest)
            assert not was_written(path, FILE, start), f"cut at {cut}"
    assert not was_written(path, FILE, 1 << 20)
    path.write_bytes(b"")
    assert not was_written(path, FILE, 512)


@pytest.mark.parametrize("alignment", [512, 4096])
@pytest.mark.thorough
def test_a_group_of_any_length_ends_where_it_ends(tmp_path: Path, alignment: int) -> None:
    """A group of any length is found to end where it ends. Closing fields followed by up to three bytes of padding
    were overlooked, so that one in a hundred starts after a kill was refused because of its mark.
    """
    path = tmp_path / f"{FILE:x}.txn"
    for length in range(alignment):
        content = model.build([model.record(1, 0, bytes(length))], FILE, alignment)
        path.write_bytes(content + bytes(512))
        assert ends_at(path, FILE, len(content)), f"a record of {length} bytes"


def test_where_a_group_ends(tmp_path: Path) -> None:
    """A group ends after its padding, in the file of its own journal, and nowhere else."""
    path = tmp_path / f"{FILE:x}.txn"
    content = model.build(RECORDS, FILE)
    path.write_bytes(content + bytes(2048))
    end = len(content)
    assert ends_at(path, FILE, end)
    assert ends_at(path, FILE, 512)
    assert not ends_at(path, FILE, end + 512)
    assert not ends_at(path, FILE, end - 1)
    assert not ends_at(path, FILE + 1, end)
