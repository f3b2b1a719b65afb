"""What bkadmin says about bookies that are down, and about arguments that are no numbers."""

from collections.abc import Callable

import pytest

from bookie.client import BookKeeper
from bookie.metadata import open_driver
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from tests.admin.bkadmin.conftest import BkAdmin
from tests.fixtures.bookies import BookieProcess

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

LOST = LedgerMetadata(
    ensemble_size=1,
    write_quorum=1,
    ack_quorum=1,
    segments=(Segment(0, ("10.0.0.9:3181",)),),
    state=LedgerState.CLOSED,
    last_entry=0,
    length=1,
)
"""A ledger whose only replica is gone."""


def test_a_bookie_that_is_down(
    bookies: Callable[..., list[BookieProcess]], bkadmin: BkAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its registration lasts, commands say that it is down, and where nothing listens."""
    kept, lost = bookies(2, advertisedAddress="127.0.0.1")
    uri = f"grpc://{kept.admin}"
    monkeypatch.setenv("BOOKIE_METADATA_URI", uri)
    with BookKeeper(uri) as bk, bk.create_ledger(ensemble_size=2, write_quorum_size=1, ack_quorum_size=1) as ledger:
        ledger.append(b"on one bookie")
        ledger.append(b"on the other")
    lost.kill()
    down = f"127.0.0.1:{lost.port}: the bookie is down: nothing listens there"
    for command in ("bookiesanity", "restorebookie"):
        done = bkadmin(command, lost.id)
        assert (done.code, done.err) == (1, f"bkadmin: bookie {lost.id}: {down}\n")
    states = {row["bookie"]: row["state"] for row in bkadmin("bookieinfo", "-o", "json").json["bookies"]}
    assert states == {kept.id: "ok", lost.id: f"failed: {down}"}
    assert f"{lost.id} is registered and does not answer: {down}" in bkadmin("health").out
    read = bkadmin("readledger", ledger.id)
    assert (read.code, read.err.count("is down"), read.err.count("Errno")) == (3 if read.out else 1, 1, 0)
    unknown = bkadmin("bookiesanity", "nobody")
    assert unknown.err == "bkadmin: bookie nobody is unknown; bkadmin listbookies lists all\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("readledger", "x"), "'x' is not a whole number."),
        (("deleteledger", "1.5"), "'1.5' is not a whole number."),
        (("readledger", "0", "--timeout", "soon"), "'soon' is not a number."),
    ],
)
def test_arguments_that_are_no_numbers(bkadmin: BkAdmin, words: tuple[str, ...], said: str) -> None:
    """The message has no words of the library that reads the command line."""
    done = bkadmin(*words)
    assert done.code == 2
    assert said in done.err
    assert " range" not in done.err


def test_nothing_copies_without_an_auditor(
    bookies: Callable[..., list[BookieProcess]], bkadmin: BkAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decommission says that it would wait for ever for the ledgers of a bookie; here, none of them can be copied."""
    (only,) = bookies(1)
    uri = f"grpc://{only.admin}"
    monkeypatch.setenv("BOOKIE_METADATA_URI", uri)
    driver = open_driver(uri)
    driver.start()
    try:
        driver.ledgers.create(7, LOST)
        done = bkadmin("decommissionbookie", "10.0.0.9:3181", "--yes")
        driver.ledgers.delete(7)
    finally:
        driver.stop()
    assert "no auditor is elected, so nothing copies ledgers by itself" in done.err
    nothing = bkadmin("decommissionbookie", "10.0.0.9:3181", "--yes")
    assert "auditor" not in nothing.err
