"""Single requests of the Java client to one bookie: which code each of them gets, from theirs and from ours."""

import hashlib
from typing import Any

import pytest

from tests.interop.driver import (
    FENCED,
    FLAG_FENCE,
    FLAG_HIGH_PRIORITY,
    FLAG_RECOVERY_ADD,
    NO_SUCH_ENTRY,
    NO_SUCH_LEDGER,
    UNAUTHORIZED,
    Answer,
    Driver,
)
from tests.interop.payload import payload
from tests.interop.targets import Start

pytestmark = pytest.mark.interop

HEADER = 36  # of an entry with CRC32C
LEDGER = 77


class Raw:
    """Requests to one bookie about one ledger."""

    def __init__(self, driver: Driver, bookie: str) -> None:
        self.driver = driver
        self.bookie = bookie

    def call(self, op: str, entry: int, **arguments: Any) -> Answer:
        """Send one request for `entry`, with the right password unless `arguments` say otherwise."""
        defaults: dict[str, Any] = {"bookie": self.bookie, "ledger": LEDGER, "password": "pw", "entry": entry}
        return self.driver.call(op, **{**defaults, **arguments})

    def add(self, entry: int, **arguments: Any) -> int:
        """Return the code of an ADD."""
        return int(self.call("raw_add", entry, **arguments)["code"])

    def read(self, entry: int, **arguments: Any) -> int:
        """Return the code of a READ."""
        return int(self.call("raw_read", entry, **arguments)["code"])

    def batch(self, entry: int, **arguments: Any) -> Answer:
        """Return the answer of a BATCH_READ."""
        return self.call("raw_batch", entry, **arguments)


@pytest.fixture
def raw(start_bookies: Start, java_driver: Driver) -> Raw:
    """Start a new bookie, and return a Java client that sends single requests to it."""
    return Raw(java_driver, start_bookies(1)[0].id)


def test_entries_come_back_as_they_went(raw: Raw) -> None:
    """The entry that a READ returns equals that of the ADD, with contents by the rule that both languages know."""
    assert raw.add(3, size=50, lac=1, length=200) == 0
    data = bytes.fromhex(raw.call("raw_read", 3)["data"])
    assert data[:32] == b"".join(number.to_bytes(8, "big") for number in (LEDGER, 3, 1, 200))
    assert data[HEADER:] == payload(LEDGER, 3, 50)
    last = raw.call("raw_read", -1)
    assert (last["entry"], bytes.fromhex(last["data"])) == (-1, data)


def test_what_is_not_there(raw: Raw) -> None:
    """No such ledger and no such entry are different answers, single and in batches."""
    assert (raw.read(0), raw.read(-1)) == (NO_SUCH_LEDGER, NO_SUCH_LEDGER)
    assert raw.batch(0)["code"] == NO_SUCH_LEDGER
    assert raw.add(5) == 0
    assert raw.read(4) == NO_SUCH_ENTRY
    assert raw.batch(4)["code"] == NO_SUCH_ENTRY


def test_an_entry_may_be_added_again(raw: Raw) -> None:
    """A repeated ADD is acknowledged, not refused, because clients resend."""
    assert [raw.add(0), raw.add(0), raw.add(0)] == [0, 0, 0]


def test_fencing_keeps_writers_out(raw: Raw) -> None:
    """After a fencing READ plain adds are refused, but recovery adds are taken and reads go on (B5)."""
    assert raw.add(0) == 0
    assert raw.read(-1, flags=FLAG_FENCE) == 0
    assert raw.add(1) == FENCED
    assert raw.add(1, flags=FLAG_HIGH_PRIORITY) == FENCED
    assert raw.add(1, flags=FLAG_RECOVERY_ADD) == 0
    assert raw.add(2, flags=FLAG_RECOVERY_ADD | FLAG_HIGH_PRIORITY) == 0
    assert raw.read(0, flags=FLAG_FENCE) == 0
    assert len(raw.batch(0, count=10)["sizes"]) == 3


def test_fencing_an_unknown_ledger_creates_it_fenced(raw: Raw) -> None:
    """The fencer may come before the first entry: there is nothing to read, and the late writer is refused."""
    assert raw.read(-1, flags=FLAG_FENCE) == NO_SUCH_ENTRY
    assert raw.add(0) == FENCED


def test_fencing_survives_kill(start_bookies: Start, java_driver: Driver) -> None:
    """An answered fence survives a kill (B5)."""
    bookie = start_bookies(1, zkTimeout="4000")[0]
    raw = Raw(java_driver, bookie.id)
    assert raw.add(0) == 0
    assert raw.read(-1, flags=FLAG_FENCE) == 0
    bookie.kill()
    bookie.start()
    assert raw.add(1) == FENCED
    assert raw.read(0) == 0


