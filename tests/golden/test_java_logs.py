"""Our entry log writer compared with Java's: the same entries give the same files (tests/golden/java)."""

from pathlib import Path

import pytest

from bookie._fast.entrylog.scan import scan_chunk
from bookie._fast.entrylog.writer import EntryLog
from tests.reference import entry_log as model

JAVA = Path(__file__).parent / "java"
LOGS = sorted(JAVA.glob("*.log"))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_no_byte_is_left_over(path: Path) -> None:
    """The scan ends at the end of the file, and the map, if there is one, agrees with the entries found."""
    chunk = scan_chunk(path)
    assert (chunk.end, chunk.torn, chunk.more) == (path.stat().st_size, False, False)
    sizes = model.read_map(path.read_bytes())
    if sizes is not None:
        assert sum(sizes.values()) == sum(chunk.length.tolist()) + 4 * len(chunk.length)
        assert set(sizes) == set(chunk.ledger.tolist())


@pytest.mark.parametrize("path", LOGS[:-1], ids=lambda path: path.name)
def test_our_writer_makes_the_same_file(path: Path, tmp_path: Path) -> None:
    """Entries of a log that Java closed, appended and closed by us, give the same bytes; lastId has the same form."""
    data = path.read_bytes()
    chunk = scan_chunk(path)
    log = EntryLog(tmp_path, next_id=int(path.stem, 16))
    for at, size in zip(chunk.offset.tolist(), chunk.length.tolist(), strict=True):
        entry = data[at + 4 : at + 4 + size]
        assert log.append(int.from_bytes(entry[:8]), [entry]) == (int(path.stem, 16), at)
    log.rotate()
    assert (tmp_path / path.name).read_bytes() == data
    assert (tmp_path / "lastId").read_text() == f"{int(path.stem, 16):x}\n"
    assert int((JAVA / "lastId.bin").read_text(), 16) >= int(path.stem, 16)
