"""A refused add ends the writing of its ledger at this bookie, so its entry log is closed (BP-32)."""

from pathlib import Path

import pytest

from bookie.client import Channel, Digest
from bookie.errors import BookieReadOnly, BookKeeperError, LedgerFenced, TooManyRequests, UnauthorizedAccess
from tests.fixtures.whole_bookie import Running, whole_bookie

DIGEST = Digest.of(password=b"one")
OTHER = Digest.of(password=b"other")


def ended(running: Running) -> float:
    """Return how many ledgers ended at the bookie."""
    families = {family.name: family for family in running.bookie.metrics()}
    return sum(sample.value for sample in families["pybookie_ledgers_write_closed_total"].samples)


def add(channel: Channel, ledger: int, entry: int, digest: Digest = DIGEST) -> None:
    """Add an entry and wait for its response."""
    channel.add(ledger, entry, b"x", digest=digest, lac=-1, length=0)


def test_adds_that_are_refused(tmp_path: Path) -> None:
    """An add refused by a fence or a read-only bookie ends its ledger here; one with a wrong key ends nothing."""
    bookie = whole_bookie(tmp_path, entryLogPerLedgerEnabled="true")
    with bookie as running, Channel.connect(*running.address) as channel:
        for ledger in range(3):
            add(channel, ledger, 0)
        with pytest.raises(UnauthorizedAccess):
            add(channel, 0, 1, OTHER)
        assert ended(running) == 0
        channel.fence(0, DIGEST.master_key)
        assert ended(running) == 1
        running.bookie.checkpoint()  # which closes the log, so that a later refusal counts again
        with pytest.raises(LedgerFenced):
            add(channel, 0, 1)
        assert ended(running) == 2
        running.bookie.set_read_only(read_only=True)
        with pytest.raises(BookieReadOnly):
            add(channel, 1, 1)
        assert ended(running) == 3


def test_adds_above_a_limit(tmp_path: Path) -> None:
    """Adds refused because too many wait for the journal end their ledger, too; the writer leaves this bookie."""
    with whole_bookie(tmp_path, entryLogPerLedgerEnabled="true", maxPendingAddRequestsPerThread="1") as running:
        with Channel.connect(*running.address) as channel:
            waiting = [channel.add_async(7, entry, b"x", digest=DIGEST, lac=-1, length=0) for entry in range(1000)]
            answers: list[BookKeeperError | None] = []
            for reply in waiting:
                try:
                    reply.result()
                except BookKeeperError as error:
                    answers.append(error)
                else:
                    answers.append(None)
        assert answers[0] is None
        assert any(isinstance(answer, TooManyRequests) for answer in answers)
        assert ended(running) == 1
