"""The check of entry logs: sound logs, and each kind of damage reported by file and place. Nothing is changed."""

import struct
from pathlib import Path

import pytest

from bookie._fast.wire.digest import Digester
from bookie.client.entries.digest import Digest, DigestType
from bookie.storage.tools.check_logs import LogChecked, check_logs
from tests.reference import entry_log as model
from tests.storage.opened import Opened

DIGESTS = {1: Digest.of(DigestType.CRC32C, b"one"), 2: Digest.of(DigestType.HMAC, b"two")}
RECORDS = 20


def digest_of(ledger: int) -> Digester | None:
    """Return the digester of ledgers 1 and 2; that of 3 is unknown."""
    return DIGESTS[ledger].digester if ledger in DIGESTS else None


def sealed(ledger: int, entry: int) -> bytes:
    """Return an entry with its digest, as a client makes it."""
    digest = DIGESTS.get(ledger, DIGESTS[1])
    return digest.seal(ledger, entry, b"payload %d" % entry, lac=entry - 1, length=9)


@pytest.fixture
def log(tmp_path: Path) -> bytearray:
    """A closed log of three ledgers."""
    return bytearray(model.build([sealed(1 + n % 3, n // 3) for n in range(RECORDS)], closed=True))


def check(tmp_path: Path, data: bytes | bytearray) -> LogChecked:
    """Check a directory with a single log of these bytes."""
    path = tmp_path / "c.log"
    path.write_bytes(data)
    before = path.stat()
    (found,) = check_logs(tmp_path, digest_of)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (bytes(data), before.st_mtime_ns)
    assert found.path == str(path)
    return found


def map_offset(log: bytes | bytearray) -> int:
    """Return the offset at which the records end."""
    return int(struct.unpack_from(">q", log, 8)[0])


def test_a_sound_log(tmp_path: Path, log: bytearray) -> None:
    """Everything is counted, and the digests of the two known ledgers are right."""
    found = check(tmp_path, log)
    assert found.sound
    assert (found.records, found.ledgers, found.verified, found.closed, found.torn) == (RECORDS, 3, 14, True, False)
    assert found.entry_bytes == map_offset(log) - model.HEADER
    assert found.end == len(log) == found.file_bytes


def test_flipped_bits(tmp_path: Path, log: bytearray) -> None:
    """A flipped bit in a payload names its entry, in an unknown ledger it is not found, in a length it is a tear."""
    starts = [0, *([0] * RECORDS)]
    at = model.HEADER
    for n in range(RECORDS):
        starts[n] = at
        at += 4 + len(sealed(1 + n % 3, n // 3))
    for n, bad in ((0, True), (4, True), (5, False)):
        log[starts[n] + 42] ^= 1
        found = check(tmp_path, log)
        log[starts[n] + 42] ^= 1
        assert [(one.ledger, one.entry, one.offset) for one in found.bad] == (
            [(1 + n % 3, n // 3, starts[n])] if bad else []
        )
        assert (found.bad_count, found.sound) == (int(bad), not bad)
    log[starts[3]] = 0x7F
    found = check(tmp_path, log)
    assert (found.records, found.end, found.torn, found.sound) == (3, starts[3], True, False)


def test_truncated_and_zero_filled(tmp_path: Path, log: bytearray) -> None:
    """A cut in a closed log does not come from a crash; an open one may end anywhere. Zeros mark the end."""
    cut = map_offset(log) - 5
    found = check(tmp_path, log[:cut])
    assert (found.records, found.torn, found.sound) == (RECORDS - 1, True, False)
    log[8:20] = bytes(12)
    found = check(tmp_path, log[:cut])
    assert (found.torn, found.closed, found.sound) == (True, False, True)
    assert check(tmp_path, log[: map_offset(log) or cut - 60]).map_problem == ""
    zeroed = log[: model.HEADER + 4 + len(sealed(1, 0))] + bytes(5000)
    found = check(tmp_path, zeroed)
    assert (found.records, found.torn, found.sound) == (1, False, True)
    for nothing in (b"", bytes(1024), bytes(8192)):
        found = check(tmp_path, nothing)
        assert (found.records, found.sound) == (0, True)


@pytest.mark.parametrize(
    ("at", "value", "why"),
    [
        (24 + 8, 1, "bytes here, but the map says"),
        (24, 99, "bytes here, but the map says"),
        (20, 9, "no map record at"),
    ],
)
def test_a_ledgers_map_that_lies(tmp_path: Path, log: bytearray, at: int, value: int, why: str) -> None:
    """Sums, ledgers, counts and form are compared with the records."""
    form = ">i" if at == 20 else ">q"
    struct.pack_into(form, log, map_offset(log) + at, value)
    found = check(tmp_path, log)
    assert why in found.map_problem
    assert (found.records, found.sound) == (RECORDS, False)


def test_a_header_that_lies(tmp_path: Path, log: bytearray) -> None:
    """A header with a wrong offset or size of the map is reported."""
    struct.pack_into(">i", log, 16, 4)
    assert check(tmp_path, log).map_problem == "the header says 4 ledgers, but the map has 3"
    struct.pack_into(">q", log, 8, len(log) + 100)
    assert "the file ends there" in check(tmp_path, log).map_problem
    struct.pack_into(">q", log, 8, -5)
    assert "its offset is negative" in check(tmp_path, log).map_problem


def test_foreign_files_do_not_stop_it(tmp_path: Path, log: bytearray) -> None:
    """Each foreign file is reported in one line, the others are checked, and progress reaches the end."""
    (tmp_path / "1.log").write_bytes(b"foreign" * 1000)
    (tmp_path / "2.log").write_bytes(log)
    (tmp_path / "note.txt").write_text("not a log")
    reported: list[tuple[int, int]] = []
    found = list(check_logs(tmp_path, progress=lambda *at: reported.append(at)))
    assert [bool(one.problem) for one in found] == [True, False]
    assert "not an entry log" in found[0].problem
    assert reported[-1][0] == reported[-1][1] == 7000 + len(log)


def test_logs_of_a_bookie(tmp_path: Path) -> None:
    """Logs of a real flush, with an open one at the end, are sound."""
    opened = Opened(tmp_path)
    for ledger in (1, 2, 3):
        for entry in range(50):
            opened.direct.add(sealed(ledger, entry), b"k" * 20)
    opened.stop()
    found = list(check_logs(opened.ledger_dirs[0] / "current", digest_of))
    assert all(one.sound for one in found)
    assert sum(one.records for one in found) == 150
    assert sum(one.verified for one in found) == 100
