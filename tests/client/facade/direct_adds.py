"""What the tests of direct adds share: ledgers whose adds are direct, and bookies that stand still."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bookie.client import BookKeeper
from bookie.client.blocking.appends import finished
from bookie.client.blocking.writers import WriteHandle
from tests.fixtures.bookies import BookieProcess

WAIT_S = 60.0
PATIENCE_S = 0.25
SIZES = {"one": (1, 1, 1), "three": (3, 3, 3), "striped": (3, 2, 2), "quorum": (3, 3, 2), "any": (3, 2, 1)}


def created(bk: BookKeeper, sizes: tuple[int, int, int] = (1, 1, 1), **options: Any) -> WriteHandle:
    """Create a ledger."""
    return bk.create_ledger(ensemble_size=sizes[0], write_quorum_size=sizes[1], ack_quorum_size=sizes[2], **options)


def on(bk: BookKeeper, one: BookieProcess) -> WriteHandle:
    """Create a ledger on one bookie."""
    while (ledger := created(bk)).metadata.segments[0].bookies != (one.id,):
        ledger.close()
    return ledger


def payload(entry: int) -> bytes:
    """Return a payload of varying size that identifies its entry."""
    return b"%d." % entry * (entry % 97)


def warm(ledger: WriteHandle, first: int = 0, patience_s: float = WAIT_S) -> int:
    """Add entries until they are added directly to all bookies, and return the id of the next one.

    The bookies have `patience_s` seconds for each of them, since a busy disk may be slow.
    """
    direct = ledger._direct_adds
    direct._step_s = patience_s
    until = time.monotonic() + WAIT_S
    entry, well = first, 0
    while well < ledger.metadata.ensemble_size:
        assert time.monotonic() < until, "no entry was added directly"
        for peer in direct._bookies._peers.values():
            peer.direct._connector._patience_s = patience_s
        nothing_owed(ledger)  # else more connections are begun, and one may be too young when it comes
        got = direct.append(payload(entry))
        well = well + 1 if type(got) is int else 0
        if not isinstance(got, int):
            assert (ledger._append(payload(entry), None) if got is None else finished(got, None)) == entry
        entry += 1
    return entry


@contextmanager
def only_direct(ledger: WriteHandle) -> Iterator[None]:
    """Fail all adds that the event loop would have to do, and those that it would go on with."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("the event loop was asked")

    writer: Any = ledger._handle.writer
    before = writer.append_at_once
    writer.append_at_once = refuse
    if ledger.metadata.ack_quorum == ledger.metadata.write_quorum:  # else it collects what slower bookies answer
        writer._taken_over = refuse
    yield
    writer.append_at_once = before
    vars(writer).pop("_taken_over", None)


def nothing_owed(ledger: WriteHandle) -> None:
    """Wait until all bookies have answered, so that the next add finds a connection to each."""
    adder = ledger._direct_adds._adder
    assert adder is not None
    wait_until(lambda: not adder.collect())


def check(bk: BookKeeper, ledger: int, count: int) -> None:
    """Check that a closed ledger has exactly these entries."""
    with bk.open_ledger(ledger) as reader:
        assert reader.last_add_confirmed == count - 1
        entries = [bytes(entry.data) for batch in reader.batches() for entry in batch]
        assert entries == [payload(entry) for entry in range(count)]
        assert reader.length == sum(map(len, entries))


@contextmanager
def frozen(one: BookieProcess) -> Iterator[None]:
    """Let a bookie stand still in the block."""
    one.freeze()
    try:
        yield
    finally:
        one.thaw()


def wait_until(true: Callable[[], object]) -> None:
    """Wait until something is true."""
    until = time.monotonic() + WAIT_S
    nothing = threading.Event()
    while not true():
        assert time.monotonic() < until
        nothing.wait(0.001)
