"""Test the note that a takeover leaves in our index: which journals there were, so that a later Java bookie shows."""

import re
import zlib
from pathlib import Path

import pytest

from bookie.errors import StartRefused
from bookie.storage.layout import INDEX_NAME
from bookie.storage.takeover import take_over
from bookie.storage.takeover.disks import note_journals
from tests.storage.opened import Opened
from tests.storage.test_takeover import java_disks, put_journal, where


@pytest.fixture
def note(tmp_path: Path) -> Path:
    """Take over disks with a journal of Java, and return the note."""
    current = java_disks(tmp_path, kind="rocksdb")
    take_over(**where(tmp_path)).close()
    return current / INDEX_NAME / "taken-over"


def test_a_sound_note_lets_the_bookie_start(tmp_path: Path, note: Path) -> None:
    """The note names the newest journal, and a note without a checksum, as earlier versions wrote it, counts, too."""
    row, checksum = note.read_text().splitlines()
    assert row == f"20 {tmp_path / 'journal-0' / 'current'}"
    assert checksum.endswith(" crc32")
    take_over(**where(tmp_path)).close()
    note.write_text(f"{row}\n")
    take_over(**where(tmp_path)).close()
    note.write_text(row)
    take_over(**where(tmp_path)).close()


def test_the_size_depends_on_the_rows_alone(tmp_path: Path, note: Path) -> None:
    """Notes with rows of the same length have the same size, whatever their checksum is."""
    sizes = set()
    for number in range(0x80, 0x100):
        put_journal(tmp_path, number)
        note_journals(note.parent, [tmp_path / "journal-0" / "current"])
        sizes.add(note.stat().st_size)
    assert len(sizes) == 1


@pytest.mark.parametrize("written", ["%x crc32", "%08x crc32"])
def test_a_checksum_counts_with_and_without_its_leading_zeros(tmp_path: Path, note: Path, written: str) -> None:
    """The note has a checksum of eight digits; earlier versions wrote it without the zeros at its beginning."""
    number = next(number for number in range(1 << 20) if zlib.crc32(b"%x /other\n" % number) < 1 << 20)
    row = f"{number:x} /other\n"
    rows = f"{note.read_text().splitlines()[0]}\n"
    assert note.read_text() == f"{rows}{zlib.crc32(rows.encode()):08x} crc32\n"
    note.write_text(f"{row}{written % zlib.crc32(row.encode())}\n")
    with pytest.raises(StartRefused, match="ran here after this one"):
        take_over(**where(tmp_path))
    note.write_text(f"{row}{written % (zlib.crc32(row.encode()) ^ 1)}\n")
    with pytest.raises(StartRefused, match="is damaged"):
        take_over(**where(tmp_path))


def test_any_flipped_bit_refuses_the_start_or_changes_nothing(tmp_path: Path, note: Path) -> None:
    """A flipped bit never hides that a Java bookie ran here: the start is refused, with what to write into the note."""
    whole = note.read_bytes()
    row = whole.splitlines()[0].decode()
    put_journal(tmp_path, 0x21)
    refused = 0
    for at in range(len(whole)):
        for bit in range(8) if at < len("20 ") else (at % 8,):
            data = bytearray(whole)
            data[at] ^= 1 << bit
            note.write_bytes(data)
            with pytest.raises(StartRefused, match=r"is damaged|ran here after this one") as caught:
                take_over(**where(tmp_path))
            refused += "is damaged" in str(caught.value)
    assert refused > len(row)


@pytest.mark.parametrize("text", [b"1g", b"\n", b"1a\n", b"\xff\xfe 1", b"1a /x\n0 crc32\n", b"-1 /x\n", bytes(30)])
def test_a_damaged_note_tells_how_to_mend_it(tmp_path: Path, note: Path, text: bytes) -> None:
    """The refusal names the file, and with the lines that it gives the bookie starts."""
    note.write_bytes(text)
    with pytest.raises(StartRefused, match=f"^{re.escape(str(note))} is damaged") as caught:
        take_over(**where(tmp_path))
    lines = [line for line in str(caught.value).splitlines() if re.fullmatch(r"[0-9a-f]+ /.*", line)]
    assert lines == [f"20 {tmp_path / 'journal-0' / 'current'}"]
    note.write_text("\n".join(lines))
    take_over(**where(tmp_path)).close()
    Opened(tmp_path).stop()
