"""Test the journal scan against its model: closed groups, upstream's files of every version, and damage."""

import struct
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bookie._fast.journal.reader import JournalRows, scan_journal
from tests.fixtures.draws import some
from tests.reference import journal as model
from tests.reference.hexdump import golden

ID = 0x18C3A7F2B40
RECORDS = st.lists(
    st.builds(
        model.record,
        st.integers(0, 2**63 - 1),
        st.one_of(st.integers(0, 2**63 - 1), st.sampled_from([model.MASTER_KEY, model.FENCE, model.LAC])),
        st.binary(max_size=80),
    ),
    max_size=6,
).map(b"".join)
GROUPS = st.lists(RECORDS, max_size=5)
CLOSING_BYTES = 32
ONE_BY_ONE = [
    model.record(7, model.MASTER_KEY, b"\0\0\0\x02ab"),
    model.record(7, 0, b"hello"),
    model.record(7, 1, b"you"),
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a file that each example overwrites."""
    return tmp_path_factory.mktemp("journal") / f"{ID:x}.txn"


def rows(found: JournalRows) -> list[tuple[int, int, int, int]]:
    """Return the records of a scan as tuples."""
    return list(
        zip(found.ledger.tolist(), found.kind.tolist(), found.position.tolist(), found.length.tolist(), strict=True)
    )


def agree(path: Path, data: bytes) -> model.Found | None:
    """Check that scan and model agree, and return what they found; None if both refuse the file as no journal."""
    path.write_bytes(data)
    try:
        expected = model.scan(data, ID)
    except ValueError:
        with pytest.raises(ValueError, match="not a journal"):
            scan_journal(path, ID)
        return None
    found = scan_journal(path, ID)
    assert model.Found(rows(found), found.end, found.groups, found.torn, found.damaged) == expected
    assert found.records == len(expected.records)
    assert found.damaged_at == (expected.end if expected.damaged else None)
    return expected


def flip(data: bytes, bit: int) -> bytes:
    """Return `data` with one bit flipped."""
    flipped = bytearray(data)
    flipped[bit // 8] ^= 1 << bit % 8
    return bytes(flipped)


def test_the_worked_example(file: Path) -> None:
    """Upstream's file gives the master key and both entries, and ends with padding up to 0x400."""
    found = agree(file, golden("journal.hex"))
    expected = [(7, model.MASTER_KEY, 0x200, 40), (7, 0, 0x22C, 41), (7, 1, 0x259, 42)]
    assert found == model.Found(expected, 0x400, 0, torn=False, damaged=False)


def test_the_worked_example_closed(file: Path) -> None:
    """The same records as one group of ours have the same offsets, and the closing fields of the format document."""
    records = golden("journal.hex")[0x200:0x287]
    data = model.build([records], ID)
    assert data == golden("journal_closed.hex")
    found = agree(file, data)
    assert found is not None
    assert [row[2] for row in found.records] == [0x200, 0x22C, 0x259]
    assert (found.end, found.groups) == (0x400, 1)


@settings(deadline=None)
@given(groups=GROUPS, alignment=st.sampled_from([512, 4096]), zeros=st.sampled_from([0, 2, 512, 70_000]))
def test_like_the_model(file: Path, groups: list[bytes], alignment: int, zeros: int) -> None:
    """Any groups, at both alignments, with preallocated zeros after them, are returned with a clean end."""
    data = model.build(groups, ID, alignment)
    found = agree(file, data + bytes(zeros))
    assert found is not None
    assert found.groups == len(groups)
    assert (found.end, found.torn, found.damaged) == (len(data), False, False)


@settings(deadline=None)
@given(flushes=GROUPS, version=st.integers(1, 6), zeros=st.sampled_from([0, 512, 9000]), cut=st.integers(0, 600))
def test_upstream_files(file: Path, flushes: list[bytes], version: int, zeros: int, cut: int) -> None:
    """Files of versions 1 to 6 without closed groups, padded from 5 on, preallocated or truncated, are read."""
    data = model.header(version, grouped=False)
    for records in flushes:
        data += records
        data += model.padding(len(data)) if version >= 5 else b""
    found = agree(file, data + bytes(zeros))
    assert found is not None
    assert not found.torn
    assert not found.damaged
    agree(file, data[: max(len(data) - cut, 0)])


def test_scan_from_a_mark(file: Path) -> None:
    """Replay starts at the end of the group that a checkpoint covered."""
    ends = [512]
    for n in range(1, 4):
        ends.append(len(model.build(ONE_BY_ONE[:n], ID)))
    file.write_bytes(model.build(ONE_BY_ONE, ID))
    for n, end in enumerate(ends):
        found = scan_journal(file, ID, start=end)
        assert (found.records, found.end, found.torn, found.damaged) == (3 - n, ends[-1], False, False)
    assert scan_journal(file, ID, start=3).records == 3


def test_a_mark_far_into_a_large_file(file: Path) -> None:
    """Getting to a mark needs no memory for what is before it, because a journal may be larger than any window."""
    mark = 1 << 30
    with file.open("wb") as out:
        out.write(model.header())
        out.seek(mark)
        out.write(model.group(ONE_BY_ONE[1], mark, ID))
    found = scan_journal(file, ID, start=mark)
    assert (found.records, found.end, found.torn, found.damaged) == (1, mark + 512, False, False)
    assert scan_journal(file, ID, start=mark + 512).records == 0


def test_a_mark_behind_the_end_is_torn(file: Path) -> None:
    """A file that is shorter than its mark was truncated, and is reported as torn rather than as empty."""
    data = model.build(ONE_BY_ONE, ID)
    file.write_bytes(data)
    assert scan_journal(file, ID, start=len(data) + 512).torn


@pytest.mark.thorough
def test_every_truncation_point(file: Path) -> None:
    """B3: a truncated journal of three groups gives exactly the whole groups, and is never reported as damaged.

    A group is whole with its closing fields; the start was refused when a failed write ended in the zeros after them.
    """
    ends = [len(model.build(ONE_BY_ONE[:n], ID)) for n in range(4)]
    closed = [end + len(records) + CLOSING_BYTES for end, records in zip(ends[:3], ONE_BY_ONE, strict=True)]
    data = model.build(ONE_BY_ONE, ID)
    for cut in range(len(data) + 1):
        found = agree(file, data[:cut])
        assert found is not None
        assert found.groups == len(found.records) == sum(end <= cut for end in closed)
        assert not found.damaged
        if any(at <= cut <= end for at, end in zip([ends[0], *closed], ends, strict=True)):
            assert not found.torn


def test_every_truncation_point_of_one_group(file: Path) -> None:
    """B3: no record of an incomplete group is returned."""
    data = model.build([b"".join(ONE_BY_ONE)], ID)
    for cut in range(len(data)):
        for rest in (b"", bytes(len(data) - cut)) if cut >= 512 else (b"",):
            found = agree(file, data[:cut] + rest)
            assert found is not None
            assert found.records == [] or not any(data[cut:])


@pytest.mark.thorough
@pytest.mark.parametrize("groups", [ONE_BY_ONE, [b"".join(ONE_BY_ONE)]], ids=["three groups", "one group"])
def test_every_bit_flip(file: Path, groups: list[bytes]) -> None:
    """B3: no flipped bit changes, adds or silently drops a record that is followed by a valid group."""
    data = model.build(groups, ID)
    truth = model.scan(data, ID).records
    starts = [len(model.build(groups[:n], ID)) for n in range(len(groups) + 1)]
    for bit in some(range(len(data) * 8)):
        flipped = flip(data, bit)
        found = agree(file, flipped)
        if found is None:
            assert bit < 12 * 8
            continue
        assert found.records == truth[: len(found.records)]
        assert all(flipped[p : p + 4 + n] == data[p : p + 4 + n] for _, _, p, n in found.records)
        if found.records == truth:
            continue
        in_last_group = bit // 8 >= starts[-2]
        assert found.torn if in_last_group else found.damaged or len(groups) == 1


def test_a_good_group_behind_a_bad_one_is_damage(file: Path) -> None:
    """B3: if the middle group is zeroed, torn or overwritten, the scan stops there and reports damage."""
    data = bytearray(model.build(ONE_BY_ONE, ID))
    for junk in (bytes(512), b"\xff" * 512, data[1024 : 1024 + 20] + bytes(492), model.build([b""], ID)[512:]):
        bad = data[:1024] + junk + data[1536:]
        found = agree(file, bytes(bad))
        assert found is not None
        assert (len(found.records), found.damaged, found.torn, found.end) == (1, True, False, 1024)


def test_a_destroyed_header_is_damage(file: Path) -> None:
    """Zeros in place of the header look like an empty file of upstream's oldest version, but groups prove damage."""
    data = model.build(ONE_BY_ONE, ID)
    found = agree(file, bytes(512) + data[512:])
    assert found is not None
    assert found.damaged


@settings(deadline=None)
@given(old=GROUPS, new=GROUPS, blank=st.booleans())
def test_a_recycled_file_ends_cleanly(file: Path, old: list[bytes], new: list[bytes], blank: bool) -> None:
    """Groups of the file's previous use are neither returned nor taken for damage."""
    stale = model.build(old, ID - 1, 4096)
    data = model.build(new, ID, 4096)
    whole = data + bytes(4096 if blank else 0) + stale[len(data) + (4096 if blank else 0) :]
    found = agree(file, whole)
    assert found is not None
    assert found.groups == len(new)
    assert not found.damaged
    if blank:
        assert not found.torn


def test_a_stale_group_is_a_clean_end(file: Path) -> None:
    """A whole group with another journal id, directly after ours, is a clean end."""
    one, two = model.build(ONE_BY_ONE[:1], ID), model.build(ONE_BY_ONE, ID - 1)
    found = agree(file, one + two[len(one) :])
    assert found == model.Found(model.scan(one, ID).records, len(one), 1, torn=False, damaged=False)


def test_a_torn_group_that_runs_into_the_closing_of_a_stale_one_is_torn(file: Path) -> None:
    """A torn group whose last record reaches into the file's previous use ends with the padding of another group."""
    stale = bytearray(model.build(ONE_BY_ONE, ID - 1))
    whole = model.build(ONE_BY_ONE[:1], ID)
    second = len(whole)
    stale[:second] = whole
    closing = stale.index(model.MARK, second + 512)
    struct.pack_into(">i", stale, second, closing - second - 4)
    found = agree(file, bytes(stale))
    assert found == model.Found(model.scan(whole, ID).records, second, 1, torn=True, damaged=False)


@pytest.mark.parametrize("length", [-1, -0x101, 1, 15, (256 << 20) + 1, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("version", range(1, 7))
def test_an_impossible_length_is_damage(file: Path, version: int, length: int) -> None:
    """In upstream's files, an impossible length is damage, and records before it are returned."""
    good = model.header(version, grouped=False) + ONE_BY_ONE[1]
    found = agree(file, good + struct.pack(">i", length) + bytes(100))
    assert found is not None
    assert (len(found.records), found.damaged, found.end) == (1, True, len(good))


def test_padding_is_no_record_before_version_5(file: Path) -> None:
    """Version 4 has no padding, so that its mark is a negative length there."""
    data = model.header(4) + ONE_BY_ONE[1]
    found = agree(file, data + model.padding(len(data)))
    assert found is not None
    assert found.damaged


def test_groups_longer_than_a_read(file: Path) -> None:
    """A group of 40 MiB is verified as a whole: a flipped bit near its end discards all of it."""
    big = b"".join(model.record(1, entry, bytes(3 << 20)) for entry in range(14))
    data = model.build([ONE_BY_ONE[0], big, ONE_BY_ONE[2]], ID)
    file.write_bytes(data)
    assert scan_journal(file, ID).records == 16
    file.write_bytes(flip(data, 8 * (40 << 20)))
    found = scan_journal(file, ID)
    assert (found.records, found.damaged, found.end) == (1, True, 1024)


@given(data=st.binary(max_size=700))
@example(b"")
@example(bytes(600))
@example(b"BKLG\0\0\0\7" + bytes(600))
@example(b"BKLG\0\0\0\1" + bytes(600))
@example(b"BKLG\0\0\0\6" + b"BKGX" + bytes(600))
@settings(deadline=None)
def test_any_bytes(file: Path, data: bytes) -> None:
    """Foreign, short, empty and newer files give the model's result or its one error."""
    agree(file, data)


@given(data=st.binary(max_size=900), version=st.integers(2, 6), grouped=st.booleans(), good=st.booleans())
@settings(deadline=None)
def test_any_bytes_behind_a_header(file: Path, data: bytes, version: int, grouped: bool, good: bool) -> None:
    """Any bytes after a valid header, with or without a valid group after them, give the model's result."""
    head = model.header(version, grouped=grouped) + data
    head += bytes(-len(head) % 512)
    agree(file, head + (model.group(ONE_BY_ONE[0], len(head), ID) if good else b""))


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(FileNotFoundError, match="nowhere"):
        scan_journal(tmp_path / "nowhere.txn", 1)


@pytest.mark.thorough
def test_a_group_longer_than_what_is_held(file: Path) -> None:
    """A group larger than the window is read twice. A flipped bit anywhere in it is damage, since a group follows."""
    big = b"".join(model.record(1, entry, bytes(5 << 20)) for entry in range(20))
    data = model.build([ONE_BY_ONE[0], big, ONE_BY_ONE[2]], ID)
    file.write_bytes(data)
    found = scan_journal(file, ID)
    assert (found.records, found.groups, found.damaged, found.torn) == (22, 3, False, False)
    assert found.kind.tolist() == [model.MASTER_KEY, *range(20), 1]
    for byte in (1 << 20, 66 << 20, 99 << 20):
        file.write_bytes(flip(data, 8 * byte))
        found = scan_journal(file, ID)
        assert (found.records, found.damaged) == (1, True)


def test_a_record_longer_than_what_is_held(file: Path) -> None:
    """A group with a record of 70 MiB and another one is read. If the file is truncated, the whole group is dropped."""
    data = model.build([model.record(1, 0, bytes(70 << 20)) + ONE_BY_ONE[1]], ID)
    file.write_bytes(data)
    assert scan_journal(file, ID).records == 2
    file.write_bytes(data[: 50 << 20])
    found = scan_journal(file, ID)
    assert (found.records, found.torn, found.damaged) == (0, True, False)


@pytest.mark.thorough
def test_a_large_group_behind_one_that_was_lost_tells(file: Path) -> None:
    """80 MiB of zeros in place of a group, followed by a valid group of 70 MiB, are damage and not the end."""
    lost = model.build([model.record(1, 0, bytes(80 << 20)), model.record(1, 1, bytes(70 << 20))], ID)
    at = len(model.header())
    file.write_bytes(lost[:at] + bytes(80 << 20) + lost[at + (80 << 20) :])
    found = scan_journal(file, ID)
    assert (found.records, found.damaged, found.damaged_at) == (0, True, at)
