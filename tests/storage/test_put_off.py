"""A flush that fails for any reason but a failed write is retried, and does not end the process.

Nothing is lost or denied, a log line and a metric report it, and it succeeds once the obstacle is gone.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from bookie._fast.base import fatal
from tests.reference.storage import entry
from tests.storage.opened import MIB, Opened

KEY = b"k" * 20


def flip_runs(root: Path, ledger: int) -> Callable[[], None]:
    """Damage every stored run of a ledger in the live pages of the index; return a function that undoes it."""
    path = root / "ledgers-0" / "current" / "locations.lmdb" / "data.mdb"
    key = ledger.to_bytes(8, "big") + bytes(8)
    before = path.read_bytes()
    places = [at for at in range(len(before)) if before.startswith(key, at)]
    assert places

    def write(turned: int) -> None:
        with path.open("r+b") as file:
            for at in places:
                file.seek(at + len(key) + 8)
                file.write(bytes([before[at + len(key) + 8] ^ turned]))

    write(0x40)
    return lambda: write(0)


def entries(one: Opened, ledger: int, first: int, count: int) -> list[bytes]:
    held = one.direct.read(ledger, first, count=count, size=MIB)
    found = held.entries()
    held.release()
    return found


def test_a_damaged_index_is_not_the_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A flush that meets a damaged page waits for the repair; it was fatal before."""
    one = Opened(tmp_path)
    for at in range(5):
        one.direct.add(entry(1, at), KEY)
    assert one.direct.commit()
    one.checkpoint()
    mend = flip_runs(tmp_path, 1)
    again = [entry(1, at, payload=b"again") for at in range(3)]
    for data in (*again, entry(2, 0)):
        one.direct.add(data, KEY, recovery=True)
    assert one.direct.commit()
    for _ in range(2):
        with pytest.raises(OSError, match="checkpoint"):
            one.checkpoint()
    assert fatal.wait(0) is None
    assert entries(one, 1, 0, 3) == again
    one.storage.tell_damage()
    (line,) = [record.__dict__ for record in caplog.records if record.getMessage().startswith("a flush failed")]
    assert line["reason"] == "the location index is damaged"
    assert one.storage.stats()["flushes_put_off"] == 2
    mend()
    one.checkpoint()
    one.crash()
    one = Opened(tmp_path)
    assert entries(one, 1, 0, 5) == [*again, entry(1, 3), entry(1, 4)]
    assert entries(one, 2, 0, 1) == [entry(2, 0)]
    one.stop()


def test_a_checkpoint_that_nobody_ran(tmp_path: Path) -> None:
    """One that is requested while the flush thread ends was no success, although none before it has failed."""
    one = Opened(tmp_path)
    one.direct.add(entry(1, 0), KEY)
    assert one.direct.commit()
    one.checkpoints.stop()
    assert not one.storage.checkpoint()
    one.stop()
