"""bkadmin on a cluster of real bookies, one of which holds the metadata store."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bookie.client import ChannelV3, Digest
from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from tests.admin.bkadmin.conftest import BkAdmin
from tests.fixtures.bookies import BookieProcess

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

Bookies = Callable[..., list[BookieProcess]]


@pytest.fixture
def pair(bookies: Bookies, monkeypatch: pytest.MonkeyPatch) -> list[BookieProcess]:
    """Two bookies, whose cluster bkadmin finds through the environment."""
    found = bookies(2, advertisedAddress="127.0.0.1")
    monkeypatch.setenv("BOOKIE_METADATA_URI", f"grpc://{found[0].admin}")
    return found


@pytest.fixture
def driver(pair: list[BookieProcess]) -> Iterator[MetadataDriver]:
    """A metadata driver of the same cluster, to prepare it."""
    one = open_driver(f"grpc://{pair[0].admin}")
    one.start()
    yield one
    one.stop()


def ledger_on(driver: MetadataDriver, bookies: list[str]) -> int:
    """Create an open ledger on these bookies; return its id."""
    ledger = driver.ledgers.new_id()
    quorum = len(bookies)
    metadata = LedgerMetadata(
        ensemble_size=quorum,
        write_quorum=quorum,
        ack_quorum=quorum,
        segments=(Segment(0, tuple(bookies)),),
        state=LedgerState.OPEN,
        custom={"application": b"test"},
    )
    driver.ledgers.create(ledger, metadata)
    return ledger


@pytest.mark.thorough
def test_bookies_and_their_space(pair: list[BookieProcess], bkadmin: BkAdmin) -> None:
    """PL5: a bookie that does not answer is listed as failed, and the exit code is 3."""
    listed = bkadmin("listbookies", "-o", "json")
    assert {row["bookie"]: row["state"] for row in listed.json["bookies"]} == dict.fromkeys(
        (one.id for one in pair), "writable"
    )
    whole = bkadmin("bookieinfo", "-o", "json")
    assert (whole.code, whole.json["failed"]) == (0, 0)
    assert sum(row["weight"] for row in whole.json["bookies"]) == pytest.approx(1)
    assert sum(row["capped"] for row in whole.json["bookies"]) == pytest.approx(1)
    assert whole.json["free"] == sum(row["free"] for row in whole.json["bookies"]) > 0
    disk = os.statvfs(pair[0].directory)
    size, free = disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize
    assert [row["total"] for row in whole.json["bookies"]] == [size, size]
    assert whole.json["total"] == 2 * size
    for row in whole.json["bookies"]:
        assert row["free"] == pytest.approx(free, abs=size * 0.02)  # other tests write meanwhile
    pair[1].freeze()
    try:
        part = bkadmin("bookieinfo", "-o", "json", "--timeout", "1")
    finally:
        pair[1].thaw()
    states = {row["bookie"]: row["state"] for row in part.json["bookies"]}
    assert (part.code, part.json["failed"], states[pair[0].id]) == (3, 1, "ok")
    assert states[pair[1].id].startswith("failed: ")
    assert bkadmin("readonly", "on", "--admin", pair[1].admin).code == 0
    mixed = bkadmin("bookieinfo", "-o", "json").json
    rows = {row["bookie"]: row for row in mixed["bookies"]}
    assert [(rows[one.id]["state"], rows[one.id]["weight"], rows[one.id]["capped"]) for one in pair] == [
        ("ok", 1, 1),
        ("read-only", None, None),
    ]
    assert mixed["total"] == 2 * size
    assert bkadmin("readonly", "off", "--admin", pair[1].admin).code == 0
    ends = bkadmin("endpointinfo", pair[1].id, "-o", "yaml")
    assert ends.code == 0
    assert f"port: {pair[1].port}" in ends.out
    pair[1].stop()
    gone = bkadmin("listbookies", "-o", "json").json["bookies"]
    assert {row["bookie"]: row["state"] for row in gone}[pair[1].id] == "absent"
    assert bkadmin("endpointinfo", pair[1].id).code == 1


@pytest.mark.thorough
def test_cookies(pair: list[BookieProcess], bkadmin: BkAdmin, tmp_path: Path) -> None:
    """The generated cookie equals the bookie's. A running bookie keeps its cookie; others are changed and deleted."""
    instance = bkadmin("whatisinstanceid", "-o", "json").json["instance_id"]
    text = bkadmin("cookie_get", pair[0].id).out
    assert instance in text
    generated = bkadmin("cookie_generate", pair[0].id, "--conf", pair[0].conf)
    assert generated.out == text
    refused = bkadmin("cookie_delete", pair[0].id, "--yes")
    assert (refused.code, "running" in refused.err) == (1, True)
    file = tmp_path / "cookie"
    file.write_text(text.replace(pair[0].id, "other:3181"))
    assert bkadmin("cookie_create", "another:3181", "-cf", file).code == 1
    assert bkadmin("cookie_update", "other:3181", "-cf", file, "--yes").code == 1
    assert bkadmin("cookie_create", "other:3181", "-cf", file).code == 0
    assert bkadmin("cookie_create", "other:3181", "-cf", file).code == 1
    assert bkadmin("cookie_update", "other:3181", "-cf", file, "--yes").code == 0
    assert bkadmin("cookie_delete", "other:3181", "--dry-run").out == "would delete the cookie of bookie other:3181\n"
    assert bkadmin("cookie_get", "other:3181", "-o", "json").json["cookie"] == file.read_text().rstrip("\n")
    assert bkadmin("cookie_delete", "other:3181", "--yes", "-o", "json").json["deleted"] is True
    assert bkadmin("cookie_get", "other:3181").code == 1
    assert bkadmin("initnewcluster").code == 1


