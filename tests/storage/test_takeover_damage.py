"""Test a takeover of entry logs that are damaged: entries that they hide are not denied."""

from pathlib import Path

from tests.storage.java_disks import KEY, entry, index_file, put_index_file, put_logs
from tests.storage.opened import Opened
from tests.storage.test_takeover import put_journal

ENTRIES = 60
SECTOR = 512
HEAD = 1024


def java_log(root: Path, *, closed: bool) -> Path:
    """Write an entry log of Java's with one ledger, another one with a second ledger, and return the former."""
    current = root / "ledgers-0" / "current"
    put_logs(current, {0: [entry(1, number) for number in range(ENTRIES)]}, closed=closed)
    put_logs(current, {1: [entry(2, 0)]}, closed=True)
    for ledger in (1, 2):
        put_index_file(current, ledger, index_file(key=KEY))
    (root / "journal-0" / "current").mkdir(parents=True)
    put_journal(root, 0x20)
    return current / "0.log"


def statuses(one: Opened, ledger: int, entries: range) -> set[str]:
    """Return how reads of these entries end."""
    found = set()
    for number in entries:
        held = one.direct.read(ledger, number)
        found.add(held.status)
        held.release()
    return found


def test_b7_a_closed_log_that_is_damaged_leads_to_no_denial(tmp_path: Path) -> None:
    """B7: entries behind a zeroed sector of a log with a map are in doubt, and those of other logs are not."""
    log = java_log(tmp_path, closed=True)
    whole = log.read_bytes()
    log.write_bytes(whole[: HEAD + SECTOR] + bytes(SECTOR) + whole[HEAD + 2 * SECTOR :])
    one = Opened(tmp_path)
    assert "NO_ENTRY" not in statuses(one, 1, range(ENTRIES))
    assert "OK" in statuses(one, 1, range(ENTRIES))
    assert statuses(one, 2, range(2)) == {"OK", "NO_ENTRY"}
    one.stop()
