"""Our bookie started on the disks that a real Java bookie left, after a clean stop and after a kill."""

import pytest

from tests.interop.driver import FENCED, NO_SUCH_LEDGER
from tests.interop.java_disks import KINDS, Ended, Running, explicit_lac, hashes, on_its_disks

pytestmark = pytest.mark.interop


# A clean stop leaves what a kill leaves, without the journal's part, so one case is enough.
CASES = [("db", "stop"), *((kind, "kill") for kind in KINDS)]


@pytest.mark.parametrize(("kind", "how"), CASES)
def test_the_java_client_reads_what_a_java_bookie_stored(ended: Ended, kind: str, how: str, running: Running) -> None:
    """It reads every entry. Fenced ledgers stay fenced, open ones go on with their writer, deleted ones stay gone,
    and Java's
    index is unchanged.
    """
    java, content = ended(kind, how)
    before = hashes(java)
    ours = on_its_disks(java)
    running.append(ours)
    ours.start()
    content.find_bookie()
    assert hashes(java) == before
    if how == "stop":  # replaying a journal brings deleted ledgers back, until they are collected again
        assert content.raw_read("deleted", 0) == NO_SUCH_LEDGER
    assert content.raw_read("fenced", 99) == 0
    refused = content.client.driver.call(
        "raw_add", bookie=java.id, ledger=content.ledgers["fenced"], entry=100, password="pw"
    )
    assert refused["code"] == FENCED
    assert explicit_lac(java.port, content.ledgers["lac"]) == 42
    content.add("open", 20)
    content.check("closed", recovery=False)
    for name in ("open", "fenced", "lac", "rest", "more"):
        content.check(name, recovery=True)
    ours.kill()
    ours.start()
    content.find_bookie()
    content.check("open", recovery=False)
    content.check("rest", recovery=False)
    assert ours.stop() == 0
    assert hashes(java) == before