def test_ledgers(pair: list[BookieProcess], driver: MetadataDriver, bkadmin: BkAdmin) -> None:
    """Ledgers are listed, also by bookie, described, announced as closed, and deleted only when confirmed."""
    here, both = ledger_on(driver, [pair[0].id]), ledger_on(driver, [one.id for one in pair])
    assert [row["ledger"] for row in bkadmin("listledgers", "-o", "json").json["ledgers"]] == [here, both]
    on_second = bkadmin("listledgers", "--meta", "--bookie", pair[1].id, "-o", "json").json["ledgers"]
    assert "bookie nobody is in no ledger" in bkadmin("listledgers", "--bookie", "nobody").err
    assert [(row["ledger"], row["quorums"], row["state"]) for row in on_second] == [(both, "2/2/2", "OPEN")]
    about = bkadmin("ledgermetadata", both, "-o", "json").json
    assert (about["custom"], about["segments"][0]["bookies"]) == ({"application": "test"}, [one.id for one in pair])
    digest = Digest.of()
    with ChannelV3.connect(*pair[1].address) as channel:
        channel.add(both, 0, b"x", digest=digest, lac=-1, length=1)
    told = bkadmin("write-close", both, "-o", "json")
    assert {row["state"] for row in told.json["bookies"]} == {"announced"}
    assert bkadmin("deleteledger", here, "--dry-run").code == 0
    assert bkadmin("deleteledger", here).code == 1  # nobody can answer the question
    assert driver.ledgers.read(here).version >= 0
    assert bkadmin("deleteledger", here, "--yes").code == 0
    missing = bkadmin("ledgermetadata", here)
    assert (missing.code, str(here) in missing.err) == (1, True)


def test_entries_are_written_and_read(pair: list[BookieProcess], bkadmin: BkAdmin) -> None:
    """simpletest writes and reads over both bookies as a client does, and keeps the ledger only on request."""
    tested = bkadmin("simpletest", "-e", 2, "-n", 300, "--keep", "-o", "json")
    assert tested.code == 0, tested.err
    assert (tested.json["entries"], tested.json["last_entry"]) == (300, 299)
    ledger = tested.json["ledger"]
    read = bkadmin("readledger", ledger, "-fe", 7, "-le", 9, "-m", "-o", "json").json["entries"]
    assert [(row["entry"], row["bytes"]) for row in read] == [(7, 1024), (8, 1024), (9, 1024)]
    assert read[0]["data"].startswith("\\x07\\x08")
    assert bkadmin("readledger", ledger, "-fe", 300, "-o", "json").json["count"] == 0
    assert bkadmin("simpletest", "-e", 2, "-n", 3).code == 0
    assert [row["ledger"] for row in bkadmin("listledgers", "-o", "json").json["ledgers"]] == [ledger]
    few = bkadmin("simpletest", "-e", 3, "-w", 3, "-n", 3)
    assert (few.code, few.out) == (1, "")


@pytest.mark.thorough
def test_reading_that_ends_early(pair: list[BookieProcess], driver: MetadataDriver, bkadmin: BkAdmin) -> None:
    """If a bookie fails in between, the entries read so far are shown and marked as partial, with exit code 3; if
    nothing can be read, it is an error.
    """
    tested = bkadmin("simpletest", "-e", 2, "-w", 1, "-a", 1, "-n", 10, "--keep", "-o", "json")
    ledger = tested.json["ledger"]
    here = driver.ledgers.read(ledger).value.segments[0].bookies.index(pair[0].id)
    pair[1].kill()
    part = bkadmin("readledger", ledger, "-fe", here, "--timeout", 2, "-o", "json")
    assert (part.code, part.json["partial"]) == (3, True), part.err
    assert [row["entry"] for row in part.json["entries"]] == [here]
    assert "the output is incomplete" in part.err
    none = bkadmin("readledger", ledger, "-fe", here + 1, "--timeout", 2)
    assert (none.code, none.out, none.err.count("\n")) == (1, "", 1)


@pytest.mark.thorough
def test_a_test_that_fails_leaves_no_ledger(pair: list[BookieProcess], bkadmin: BkAdmin) -> None:
    """The ledger of a test is deleted, whatever ended the test."""
    failed = bkadmin("simpletest", "-e", 2, "-n", 2, "--entry-size", 6 << 20)
    assert (failed.code, failed.out) == (1, "")
    assert bkadmin("listledgers", "-o", "json").json["ledgers"] == []