def test_fencing_a_ledger_without_entries_survives_kill(start_ours: Start, java_driver: Driver) -> None:
    """So does the fence of a ledger that only it has made known; upstream forgets it, because it logs no key (B5)."""
    bookie = start_ours(1, zkTimeout="4000")[0]
    raw = Raw(java_driver, bookie.id)
    assert raw.read(-1, flags=FLAG_FENCE) == NO_SUCH_ENTRY
    bookie.kill()
    bookie.start()
    assert raw.add(0) == FENCED
    assert raw.add(0, password="other") == UNAUTHORIZED


def test_a_batch_read_may_fence(raw: Raw) -> None:
    """BATCH_READ with the fencing flag and the key fences like READ does."""
    assert [raw.add(0), raw.add(1)] == [0, 0]
    assert raw.batch(0, count=10, flags=FLAG_FENCE)["code"] == 0
    assert raw.add(2) == FENCED


def test_the_master_key_is_compared(raw: Raw) -> None:
    """Writing and fencing need the key of the first writer; plain reads need none."""
    assert raw.add(0) == 0
    assert raw.add(1, password="other") == UNAUTHORIZED
    assert raw.add(1, password="other", flags=FLAG_RECOVERY_ADD) == UNAUTHORIZED
    assert raw.read(-1, flags=FLAG_FENCE, password="other") == UNAUTHORIZED
    assert raw.batch(0, flags=FLAG_FENCE, password="other")["code"] == UNAUTHORIZED
    assert raw.add(1) == 0, "the refused fences must not have fenced"
    assert raw.read(0, key="none") == 0
    assert raw.read(0, password="other") == 0


def test_the_master_key_survives_a_restart(start_bookies: Start, java_driver: Driver) -> None:
    """The key is stored with the ledger, so it is still compared after a clean restart."""
    bookie = start_bookies(1)[0]
    raw = Raw(java_driver, bookie.id)
    assert raw.add(0) == 0
    bookie.stop()
    bookie.start()
    assert raw.add(1, password="other") != 0
    assert raw.add(1, key=hashlib.sha1(b"ledgerpw", usedforsecurity=False).hexdigest()) == 0


RECORD = 4 + HEADER + 100  # of a 100-byte entry in a batch answer
CASES = [
    # first, count, max_size, entries expected
    (0, 10, 1 << 20, 10),
    (0, 0, 1 << 20, 20),
    (0, -1, 1 << 20, 20),
    (15, 100, 1 << 20, 5),
    (19, 10, 1 << 20, 1),
    (0, 10, 0, 1),
    (0, 10, -5, 1),
    (0, 10, 1, 1),
    (0, 10, 36 + 3 * RECORD, 3),
    (0, 10, 36 + 3 * RECORD - 1, 2),
    (0, 10, 36 + 4 * RECORD - 1, 3),
    (22, 10, 1 << 20, 3),
]


def test_how_much_a_batch_holds(raw: Raw) -> None:
    """A batch ends at its count, its size, the end of the ledger, or a gap. Entries 0 to 19 and 22 to 24 exist."""
    for entry in [*range(20), 22, 23, 24]:
        assert raw.add(entry, size=100) == 0
    got = [len(raw.batch(first, count=count, max_size=size)["sizes"]) for first, count, size, _ in CASES]
    assert got == [expected for *_, expected in CASES]


def test_a_batch_of_uneven_entries_stays_within_its_limit(raw: Raw) -> None:
    """The first entry always comes, the frame never exceeds the limit, and ids follow each other."""
    sizes = [10, 3000, 5, 5, 900, 0, 0, 70]
    for entry, size in enumerate(sizes):
        assert raw.add(entry, size=size) == 0
    for limit in (1, 100, 500, 3200, 3300, 5000, 1 << 20):
        for first in range(len(sizes)):
            answer = raw.batch(first, max_size=limit)
            lengths = answer["sizes"]
            assert answer["code"] == 0
            assert 1 <= len(lengths) <= len(sizes) - first
            assert lengths == [HEADER + size for size in sizes[first : first + len(lengths)]]
            assert len(lengths) == 1 or 36 + sum(4 + length for length in lengths) <= limit


def test_entries_in_any_order(raw: Raw) -> None:
    """Adds need not arrive in order, and the last entry is the highest id, not the latest."""
    for entry in (7, 2, 9, 4):
        assert raw.add(entry) == 0
    last = bytes.fromhex(raw.call("raw_read", -1)["data"])
    assert int.from_bytes(last[8:16], "big") == 9
    assert [raw.read(entry) for entry in (2, 3, 4, 7, 9)] == [0, NO_SUCH_ENTRY, 0, 0, 0]
