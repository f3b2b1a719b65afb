"""Our bookie started on the disks that a real Java bookie left, after a clean stop and after kill -9."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fixtures.bookies import BookieProcess
from tests.fixtures.java_peer import JavaPeer
from tests.fixtures.java_process import JavaBookie
from tests.interop.conftest import Client
from tests.interop.driver import FENCED, NO_SUCH_LEDGER
from tests.interop.java_disks import KINDS, Content, explicit_lac, fill, hashes, java_bookie, on_its_disks

pytestmark = pytest.mark.interop

Ended = Callable[..., tuple[JavaBookie, Content]]


@pytest.fixture
def running() -> Iterator[list[JavaBookie | BookieProcess]]:
    """Bookies that are killed in the end."""
    made: list[JavaBookie | BookieProcess] = []
    yield made
    for bookie in made:
        bookie.kill()


@pytest.fixture
def ended(
    java_peer: JavaPeer,
    cluster_uri: str,
    client: Client,
    tmp_path: Path,
    running: list[JavaBookie | BookieProcess],
) -> Ended:
    """A Java bookie of a kind that was filled, and ended in that way."""

    def make(kind: str, how: str, **settings: str) -> tuple[JavaBookie, Content]:
        java = java_bookie(java_peer, tmp_path / "bookie", cluster_uri, kind, **settings)
        running.append(java)
        java.start()
        content = Content(client, java.id)
        fill(content, java)
        if how == "stop":
            java.stop()
        else:
            java.kill()
        return java, content

    return make


@pytest.mark.parametrize("how", ["stop", "kill"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_java_client_reads_what_a_java_bookie_stored(
    ended: Ended, kind: str, how: str, running: list[JavaBookie | BookieProcess]
) -> None:
    """Every entry; fenced stays fenced, open goes on with its writer, deleted stays gone; Java's index as it was."""
    java, content = ended(kind, how)
    before = hashes(java)
    ours = on_its_disks(java)
    running.append(ours)
    ours.start()
    assert hashes(java) == before
    if how == "stop":  # a journal that is replayed brings deleted ledgers back, until they are collected again
        assert content.raw_read("deleted", 0) == NO_SUCH_LEDGER
    assert content.raw_read("fenced", 99) == 0
    refused = content.client.driver.call(
        "raw_add", bookie=java.id, ledger=content.ledgers["fenced"], entry=100, password="pw"
    )
    assert refused["code"] == FENCED
    assert explicit_lac(java.port, content.ledgers["lac"]) == 42
    content.add("open", 20)
    content.check("closed", recovery=False)
    for name in ("open", "fenced", "lac", "rest"):
        content.check(name, recovery=True)
    ours.kill()
    ours.start()
    content.check("open", recovery=False)
    content.check("rest", recovery=False)
    assert ours.stop() == 0
    assert hashes(java) == before