@pytest.mark.thorough
def test_slips_of_the_pen(pair: list[BookieProcess], driver: MetadataDriver, bkadmin: BkAdmin) -> None:
    """An unknown bookie id is not silently accepted; the cookie of a running bookie stays; the metadata of all ledgers
    of a list is read before any bookie is told.
    """
    for words in (
        ("recover", "b:1", "--yes"),
        ("decommissionbookie", "b:1", "--yes"),
        ("updatebookieinledger", "-sb", "b:1", "-db", "c:1", "--yes"),
    ):
        done = bkadmin(*words)
        assert (done.code, done.err.count("\n")) == (0, 1), done.err
        assert "bookie b:1 is in no ledger and has no cookie; check the id" in done.err
    kept = bkadmin("recover", pair[1].id, "-d", "--yes")
    assert (kept.code, "is running: stop it first, or omit -d" in kept.err) == (1, True)
    assert bkadmin("cookie_get", pair[1].id).code == 0
    ledger = ledger_on(driver, [one.id for one in pair])
    told = bkadmin("write-close", ledger, 4711)
    assert (told.code, told.out, "4711" in told.err) == (1, "", True)
    assert bkadmin("bookieid", "--conf", pair[1].conf, "-o", "json").json == {"bookie": pair[1].id}


@pytest.mark.thorough
def test_a_bookie_is_taken_out(
    pair: list[BookieProcess], bookies: Bookies, driver: MetadataDriver, bkadmin: BkAdmin
) -> None:
    """OP1: its ledgers are copied; a ledger without another replica is listed with the reason, and the cookie stays."""
    leaving = pair[1]
    shared = bkadmin("simpletest", "-e", 2, "-n", 20, "--keep", "-o", "json").json["ledger"]
    alone = ledger_on(driver, [leaving.id])
    stored = driver.ledgers.read(alone)
    closed = replace(stored.value, state=LedgerState.CLOSED, last_entry=3, length=4)
    driver.ledgers.write(alone, closed, stored.version)
    assert bkadmin("decommissionbookie", leaving.id, "--yes").code == 1  # it is running
    (other,) = bookies(
        1, advertisedAddress="127.0.0.1", metadataServiceUri=f"grpc://{pair[0].admin}", autoRecoveryDaemonEnabled="true"
    )
    assert leaving.stop() == 0
    done = bkadmin("decommissionbookie", leaving.id, "--yes", "-o", "json")
    assert (done.code, done.json["cookie_deleted"]) == (3, False), done.err
    assert [row["ledger"] for row in done.json["blocked ledgers"]] == [alone]
    assert "ledgers remain" in done.err
    assert bkadmin("readledger", shared, "-o", "json").json["count"] == 20
    assert other.id in bkadmin("ledgermetadata", shared, "-o", "json").json["segments"][0]["bookies"]
    driver.ledgers.delete(alone)
    assert bkadmin("decommissionbookie", leaving.id, "--yes").code == 0
    assert bkadmin("cookie_get", leaving.id).code == 1


@pytest.mark.thorough
def test_replication(pair: list[BookieProcess], driver: MetadataDriver, bkadmin: BkAdmin) -> None:
    """Marks are listed by bookie; the switch and the delay are those that replication workers use."""
    driver.replication.mark(7, ["b:1"], 1000)
    driver.replication.mark(9, ["c:1"], 2000)
    every = bkadmin("listunderreplicated", "-o", "json").json
    assert [(row["ledger"], row["missing_on"]) for row in every["ledgers"]] == [(7, ["b:1"]), (9, ["c:1"])]
    assert bkadmin("listunderreplicated", "-mr", "c:1", "-c", "-o", "json").json == {"count": 1}
    assert bkadmin("listunderreplicated", "-emr", "c:1", "-c", "-o", "json").json == {"count": 1}
    assert bkadmin("autorecovery", "-d", "-o", "json").json == {"enabled": False}
    assert not driver.replication.enabled()
    assert bkadmin("autorecovery", "-e").out == "auto-recovery is enabled\n"
    assert bkadmin("lostbookierecoverydelay", "-s", 90, "-o", "json").json == {"delay_s": 90}
    assert driver.replication.lost_bookie_delay_s() == 90
    for command in (("autorecovery", "-s"), ("queryautorecoverystatus",), ("listunderreplicated",)):
        assert bkadmin(*command).err.startswith("no auditor is elected, so nothing looks for lost replicas; set ")
    summed = bkadmin("clusterinfo")
    assert "auditor: no auditor is elected; set autoRecoveryDaemonEnabled " in summed.out
    assert bkadmin("clusterinfo", "-o", "json").json["auditor"] is None
    assert bkadmin("whoisauditor").out.startswith("No auditor elected: set autoRecoveryDaemonEnabled ")
    assert bkadmin("queryautorecoverystatus", "-o", "json").json == {"tasks": []}
